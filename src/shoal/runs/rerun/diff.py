"""Where two runs part, and how the difference spreads.

Both are run again from their journals, in step, and listened in on: of each round only what is needed to compare it is
kept, and only until it is compared. Nothing is written, nobody is asked anything.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import msgspec

from shoal.engine.record import RoundRecord
from shoal.journal import read_journal
from shoal.runs.directory import RunDirectory
from shoal.runs.rerun.rerun import Rerun, TurnObserver, open_rerun, parse_round
from shoal.runs.rerun.spread import Deviation, Reached, Spread
from shoal.runs.stream import is_own
from shoal.runs.worker import manual_gc
from shoal.types import Decision, Event, Notice, Observation

#: Where a difference is not in the scenario.
INJECTED = "injected"
#: Fields that a history does not depend on, as far as it goes.
_IDLE = ("name", "rounds", "max_workers", "metrics", "mind.latency")


@dataclass(frozen=True, slots=True)
class DeclaredDifference:
    """A field of the scenario, from the round on from which the two differ in it; or something that was injected."""

    path: str
    since: int
    one: Any
    other: Any


def differences(one: RunDirectory, other: RunDirectory) -> Iterator[DeclaredDifference]:
    """Every field in which the scenarios differ, and every injected event that only one of the runs has."""
    left, right = _Told.of(one), _Told.of(other)
    known: dict[str, tuple[Any, Any]] = {}
    for since in sorted({*left.scenarios, *right.scenarios}):
        for path, values in _unequal(left.at(since), right.at(since)).items():
            if known.get(path) != values:
                known[path] = values
                yield DeclaredDifference(path, since, *values)
    for event in left.events:
        if event not in right.events:
            yield DeclaredDifference(INJECTED, event.get("round", 0), event, None)
    for event in right.events:
        if event not in left.events:
            yield DeclaredDifference(INJECTED, event.get("round", 0), None, event)


def bears(field: DeclaredDifference) -> bool:
    """Whether a history may depend on this field of the scenario."""
    return field.path != INJECTED and not any(f"{field.path}.".startswith(f"{idle}.") for idle in _IDLE)


@dataclass(frozen=True, slots=True)
class _Told:
    """What a run was told: its scenarios by the round from which on they are in force, and what was injected."""

    scenarios: Mapping[int, Mapping[str, Any]]
    events: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, directory: RunDirectory) -> _Told:
        config = directory.config()
        lines, _ = read_journal(directory.journal)
        scenarios = {0: config.scenario} | {change.at: change.scenario for change in config.changes}
        scenarios |= {line.round: line.event["scenario"] for line in lines if line.event and line.is_continuation}
        return cls(scenarios, [line.event for line in lines if line.event and not line.is_continuation])

    def at(self, round: int) -> Mapping[str, Any]:
        return self.scenarios[max(since for since in self.scenarios if since <= round)]


def _unequal(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    left, right = dict(_flat(one)), dict(_flat(other))
    return {path: (left.get(path), right.get(path)) for path in {**left, **right} if left.get(path) != right.get(path)}


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """`{"a": {"b": 1}}` as `a.b`, 1; items of lists by number."""
    if isinstance(value, Mapping) and value:
        for name, below in value.items():
            yield from _flat(below, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and value and not _is_plain(value):
        for number, below in enumerate(value):
            yield from _flat(below, f"{path}.{number}")
    else:
        yield path, msgspec.to_builtins(value)


def _is_plain(values: list[Any]) -> bool:
    return not any(isinstance(value, Mapping | list) for value in values)


#: What is told of the first round in which something differs; the rest is counted.
_TOLD = 50

Sides = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same in both runs; None where it is missing in one."""

    #: `happening`, `turn` (had in one run only), `picture`, `decision` or `event`.
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
    #: How many there are, told or not.
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
    #: From where it began to the one who is furthest from there, by name.
    deepest: tuple[str, ...]
    #: How many people ever saw something different, and acted differently.
    saw_differently: int
    acted_differently: int


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
    """Compare two runs up to a round, or as far as both go; changes nothing."""
    left, right = open_rerun(one), open_rerun(other)
    declared = tuple(differences(one, other))
    # People are compared by number, and one run may have more of them.
    names = max((run.simulation.people.names for run in (left, right)), key=len)
    common = [name for name in left.rounds if name in right.rounds]
    worlds = [
        await _compare(name, (left, right), rounds, _Comparison(names, Spread(names, any(map(bears, declared)))))
        for name in common
    ]
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


