"""What pages show of a run in a list and in its header."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from threading import Lock

import msgspec

from shoal.errors import ShoalError
from shoal.runs.directory import ARCHIVED, CONFIG, CONTROL_LOCK, STATE, RunDirectory
from shoal.runs.reports import Finding, Verdict, open_world
from shoal.runs.state import RunState, Status
from shoal.runs.views.marks import ForkPoint, TimelineMark, list_marks
from shoal.scenario import count_people
from shoal.unix import read_lock

#: A list shows how lively a run was in this many parts of it, at most.
_MAX_PARTS = 40
_MAX_KNOWN = 10_000
_ACTIONS = "SELECT round, actions FROM shoal_round ORDER BY round"
#: Names that a server gives, which tell nothing.
_RANDOM_NAME = re.compile(r"sim_[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class WorldLabel:
    """A world of a run."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class QualityCard:
    """Whether a run can be relied upon, and what speaks against it."""

    verdict: str
    reasons: list[str]


@dataclass(frozen=True, slots=True)
class RunCard:
    """A run as one row of a list."""

    simulation_id: str
    name: str
    topic: str
    status: str
    round: int
    rounds: int
    people: int
    worlds: list[WorldLabel]
    #: Dollars; None where a model's price is not known.
    cost: float | None
    max_cost: float | None
    calls: int
    quality: QualityCard | None
    #: Actions in each of at most 40 parts of the run so far.
    activity: list[int]
    parent: ForkPoint | None
    created_at: str | None
    updated_at: str | None
    error: str | None
    #: What to do about the error.
    hint: str | None
    resumable: bool
    archived: bool


@dataclass(frozen=True, slots=True)
class ClaimCard:
    """A claim of the scenario; `truth` is null where it is open."""

    id: str
    text: str
    truth: bool | None


@dataclass(frozen=True, slots=True)
class LimitCard:
    """Calls to one model: how many are under way, and how many its server was found to bear."""

    model: str
    in_flight: int
    learned: int | None


@dataclass(frozen=True, slots=True)
class RunHeader(RunCard):
    """Everything that stands at the head of a run's page."""

    claims: list[ClaimCard]
    #: Simulated time of round 0, and how long a round lasts.
    start: str
    round_minutes: int
    limits: list[LimitCard]
    #: The last round that every world has committed, so that it can be shown whole.
    last_round: int
    marks: list[TimelineMark]


class CardReader:
    """Reads the cards of runs. What was read is kept for as long as the files behind it stay the same."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, ...], RunCard]] = {}
        self._adding = Lock()

    def read_known(self, path: Path) -> RunCard | None:
        """Return the card that was read before, if nothing has changed and no worker is alive."""
        before, card = self._known.get(path, (None, None))
        if card is None or Status(card.status).is_live or before != _stamp(path):
            return None
        return None if read_lock(path / CONTROL_LOCK) is not None else card

    def read(self, run: RunDirectory) -> RunCard:
        """Read the card of a run as it is now."""
        stamp = _stamp(run.path)
        before, card = self._known.get(run.path, (None, None))
        if card is None or stamp != before:
            card = _describe(run, run.read_state())
            with self._adding:
                if len(self._known) >= _MAX_KNOWN:
                    self._known.clear()
                self._known[run.path] = stamp, card
        is_working = Status(card.status).is_working
        if (is_working and not run.has_worker()) or read_lock(run.path / CONTROL_LOCK) is not None:
            # The worker was killed, or one is being started or stopped: the file of the state does not say so.
            state = run.observe_state()
            error, hint = _explain(state)
            return replace(card, status=str(state.runner_status), error=error, hint=hint)
        return card

    def list_children(self, name: str) -> list[RunCard]:
        """List the forks of a run among the cards that were read, by the round where they branch off."""
        with self._adding:
            cards = [card for _, card in self._known.values()]
        forks = [card for card in cards if card.parent is not None and card.parent.id == name]
        return sorted(forks, key=lambda card: (card.parent.round if card.parent else 0, card.simulation_id))


def read_header(run: RunDirectory, card: RunCard, forks: Sequence[RunCard]) -> RunHeader:
    """Read what stands at the head of a run's page."""
    scenario, clock = run.scenario, run.clock
    truths = {"true": True, "false": False}
    rounds = run.read_last_rounds().values()
    limits = []
    for name, pool in (run.read_state().limits or {}).get("pools", {}).items():
        size = pool.get("size") if pool.get("kind") == "adaptive" else None
        limits.append(LimitCard(name.partition(" #")[0], int(pool.get("held", 0)), None if size is None else int(size)))
    return RunHeader(
        **{field.name: getattr(card, field.name) for field in fields(RunCard)},
        claims=[ClaimCard(claim.id, claim.text, truths.get(claim.truth)) for claim in scenario.claims],
        start=clock.stamp(0),
        round_minutes=scenario.time.minutes_per_round,
        limits=limits,
        last_round=(max if card.status == Status.COMPLETED else min)(rounds, default=0),
        marks=list_marks(run, card.parent, [(fork.parent.round, fork.simulation_id) for fork in forks if fork.parent]),
    )


