"""Compares two runs: what was declared differently, where the histories part, and how the difference spreads.

Both runs are run again from their journals, in step. A round is kept only until it is compared. Nothing is written, and
no model is asked.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import Any

import msgspec

from shoal.engine import RoundRecord
from shoal.runs.directory import RunDirectory
from shoal.runs.reports import Outcome, read_outcomes
from shoal.runs.rerun.rerun import Rerun, TurnObserver, open_rerun, parse_round
from shoal.runs.rerun.spread import Deviation, Reached, Spread
from shoal.runs.stream import is_own
from shoal.runs.worker import manual_gc
from shoal.types import Decision, Event, Notice, Observation

#: The path of a difference that is an injected event, and no field of the scenario.
INJECTED = "injected"
#: Fields that do not change what happens in the rounds that both runs have.
_IDLE_FIELDS = ("name.", "rounds.", "max_workers.", "metrics.", "mind.latency.")
#: Differences of the first round that are listed; the rest is counted.
_MAX_LISTED = 50

Turns = Mapping[int, tuple[Observation, Decision]]


@dataclass(frozen=True, slots=True)
class DeclaredDifference:
    """A field of the scenario in which two runs differ from a round on, or an event injected into one of them."""

    path: str
    since: int
    one: Any
    other: Any


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same in both runs; None where it is missing in one."""

    #: `happening`, `turn` (only one run has it), `picture`, `decision` or `event`.
    what: str
    agent: int | None
    name: str | None
    one: Any
    other: Any


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first round in which anything differs."""

    round: int
    time: str
    differences: tuple[Difference, ...]
    #: How many there are, listed or not.
    count: int


@dataclass(frozen=True, slots=True)
class RoundDiff:
    """What differs in one round, by the numbers of the agents."""

    round: int
    acting: tuple[int, int]
    pictures: tuple[int, ...]
    acted: tuple[int, ...]
    reached: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WorldDiff:
    """What differs in one world. Without a divergence the two are the same as far as they were compared."""

    world: str
    #: Rounds that were compared, and how many each run has.
    rounds: int
    has: tuple[int, int]
    digests: tuple[str, str]
    first: Divergence | None
    by_round: tuple[RoundDiff, ...]
    reached: tuple[Reached, ...]
    #: The longest chain, from the start of the difference, by name.
    deepest: tuple[str, ...]
    #: How many agents ever saw something different, and acted differently.
    saw_differently: int
    acted_differently: int
    #: Figures of the population of each run, up to the last round that was compared.
    outcomes: tuple[tuple[Outcome, ...], tuple[Outcome, ...]] = ((), ())


@dataclass(frozen=True, slots=True)
class Diff:
    """Two runs compared."""

    one: str
    other: str
    same: bool
    #: What was declared or injected differently.
    declared: tuple[DeclaredDifference, ...]
    worlds: tuple[WorldDiff, ...]
    #: Worlds that only one of them has.
    only_one: tuple[str, ...]
    only_other: tuple[str, ...]


async def diff_runs(one: RunDirectory, other: RunDirectory, rounds: int | None = None) -> Diff:
    """Compare two runs up to a round, or as far as both go."""
    left, right = open_rerun(one), open_rerun(other)
    declared = tuple(compare_declared(one, other))
    fields = [f"{difference.path}." for difference in declared if difference.path != INJECTED]
    redeclared = not all(field.startswith(_IDLE_FIELDS) for field in fields)
    # Agents are compared by number, and one run may have more of them.
    names = max((run.simulation.people.names for run in (left, right)), key=len)
    worlds = []
    for world in [name for name in left.rounds if name in right.rounds]:
        comparison = _Comparison(names, redeclared, left.simulation.worlds[world].visibility)
        compared = await _compare_world(world, (left, right), rounds, comparison)
        outcomes = (read_outcomes(one, world, compared.rounds), read_outcomes(other, world, compared.rounds))
        worlds.append(replace(compared, outcomes=outcomes))
    only = [tuple(name for name in a.rounds if name not in b.rounds) for a, b in ((left, right), (right, left))]
    return Diff(
        one=str(one.path),
        other=str(other.path),
        same=not any(only) and all(world.first is None and world.has[0] == world.has[1] for world in worlds),
        declared=declared,
        worlds=tuple(worlds),
        only_one=only[0],
        only_other=only[1],
    )


# Declared differences


def compare_declared(one: RunDirectory, other: RunDirectory) -> Iterator[DeclaredDifference]:
    """Yield every field in which the scenarios differ, and every injected event that only one of the runs has."""
    (left, left_events), (right, right_events) = _read_declared(one), _read_declared(other)
    known: dict[str, tuple[Any, Any]] = {}
    for since in sorted({*left, *right}):
        fields, others = (
            dict(_flatten(versions[max(start for start in versions if start <= since)])) for versions in (left, right)
        )
        for path in {**fields, **others}:
            values = fields.get(path), others.get(path)
            if values[0] != values[1] and known.get(path) != values:
                known[path] = values
                yield DeclaredDifference(path, since, *values)
    for event in _list_unshared(left_events, right_events):
        sides = (event, None) if event in left_events else (None, event)
        yield DeclaredDifference(INJECTED, event.get("round", 0), *sides)


def _read_declared(directory: RunDirectory) -> tuple[dict[int, Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Read the run's scenarios by the round from which on they are in force, and its injected events."""
    config = directory.config
    scenarios: dict[int, Mapping[str, Any]] = {0: config.scenario} | {
        change.at: change.scenario for change in config.changes
    }
    events: list[Mapping[str, Any]] = []
    for line in directory.events:
        assert line.event is not None
        if line.is_continuation:
            scenarios[line.round] = line.event["scenario"]
        else:
            events.append(line.event)
    return scenarios, events


