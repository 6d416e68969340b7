"""What a run with language minds will take, before anybody pays for it: calls, tokens, dollars and time.

The run is played through in memory with the real worlds, prompts and memories, and nobody is asked. Of a large
population only some people are followed that closely, and the rest is taken to be like them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from shoal.agents.settings import HeuristicSettings, LanguageSettings
from shoal.engine.decisions import Decider, DecisionLimits
from shoal.engine.engine import Engine
from shoal.engine.record import RoundRecord
from shoal.errors import ScenarioInvalid
from shoal.journal import Journal
from shoal.models.base import Question, Usage
from shoal.models.costs import Price, price_of
from shoal.runs.planning.dry_run import (
    USUAL_ACTIONS,
    CallSite,
    CallTally,
    DryRunMind,
    DryRunModel,
    IdleMind,
    Measurements,
    SampledAgents,
)
from shoal.scenario.build import Simulation, Sources, build
from shoal.scenario.declared.population import count_people
from shoal.scenario.declared.worlds import OwnWorldSettings
from shoal.scenario.sampling.people import People
from shoal.scenario.scenario import BudgetSettings, Scenario
from shoal.seeds import derive, hashes
from shoal.types import Mind, Versioned
from shoal.worlds.settings import WorldSettings

#: People whose prompts are built, in each world.
MAX_FOLLOWED = 400
#: What hosted models usually take: until they begin to answer, and to write the answer.
LATENCY_SECONDS = 0.8
TOKENS_PER_SECOND = 80
#: Providers that keep no beginnings of prompts unless each is marked, which this way of asking them cannot do.
UNCACHED = ("anthropic/",)
SEQUENTIAL = "sequential"


class Expected(msgspec.Struct, frozen=True):
    """What one model will be asked in one world."""

    world: str
    model: str
    calls: int
    #: Of the calls, those in which agents draw conclusions from what they remember.
    remembering: int
    #: Of the calls, those in which texts are embedded, to find what agents are reminded of.
    embedding: int
    input: int
    #: Of the input, what repeats the beginning of an earlier prompt and is in the server's prefix cache, if it has one.
    cached: int
    output: int
    #: Dollars, with what is cached charged as such; None: the price is not known.
    cost: float | None
    #: Dollars if every token is paid in full: the most that it can be.
    cost_uncached: float | None
    #: Calls that are left if every conversation ends with its first words; elsewhere all of them.
    least_calls: int

    @property
    def tokens(self) -> int:
        return self.input + self.output


class Plan(msgspec.Struct, frozen=True):
    """What a run will take, model by model in each world."""

    name: str
    people: int
    #: People whose prompts were built; where they are fewer than all, the figures are a sample's, scaled.
    followed: int
    #: In the world that goes on longest.
    rounds: int
    expected: tuple[Expected, ...]
    seconds: float
    #: What the time rests on.
    seconds_per_call: float
    max_workers: int
    #: Limits of the budget that will be reached before the end, in words.
    short: tuple[str, ...] = ()

    @property
    def calls(self) -> int:
        return sum(each.calls for each in self.expected)

    @property
    def least_calls(self) -> int:
        return sum(each.least_calls for each in self.expected)

    @property
    def may_end_early(self) -> bool:
        """Whether there are conversations, whose length nobody knows: then all figures are the most that they take."""
        return self.least_calls < self.calls

    @property
    def input(self) -> int:
        return sum(each.input for each in self.expected)

    @property
    def cached(self) -> int:
        return sum(each.cached for each in self.expected)

    @property
    def output(self) -> int:
        return sum(each.output for each in self.expected)

    @property
    def tokens(self) -> int:
        return self.input + self.output

    @property
    def cost(self) -> float | None:
        return _sum(each.cost for each in self.expected)

    @property
    def cost_uncached(self) -> float | None:
        return _sum(each.cost_uncached for each in self.expected)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Models of which nobody knows what they cost."""
        return tuple(dict.fromkeys(each.model for each in self.expected if each.cost is None))


