"""What happened in a run, read from its directory: also while a worker writes to it, and after one was killed.

Each database is read in one transaction, so that the figures of a world agree with one another.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from shoal.engine.metrics import Metrics
from shoal.errors import QueryFailed, StorageFailed
from shoal.runs.directory import CONFIG, METRICS, RunDirectory
from shoal.runs.reports import queries
from shoal.runs.reports.conversations import Conversations, RoomTalk, conversations, room_talk
from shoal.runs.state import RunState, Status, WorldState
from shoal.scenario.declared.population import count_people
from shoal.scenario.scenario import Scenario
from shoal.types import Notice, Versioned
from shoal.worlds.clock import Clock
from shoal.worlds.dialogue.settings import DialogueSettings
from shoal.worlds.lexicon import TextReader
from shoal.worlds.room.settings import RoomSettings

#: How a line of the stream begins that tells of an intervention.
_INTERVENTION = b'{"event_type":"intervention"'
#: How many people and posts are named.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class ActionCount:
    """How often something was done."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class ActivePerson:
    """Somebody who did much."""

    agent: int
    name: str
    actions: int


@dataclass(frozen=True, slots=True)
class TopPost:
    """A post that many reacted to."""

    post_id: int
    author: str
    text: str
    likes: int
    dislikes: int
    shares: int
    comments: int
    round: int


@dataclass(frozen=True, slots=True)
class Camp:
    """People of one opinion at the start, and how far they keep to themselves."""

    name: str
    people: int
    posts: int
    #: Of the posts they liked, how many were written by people of their own opinion.
    likes: int
    likes_within: int


@dataclass(frozen=True, slots=True)
class Talk:
    """How far the scenario's topic went."""

    topic: str
    #: Posts that speak of it or pass it on, by round.
    posts_by_round: tuple[int, ...]
    #: People who wrote about it, passed it on, liked or commented it, up to each round.
    people_by_round: tuple[int, ...]
    camps: tuple[Camp, ...]


@dataclass(frozen=True, slots=True)
class Intervened:
    """An intervention, and the rounds in which it happened."""

    name: str
    rounds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WorldSummary:
    """What happened in one world."""

    name: str
    kind: str
    round: int
    simulated_hours: float
    digest: str
    actions: int
    rejected: int
    kinds: tuple[ActionCount, ...] = ()
    actions_by_round: tuple[int, ...] = ()
    active: tuple[ActivePerson, ...] = ()
    top_posts: tuple[TopPost, ...] = ()
    talk: Talk | None = None
    room: RoomTalk | None = None
    conversations: Conversations | None = None
    interventions: tuple[Intervened, ...] = ()
    #: Simulated time of the round in which most was done.
    busiest_at: str | None = None


@dataclass(frozen=True, slots=True)
class MeasuredFigures:
    """What may differ between equal runs. A resumed run has worked on its first rounds more than once."""

    wall_seconds: float
    agent_steps: int
    parallel_steps: int
    sequential_steps: int
    #: Time that decisions took, summed, over the time that the steps took; None where none was measured.
    speedup: float | None
    sequential_speedup: float | None
    #: Decisions that were really made, and not found in a journal; and how long they took.
    decisions: int
    latency_ms: Mapping[str, float]

    @property
    def steps_per_second(self) -> float:
        return self.agent_steps / self.wall_seconds if self.wall_seconds else 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """What happened in a run."""

    run: str
    name: str
    status: Status
    error: str | None
    parent: str | None
    started_at: str | None
    topic: str | None
    people: int
    seed: int
    rounds: int
    minutes_per_round: int
    start: str
    calls: int
    cost: float | None
    #: What language models took, where any were asked: calls, tokens, retries, failures by kind.
    spending: dict[str, Any] | None
    #: How much of the prompts repeats the beginning of an earlier one.
    prefixes: dict[str, Any] | None
    errors: int
    timeouts: int
    mind: str
    #: None where nothing was measured.
    measured: MeasuredFigures | None
    worlds: tuple[WorldSummary, ...]


