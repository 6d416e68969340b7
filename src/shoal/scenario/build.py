"""The one place that builds live objects from a scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from shoal.agents import (
    Approach,
    AskPerson,
    ClaimJudge,
    DelayedMind,
    HeuristicSettings,
    HumanMind,
    LanguageSettings,
    MemorySettings,
    NoJudge,
    PlayedMind,
    RunningRecord,
    ScriptedMind,
    ScriptedSettings,
    SplitMind,
)
from shoal.agents.heuristic import Behaviour, build_heuristic_mind
from shoal.agents.language import AssistantMind, LanguageMind, OpinionPoll, PrefixMeter, describe_world
from shoal.agents.memory import GraphKnowledge, Memory
from shoal.engine import ClaimCheck, DecisionLimits, Schedule, Seats, Variable
from shoal.errors import RunRefused, ScenarioInvalid, ShoalError
from shoal.models import Answer, Model, Question
from shoal.scenario.declared.events import DeclaredEvent, SkipEvent
from shoal.scenario.declared.interventions import JudgedClaim
from shoal.scenario.declared.kinds import OwnMindSettings, OwnWorldSettings, name_class
from shoal.scenario.happenings import (
    Asked,
    build_clock,
    build_schedule,
    count_by_round,
    find_absent,
    list_declared_mentions,
    list_events,
    resolve_events,
)
from shoal.scenario.sampling.follow_graph import draw_follow_graph, list_late_follows
from shoal.scenario.sampling.people import People
from shoal.scenario.sampling.sampler import sample
from shoal.scenario.scenario import Scenario
from shoal.sinks import Narrator
from shoal.types import Decision, Mind, Observation, Versioned, WorldProtocol
from shoal.worlds import BaseWorld, EmbedTexts, NameIndex, TextReader, WorldContext, kind_named


@dataclass(frozen=True, slots=True)
class Simulation:
    """The people, worlds and minds of a run, ready to run."""

    seed: int
    rounds: int
    limits: DecisionLimits
    people: People
    context: WorldContext
    worlds: Mapping[str, WorldProtocol]
    minds: Mapping[str, Mind]
    schedules: Mapping[str, Schedule]
    #: World -> how much of its prompts repeats earlier ones, where language minds send any.
    prefixes: Mapping[str, PrefixMeter]
    #: The agents whose turns a person takes for a while.
    seats: Seats


@dataclass(frozen=True, slots=True)
class Sources:
    """Where replies come from that a run cannot compute: a person who plays an agent, and language models."""

    answer: AskPerson | None = None
    model: Model | None = None
    #: Compares texts by meaning, in worlds that want that.
    embed: EmbedTexts | None = None


def build(
    scenarios: Versioned[Scenario], injected: Sequence[DeclaredEvent] = (), sources: Sources | None = None
) -> Simulation:
    """Build people, worlds and minds as the first version of the scenario declares them, and as later ones change them.

    `injected` are the events that were added when the run was forked.
    """
    sources = sources or Sources()
    scenario, latest = scenarios.first, scenarios.latest
    first = people = sample(scenario)
    if latest.population != scenario.population:
        # People who join later come after the others, and nothing about the others depends on them.
        people = sample(latest)
    context = WorldContext(
        population=people,
        graph=draw_follow_graph(scenario, first).enlarge(len(people)),
        absent=find_absent(scenarios, people.names),
        sizes=count_by_round(scenarios),
        late_follows=list_late_follows(latest, len(first)),
        time=scenarios.map(lambda version: version.time),
        clock=build_clock(scenarios, injected),
        seed=scenario.seed,
        reader=TextReader(
            people.topics,
            scenario.topic,
            [claim.build() for claim in scenario.claims],
            list_declared_mentions(scenarios, injected),
            scenario.edition,
            unread=len(people.topics) - len(first.topics),
        ),
        embed=sources.embed,
    )
    worlds = {name: _build_world(name, scenarios, context) for name in scenario.worlds}
    minds = {name: _build_mind(name, scenarios, context, worlds[name], sources.model) for name in scenario.worlds}
    inner = {name: mind.inner if isinstance(mind, SplitMind) else mind for name, mind in minds.items()}
    prefixes = {name: mind.prefixes for name, mind in inner.items() if isinstance(mind, LanguageMind)}
    if scenario.play:
        index = NameIndex(people.names)
        played = [index[who] for who in scenario.play]
        human = HumanMind(sources.answer or _refuse_to_answer)
        minds = {name: PlayedMind(mind, human, played) for name, mind in minds.items()}
    events = list_events(scenarios, injected)
    asked = Asked(find_function, partial(_make_judge, latest.mind, sources.model))
    schedules = {name: build_schedule(name, scenarios, context, events, asked) for name in scenario.worlds}
    limits = DecisionLimits(latest.workers, latest.deadline_seconds, latest.metrics)
    return Simulation(
        scenario.seed, latest.rounds, limits, people, context, worlds, minds, schedules, prefixes, Seats()
    )


def extend_simulation(
    simulation: Simulation, scenarios: Versioned[Scenario], injected: Sequence[DeclaredEvent] = ()
) -> bool:
    """Let a simulation that has run to its end take over a further version of its scenario; return whether it can.

    It can where the version changes nothing but the number of rounds and the events after that end. What it then does
    is what it would do if it were built anew and ran from the start. Where rounds overlap (visibility), time is
    skipped, or language minds plan for the last round, only building it anew gives that.
    """
    before, latest = Versioned(scenarios.first, scenarios.changes[:-1]).latest, scenarios.latest
    after = before.rounds
    events = list_events(scenarios, injected)
    if before.model_copy(update={"rounds": latest.rounds, "events": latest.events}) != latest:
        return False
    if any(isinstance(placed.event, SkipEvent) and placed.event.round > after for placed in events):
        return False
    if simulation.prefixes or any(world.visibility > 1 for world in simulation.worlds.values()):
        return False
    reschedule_events(simulation, scenarios, injected, after)
    return True


def reschedule_events(
    simulation: Simulation, scenarios: Versioned[Scenario], injected: Sequence[DeclaredEvent], after: int
) -> None:
    """Schedule anew what happens after a round, with all events that were injected by now."""
    events = list_events(scenarios, injected)
    for name, schedule in simulation.schedules.items():
        settings = scenarios.latest.worlds[name]
        schedule.reschedule(after, resolve_events(name, settings, simulation.context, events))


def check_classes(scenario: Scenario) -> None:
    """Check that everything of the user's own can be found; ScenarioInvalid says what cannot."""
    for code in list_own_code(scenario):
        if code.base is not None:
            find_class(code.place, code.field, code.base)
        elif not code.is_variable:
            find_function(code.place, code.field)
    find_variables(scenario)


