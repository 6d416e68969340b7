"""Checks across the fields of a scenario: names, worlds, rounds, actions.

Each check yields every problem it finds. A problem names the parts of the scenario that it depends on, and is not
reported where one of those parts is broken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from shoal.agents import LanguageSettings, ScriptedSettings, ScriptedTurn
from shoal.agents.language import find_variables, list_known
from shoal.scenario.declared.events import DeclaredEvent, PostEvent, SkipEvent
from shoal.scenario.declared.interventions import OPINIONS
from shoal.scenario.declared.population import (
    MAX_PEOPLE,
    MOST_FOLLOWED,
    RANDOM,
    AssistantEntry,
    FileEntry,
    GroupEntry,
    PersonEntry,
    count_entry,
    count_people,
    number_own_names,
)
from shoal.scenario.prompts import list_prompts, list_trait_names
from shoal.scenario.sampling.links import read_links
from shoal.scenario.sampling.profiles import FACT_NAMES
from shoal.scenario.scenario import Scenario
from shoal.scenario.validation.problems import Path, Problem
from shoal.text import nearest
from shoal.types import MAX_ACTIONS_PER_TURN
from shoal.worlds import WorldSettings, kind_named

_NAMES, _NUMBERS, _WORLDS, _ROUNDS = (frozenset({part}) for part in ("names", "numbers", "worlds", "rounds"))
#: How a text can speak of a claim.
_WAYS = ("supports", "denies", "questions")
#: Interests are kept as 16-bit numbers.
MAX_TOPICS = 32_000


# People


def check_people(scenario: Scenario) -> Iterator[Problem]:
    """Find too many people, repeated names, and more interests than can be numbered."""
    total = count_people(scenario.population)
    if total > MAX_PEOPLE:
        yield Problem(("population",), f"{total:,} people in all; at most {MAX_PEOPLE:,} are possible")
    for field in ("name", "username"):
        seen: dict[str, int] = {}
        for index, entry in enumerate(scenario.population):
            value = getattr(entry, field, None)
            if value is None:
                continue
            first = seen.setdefault(value.casefold() if field == "username" else value, index)
            if first != index:
                yield Problem(("population", index, field), f"{value!r} is already the {field} of population.{first}")
    words = {scenario.topic} if scenario.topic else set()
    for entry in scenario.population:
        if isinstance(entry, FileEntry):
            words.update(*(stated for stated in entry.roster.column("interests") if stated is not None))
        elif entry.interests is not None:
            words |= set(entry.interests if isinstance(entry, PersonEntry) else entry.interests.among)
    if len(words) > MAX_TOPICS:
        yield Problem(("population",), f"{len(words):,} different interests; at most {MAX_TOPICS:,} are possible")


def check_mentions(scenario: Scenario) -> Iterator[Problem]:
    """Find people who are mentioned anywhere but do not exist."""
    mentions: list[tuple[Path, str | int]] = []
    for index, entry in enumerate(scenario.population):
        if isinstance(entry, PersonEntry):
            mentions += [(("population", index, "follows", place), who) for place, who in enumerate(entry.follows)]
    for index, edge in enumerate(scenario.follows.edges):
        mentions += [(("follows", "edges", index, end), who) for end, who in enumerate(edge)]
    for path, event in _list_events(scenario):
        mentions += [((*path, *below), who) for below, who in event.mentions()]
    for index, intervention in enumerate(scenario.interventions):
        asked = intervention.condition.asked
        mentions += [(("interventions", index, "when"), who) for who in (*asked.get("by", ()), *asked.get("quiet", ()))]
    for name, world in scenario.worlds.items():
        mentions += [(("worlds", name, *path), who) for path, who in world.mentions()]
    mentions += [(("mind", "turns", index, "agent"), turn.agent) for index, turn in _list_turns(scenario)]
    mentions += [(("play", index), who) for index, who in enumerate(scenario.play)]
    if isinstance(scenario.mind, LanguageSettings):
        mentions += [(("mind", "by_agent", name), name) for name in scenario.mind.by_agent]

    names, total = number_own_names(scenario.population), count_people(scenario.population)
    for path, who in mentions:
        if isinstance(who, str) and who not in names:
            advice = "only people listed with a name can be called by it, others by number"
            yield Problem.unknown("person", who, (*names, RANDOM, MOST_FOLLOWED), *path, advice=advice, needs=_NAMES)
        elif isinstance(who, int) and not 0 <= who < total:
            message = f"there is no person {who}: people are numbered 0 to {total - 1}"
            yield Problem(path, message, needs=_NUMBERS)


def check_claims(scenario: Scenario) -> Iterator[Problem]:
    """Find claims that are declared twice, and claims that are mentioned anywhere but not declared."""
    known: dict[str, int] = {}
    for index, declared in enumerate(scenario.claims):
        if (first := known.setdefault(declared.id, index)) != index:
            yield Problem(("claims", index, "id"), f"{declared.id!r} is already the id of claims.{first}")
    mentions: list[tuple[Path, object]] = [
        ((*path, way), claim)
        for path, event in _list_events(scenario)
        for way in _WAYS
        if (claim := getattr(event, way, None)) is not None
    ]
    mentions += [
        (("mind", "turns", index, "args", "claim"), turn.args["claim"])
        for index, turn in _list_turns(scenario)
        if "claim" in turn.args
    ]
    mentions += [
        (("mind", "turns", index, way), claim)
        for index, turn in _list_turns(scenario)
        for way in _WAYS
        if (claim := getattr(turn, way)) is not None
    ]
    for index, rule in enumerate(scenario.interventions):
        asked = rule.condition.asked
        mentions += [
            (("interventions", index, "when"), id) for id in (*asked.get("reach", ()), *asked.get("belief", ()))
        ]
    advice = f"there is {', '.join(known)}" if known else "declare it under `claims`"
    for path, claim in mentions:
        if claim not in known:
            yield Problem.unknown("claim", str(claim), known, *path, advice=advice)


def _list_events(scenario: Scenario) -> Iterator[tuple[Path, DeclaredEvent]]:
    """Yield scheduled events and events of interventions."""
    yield from ((("events", index), event) for index, event in enumerate(scenario.events))
    for index, intervention in enumerate(scenario.interventions):
        yield from ((("interventions", index, "do", place), event) for place, event in enumerate(intervention.do))


def _list_turns(scenario: Scenario) -> Iterable[tuple[int, ScriptedTurn]]:
    return enumerate(scenario.mind.turns) if isinstance(scenario.mind, ScriptedSettings) else ()


def _find_number(who: str | int, names: Mapping[str, int]) -> str | int:
    return names.get(who, who) if isinstance(who, str) else who


def check_edges(scenario: Scenario) -> Iterator[Problem]:
    """Find people who would follow themselves, and edges that are written twice."""
    for index, entry in enumerate(scenario.population):
        if isinstance(entry, PersonEntry) and entry.name in entry.follows:
            place = entry.follows.index(entry.name)
            yield Problem(("population", index, "follows", place), f"{entry.name!r} cannot follow themselves")
    names = number_own_names(scenario.population)
    seen: dict[tuple[str | int, str | int], int] = {}
    for index, (source, target) in enumerate(scenario.follows.edges):
        edge = (_find_number(source, names), _find_number(target, names))
        first = seen.setdefault(edge, index)
        path = ("follows", "edges", index)
        if edge[0] == edge[1]:
            yield Problem(path, f"{source!r} cannot follow themselves", needs=_NAMES | _NUMBERS)
        elif first != index:
            yield Problem(path, f"the same edge as follows.edges.{first}", needs=_NAMES | _NUMBERS)


def check_meetings(scenario: Scenario) -> Iterator[Problem]:
    """Find people in two conversations at once, and people who would talk or be related to themselves."""
    names = number_own_names(scenario.population)
    for name, world in scenario.worlds.items():
        for path, message in world.problems(lambda who: _find_number(who, names)):
            yield Problem(("worlds", name, *path), message, needs=_NAMES | _NUMBERS)


def check_groups(scenario: Scenario) -> Iterator[Problem]:
    """Find groups that are named but do not exist."""
    known = {group for entry in scenario.population if (group := getattr(entry, "group", None)) is not None}
    advice = f"there is {', '.join(sorted(known))}" if known else "none has a `group`"
    for name in scenario.mind.by_group if isinstance(scenario.mind, LanguageSettings) else ():
        if name not in known:
            path = ("mind", "by_group", name)
            yield Problem.unknown("group", name, known, *path, advice=advice, needs=_NAMES, at_key=True)
    for name, world in scenario.worlds.items():
        for below, group in world.groups():
            if group not in known:
                yield Problem.unknown("group", group, known, "worlds", name, *below, advice=advice, needs=_NAMES)


def check_assistants(scenario: Scenario) -> Iterator[Problem]:
    """Find assistants without a partner to talk to, or that would have to do more than talk."""
    counts: Counter[str] = Counter()
    for entry in scenario.population:
        counts[getattr(entry, "group", None) or ""] += count_entry(entry)
    assistants = {entry.assistant for entry in scenario.population if isinstance(entry, AssistantEntry)}
    for name, world in scenario.worlds.items() if assistants else ():
        path, pairs = ("worlds", name), getattr(world, "pairs", None)
        if pairs is None:
            yield Problem(path, "an assistant can only take part in a dialogue", needs=_NAMES)
        elif isinstance(pairs, str):
            example = f"`pairs: {{customers: {min(assistants)}}}`"
            yield Problem(path, f"say who talks to the assistant, such as {example}", needs=_NAMES)
        for people, assistant in pairs.items() if isinstance(pairs, dict) else ():
            there = (*path, "pairs", people)
            if {people, assistant} <= assistants:
                yield Problem(there, f"{people!r} and {assistant!r} are both assistants; one of them must be people")
            elif {people, assistant} & assistants and counts[people] != counts[assistant]:
                sizes = f"{counts[people]:,} of {people!r} and {counts[assistant]:,} of {assistant!r}"
                yield Problem(there, f"there are {sizes}; give the assistant the same `count`", needs=_NAMES | _NUMBERS)


def check_prompts(scenario: Scenario) -> Iterator[Problem]:
    """Find variables in templates of prompts that do not exist."""
    traits = list_trait_names(scenario)
    for index, entry in enumerate(scenario.population):
        if not isinstance(entry, GroupEntry):
            continue
        for field, text in (("persona", entry.persona), ("bio", entry.bio)):
            for variable in find_variables(text or ""):
                if variable not in (known := {*FACT_NAMES, *entry.traits}):
                    advice = f"there is {', '.join(sorted(known))}"
                    yield Problem.unknown("variable", variable, known, "population", index, field, advice=advice)
    for path, prompt in list_prompts(scenario):
        for name, text in prompt.templates().items():
            known = {*list_known(name), *traits}
            for variable in dict.fromkeys(find_variables(text)):
                if variable not in known:
                    advice = f"there is {', '.join(sorted(known))}; {{{{{variable}}}}} writes the braces themselves"
                    if variable in list_known("user"):
                        advice, known = "it changes with every turn, so it belongs into `user` or `ask`", set()
                    yield Problem.unknown("variable", variable, known, *path, name, advice=advice, needs=_NAMES)


# Worlds


def check_world_names(scenario: Scenario) -> Iterator[Problem]:
    """Find worlds that are mentioned but do not exist."""
    known = scenario.worlds
    mentions: list[tuple[Path, str | None]] = []
    mentions += [(("events", index, "world"), event.world) for index, event in enumerate(scenario.events)]
    mentions += [(("interventions", index, "world"), rule.world) for index, rule in enumerate(scenario.interventions)]
    mentions += [(("mind", "turns", index, "world"), turn.world) for index, turn in _list_turns(scenario)]
    for path, world in mentions:
        if world is not None and world not in known:
            yield Problem.unknown("world", world, known, *path, advice=f"there is {', '.join(known)}", needs=_WORLDS)


def accepts_event(world: WorldSettings, event: DeclaredEvent) -> bool:
    """Return whether an event can happen in a world with these settings. Worlds of the user's own accept all."""
    kind = kind_named(world.kind)
    return kind is None or kind.accepts_event(event.kind)