def summarize(directory: RunDirectory) -> Summary:
    """Read the whole summary; changes nothing."""
    config, state, clock = directory.config(), directory.state(), directory.clock()
    history = directory.history()
    scenario = history.latest
    return Summary(
        run=str(directory.path),
        name=config.simulation_id,
        status=directory.status(),
        error=state.error,
        parent=config.parent,
        started_at=state.started_at,
        topic=scenario.topic,
        people=count_people(scenario.population),
        seed=scenario.seed,
        rounds=scenario.rounds,
        minutes_per_round=scenario.time.minutes_per_round,
        start=clock.stamp(0),
        calls=state.calls,
        cost=state.cost,
        spending=state.spending,
        prefixes=state.prefixes,
        errors=state.errors,
        timeouts=state.timeouts,
        mind=scenario.mind.kind,
        measured=_measured(directory.file(METRICS), state.metrics),
        worlds=tuple(_world(directory, name, history, state, clock) for name in scenario.worlds),
    )


def committed_rounds(directory: RunDirectory) -> dict[str, int]:
    """World -> the last round of it that was committed."""
    found = {}
    for name in directory.history().first.worlds:
        with reading(_database(directory, name)) as database:
            found[name] = max(database.execute(queries.LAST_ROUND).fetchone()[0] or 0, 0) if database else 0
    return found


def query_database(directory: RunDirectory, world: str, sql: str) -> tuple[list[str], list[tuple[object, ...]]]:
    """Column names and rows that a question in SQL has for an answer."""
    with reading(_database(directory, world)) as database:
        if database is None:
            return [], []
        try:
            answer = database.execute(sql)
        except sqlite3.Error as error:
            raise QueryFailed(f"the database does not understand this: {error}") from error
        return [column for column, *_ in answer.description or ()], answer.fetchall()


def _database(directory: RunDirectory, world: str) -> Path:
    return directory.file(f"{world}_simulation.db")


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection | None]:
    """The database in one consistent state, or None where nothing was ever committed."""
    if not path.exists():
        yield None
        return
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        ) as database:
            database.execute("PRAGMA temp_store=MEMORY")
            database.execute("BEGIN")
            yield database if database.execute(queries.HAS_ROUNDS).fetchone() else None
    except sqlite3.Error as error:
        raise StorageFailed(f"cannot read {path}: {error}") from error


def _world(
    directory: RunDirectory, name: str, history: Versioned[Scenario], state: RunState, clock: Clock
) -> WorldSummary:
    scenario = history.latest
    counted = state.worlds.get(name, WorldState())
    settings = scenario.worlds[name]
    kind = settings.kind
    with reading(_database(directory, name)) as database:
        if database is None:
            return WorldSummary(name, kind, 0, 0.0, "", 0, counted.rejected)
        rounds = database.execute(queries.ROUNDS).fetchall()
        last, digest, _ = rounds[-1] if rounds else (0, "", 0)
        by_round = _RoundDater(clock, last)
        actions_by_round = tuple(actions for _, _, actions in rounds)
        social = bool(database.execute(queries.HAS_POSTS).fetchone())
        return WorldSummary(
            name=name,
            kind=kind,
            round=last,
            simulated_hours=clock.hours_gone(last),
            digest=digest,
            actions=sum(actions_by_round),
            rejected=counted.rejected,
            kinds=tuple(ActionCount(*row) for row in database.execute(queries.KINDS)),
            actions_by_round=actions_by_round,
            active=tuple(ActivePerson(*row) for row in database.execute(queries.ACTIVE, (_NAMED,))),
            top_posts=_top_posts(database, by_round) if social else (),
            talk=_talk(database, scenario, by_round, _camps_of(directory)) if social and scenario.topic else None,
            room=room_talk(database) if isinstance(settings, RoomSettings) else None,
            conversations=(
                conversations(database, len(settings.scenes)) if isinstance(settings, DialogueSettings) else None
            ),
            interventions=_intervened(directory.file(f"{name}/actions.jsonl"), history),
            busiest_at=clock.stamp(max(range(len(rounds)), key=actions_by_round.__getitem__)) if rounds else None,
        )


def _intervened(stream: Path, history: Versioned[Scenario]) -> tuple[Intervened, ...]:
    """Which interventions happened when, from the stream, in the order in which they first did."""
    if not any(version.interventions for version in history.versions()) or not stream.exists():
        return ()
    found: dict[str, list[int]] = {}
    with stream.open("rb") as lines:
        for line in lines:
            if line.startswith(_INTERVENTION) and line.endswith(b"\n"):
                notice = msgspec.json.decode(line, type=Notice)
                found.setdefault(notice.content, []).append(notice.round)
    return tuple(Intervened(name, tuple(rounds)) for name, rounds in found.items())


