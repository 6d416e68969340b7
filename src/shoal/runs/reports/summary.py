"""Summarises a run from its directory, also while a worker writes to it, and after one was killed.

Each database is read in one transaction, so that the figures of a world agree with one another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from shoal.engine import Metrics
from shoal.models.local import WordTable
from shoal.runs.config import LimitSettings
from shoal.runs.directory import METRICS, RunDirectory
from shoal.runs.reports.database import open_database
from shoal.runs.reports.outcomes import Outcome, read_outcomes
from shoal.runs.reports.quality import Quality, assess_run
from shoal.runs.reports.text_variety import TextVariety, measure_variety
from shoal.runs.state import SinkState, Status, WaitState, WorldState, read_sinks
from shoal.runs.store import NO_INTERVIEW, database_path
from shoal.scenario import Scenario, count_people
from shoal.worlds import SummaryContext, kind_named
from shoal.worlds.dialogue import Conversations
from shoal.worlds.room import RoomTalk
from shoal.worlds.social import Talk, TopPost

#: How many people are named.
_MAX_NAMED = 5

_ROUNDS = "SELECT round, digest, actions FROM shoal_round ORDER BY round"
_KINDS = (
    f"SELECT action, count(*) FROM trace WHERE action != 'sign_up' AND {NO_INTERVIEW} GROUP BY 1 ORDER BY 2 DESC, 1"
)
_ACTIVE = f"""
SELECT user_id, name, actions FROM
    (SELECT user_id, count(*) AS actions FROM trace
     WHERE action NOT IN ('sign_up', 'do_nothing', 'refresh', 'done') AND {NO_INTERVIEW}
     GROUP BY user_id ORDER BY actions DESC, user_id LIMIT ?)
JOIN user USING (user_id) ORDER BY actions DESC, user_id
"""


@dataclass(frozen=True, slots=True)
class ActionCount:
    """How often a kind of action was done."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class ActivePerson:
    """A person who did much."""

    agent: int
    name: str
    actions: int


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
    #: Simulated time of the round with the most actions.
    busiest_at: str | None = None
    #: Figures of the population at the start and at the end.
    outcomes: tuple[Outcome, ...] = ()


@dataclass(frozen=True, slots=True)
class MeasuredFigures:
    """Figures that may differ between equal runs. A resumed run has worked on its first rounds more than once."""

    wall_seconds: float
    agent_steps: int
    parallel_steps: int
    sequential_steps: int
    #: The sum of the times of decisions, divided by the time of the steps; None where none was measured.
    speedup: float | None
    sequential_speedup: float | None
    #: Decisions that were made and not found in a journal, and how long they took.
    decisions: int
    latency_ms: Mapping[str, float]

    @property
    def steps_per_second(self) -> float:
        return self.agent_steps / self.wall_seconds if self.wall_seconds else 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """What happened in a run, and what it took."""

    run: str
    name: str
    status: Status
    error: str | None
    #: What it waits for, while it is paused.
    waiting: WaitState | None
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
    #: Calls, tokens, retries and failures by kind, where language models were asked.
    spending: dict[str, Any] | None
    #: How much of the prompts repeats the beginning of an earlier one.
    prefixes: dict[str, Any] | None
    #: Name -> what it may cost and how much it does at once, as the scenario and the user limit it.
    limits: dict[str, float]
    #: How the places stand that the run is copied to, by their kind.
    sinks: Mapping[str, SinkState]
    errors: int
    timeouts: int
    mind: str
    quality: Quality
    #: None where there is no table of word vectors, or nothing to compare.
    variety: TextVariety | None
    #: None where nothing was measured.
    measured: MeasuredFigures | None
    worlds: tuple[WorldSummary, ...]


