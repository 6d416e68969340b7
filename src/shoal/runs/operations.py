"""What can be done to make runs: create one, or fork one. Then `work` on it, wherever it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from shoal.errors import RunRefused, ScenarioInvalid
from shoal.journal import CONTINUE, EVERY_WORLD, INJECT, JournalKey, JournalLine, add_line, read_journal
from shoal.runs.config import portable_scenario
from shoal.runs.directory import RunDirectory
from shoal.scenario.build import check_classes
from shoal.scenario.scenario import Scenario
from shoal.types import Versioned


def create_run(scenario: Scenario, path: Path) -> RunDirectory:
    """The directory of a new run, ready to be worked on."""
    check_classes(scenario)
    return RunDirectory.create(path, Versioned(scenario), [])


def fork_run(
    parent: RunDirectory, path: Path, at: int, changed: Scenario, injected: Sequence[Mapping[str, Any]] = ()
) -> RunDirectory:
    """The directory of a run that shares its parent's past up to a round, and goes its own way from that round on.

    The parent's replies come along: wherever the fork asks the same thing, it has the same answer for nothing.
    """
    name = parent.config.simulation_id
    history = fork_versions(parent.scenario_versions, at, changed)
    lines = [*_inherited_lines(parent, name, at), *_injections(injected)]
    return RunDirectory.create(path, history, lines, parent=name)


def extend_run(directory: RunDirectory, changed: Scenario) -> None:
    """Let a run go on after its last committed round, with what has changed since; `work` on it then.

    What a person decides while a run is under way comes from outside the function, so it goes into the journal.
    """
    with directory.lock():
        add_line(directory.journal, plan_extension(directory, changed))


def plan_extension(directory: RunDirectory, changed: Scenario) -> JournalLine:
    """Return the line of the journal with which a run goes on; RunRefused or ScenarioInvalid where it cannot."""
    at = max(directory.committed_rounds().values()) + 1
    _check_can_go_on(directory, changed, at)
    _check_changes(directory.scenario_versions.at(at), changed, at)
    event = {"scenario": portable_scenario(changed, directory.path)}
    return JournalLine(JournalKey(EVERY_WORLD, at, None, CONTINUE, directory.extensions), event=event)


def _check_can_go_on(directory: RunDirectory, changed: Scenario, at: int) -> None:
    if changed.rounds < at:
        rounds = f"{changed.rounds} round{'s' if changed.rounds > 1 else ''}"
        raise RunRefused(f"{directory.path} has {at - 1} rounds already; {rounds} would not be going on")
    state = directory.state()
    if state.worlds and all(world.ended for world in state.worlds.values()):
        raise RunRefused(
            f"{directory.path} came to its own end in round {at - 1}: nothing can happen after that.\n"
            f"Fork it before that round to let it end otherwise."
        )


def fork_versions(history: Versioned[Scenario], at: int, changed: Scenario) -> Versioned[Scenario]:
    """The scenario of a fork, from its first round on."""
    if at == 0:
        return Versioned(changed)
    before = tuple((since, version) for since, version in history.changes if since < at)
    in_force = before[-1][1] if before else history.first
    if changed == in_force:
        return Versioned(history.first, before)
    _check_changes(in_force, changed, at)
    return Versioned(history.first, (*before, (at, changed)))


def _check_changes(before: Scenario, after: Scenario, at: int) -> None:
    """What cannot change in the middle of a run must be the same."""
    problems = [
        f"{path}: this cannot change in the middle of a run; fork with --at 0 to change it from the start"
        for (path, old), (_, new) in zip(_immutable_fields(before), _immutable_fields(after), strict=True)
        if old != new
    ]
    if problems:
        raise ScenarioInvalid([f"from round {at} on: {problem}" for problem in problems])


def _immutable_fields(scenario: Scenario) -> Iterator[tuple[str, Any]]:
    for field in ("seed", "topic", "population", "follows"):
        yield field, getattr(scenario, field)
    yield "time.start", scenario.time.start
    yield "time.minutes_per_round", scenario.time.minutes_per_round
    yield "mind.kind", scenario.mind.kind
    yield "mind.latency", getattr(scenario.mind, "latency", None)
    yield "mind.turns", getattr(scenario.mind, "turns", None)
    yield "play", scenario.play
    yield "worlds", [(name, *_immutable_world_fields(world)) for name, world in scenario.worlds.items()]


def _immutable_world_fields(world: BaseModel) -> Iterator[Any]:
    """What a world stays with for as long as it exists."""
    for field in ("kind", "visibility", "products", "pairs", "settings", "mind"):
        yield getattr(world, field, None)


def _inherited_lines(parent: RunDirectory, name: str, at: int) -> list[JournalLine]:
    """The parent's replies, each as the parent had it last, and what was injected before the fork."""
    lines, _ = read_journal(parent.journal)
    injected = [line for line in lines if line.event is not None and not line.is_continuation]
    events = [line for line in injected if line.event is not None and line.event.get("round", 0) < at]
    replies = {line.key: line for line in lines if line.event is None}
    taken_over = [
        JournalLine(
            line.key,
            line.request,
            line.reply,
            line.outcome,
            line.reason,
            None,
            line.usage,
            line.ms,
            line.inherited or name,
        )
        for line in replies.values()
    ]
    return events + taken_over


def _injections(events: Sequence[Mapping[str, Any]]) -> list[JournalLine]:
    return [
        JournalLine(JournalKey(event.get("world") or EVERY_WORLD, event["round"], None, INJECT, n), event=dict(event))
        for n, event in enumerate(events)
    ]