async def _compare(world: str, runs: tuple[Rerun, Rerun], limit: int | None, comparison: _Comparison) -> WorldDiff:
    has = (runs[0].rounds[world], runs[1].rounds[world])
    last = min(has) if limit is None else min(*has, limit)
    sides = _Side(), _Side()
    for run in runs:
        # A timed round also says whether people acted one after another.
        run.simulation.limits.timed = True
    with manual_gc() as collect:
        engines = [run.engine(world, collect, observer=side) for run, side in zip(runs, sides, strict=True)]
        stop = asyncio.Event()
        async with aclosing(engines[0].steps(last, stop)) as one, aclosing(engines[1].steps(last, stop)) as other:
            under_way = True
            while under_way:
                begun = [await anext(steps, None) for steps in (one, other)]
                under_way = any(round is not None for round in begun)
                while sides[0].done and sides[1].done:
                    comparison.take_in(sides[0].done.popleft(), sides[1].done.popleft())
    return comparison.result(world, last, has)


@dataclass(slots=True)
class _Moment:
    """A round of one run."""

    record: RoundRecord
    turns: Mapping[int, tuple[Observation, Decision]]

    @property
    def round(self) -> int:
        return self.record.round

    @property
    def in_turn(self) -> bool:
        return self.record.step is not None and self.record.step.mode == "sequential"


@dataclass(slots=True)
class _Side(TurnObserver):
    """Listens in on one of the two runs."""

    open: dict[int, dict[int, tuple[Observation, Decision]]] = field(default_factory=dict)
    done: deque[_Moment] = field(default_factory=deque)

    def after(self, observation: Observation, decision: Decision) -> None:
        self.open.setdefault(observation.round, {})[observation.agent] = observation, decision

    def commit(self, record: RoundRecord) -> None:
        self.done.append(_Moment(record, self.open.pop(record.round, {})))


@dataclass(slots=True)
class _Acts:
    """What happened in a round: what was made to happen, and what everybody did."""

    made: list[Event | Notice] = field(default_factory=list)
    own: dict[int, list[Event]] = field(default_factory=dict)

    @classmethod
    def of(cls, record: RoundRecord) -> _Acts:
        acts = cls()
        for event in parse_round(record):
            if isinstance(event, Event) and is_own(event):
                acts.own.setdefault(event.agent_id, []).append(event)
            else:
                acts.made.append(event)
        return acts