class OwnCode(NamedTuple):
    """Something of the user's own that a scenario names: a class, a function, or a variable."""

    #: The module, and what it is called there.
    place: str
    field: str
    #: What a class is derived from; None for anything else.
    base: type | None = None
    is_variable: bool = False


def list_own_code(scenario: Scenario) -> Iterator[OwnCode]:
    """List everything of the user's own that a run of the scenario would import."""
    for name, world in scenario.worlds.items():
        if isinstance(world, OwnWorldSettings):
            yield OwnCode(world.kind, f"worlds.{name}.kind", BaseWorld)
            if world.mind is not None:
                yield OwnCode(world.mind, f"worlds.{name}.mind", Mind)
    if isinstance(scenario.mind, OwnMindSettings):
        yield OwnCode(scenario.mind.kind, "mind.kind", Mind)
    for index, place in enumerate(scenario.variables):
        yield OwnCode(place, f"variables.{index}", is_variable=True)
    for index, rule in enumerate(scenario.interventions):
        for field in ("check", "call"):
            if (place := getattr(rule, field)) is not None:
                yield OwnCode(place, f"interventions.{index}.{field}")


def _build_world(name: str, scenarios: Versioned[Scenario], context: WorldContext) -> WorldProtocol:
    settings: Versioned[Any] = scenarios.map(lambda version: version.worlds[name])
    own = settings.first
    if isinstance(own, OwnWorldSettings):
        field = f"worlds.{name}.kind"
        world: WorldProtocol = instantiate(find_class(own.kind, field, BaseWorld), field, name, context, own.settings)
        return world
    kind = kind_named(own.kind)
    assert kind is not None
    return kind.build(name, settings, context)


def _build_mind(
    name: str, scenarios: Versioned[Scenario], context: WorldContext, world: WorldProtocol, model: Model | None
) -> Mind:
    settings = scenarios.first.mind
    match settings:
        case LanguageSettings():
            return _build_language_mind(name, scenarios, context, world, model)
        case ScriptedSettings():
            mind: Mind = ScriptedMind.from_turns(settings, context.population.names, name)
        case OwnMindSettings():
            own = find_class(settings.kind, "mind.kind", Mind)
            mind = instantiate(own, "mind.kind", context, settings.settings)
        case HeuristicSettings():
            mind = _build_heuristic_mind(name, scenarios, context, world)
    return mind if settings.latency is None else DelayedMind(mind, settings.latency, context.seed)


def _build_language_mind(
    name: str, scenarios: Versioned[Scenario], context: WorldContext, world: WorldProtocol, model: Model | None
) -> Mind:
    def select_settings(version: Scenario) -> LanguageSettings:
        assert isinstance(version.mind, LanguageSettings)
        return version.mind.fit_to_size()

    def select_memory_settings(settings: LanguageSettings) -> MemorySettings:
        # The mind's own model draws conclusions, unless the memory names another one.
        return settings.memory.model_copy(update={"model": settings.memory.model or settings.model})

    settings = scenarios.map(select_settings)
    rules = scenarios.map(lambda version: describe_world(version.worlds[name], world))
    memory = Memory(settings.map(select_memory_settings), context.population, context.seed, name, model)
    memory.last_round = scenarios.latest.rounds
    mind = LanguageMind(context, settings, rules, model or _NoModel(), memory)
    if (measure := scenarios.latest.measure) is not None:
        mind.poll = OpinionPoll(name, context.reader, len(context.population), measure.every)
    if any(version.memory.graph_tokens for version in settings.versions()):
        claims = {claim.id: claim.text for claim in scenarios.latest.claims}
        names = NameIndex(context.population.names)
        mind.knowledge = GraphKnowledge(Narrator(name, scenarios.latest.topic, claims, names.find))
    if not context.population.assistants:
        return mind
    return SplitMind(mind, AssistantMind(context, settings, model or _NoModel()), context.population.assistants)


