"""A run that came to its end can be made to go on, in place; what was done stays done."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import RunRefused, ScenarioInvalid, Stopped
from shoal.journal import read_journal
from shoal.runs.directory import RunDirectory
from shoal.runs.operations import create_run, extend_run, plan_extension
from shoal.runs.progress import RunProgress
from shoal.runs.rerun.rerun import replay
from shoal.runs.state import RunOutcome, Status
from shoal.runs.store import ACTION_COUNTS, InterviewLog
from shoal.runs.worker import RunSession, work_on_run
from shoal.scenario.loading import override, validate
from tests.runs.harness import branch, check_consistency, go_on, list_asked, read_lines, repeat, start, stop_after
from tests.runs.test_worker import ASKING, RUMOUR

ROOM: dict[str, Any] = {
    "rounds": 6,
    "population": {"count": 6},
    "topic": "the old bridge",
    "worlds": {"room": {"turns": "sequential"}},
    "events": [{"skip": "2 days", "round": 3}],
}


def plan_longer(path: Path, *sets: str) -> RunDirectory:
    """The run in this directory, made to go on with these changes."""
    directory = RunDirectory(path)
    history = directory.scenario_versions
    extend_run(directory, override(history.latest, sets))
    return directory


def run_longer(path: Path, *sets: str) -> RunOutcome:
    return go_on(plan_longer(path, *sets))


def dump_tables(path: Path) -> list[str]:
    """Everything in a database but how long the stream is: it says at its start how many rounds were planned."""
    with closing(sqlite3.connect(path)) as database:
        return [line for line in database.iterdump() if '"shoal_round"' not in line]


@pytest.mark.parametrize("scenario", [RUMOUR, ASKING, ROOM], ids=["at once", "asking", "room"])
def test_a_run_that_goes_on_is_the_run_that_was_longer_from_the_start(scenario: dict[str, Any], tmp_path: Path) -> None:
    whole = start({**scenario, "rounds": 12}, tmp_path / "whole")
    start(scenario, tmp_path / "run")
    outcome = run_longer(tmp_path / "run", "rounds=12")
    assert (outcome.digest, outcome.rounds, outcome.actions) == (whole.digest, 12, whole.actions)
    assert outcome.calls == whole.calls
    assert outcome.status is Status.COMPLETED
    check_consistency(tmp_path / "run", finished=True)
    for world in scenario["worlds"]:
        assert dump_tables(tmp_path / f"whole/{world}_simulation.db") == dump_tables(
            tmp_path / f"run/{world}_simulation.db"
        )


def test_the_stream_goes_on_and_has_one_end(tmp_path: Path) -> None:
    start(RUMOUR, tmp_path / "run")
    before = (tmp_path / "run/twitter/actions.jsonl").read_bytes()
    run_longer(tmp_path / "run", "rounds=9")
    after = (tmp_path / "run/twitter/actions.jsonl").read_bytes()
    assert after.startswith(before[: before.rindex(b'{"event_type":"simulation_end"')])
    lines = read_lines(tmp_path / "run/twitter/actions.jsonl")
    ends = [line["total_rounds"] for line in lines if line.get("event_type") == "simulation_end"]
    assert ends == [9]
    assert [line["round"] for line in lines if line.get("event_type") == "round_end"] == list(range(10))


def test_the_state_says_how_far_the_run_is_now_to_go(tmp_path: Path) -> None:
    start(RUMOUR, tmp_path / "run")
    directory = plan_longer(tmp_path / "run", "rounds=12")
    assert not directory.is_over()
    go_on(directory)
    assert directory.is_over()
    state = json.loads((tmp_path / "run/run_state.json").read_text())
    assert (state["total_rounds"], state["current_round"], state["progress_percent"]) == (12, 12, 100.0)
    assert state["total_simulation_hours"] == state["simulated_hours"] == 12.0


def test_changes_and_new_events_hold_from_where_the_run_goes_on(tmp_path: Path) -> None:
    start(ASKING, tmp_path / "run")
    events = 'events=[{"broadcast": "Too late.", "round": 2}, {"broadcast": "It goes on.", "round": 8}]'
    run_longer(tmp_path / "run", "rounds=9", events, "worlds.twitter.feed.followed=1")
    lines = read_lines(tmp_path / "run/twitter/actions.jsonl")
    told = [(line["round"], line["content"]) for line in lines if line.get("event_type") == "broadcast"]
    assert told == [(3, "The bridge stays open."), (8, "It goes on.")]
    assert repeat(RunDirectory(tmp_path / "run")).status is Status.COMPLETED


def test_a_run_may_go_on_again_and_again(tmp_path: Path) -> None:
    whole = start({**RUMOUR, "rounds": 9}, tmp_path / "whole")
    start(RUMOUR, tmp_path / "run")
    run_longer(tmp_path / "run", "rounds=7")
    assert run_longer(tmp_path / "run", "rounds=9").digest == whole.digest
    keys = [line.key for line in read_journal(tmp_path / "run/journal.jsonl")[0] if line.is_continuation]
    assert keys == ["*/7/continue/0", "*/8/continue/1"]


def test_streams_say_how_long_an_extended_run_is_to_go_on(tmp_path: Path) -> None:
    start(RUMOUR, tmp_path / "run")
    run_longer(tmp_path / "run", "rounds=7")
    plan_longer(tmp_path / "run", "rounds=20")
    run_longer(tmp_path / "run", "rounds=9")
    for world in RunDirectory(tmp_path / "run").worlds:
        lines = read_lines(tmp_path / "run" / world / "actions.jsonl")
        said = [(line["event_type"], line["total_rounds"]) for line in lines if "total_rounds" in line]
        extended = [("simulation_extended", 7), ("simulation_extended", 9)]
        assert said == [("simulation_start", RUMOUR["rounds"]), *extended, ("simulation_end", 9)]
    assert repeat(RunDirectory(tmp_path / "run")).status is Status.COMPLETED


def test_of_two_wishes_before_anything_went_on_the_later_one_counts(tmp_path: Path) -> None:
    start(RUMOUR, tmp_path / "run")
    plan_longer(tmp_path / "run", "rounds=20")
    assert run_longer(tmp_path / "run", "rounds=8").rounds == 8


def test_a_run_interrupted_while_going_on_comes_to_the_same_end(tmp_path: Path) -> None:
    start(ASKING, tmp_path / "whole")
    whole = run_longer(tmp_path / "whole", "rounds=12")
    start(ASKING, tmp_path / "run")
    directory = plan_longer(tmp_path / "run", "rounds=12")
    stop_after(directory, 9)
    check_consistency(directory.path, finished=False)
    assert directory.read_status() is Status.STOPPED
    assert go_on(directory).digest == whole.digest
    check_consistency(directory.path, finished=True)
    assert directory.read_state().calls == len(list_asked(directory.path))


@pytest.mark.parametrize("visibility", [1, 3])
def test_a_run_stopped_half_way_may_go_on_differently(visibility: int, tmp_path: Path) -> None:
    """What was asked for in rounds that were never committed counts only where it still is the same question."""
    worlds = {"twitter": {"visibility": visibility}}
    directory = create_run(validate({**ASKING, "worlds": worlds, "rounds": 8}), tmp_path / "run")
    stop_after(directory, 3)
    before = list_asked(directory.path)
    outcome = run_longer(tmp_path / "run", "rounds=10", "worlds.twitter.feed.followed=1")
    assert (outcome.rounds, outcome.status) == (10, Status.COMPLETED)
    assert before <= list_asked(directory.path)
    assert outcome.calls == sum(line.event is None for line in read_journal(directory.journal)[0])
    assert repeat(directory).digest == outcome.digest
    assert go_on(directory) == outcome


def test_a_run_that_went_on_is_replayed_for_nothing(tmp_path: Path) -> None:
    start(ASKING, tmp_path / "run")
    outcome = run_longer(tmp_path / "run", "rounds=9", "mind.persuasion=0.5")
    again = repeat(RunDirectory(tmp_path / "run"))
    assert (again.digest, again.calls, again.status) == (outcome.digest, 0, Status.COMPLETED)


def test_a_fork_of_a_run_that_went_on_shares_its_past(tmp_path: Path) -> None:
    start(ASKING, tmp_path / "run")
    outcome = run_longer(tmp_path / "run", "rounds=10", "worlds.twitter.feed.followed=1")
    same = branch(tmp_path / "run", tmp_path / "same", 8)
    assert (same.digest, same.calls) == (outcome.digest, 0)
    other = branch(tmp_path / "run", tmp_path / "other", 8, ["worlds.twitter.feed.followed=5"])
    digests = [
        [line["digest"] for line in read_lines(tmp_path / run / "twitter/actions.jsonl") if "digest" in line]
        for run in ("run", "other")
    ]
    assert digests[0][:8] == digests[1][:8]
    assert digests[0][8:] != digests[1][8:]
    assert all(int(key.split("/")[1]) >= 8 for key in list_asked(tmp_path / "other"))
    assert repeat(RunDirectory(tmp_path / "other")).digest == other.digest


def test_a_fork_before_a_run_went_on_knows_nothing_of_that(tmp_path: Path) -> None:
    first = start(ASKING, tmp_path / "run")
    run_longer(tmp_path / "run", "rounds=10", "mind.persuasion=0.5")
    child = branch(tmp_path / "run", tmp_path / "child", 4)
    assert (child.digest, child.rounds, child.calls) == (first.digest, 6, 0)


@pytest.mark.parametrize(
    "change", ["population.count=30", "seed=5", "time.minutes_per_round=30", "worlds.twitter.visibility=2"]
)
def test_what_cannot_change_in_the_middle_is_refused(change: str, tmp_path: Path) -> None:
    start(RUMOUR, tmp_path / "run")
    before = (tmp_path / "run/journal.jsonl").read_bytes()
    with pytest.raises(ScenarioInvalid, match=r"from round 7 on: .* cannot change in the middle of a run"):
        plan_longer(tmp_path / "run", "rounds=9", change)
    assert (tmp_path / "run/journal.jsonl").read_bytes() == before


@pytest.mark.parametrize("rounds", [4, 6])
def test_a_run_cannot_go_on_to_where_it_is_already(rounds: int, tmp_path: Path) -> None:
    start({**RUMOUR, "events": []}, tmp_path / "run")
    with pytest.raises(RunRefused, match=f"has 6 rounds already; {rounds} rounds would not be going on"):
        plan_longer(tmp_path / "run", f"rounds={rounds}")


def test_what_was_measured_before_stays_measured(tmp_path: Path) -> None:
    start(ASKING, tmp_path / "run")
    before = RunDirectory(tmp_path / "run").read_state().metrics
    run_longer(tmp_path / "run", "rounds=9")
    after = RunDirectory(tmp_path / "run").read_state().metrics
    assert before.parallel_steps == 12
    assert after.parallel_steps == 18
    assert after.decisions == 25 * 9 * 2
    assert after.parallel_deciding_seconds > before.parallel_deciding_seconds
    assert after.latencies.longest >= before.latencies.longest


# in one session


@pytest.mark.parametrize("scenario", [RUMOUR, ASKING, ROOM], ids=["at once", "asking", "room"])
@pytest.mark.parametrize("changes", [[], ["mind.persuasion=0.6"]], ids=["longer", "changed"])
async def test_a_session_that_goes_on_has_the_history_of_a_run_that_is_extended(
    scenario: dict[str, Any], changes: list[str], tmp_path: Path
) -> None:
    run = create_run(validate(scenario), tmp_path / "live")
    repeated: list[int] = []
    async with RunSession(run) as session:
        await session.advance(asyncio.Event())
        session.progress.watch(lambda record: repeated.append(record.round) if record.round < 7 else None)
        for rounds in (7, 9):
            session.extend(plan_extension(run, override(run.scenario, [f"rounds={rounds}", *changes])))
            outcome = await session.advance(asyncio.Event())
    assert (outcome.rounds, outcome.status) == (9, Status.COMPLETED)
    assert bool(repeated) == bool(changes), "engines go on where nothing but the number of rounds changes"
    create_run(validate(scenario), tmp_path / "closed")
    for rounds in (6, 7, 9):
        again = RunDirectory(tmp_path / "closed")
        if rounds > 6:
            extend_run(again, override(again.scenario, [f"rounds={rounds}", *changes]))
        expected = await work_on_run(again, asyncio.Event())
    assert outcome.digest == expected.digest
    check_consistency(run.path, finished=True)
    for world in scenario["worlds"]:
        live, closed = (tmp_path / name / world / "actions.jsonl" for name in ("live", "closed"))
        assert live.read_bytes() == closed.read_bytes()
    assert (await replay(RunDirectory(run.path), asyncio.Event())).digest == outcome.digest


async def test_a_session_that_is_interrupted_goes_on_from_its_journal(tmp_path: Path) -> None:
    run = create_run(validate(ASKING), tmp_path / "run")
    whole = create_run(validate(ASKING), tmp_path / "whole")
    stop = asyncio.Event()
    # The other world may be a round ahead.
    progress = RunProgress.of(run, lambda done: stop.set() if (done.world, done.round) == ("twitter", 3) else None)
    async with RunSession(run, progress) as session:
        with pytest.raises(Stopped):
            await session.advance(stop)
        outcome = await session.advance(asyncio.Event())
    assert outcome.digest == (await work_on_run(whole, asyncio.Event())).digest
    assert (progress.worlds["twitter"].round, progress.worlds["twitter"].known) == (6, 3)
    check_consistency(run.path, finished=True)


async def test_an_extension_is_the_same_when_it_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name,age\nAda,36\nBen,41\n")
    people = {"population": [{"file": str(tmp_path / "people.csv")}, {"count": 3}], "events": [{"broadcast": "Hi!"}]}
    run = create_run(validate({**RUMOUR, **people}), tmp_path / "run")
    async with RunSession(run) as session:
        await session.advance(asyncio.Event())
        session.extend(plan_extension(run, override(run.scenario, ["rounds=8", "mind.persuasion=0.6"]), session))
    assert RunDirectory(run.path).scenario == run.scenario
    assert run.scenario.rounds == 8


async def test_calls_that_just_go_on_do_not_fill_the_log(tmp_path: Path) -> None:
    run = create_run(validate(ROOM), tmp_path / "run")
    async with RunSession(run) as session:
        for rounds in (6, 7, 8):
            if rounds > run.scenario.rounds:
                session.extend(plan_extension(run, override(run.scenario, [f"rounds={rounds}"]), session))
            await session.advance(asyncio.Event())
    log = (run.path / "simulation.log").read_text()
    assert (log.count("running with"), log.count("completed")) == (1, 1)
    assert run.read_state().current_round == 8


def test_interviews_are_not_counted_as_what_people_did(tmp_path: Path) -> None:
    start({**ROOM, "rounds": 8}, tmp_path / "long")
    start({**ROOM, "rounds": 4}, tmp_path / "short")
    log = InterviewLog(tmp_path / "short")
    log.add("room", [(0, "2026-01-01T00:00:00", '{"prompt": "Why?", "response": "So.", "outside": true}')])
    log.close()
    run_longer(tmp_path / "short", "rounds=8")
    counts = []
    for name in ("short", "long"):
        with closing(sqlite3.connect(tmp_path / name / "room_simulation.db")) as database:
            counts.append(database.execute(f"SELECT * FROM {ACTION_COUNTS}").fetchall())
    assert counts[0] == counts[1] != []