class _RoundDater:
    """Puts what the database dates into rounds: some platforms write the round, others the simulated date."""

    def __init__(self, clock: Clock, last: int) -> None:
        self._clock = clock
        self._last = last

    def number(self, created_at: int | str) -> int:
        if isinstance(created_at, int):
            return created_at
        date = datetime.fromisoformat(created_at).replace(tzinfo=UTC)
        return max(bisect_right(range(1, self._last + 1), date, key=self._clock.at), 1)

    def spread(self, rows: Sequence[tuple[int | str, int]]) -> list[int]:
        """Counts by date as one count for each round, 0 to the last."""
        counts = [0] * (self._last + 1)
        for created_at, count in rows:
            counts[min(self.number(created_at), self._last)] += count
        return counts


def _top_posts(database: sqlite3.Connection, rounds: _RoundDater) -> tuple[TopPost, ...]:
    rows = database.execute(queries.TOP_POSTS, (_NAMED,))
    return tuple(TopPost(*(*row[:-1], rounds.number(row[-1]))) for row in rows)


def _talk(
    database: sqlite3.Connection, scenario: Scenario, rounds: _RoundDater, camps: dict[str, list[int]] | None
) -> Talk:
    assert scenario.topic is not None
    reader = TextReader((), scenario.topic)
    database.create_function(
        "on_topic", 1, lambda text: text is not None and reader.is_on_topic(text), deterministic=True
    )
    database.execute(queries.MAKE_ABOUT)
    newcomers = rounds.spread(database.execute(queries.FIRST_PART_TAKEN).fetchall())
    return Talk(
        topic=scenario.topic,
        posts_by_round=tuple(rounds.spread(database.execute(queries.ABOUT_BY_DATE).fetchall())),
        people_by_round=tuple(_running_sum(newcomers)),
        camps=_camps(database, camps) if camps else (),
    )


def _running_sum(counts: list[int]) -> Iterator[int]:
    total = 0
    for count in counts:
        total += count
        yield total


def _camps(database: sqlite3.Connection, camps: dict[str, list[int]]) -> tuple[Camp, ...]:
    database.execute(queries.MAKE_CAMP)
    for name, agents in camps.items():
        database.executemany(queries.ADD_TO_CAMP, ((agent, name) for agent in agents))
    posts = dict(database.execute(queries.POSTS_BY_CAMP).fetchall())
    likes = {name: (given, within) for name, given, within in database.execute(queries.LIKES_BY_CAMP)}
    return tuple(
        Camp(name, len(agents), posts.get(name, 0), *likes.get(name, (0, 0)))
        for name, agents in camps.items()
        if agents
    )


class _Agent(msgspec.Struct):
    agent_id: int
    stance: str


class _Agents(msgspec.Struct):
    agents_count: int
    agent_configs: list[_Agent]


def _camps_of(directory: RunDirectory) -> dict[str, list[int]] | None:
    """Opinion at the start -> agents, where the directory lists them all."""
    listed = msgspec.json.decode(directory.file(CONFIG).read_bytes(), type=_Agents)
    if listed.agents_count != len(listed.agent_configs):
        return None
    camps: dict[str, list[int]] = {"supportive": [], "neutral": [], "opposing": []}
    for agent in listed.agent_configs:
        camps[agent.stance].append(agent.agent_id)
    return camps


class _Metric(msgspec.Struct):
    world: str
    acting: int
    seconds: float


def _measured(path: Path, metrics: Metrics) -> MeasuredFigures | None:
    """Worlds run side by side: the run took as long as the one that took longest."""
    if not metrics.steps:
        return None
    seconds: dict[str, float] = {}
    steps = 0
    for line in _whole_lines(path):
        metric = msgspec.json.decode(line, type=_Metric)
        seconds[metric.world] = seconds.get(metric.world, 0.0) + metric.seconds
        steps += metric.acting
    return MeasuredFigures(
        wall_seconds=max(seconds.values(), default=0.0),
        agent_steps=steps,
        parallel_steps=metrics.parallel_steps,
        sequential_steps=metrics.sequential_steps,
        speedup=metrics.speedup,
        sequential_speedup=metrics.sequential_speedup,
        decisions=metrics.decisions,
        latency_ms=metrics.latencies.milliseconds(),
    )


def _whole_lines(path: Path) -> list[bytes]:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return []
    return text[: text.rfind(b"\n") + 1].splitlines()