class _Comparison:
    """Compares one world of two runs, round by round."""

    def __init__(self, names: Sequence[str], spread: Spread) -> None:
        self._names = names
        self._spread = spread
        self._first: Divergence | None = None
        self._rounds: list[RoundDiff] = []
        self._saw: set[int] = set()
        self._acted: set[int] = set()
        self._digests = ("", "")

    def take_in(self, one: _Moment, other: _Moment) -> None:
        self._digests = (one.record.digest, other.record.digest)
        same_lines = one.record.lines == other.record.lines
        acts = (_Acts(), _Acts()) if same_lines else (_Acts.of(one.record), _Acts.of(other.record))
        made = _only(acts[0].made, acts[1].made)
        turns = list(_turns(one, other, acts))
        found = self._spread.take_in(one.round, made[0] + made[1], turns, {**one.turns, **other.turns})
        self._spread.touch(
            event for agent in acts[0].own.keys() | acts[1].own.keys() for event in _differing(agent, acts)
        )
        if self._first is None and (turns or made[0] or made[1]):
            self._first = self._divergence(one, other, acts)
        self._count(one, other, turns, found)

    def _count(self, one: _Moment, other: _Moment, turns: list[Deviation], found: list[Reached]) -> None:
        if self._first is None:
            return
        pictures = tuple(turn.agent for turn in turns if turn.changed)
        acted = tuple(turn.agent for turn in turns if turn.acted)
        self._saw.update(pictures)
        self._acted.update(acted)
        acting = (len(one.turns), len(other.turns))
        self._rounds.append(RoundDiff(one.round, acting, pictures, acted, tuple(who.agent for who in found)))

    def _divergence(self, one: _Moment, other: _Moment, acts: tuple[_Acts, _Acts]) -> Divergence:
        found = [*_happenings(acts), *self._of_turns(one, other, acts)]
        time = next((event.timestamp for side in acts for event in _all(side)), "")
        seen = next((saw.time for moment in (one, other) for saw, _ in moment.turns.values()), time)
        return Divergence(one.round, seen, tuple(found[:_TOLD]), len(found))

    def _of_turns(self, one: _Moment, other: _Moment, acts: tuple[_Acts, _Acts]) -> Iterator[Difference]:
        for turn in _turns(one, other, acts):
            agent, name = turn.agent, self._names[turn.agent]
            sides = one.turns.get(agent), other.turns.get(agent)
            if sides[0] is None or sides[1] is None:
                yield Difference("turn", agent, name, sides[0] is not None, sides[1] is not None)
                continue
            if turn.changed:
                yield Difference("picture", agent, name, *_fields(sides[0][0], sides[1][0]))
            done = [side.own.get(agent, []) for side in acts]
            if sides[0][1] != sides[1][1] and done[0] == done[1]:
                yield Difference("decision", agent, name, sides[0][1], sides[1][1])
            for left, right in zip_longest(*done):
                if left != right:
                    yield Difference("event", agent, name, left, right)

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


def _turns(one: _Moment, other: _Moment, acts: tuple[_Acts, _Acts]) -> Iterator[Deviation]:
    """Turns that differ in any way, in the order in which they were taken."""
    for agent in {**one.turns, **other.turns}:
        left, right = one.turns.get(agent), other.turns.get(agent)
        if left is None or right is None:
            yield Deviation(agent, (left and left[0], right and right[0]), acted=True)
            continue
        acted = left[1] != right[1] or acts[0].own.get(agent) != acts[1].own.get(agent)
        turn = Deviation(agent, (left[0], right[0]), acted, one.in_turn or other.in_turn)
        if acted or turn.changed:
            yield turn


def _differing(agent: int, acts: tuple[_Acts, _Acts]) -> list[Event]:
    one, other = _only(acts[0].own.get(agent, []), acts[1].own.get(agent, []))
    return one + other


def _only(one: Sequence[Any], other: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """What only one of them has, in order."""
    return [item for item in one if item not in other], [item for item in other if item not in one]


def _all(acts: _Acts) -> Iterator[Event | Notice]:
    yield from acts.made
    for events in acts.own.values():
        yield from events


def _happenings(acts: tuple[_Acts, _Acts]) -> Iterator[Difference]:
    one, other = _only(acts[0].made, acts[1].made)
    for event in one:
        yield Difference("happening", *_whose(event), event, None)
    for event in other:
        yield Difference("happening", *_whose(event), None, event)


def _whose(event: Event | Notice) -> tuple[int | None, str | None]:
    return (event.agent_id, event.agent_name) if isinstance(event, Event) else (None, None)


def _fields(one: Observation, other: Observation) -> tuple[dict[str, Any], dict[str, Any]]:
    """Those parts of two pictures that differ."""
    left, right = msgspec.structs.asdict(one), msgspec.structs.asdict(other)
    changed = [name for name in {**left, **right} if left.get(name) != right.get(name)]
    return {name: left.get(name) for name in changed}, {name: right.get(name) for name in changed}