def check_events(scenario: Scenario) -> Iterator[Problem]:
    """Find events that cannot happen in the worlds they are meant for."""
    for path, event in _list_events(scenario):
        if isinstance(event, SkipEvent):
            continue
        scope = scenario.interventions[int(path[1])].world if path[0] == "interventions" else event.world
        meant = [settings for name, settings in scenario.worlds.items() if scope in (None, name)]
        if meant and not any(accepts_event(settings, event) for settings in meant):
            where = f"in {scope!r}" if scope else "in any of its worlds"
            yield Problem((*path, event.kind), f"{event.kind!r} cannot happen {where}", needs=_WORLDS)


def check_conditions(scenario: Scenario) -> Iterator[Problem]:
    """Find conditions on opinions that are not known, and on actions that no world in question has."""
    for index, rule in enumerate(scenario.interventions):
        path = ("interventions", index, "when")
        meant = [settings for name, settings in scenario.worlds.items() if rule.world in (None, name)]
        if rule.condition.facts & OPINIONS and any(getattr(settings, "visibility", 1) > 1 for settings in meant):
            message = "opinions are only known where visibility is 1: with more, rounds overlap"
            yield Problem(path, message, needs=_WORLDS)
        known = [_list_actions(settings) for settings in meant]
        if not meant or None in known:
            continue
        possible = sorted({kind for actions in known for kind in actions or ()})
        asked = rule.condition.asked
        if asked.get("belief") and any(getattr(settings, "visibility", 1) > 1 for settings in meant):
            yield Problem(
                path, "beliefs are only known where visibility is 1: with more, rounds overlap", needs=_WORLDS
            )
        for kind in (*asked.get("count", ()), *asked.get("total", ())):
            if kind not in possible:
                yield Problem.unknown("action", kind, possible, *path, needs=_WORLDS)