def _flatten(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield `a.b`, 1 for `{"a": {"b": 1}}`; items of a list of objects go by number."""
    if isinstance(value, Mapping) and value:
        for name, below in value.items():
            yield from _flatten(below, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        for number, below in enumerate(value):
            yield from _flatten(below, f"{path}.{number}")
    else:
        yield path, msgspec.to_builtins(value)


# Rounds, compared in step


@dataclass(slots=True)
class _ObservedRound:
    """A committed round of one run."""

    record: RoundRecord
    turns: Turns
    #: Lines that no agent decided on, and the agents' own actions. Read only where the two runs differ.
    made: list[Event | Notice] = field(default_factory=list)
    own: dict[int, list[Event]] = field(default_factory=dict)

    def read_lines(self) -> None:
        """Divide the lines of the round into own actions by agent, and lines of events."""
        for line in parse_round(self.record):
            if isinstance(line, Event) and is_own(line):
                self.own.setdefault(line.agent_id, []).append(line)
            else:
                self.made.append(line)

    def times(self) -> Iterator[str]:
        """Yield the times of what was seen and of what happened."""
        yield from (saw.time for saw, _ in self.turns.values())
        yield from (line.timestamp for line in chain(self.made, *self.own.values()))


@dataclass(slots=True)
class _RoundCollector(TurnObserver):
    """Collects the rounds of one run that are not yet compared."""

    turns: dict[int, dict[int, tuple[Observation, Decision]]] = field(default_factory=dict)
    rounds: deque[_ObservedRound] = field(default_factory=deque)

    def after(self, observation: Observation, decision: Decision) -> None:
        self.turns.setdefault(observation.round, {})[observation.agent] = observation, decision

    def commit(self, record: RoundRecord) -> None:
        self.rounds.append(_ObservedRound(record, self.turns.pop(record.round, {})))


async def _compare_world(
    world: str, runs: tuple[Rerun, Rerun], limit: int | None, comparison: _Comparison
) -> WorldDiff:
    has = (runs[0].rounds[world], runs[1].rounds[world])
    last = min(has) if limit is None else min(*has, limit)
    sides = _RoundCollector(), _RoundCollector()
    for run in runs:
        # A timed round also says whether agents acted one after another.
        run.simulation.limits.timed = True
    with manual_gc() as collect:
        engines = [run.engine(world, collect, observer=side) for run, side in zip(runs, sides, strict=True)]
        stop = asyncio.Event()
        async with aclosing(engines[0].steps(last, stop)) as one, aclosing(engines[1].steps(last, stop)) as other:
            under_way = True
            while under_way:
                begun = [await anext(steps, None) for steps in (one, other)]
                under_way = any(round is not None for round in begun)
                while sides[0].rounds and sides[1].rounds:
                    comparison.add_round(sides[0].rounds.popleft(), sides[1].rounds.popleft())
    return comparison.result(world, last, has)


class _Comparison:
    """Compares one world of two runs, round by round."""

    def __init__(self, names: Sequence[str], redeclared: bool, visibility: int) -> None:
        self._names = names
        self._spread = Spread(names, redeclared, visibility)
        self._first: Divergence | None = None
        self._rounds: list[RoundDiff] = []
        self._saw: set[int] = set()
        self._acted: set[int] = set()
        self._digests = ("", "")

    def add_round(self, one: _ObservedRound, other: _ObservedRound) -> None:
        round = one.record.round
        self._digests = (one.record.digest, other.record.digest)
        if one.record.lines != other.record.lines:
            one.read_lines()
            other.read_lines()
        made = _list_unshared(one.made, other.made)
        turns = list(_find_deviations(one, other))
        reached = self._spread.add_round(round, made, turns, {**one.turns, **other.turns})
        for agent in one.own.keys() | other.own.keys():
            self._spread.add_reactions(_list_unshared(one.own.get(agent, []), other.own.get(agent, [])))
        if self._first is None and (turns or made):
            found = []
            for line in made:
                whose = (line.agent_id, line.agent_name) if isinstance(line, Event) else (None, None)
                sides = (line, None) if line in one.made else (None, line)
                found.append(Difference("happening", *whose, *sides))
            found += self._compare_turns(one, other, turns)
            time = next(chain(one.times(), other.times()), "")
            self._first = Divergence(round, time, tuple(found[:_MAX_LISTED]), len(found))
        if self._first is not None:
            pictures = tuple(turn.agent for turn in turns if turn.changed)
            acted = tuple(turn.agent for turn in turns if turn.acted)
            self._saw.update(pictures)
            self._acted.update(acted)
            acting = (len(one.turns), len(other.turns))
            self._rounds.append(RoundDiff(round, acting, pictures, acted, tuple(who.agent for who in reached)))

    def _compare_turns(
        self, one: _ObservedRound, other: _ObservedRound, turns: Sequence[Deviation]
    ) -> Iterator[Difference]:
        for turn in turns:
            agent, name = turn.agent, self._names[turn.agent]
            left, right = one.turns.get(agent), other.turns.get(agent)
            if left is None or right is None:
                yield Difference("turn", agent, name, left is not None, right is not None)
                continue
            if turn.changed:
                saw, saw_other = msgspec.structs.asdict(left[0]), msgspec.structs.asdict(right[0])
                changed = [field for field in {**saw, **saw_other} if saw.get(field) != saw_other.get(field)]
                pictures = ({field: side.get(field) for field in changed} for side in (saw, saw_other))
                yield Difference("picture", agent, name, *pictures)
            done, done_other = one.own.get(agent, []), other.own.get(agent, [])
            if left[1] != right[1] and done == done_other:
                yield Difference("decision", agent, name, left[1], right[1])
            for event, event_other in zip_longest(done, done_other):
                if event != event_other:
                    yield Difference("event", agent, name, event, event_other)

    def result(self, world: str, rounds: int, has: tuple[int, int]) -> WorldDiff:
        reached = tuple(self._spread.reached.values())
        furthest = max(reached, key=lambda who: who.depth, default=None)
        return WorldDiff(
            world=world,
            rounds=rounds,
            has=has,
            digests=self._digests,
            first=self._first,
            by_round=tuple(self._rounds),
            reached=reached,
            deepest=tuple(self._names[who] for who in self._spread.chain(furthest.agent)) if furthest else (),
            saw_differently=len(self._saw),
            acted_differently=len(self._acted),
        )


def _find_deviations(one: _ObservedRound, other: _ObservedRound) -> Iterator[Deviation]:
    """Yield the turns that differ in any way, in the order in which they were taken."""
    in_turn = any(side.record.step is not None and side.record.step.mode == "sequential" for side in (one, other))
    for agent in {**one.turns, **other.turns}:
        left, right = one.turns.get(agent), other.turns.get(agent)
        if left is None or right is None:
            yield Deviation(agent, (left and left[0], right and right[0]), acted=True)
            continue
        acted = left[1] != right[1] or one.own.get(agent) != other.own.get(agent)
        turn = Deviation(agent, (left[0], right[0]), acted, in_turn)
        if acted or turn.changed:
            yield turn


def _list_unshared(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    """Return the items that only one of two lists has, those of the first list first."""
    return [item for item in one if item not in other] + [item for item in other if item not in one]