def _make_judge(
    mind: object, model: Model | None, world: str, key: str, judged: JudgedClaim, record: RunningRecord
) -> ClaimCheck:
    """Make the judge of a claim: the model of the mind, where it has one."""
    if not isinstance(mind, LanguageSettings) or model is None:
        return NoJudge()
    approach = Approach(mind.model, mind.temperature, mind.max_tokens)
    return ClaimJudge(world, key, judged.claim, judged.at_least, judged.every, record, approach, model)


class _NoModel:
    """Takes the place of the model in a run without one."""

    async def answer(self, question: Question) -> Answer:
        raise RunRefused(f"no language model is at hand to answer {question.key}")


async def _refuse_to_answer(observation: Observation) -> Decision:
    raise RunRefused(f"{observation.name} is played by a person; go on from a terminal with `shoal resume`")


def _build_heuristic_mind(
    name: str, scenarios: Versioned[Scenario], context: WorldContext, world: WorldProtocol
) -> Mind:
    """Build the offline mind that suits the world; a world of the user's own names or has its own one."""
    settings = scenarios.first.worlds[name]
    if isinstance(settings, OwnWorldSettings):
        field = f"worlds.{name}.kind" if settings.mind is None else f"worlds.{name}.mind"
        found = getattr(world, "mind", None) if settings.mind is None else find_class(settings.mind, field, Mind)
        if not isinstance(found, type) or not issubclass(found, Mind):
            message = "the heuristic mind knows only Shoal's own worlds; name a class with `mind: module:Class`"
            raise ScenarioInvalid([f"worlds.{name}: {message}"])
        mind: Mind = instantiate(found, field, context, {})
        return mind

    def select_behaviour(version: Scenario) -> Behaviour:
        assert isinstance(version.mind, HeuristicSettings)
        actions, minutes = getattr(version.worlds[name], "actions", None), version.time.minutes_per_round
        return Behaviour(version.mind, actions, minutes, version.edition)

    kind = kind_named(settings.kind)
    assert kind is not None
    return build_heuristic_mind(kind, context, scenarios.map(select_behaviour), name)


# Classes of the user's own


def find_object(kind: str, field: str) -> Any:
    """Import something of the user's own; ScenarioInvalid says what to do where that fails."""
    module, _, name = kind.partition(":")
    advice = (
        "it was defined in a script or notebook: run that again, or put the class into a module"
        if module == "__main__"
        else "run from the folder that the module is in, or install it"
    )
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        raise ScenarioInvalid([f"{field}: cannot import {module!r}: {error}; {advice}"]) from error
    except Exception as error:
        # The module is the user's own code, and may fail in any way when it is imported.
        raise ScenarioInvalid([f"{field}: cannot import {module!r}: {type(error).__name__}: {error}"]) from error
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise ScenarioInvalid([f"{field}: there is no {name!r} in {module!r}; {advice}"])
    return found


def find_class(kind: str, field: str, base: type) -> Any:
    """Find the user's subclass of the base; ScenarioInvalid says how to write one where none is found."""
    found = find_object(kind, field)
    if not isinstance(found, type):
        raise ScenarioInvalid([f"{field}: {kind} is not a class"])
    if not issubclass(found, base):
        noun = "mind" if base is Mind else "world"
        raise ScenarioInvalid([f"{field}: {kind} is not a {noun}; it must be a subclass of shoal.{base.__name__}"])
    return found


def find_function(kind: str, field: str) -> Callable[..., Any]:
    """Find a function; ScenarioInvalid says what to do without it."""
    found = find_object(kind, field)
    if not callable(found):
        raise ScenarioInvalid([f"{field}: {kind} is not a function"])
    return found  # type: ignore[no-any-return]


def find_variables(scenario: Scenario) -> tuple[Variable, ...]:
    """Find the variables that the user wrote; ScenarioInvalid says how to write one where none is found."""
    found = [find_object(place, f"variables.{index}") for index, place in enumerate(scenario.variables)]
    problems = [
        f"variables.{index}: {scenario.variables[index]} is not a variable; write @shoal.variable above the function"
        for index, variable in enumerate(found)
        if not isinstance(variable, Variable)
    ]
    if problems:
        raise ScenarioInvalid(problems)
    return tuple(found)


def instantiate(found: Any, field: str, *arguments: Any) -> Any:
    """Make an object of a class of the user's; ScenarioInvalid where that fails."""
    try:
        return found(*arguments)
    except ShoalError:
        raise
    except Exception as error:
        raise ScenarioInvalid(
            [f"{field}: {name_class(found)} cannot be built: {type(error).__name__}: {error}"]
        ) from error