async def plan_run(
    wanted: Scenario | Versioned[Scenario],
    latency_seconds: float | None = None,
    budget: BudgetSettings | None = None,
    max_followed: int = MAX_FOLLOWED,
    done: Mapping[str, int] | None = None,
) -> Plan:
    """Play the scenario through; `latency_seconds` is what one call takes, `budget` stands in for the scenario's.

    `done`: world -> the last round of it that has been paid for, where a run is to go on.
    """
    history = wanted if isinstance(wanted, Versioned) else Versioned(wanted)
    scenario = history.versions()[-1]
    if not isinstance(scenario.mind, LanguageSettings):
        return Plan(
            scenario.name, count_people(scenario.population), 0, scenario.rounds, (), 0.0, 0.0, scenario.workers
        )
    played = await _play(history, scenario.mind, max_followed)
    if done:
        played = played.after(done)
    expected = tuple(_expectations(played, scenario.mind))
    seconds_per_call = latency_seconds or _usual_seconds(expected)
    found = Plan(
        name=scenario.name,
        people=played.people,
        followed=played.followed,
        rounds=played.last_round,
        expected=expected,
        seconds=_waves(played, scenario.workers, sum(each.calls for each in expected)) * seconds_per_call,
        seconds_per_call=seconds_per_call,
        max_workers=scenario.workers,
    )
    return msgspec.structs.replace(found, short=tuple(_short(found, budget or scenario.budget)))


async def questions(scenario: Scenario, max_followed: int) -> list[Question]:
    """What the agents of a scenario would ask in their turns, as they would ask it; nobody is asked."""
    assert isinstance(scenario.mind, LanguageSettings)
    asked: list[Question] = []
    await _play(Versioned(scenario), scenario.mind, max_followed, asked.append)
    return asked


# Playing it through


@dataclass(frozen=True, slots=True)
class _Played:
    people: int
    followed: int
    measurements: Measurements
    last_round: int
    #: World -> its rounds, and how many of them are in flight.
    rounds: Mapping[str, list[_Round]]
    visibility: Mapping[str, int]
    #: World -> the share of its turns that are taken at the least.
    least: Mapping[str, float]

    def after(self, done: Mapping[str, int]) -> _Played:
        """What is left when these rounds are done."""
        rounds = {world: rounds[done.get(world, 0) + 1 :] for world, rounds in self.rounds.items()}
        return replace(self, rounds=rounds, measurements=self.measurements.after(done))


class _Round(NamedTuple):
    """How many had a turn in it, and whether they took turns."""

    acting: int
    is_sequential: bool

    def waves(self, max_workers: int) -> int:
        """Calls that must follow one another."""
        return self.acting if self.is_sequential else ceil(self.acting / max_workers)


class _TurnCounter:
    """Of what is committed, keeps only how many had a turn."""

    def __init__(self) -> None:
        self.rounds: list[_Round] = []

    def commit(self, record: RoundRecord) -> None:
        mode = record.step.mode if record.step is not None else ""
        self.rounds.append(_Round(record.tally.acting, mode == SEQUENTIAL))


async def _play(
    wanted: Versioned[Scenario],
    settings: LanguageSettings,
    max_followed: int,
    tell: Callable[[Question], None] | None = None,
) -> _Played:
    measurements = Measurements()
    understudy = DryRunModel(measurements, tell)
    history = wanted.map(_played_to_the_end)
    simulation = build(history, sources=Sources(model=understudy))
    offline = _offline_minds(history)
    whom = _whom(wanted.first, settings, simulation.people, max_followed)
    minds = {
        name: DryRunMind(mind, offline[name], whom, measurements, understudy) for name, mind in simulation.minds.items()
    }
    ledgers = {name: _TurnCounter() for name in minds}
    try:
        await asyncio.gather(*(_run(simulation, name, mind, ledgers[name]) for name, mind in minds.items()))
    finally:
        for mind in minds.values():
            await mind.close()
    rounds = {name: ledger.rounds for name, ledger in ledgers.items()}
    return _Played(
        people=len(simulation.people),
        followed=len(whom.followed),
        measurements=measurements,
        last_round=max(map(len, rounds.values())) - 1,
        rounds=rounds,
        visibility={name: world.visibility for name, world in simulation.worlds.items()},
        least={name: _least(world, rounds[name]) for name, world in history.versions()[-1].worlds.items()},
    )