def read_name(identity: str, scenario_name: str) -> str:
    """Return what people call a run: its directory, or its scenario where the directory has a random name."""
    return _RANDOM_NAME.sub(scenario_name, identity, count=1)


def _stamp(path: Path) -> tuple[int, ...]:
    """Return what changes when the card of a run does."""
    stamp: list[int] = []
    for name in (CONFIG, STATE, ARCHIVED):
        try:
            found = os.stat(f"{path}/{name}")  # noqa: PTH116  # a list of thousands of runs looks at each
            stamp += found.st_mtime_ns, found.st_size
        except FileNotFoundError:
            stamp += 0, 0
    return tuple(stamp)


def _describe(run: RunDirectory, state: RunState) -> RunCard:
    config, scenario = run.config, run.scenario
    max_cost = run.read_limits().apply_to(scenario.budget).max_cost
    error, hint = _explain(state)
    quality = None
    if state.quality is not None:
        findings = msgspec.convert(state.quality.get("findings", []), list[Finding])
        bad = [str(one) for one in findings if one.level is not Verdict.GOOD]
        quality = QualityCard(str(state.quality["verdict"]), bad)
    return RunCard(
        simulation_id=run.path.name,
        name=read_name(run.path.name, scenario.name),
        topic=scenario.topic or "",
        status=str(state.runner_status),
        round=state.current_round,
        rounds=state.total_rounds or scenario.rounds,
        people=count_people(scenario.population),
        worlds=[WorldLabel(name, settings.kind) for name, settings in scenario.worlds.items()],
        cost=state.cost,
        max_cost=max_cost,
        calls=state.calls,
        quality=quality,
        activity=_read_activity(run),
        parent=None if config.parent is None else ForkPoint(config.parent, _find_fork_round(run)),
        created_at=config.generated_at or None,
        updated_at=state.updated_at or config.generated_at or None,
        error=error,
        hint=hint,
        resumable=state.runner_status.resumable,
        archived=(run.path / ARCHIVED).exists(),
    )


def _find_fork_round(run: RunDirectory) -> int:
    """Return the round of a fork; where it is not written down, the first round of which something else was said."""
    if run.config.parent_round is not None:
        return run.config.parent_round
    changed = [change.at for change in run.config.changes]
    injected = [line.round for line in run.events if not line.is_continuation]
    return min([*changed, *injected], default=0)


def _explain(state: RunState) -> tuple[str | None, str | None]:
    """Return what went wrong in a run, and what to do about it."""
    if state.waiting is not None and state.runner_status is Status.PAUSED:
        waiting = state.waiting
        return f"waits for {waiting.model}: {waiting.reason}", "It goes on by itself when the server answers again."
    if not state.error:
        return None, None
    error, _, advice = state.error.partition("\n")
    return error, advice or "Resume it when that is mended: what was paid for is not asked again."


def _read_activity(run: RunDirectory) -> list[int]:
    totals: dict[int, int] = {}
    for world in run.worlds:
        with open_world(run, world) as database:
            for round, actions in database.execute(_ACTIONS) if database else ():
                totals[round] = totals.get(round, 0) + actions
    counts = [totals[round] for round in sorted(totals)]
    if len(counts) <= _MAX_PARTS:
        return counts
    cuts = [len(counts) * part // _MAX_PARTS for part in range(_MAX_PARTS + 1)]
    return [sum(counts[start:end]) for start, end in pairwise(cuts)]


def describe_unreadable(identity: str, error: ShoalError) -> RunCard:
    """Return the card of a run that cannot be read, so that it does not hide the others."""
    text, _, advice = str(error).partition("\n")
    return RunCard(
        simulation_id=identity,
        name=identity,
        topic="",
        status=str(Status.FAILED),
        round=0,
        rounds=0,
        people=0,
        worlds=[],
        cost=None,
        max_cost=None,
        calls=0,
        quality=None,
        activity=[],
        parent=None,
        created_at=None,
        updated_at=None,
        error=text,
        hint=advice or None,
        resumable=False,
        archived=False,
    )
