"""Everything that can be done to runs, with the rules of what may be done when.

The terminal, Python and the server call these functions and only translate. A broken rule raises one of our own errors,
which says what to do instead. Questions to a run that change nothing are in rooms of their own, which not every command
needs to load: `interviews.ask`, `rerun.explain`, `rerun.diff`, `reports`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from shoal.agents import ScriptedSettings
from shoal.errors import ArgumentInvalid, RunRefused, ScenarioInvalid
from shoal.journal import CONTINUE, EVERY_WORLD, INJECT, JournalKey, JournalLine, add_line, read_journal
from shoal.runs.config import LimitSettings, Parent, freeze_scenario, make_portable
from shoal.runs.directory import ARCHIVED, CONFIG, RUNS, RunDirectory, claim_directory, full_name
from shoal.runs.files import replace_json
from shoal.runs.rerun.rerun import replay
from shoal.runs.state import Status, wall_clock
from shoal.runs.worker import LIVE, RunExtension, RunSession, find_asked, work_on_run
from shoal.scenario import (
    FileEntry,
    MarginalsEntry,
    Scenario,
    assign_model,
    check_classes,
    load,
    load_events,
    override,
    validate_events,
)
from shoal.text import format_count
from shoal.types import Versioned

__all__ = [  # noqa: RUF022  # grouped by what they are for
    # create
    "adopt_mirofish",
    "create_run",
    "open_or_create_run",
    "truncate_scenario",
    # put away
    "archive_run",
    "is_archived",
    # work
    "work_on_run",
    "replay",
    # extend
    "ResumePlan",
    "check_extension",
    "extend_run",
    "inject_before_start",
    "plan_extension",
    "plan_resume",
    # fork
    "ForkPlan",
    "fork_run",
    "plan_fork",
]


_FIXED_FIELDS = ("seed", "topic", "claims", "edition", "population", "follows")
_PARTS_WITH_FIXED_FIELDS = (*_FIXED_FIELDS, "time", "mind", "play", "worlds")


# Create


def create_run(scenario: Scenario, out: Path | None = None, limits: LimitSettings | None = None) -> RunDirectory:
    """Make a new run, ready to be worked on: in `out`, or else in runs/NAME-N. `limits` hold for all its sessions."""
    check_classes(scenario)
    with claim_directory(out, RUNS, scenario.name) as path:
        return RunDirectory.create(path, Versioned(scenario), [], limits=limits)


def adopt_mirofish(path: Path, model: str | None = None) -> RunDirectory:
    """Make a run of a directory that MiroFish prepared, where it is, in which a language model decides if one is named.

    Its own config is kept beside the run's.
    """
    scenario = load(path)
    return RunDirectory.adopt(
        path, Versioned(scenario if model is None else override(scenario, assign_model(scenario, model)))
    )


def open_or_create_run(
    scenario: Scenario, out: Path | None = None, limits: LimitSettings | None = None
) -> RunDirectory:
    """Make a new run, or open the one in `out`; RunRefused if that began with another scenario."""
    if out is None or not (out / CONFIG).exists():
        return create_run(scenario, out, limits)
    run = RunDirectory(out)
    _check_same(run, run.config.scenario, freeze_scenario(scenario))
    return run


def truncate_scenario(scenario: Scenario, rounds: int) -> Scenario:
    """Leave out what would happen after a round, so that the scenario can be made that short."""
    mind = scenario.mind
    if isinstance(mind, ScriptedSettings):
        mind = mind.model_copy(update={"turns": tuple(turn for turn in mind.turns if turn.round <= rounds)})
    events = tuple(event for event in scenario.events if event.round <= rounds)
    return scenario.model_copy(update={"events": events, "mind": mind})


# Put away


def is_archived(path: Path) -> bool:
    """Return whether the run in a directory was put away. It stays where it is, and is listed apart."""
    return os.path.exists(f"{path}/{ARCHIVED}")  # noqa: PTH110  # a list of thousands of runs looks at each


def archive_run(run: RunDirectory, archived: bool = True) -> None:
    """Put a run away, or list it again; RunLocked while a worker is alive. Nothing of it is moved or deleted."""
    with run.lock():
        if archived:
            replace_json(run.file(ARCHIVED), {"archived_at": wall_clock()})
        else:
            run.file(ARCHIVED).unlink(missing_ok=True)


# Extend


@dataclass(frozen=True, slots=True)
class ResumePlan:
    """How a run goes on."""

    run: RunDirectory
    #: World -> its last committed round.
    done: Mapping[str, int]
    #: The scenario with which the run is extended; None where it goes on as it was planned.
    extension: Scenario | None
    #: The versions of the scenario, the extension included.
    versions: Versioned[Scenario]
    #: Whether nothing is left to do.
    is_over: bool


def plan_resume(run: RunDirectory, rounds: int | None = None) -> ResumePlan:
    """Plan to continue a run, up to another last round where one is given."""
    done, versions, extension = run.read_last_rounds(), run.scenario_versions, None
    if rounds is not None and rounds != run.scenario.rounds:
        last = max(done.values())
        if rounds <= last:
            raise ArgumentInvalid(
                "rounds",
                f"{run.path} has {format_count(last, 'round')} already; give more than that, or fork it to go back.",
            )
        extension = override(truncate_scenario(run.scenario, rounds), {f"rounds={rounds}": f"{rounds} rounds"})
        versions = Versioned(versions.first, (*versions.changes, (last + 1, extension)))
    return ResumePlan(run, done, extension, versions, is_over=extension is None and run.is_over())


def extend_run(run: RunDirectory, scenario: Scenario) -> None:
    """Let a run go on after its last committed round with a changed scenario; `work_on_run` then carries it out.

    What a user decides while a run is under way comes from outside the function, so it goes into the journal.
    """
    with run.lock():
        add_line(run.journal, plan_extension(run, scenario).line)


def plan_extension(run: RunDirectory, scenario: Scenario, session: RunSession | None = None) -> RunExtension:
    """Plan to extend a run; RunRefused or ScenarioInvalid where it cannot be.

    A session that worked on the run knows how far it is; otherwise that is read from disk.
    """
    last = max(run.read_last_rounds().values()) if session is None else session.progress.last_round
    state, at = run.read_state() if session is None else session.state, last + 1
    if scenario.rounds < at:
        rounds = format_count(scenario.rounds, "round")
        raise RunRefused(f"{run.path} has {last} rounds already; {rounds} would not be going on")
    if state.has_ended:
        raise RunRefused(
            f"{run.path} came to its own end in round {last}: nothing can happen after that.\n"
            f"Fork it before that round to let it end otherwise."
        )
    versions = run.scenario_versions
    before = versions.at(at)
    _check_changes(before, scenario, at)
    key = JournalKey(EVERY_WORLD, at, None, CONTINUE, len(versions.changes) - len(run.config.changes))
    only_lengthens = before.model_copy(update={"rounds": scenario.rounds}) == scenario
    known = run.events[-1].event if only_lengthens and run.events and run.events[-1].is_continuation else None
    # A script may ask for one more round again and again, and the people need not be written down anew each time.
    declared = make_portable(scenario, run.path) if known is None else known["scenario"]
    event: dict[str, Any] = {"scenario": {**declared, "rounds": scenario.rounds}}
    if scenario.rounds != versions.latest.rounds:
        event["total_rounds"] = scenario.rounds
    return RunExtension(JournalLine(key, event=event), scenario, only_lengthens)


def check_extension(run: RunDirectory, known: Scenario, scenario: Scenario) -> None:
    """Check that a run was extended with the same scenario before; RunRefused if it was another one."""
    _check_same(run, make_portable(known, run.path), make_portable(scenario, run.path))


def _check_same(run: RunDirectory, known: Mapping[str, Any], scenario: Mapping[str, Any]) -> None:
    different = [field for field, value in known.items() if scenario.get(field) != value]
    if different:
        raise RunRefused(
            f"{run.path} already holds a run of another scenario ({', '.join(different)} differ).\n"
            "Give `out` another directory, or leave it away to have a new one each time."
        )


def inject_before_start(run: RunDirectory, event: Mapping[str, Any]) -> dict[str, Any]:
    """Let an event happen in the next round of a run that no worker has; return the event."""
    with run.lock():
        lines = read_journal(run.journal)[0]
        at = 1 + max(*run.read_last_rounds().values(), *find_asked(lines), 0)
        if at > run.scenario.rounds:
            raise RunRefused(f"{run.path} is over; extend it, or fork it before its end")
        (checked,) = validate_events([event], run.scenario, at)
        key = JournalKey(checked.get("world") or EVERY_WORLD, at, None, INJECT, len(run.events))
        add_line(run.journal, JournalLine(key, event=checked, reason=LIVE))
    return checked


# Fork


@dataclass(frozen=True, slots=True)
class ForkPlan:
    """A fork that may be made."""

    parent: RunDirectory
    #: The round from which on it differs.
    at: int
    versions: Versioned[Scenario]
    #: Events that happen in the fork only.
    events: Sequence[Mapping[str, Any]]
    #: Events that somebody put into the parent while it went on, and that the fork does not have.
    left_out: Sequence[Mapping[str, Any]]
    #: World -> the last round whose replies all come from the parent.
    shared: Mapping[str, int]


def plan_fork(
    parent: RunDirectory,
    at: int,
    *,
    changes: Sequence[str] = (),
    events: Path | Sequence[Mapping[str, Any]] = (),
    without: Sequence[int] = (),
) -> ForkPlan:
    """Plan to branch a run at a round, with `path=value` changes of its scenario and with further events.

    Events are a list, or a file that holds one. Those without a round happen in the round of the fork. The people
    numbered in `without` are taken out: they leave in the round of the fork, and the others live on without them.
    """
    before, committed = parent.scenario_versions.at(at), parent.read_last_rounds()
    scenario = override(before, changes)
    # Worlds of a complete run may have ended before others; of any other run, all worlds must have the round.
    last = (max if parent.read_status() is Status.COMPLETED else min)(committed.values())
    if not 0 <= at <= last:
        raise ArgumentInvalid("at", f"{at} is not a round of this run; it has rounds 0 to {last}.")
    if at > scenario.rounds:
        raise ArgumentInvalid("at", f"{at} is after the last round of the fork, {scenario.rounds}.")
    injected = load_events(events, scenario, at) if isinstance(events, Path) else validate_events(events, scenario, at)
    if without:
        injected += validate_events([{"leave": [*without], "round": max(at, 1)}], scenario, at)
    versions = _fork_versions(parent.scenario_versions, at, scenario)
    only_longer = not injected and scenario.model_copy(update={"rounds": before.rounds}) == before
    shared = committed if only_longer else dict.fromkeys(committed, max(at - 1, 0))
    put_in = [line.event for line in parent.events if line.event is not None and not line.is_continuation]
    left_out = [event for event in put_in if event.get("round", 0) >= at]
    return ForkPlan(parent, at, versions, injected, left_out, shared)


def _fork_versions(versions: Versioned[Scenario], at: int, scenario: Scenario) -> Versioned[Scenario]:
    if at == 0:
        return Versioned(scenario)
    before = Versioned(versions.first, tuple(change for change in versions.changes if change[0] < at))
    if scenario == before.latest:
        return before
    _check_changes(before.latest, scenario, at)
    return Versioned(versions.first, (*before.changes, (at, scenario)))


def fork_run(plan: ForkPlan, out: Path | None = None, limits: LimitSettings | None = None) -> RunDirectory:
    """Make the planned fork, ready to be worked on: in `out`, or else beside its parent as NAME-fork-N.

    It inherits the parent's replies. So only agents whose request really changes are asked again. It does not inherit
    the parent's `limits`: it has its own.
    """
    parent, name = plan.parent, plan.parent.config.simulation_id
    lines, _ = read_journal(parent.journal)
    earlier = [
        line for line in lines if line.event and not line.is_continuation and line.event.get("round", 0) < plan.at
    ]
    replies = {line.key: line for line in lines if line.event is None}
    inherited = [msgspec.structs.replace(line, inherited=line.inherited or name) for line in replies.values()]
    injected = [
        JournalLine(JournalKey(event.get("world") or EVERY_WORLD, event["round"], None, INJECT, n), event=dict(event))
        for n, event in enumerate(plan.events)
    ]
    with claim_directory(out, full_name(parent.path).parent, f"{parent.path.resolve().name}-fork") as path:
        return RunDirectory.create(
            path, plan.versions, [*earlier, *inherited, *injected], Parent(name, plan.at), limits
        )


def _check_changes(before: Scenario, after: Scenario, at: int) -> None:
    """Raise ScenarioInvalid if a field differs that cannot change in the middle of a run."""
    if any(isinstance(entry, FileEntry | MarginalsEntry) for entry in after.population[len(before.population) :]):
        raise ScenarioInvalid(["people cannot join from a file; load them with Person.load_all, and add each"])
    if all(getattr(before, part) is getattr(after, part) for part in _PARTS_WITH_FIXED_FIELDS):
        return
    problems = [
        f"from round {at} on: {path}: this cannot change in the middle of a run; fork with --at 0 to change it from "
        "the start"
        for (path, old), (_, new) in zip(_list_fixed_fields(before), _list_fixed_fields(after), strict=True)
        # People may be added: they are not there until they join.
        if old != new and not (path == "population" and new[: len(old)] == old)
    ]
    if problems:
        raise ScenarioInvalid(problems)


def _list_fixed_fields(scenario: Scenario) -> Iterator[tuple[str, Any]]:
    for field in _FIXED_FIELDS:
        yield field, getattr(scenario, field)
    yield "time.start", scenario.time.start
    yield "time.minutes_per_round", scenario.time.minutes_per_round
    yield "mind.kind", scenario.mind.kind
    yield "mind.latency", getattr(scenario.mind, "latency", None)
    yield "mind.turns", getattr(scenario.mind, "turns", None)
    yield "play", scenario.play
    fields = ("kind", "visibility", "products", "pairs", "settings", "mind")
    worlds = scenario.worlds.items()
    yield "worlds", [(name, *(getattr(world, field, None) for field in fields)) for name, world in worlds]