def _played_to_the_end(scenario: Scenario) -> Scenario:
    """By nobody but minds; and how long people would talk cannot be known, so they take all their turns."""
    worlds = {name: world.without_early_end() for name, world in scenario.worlds.items()}
    return scenario.model_copy(update={"play": (), "worlds": worlds})


def _least(world: WorldSettings, rounds: Sequence[_Round]) -> float:
    """Of the turns in a world, the share that is left if each scene ends with its first words."""
    turns = sum(round.acting for round in rounds)
    least = world.least_turns(max(round.acting for round in rounds[:2])) if turns else None
    return 1.0 if least is None else min(1.0, least / turns)


async def _run(simulation: Simulation, name: str, mind: Mind, ledger: _TurnCounter) -> None:
    deliberation = Decider(mind, Journal(Path(), [], None), DecisionLimits())
    engine = Engine(simulation.worlds[name], deliberation, ledger, simulation.seed, simulation.schedules[name])
    await engine.run(simulation.rounds, asyncio.Event())


def _offline_minds(history: Versioned[Scenario]) -> Mapping[str, Mind]:
    """The minds that decide in place of models. Where there is none, or only one that asks outside, nobody acts."""
    without = history.map(lambda scenario: scenario.model_copy(update={"mind": HeuristicSettings()}))
    try:
        minds = build(without).minds
    except ScenarioInvalid:
        minds = build(without.map(_without_own_worlds)).minds
    worlds = history.first.worlds
    return {name: minds[name] if name in minds and not minds[name].outside else IdleMind() for name in worlds}


def _without_own_worlds(scenario: Scenario) -> Scenario:
    known = {name: world for name, world in scenario.worlds.items() if not isinstance(world, OwnWorldSettings)}
    return scenario.model_copy(update={"worlds": known})


# Whom to follow


def _whom(scenario: Scenario, settings: LanguageSettings, people: People, max_followed: int) -> SampledAgents:
    model = _model_of(settings, people)
    played = frozenset(who if isinstance(who, int) else list(people.names).index(who) for who in scenario.play)
    others = [agent for agent in range(len(people)) if agent not in played]
    lots = hashes(derive(scenario.seed, "plan"), np.asarray(others, np.int64))
    drawn = [others[place] for place in np.argsort(lots, kind="stable").tolist()]
    return SampledAgents(frozenset(_followed(drawn, model, max_followed)), played, model)


def _model_of(settings: LanguageSettings, people: People) -> Callable[[int], str]:
    if not settings.by_agent and not settings.by_group:
        return lambda agent: settings.model
    groups = (people[agent].traits.get("group") for agent in range(len(people)))
    models = [settings.model_of(name, group) for name, group in zip(people.names, groups, strict=True)]
    return models.__getitem__