def check_measure(scenario: Scenario) -> Iterator[Problem]:
    """Find a survey of opinions that no mind can answer, or that asks about nothing."""
    if scenario.measure is None:
        return
    if not isinstance(scenario.mind, LanguageSettings):
        message = "only agents with a language model are asked what they think; opinions of other minds are known"
        yield Problem(("measure",), message)
    elif scenario.topic is None and not scenario.claims:
        yield Problem(("measure",), "there is nothing to ask about: name a `topic`, or declare `claims`")
    for name, world in scenario.worlds.items():
        if getattr(world, "visibility", 1) > 1:
            message = "opinions are only known where visibility is 1: with more, rounds overlap"
            yield Problem(("worlds", name, "visibility"), message, needs=_WORLDS)


def _list_actions(world: WorldSettings) -> Mapping[str, Iterable[str]] | None:
    """Return the kinds of action in a world, each with the arguments it needs; None where they are not known."""
    kind = kind_named(world.kind)
    return None if kind is None else kind.actions


def check_actions(scenario: Scenario) -> Iterator[Problem]:
    """Find actions that do not exist in their world, and scripted ones that lack an argument."""
    for name, world in scenario.worlds.items():
        known = _list_actions(world)
        for index, action in enumerate(getattr(world, "actions", None) or ()):
            if known is not None and action not in known:
                yield Problem.unknown("action", action, known, "worlds", name, "actions", index)
    for index, turn in _list_turns(scenario):
        path = ("mind", "turns", index)
        meant = [_list_actions(world) for name, world in scenario.worlds.items() if turn.world in (None, name)]
        if None in meant:
            continue
        possible = {kind: arguments for known in meant for kind, arguments in (known or {}).items()}
        if turn.action not in possible:
            yield Problem.unknown("action", turn.action, possible, *path, "action", needs=_WORLDS)
        for argument in possible.get(turn.action, ()):
            if argument not in turn.args:
                near = nearest(argument, turn.args)
                advice = None if near is None else f"is it {near!r}?"
                place = (*path, "args") if turn.args else path
                message = f"{turn.action} needs {argument!r} among its args"
                yield Problem(place, message, advice=advice, needs=_WORLDS)