def summarize(directory: RunDirectory, table: WordTable | None = None) -> Summary:
    """Read the whole summary. Nothing is changed. With a table of word vectors, texts are also read by meaning."""
    config, state, clock = directory.config, directory.read_state(), directory.clock
    scenario = directory.scenario_versions.latest
    camps = directory.read_camps() if scenario.topic else None
    return Summary(
        run=str(directory.path),
        name=config.simulation_id,
        status=directory.read_status(),
        error=state.error,
        waiting=state.waiting,
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
        limits=_list_limits(directory.read_limits(), scenario),
        sinks=read_sinks(directory.path),
        errors=state.errors,
        timeouts=state.timeouts,
        mind=scenario.mind.kind,
        quality=assess_run(directory, table),
        variety=None if table is None else measure_variety(directory, table),
        measured=_read_figures(directory.file(METRICS), state.metrics),
        worlds=tuple(
            _summarize_world(directory, name, state.worlds.get(name, WorldState()).rejected, camps, table)
            for name in scenario.worlds
        ),
    )


def _list_limits(given: LimitSettings, scenario: Scenario) -> dict[str, float]:
    budget = given.apply_to(scenario.budget).model_dump()
    limits = {
        **budget,
        "parallel": given.parallel,
        "max_workers": scenario.max_workers,
        "shards": None if given.shards == 1 else given.shards,
    }
    return {name: value for name, value in limits.items() if value is not None}


def _summarize_world(
    directory: RunDirectory,
    name: str,
    rejected: int,
    camps: dict[str, list[int]] | None,
    table: WordTable | None,
) -> WorldSummary:
    clock, scenario = directory.clock, directory.scenario_versions.latest
    settings = scenario.worlds[name]
    with open_database(database_path(directory.path, name)) as database:
        if database is None:
            return WorldSummary(name, settings.kind, 0, 0.0, "", 0, rejected)
        rounds = database.execute(_ROUNDS).fetchall()
        last, digest, _ = rounds[-1] if rounds else (0, "", 0)
        actions_by_round = tuple(actions for _, _, actions in rounds)
        # Interventions, in the order in which they first happened, and their rounds.
        intervened: dict[str, list[int]] = {}
        if any(version.interventions for version in directory.scenario_versions.versions()):
            for notice in directory.open_stream(name).read_notices(event_type="intervention"):
                intervened.setdefault(notice.content, []).append(notice.round)
        kind = kind_named(settings.kind)
        compare = None if table is None else table.compare
        context = SummaryContext(database, settings, scenario.topic, clock, last, camps, compare)
        return WorldSummary(
            name=name,
            kind=settings.kind,
            round=last,
            simulated_hours=clock.hours_gone(last),
            digest=digest,
            actions=sum(actions_by_round),
            rejected=rejected,
            kinds=tuple(ActionCount(*row) for row in database.execute(_KINDS)),
            actions_by_round=actions_by_round,
            active=tuple(ActivePerson(*row) for row in database.execute(_ACTIVE, (_MAX_NAMED,))),
            interventions=tuple(Intervened(what, tuple(when)) for what, when in intervened.items()),
            outcomes=read_outcomes(directory, name),
            busiest_at=clock.stamp(max(range(len(rounds)), key=actions_by_round.__getitem__)) if rounds else None,
            **(kind.summarise(context) if kind else {}),
        )


def _read_figures(path: Path, metrics: Metrics) -> MeasuredFigures | None:
    if not metrics.steps:
        return None
    seconds: defaultdict[str, float] = defaultdict(float)
    steps = 0
    for line in map(msgspec.json.decode, read_whole_lines(path)):
        seconds[line["world"]] += line["seconds"]
        steps += line["acting"]
    return MeasuredFigures(
        # Worlds run side by side: the run took as long as the slowest of them.
        wall_seconds=max(seconds.values(), default=0.0),
        agent_steps=steps,
        parallel_steps=metrics.parallel_steps,
        sequential_steps=metrics.sequential_steps,
        speedup=metrics.speedup,
        sequential_speedup=metrics.sequential_speedup,
        decisions=metrics.decisions,
        latency_ms=metrics.latencies.milliseconds(),
    )


def read_whole_lines(path: Path) -> list[bytes]:
    """Read a file of lines, without a last line that is still being written."""
    text = path.read_bytes() if path.exists() else b""
    return text[: text.rfind(b"\n") + 1].splitlines()