def _followed(drawn: list[int], model: Callable[[int], str], most: int) -> Iterable[int]:
    """Everybody, or the first ones drawn: of each model's people about as many."""
    if len(drawn) <= most:
        return drawn
    by_model: dict[str, list[int]] = {}
    for agent in drawn:
        by_model.setdefault(model(agent), []).append(agent)
    share = max(most // len(by_model), 1)
    return [agent for chosen in by_model.values() for agent in chosen[:share]]


# What it comes to


def _expectations(played: _Played, settings: LanguageSettings) -> Iterable[Expected]:
    measurements = played.measurements
    deciding = _scaled_decisions(measurements, min(USUAL_ACTIONS, settings.max_actions))
    remembering = _scaled(measurements, measurements.remembered)
    embedding = _scaled(measurements, measurements.embedded)
    for world, model in sorted({*deciding, *remembering, *embedding}):
        kinds = [found.get((world, model), CallTally()) for found in (deciding, remembering, embedding)]
        total = CallTally()
        for each in kinds:
            total.add(each)
        decided, remembered, embedded = (each.calls for each in kinds)
        cached = 0 if model.startswith(UNCACHED) else round(total.cached)
        usage, price = Usage(round(total.input), round(total.output), cached), _price(model, settings)
        yield Expected(
            world=world,
            model=model,
            calls=total.calls,
            remembering=remembered,
            embedding=embedded,
            input=usage.input,
            cached=usage.cached,
            output=usage.output,
            cost=None if price is None else price.of(usage),
            cost_uncached=None if price is None else price.of(Usage(usage.input, usage.output)),
            least_calls=total.calls if played.least[world] == 1 else round(decided * played.least[world]),
        )


def _scaled_decisions(measurements: Measurements, actions: float) -> dict[tuple[str, str], CallTally]:
    """Everybody's turns, each taken to be like those that were followed in the same round, or else in any.

    Replies are as long as is asked for, with so many actions of the length that is usual in the world.
    """
    usual: dict[tuple[str, str], CallTally] = {}
    for place, measured in measurements.decided.items():
        usual.setdefault(place[:2], CallTally()).add(measured)
    found: dict[tuple[str, str], CallTally] = {}
    for place, turns in measurements.turns.items():
        followed = measurements.decided.get(place) or usual.get(place[:2]) or CallTally()
        total = found.setdefault(place[:2], CallTally())
        total.add(followed.mean(), turns)
        total.output += turns * actions * measurements.action_tokens(place.world)
    return found


def _scaled(measurements: Measurements, besides: Mapping[CallSite, CallTally]) -> dict[tuple[str, str], CallTally]:
    """What is asked besides the turns: whoever has more of them asks more."""
    turns, followed = _by_world(measurements.turns), _by_world(_calls(measurements.decided))
    summed: dict[tuple[str, str], CallTally] = {}
    for place, measured in besides.items():
        summed.setdefault(place[:2], CallTally()).add(measured)
    found = {}
    for (world, model), measured in summed.items():
        found[world, model] = CallTally()
        found[world, model].add(measured, turns.get(world, 0) / max(followed.get(world, 0), 1))
    return found


def _calls(measured: Mapping[CallSite, CallTally]) -> dict[CallSite, int]:
    return {place: each.calls for place, each in measured.items()}


def _by_world(counts: Mapping[CallSite, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for place, count in counts.items():
        found[place.world] = found.get(place.world, 0) + count
    return found


def _price(model: str, settings: LanguageSettings) -> Price | None:
    if settings.price is not None:
        return Price(settings.price.input, settings.price.output)
    return price_of(model)


def _usual_seconds(expected: Iterable[Expected]) -> float:
    calls, output = 0, 0
    for each in expected:
        calls, output = calls + each.calls - each.embedding, output + each.output
    return LATENCY_SECONDS + output / max(calls, 1) / TOKENS_PER_SECOND


def _waves(played: _Played, max_workers: int, calls: int) -> float:
    """How many calls must follow one another: within the slowest world, or because so few can be made at once."""
    slowest = max(
        sum(round.waves(max_workers) for round in rounds) / played.visibility[world]
        for world, rounds in played.rounds.items()
    )
    return max(slowest, calls / max_workers)


def _short(found: Plan, budget: BudgetSettings) -> Iterable[str]:
    """Each limit that will not do."""
    if budget.max_cost is not None and found.cost is not None and found.cost > budget.max_cost:
        yield f"max_cost is ${budget.max_cost:,.6g}, and ${found.cost:,.3g} are expected"
    if budget.max_tokens is not None and found.tokens > budget.max_tokens:
        yield f"max_tokens is {budget.max_tokens:,}, and {found.tokens:,} are expected"
    if budget.max_calls is not None and found.calls > budget.max_calls:
        yield f"max_calls is {budget.max_calls:,}, and {found.calls:,} are expected"


def _sum(costs: Iterable[float | None]) -> float | None:
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total