# Time


def check_rounds(scenario: Scenario) -> Iterator[Problem]:
    """Find what would happen after the last round, or after the year 9999."""
    last, time = scenario.rounds, scenario.time
    due: list[tuple[Path, int]] = []
    due += [(("events", index, "round"), event.round) for index, event in enumerate(scenario.events)]
    due += [(("mind", "turns", index, "round"), turn.round) for index, turn in _list_turns(scenario)]
    for path, round in due:
        if round > last:
            yield Problem(path, f"round {round} never comes: the run has {last} rounds", needs=_ROUNDS)
    skipped = sum(event.skip for event in scenario.events if isinstance(event, SkipEvent))
    try:
        time.start + timedelta(days=1, minutes=time.minutes_per_round * last + skipped)
    except OverflowError:
        skips = f" and {skipped} minutes skipped" if skipped else ""
        yield Problem(("rounds",), f"{last} rounds of {time.minutes_per_round} minutes{skips} end after the year 9999")
    low, high = time.agents_per_hour_min, time.agents_per_hour_max
    if low is not None and high is not None and low > high:
        yield Problem(("time", "agents_per_hour_min"), f"the minimum ({low}) is above agents_per_hour_max ({high})")


def check_posts_per_round(scenario: Scenario) -> Iterator[Problem]:
    """Find posts without an author, and more posts by one author in one round than a world can number."""
    names, total = number_own_names(scenario.population), count_people(scenario.population)
    counts: Counter[tuple[str, int, str | int]] = Counter()
    for index, event in enumerate(scenario.events):
        if isinstance(event, PostEvent) and not total:
            yield Problem(("events", index), "there is nobody who could post", needs=_NUMBERS)
        if not isinstance(event, PostEvent) or event.by == RANDOM or not total:
            continue
        author = _find_number(event.by, names)
        keys = [(world, event.round, author) for world in scenario.worlds if event.world in (None, world)]
        counts.update(keys)
        if any(counts[key] == MAX_ACTIONS_PER_TURN + 1 for key in keys):
            message = f"more than {MAX_ACTIONS_PER_TURN} posts by {event.by!r} in round {event.round}"
            yield Problem(("events", index), message, needs=_NAMES | _NUMBERS | _WORLDS)


def find_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield every problem between the fields of a scenario that are valid by themselves."""
    yield from check_people(scenario)
    yield from read_links(scenario.population, scenario.follows).problems
    yield from check_mentions(scenario)
    yield from check_claims(scenario)
    yield from check_edges(scenario)
    yield from check_meetings(scenario)
    yield from check_groups(scenario)
    yield from check_assistants(scenario)
    yield from check_prompts(scenario)
    yield from check_world_names(scenario)
    yield from check_events(scenario)
    yield from check_conditions(scenario)
    yield from check_measure(scenario)
    yield from check_actions(scenario)
    yield from check_rounds(scenario)
    yield from check_posts_per_round(scenario)
