"""Commands to a worker: answered while the run goes on and after it, without a trace in its history."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import QueryFailed, RunLocked, RunRefused, Stopped
from shoal.journal import read_journal
from shoal.rehearsal.server import start as start_rehearsal
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs.commands import CommandFiles, CommandType, RunServing, call_worker
from shoal.runs.config import LimitSettings
from shoal.runs.directory import RunDirectory
from shoal.runs.launchers import LocalLauncher, find_worker, make_room, start_run
from shoal.runs.operations import create_run
from shoal.runs.progress import RunProgress
from shoal.runs.rerun.rerun import replay
from shoal.runs.resources import RunResources
from shoal.runs.state import RunOutcome, Status
from shoal.runs.worker import work_on_run
from shoal.scenario.loading import validate
from tests.runs.test_language_runs import make_asking

MANY_ROUNDS = 60


@dataclass
class Worker:
    """A worker in this process, whose run has committed its first round."""

    run: RunDirectory
    url: str
    work: asyncio.Task[RunOutcome]
    stop: asyncio.Event

    async def send(self, command_type: CommandType, timeout: float = 30, **args: Any) -> Any:
        return (await CommandFiles(self.run.path).send(command_type, args, timeout)).unwrap()


def make_scenario(rounds: int = MANY_ROUNDS) -> dict[str, Any]:
    return make_asking("twitter", rounds=rounds, worlds={"twitter": None, "reddit": None})


@asynccontextmanager
async def open_worker(
    folder: Path,
    settings: RehearsalSettings | None = None,
    idle_seconds: float = 0,
    limits: LimitSettings | None = None,
    **more: Any,
) -> AsyncIterator[Worker]:
    async with start_rehearsal(settings or RehearsalSettings()) as server:
        run, began, stop = create_run(validate({**make_scenario(), **more}), folder), asyncio.Event(), asyncio.Event()
        progress = RunProgress.of(run, lambda record: began.set() if record.round == 1 else None)
        resources = RunResources(environ={"OPENAI_BASE_URL": server.base_url}, limits=limits or LimitSettings())
        serving = RunServing(run, progress, resources, idle_seconds=idle_seconds)
        work = asyncio.create_task(serving.work(stop))
        await asyncio.wait({work, asyncio.create_task(began.wait())}, return_when=asyncio.FIRST_COMPLETED)
        try:
            yield Worker(run, server.base_url, work, stop)
        finally:
            stop.set()
            await asyncio.wait({work})
            work.exception()


def read_interviews(run: RunDirectory, world: str) -> list[tuple[int, dict[str, Any]]]:
    with closing(sqlite3.connect(run.path / f"{world}_simulation.db")) as database:
        rows = database.execute("SELECT user_id, info FROM trace WHERE action = 'interview'").fetchall()
    return [(agent, json.loads(info)) for agent, info in rows]


async def test_an_interview_during_the_run_leaves_its_history_as_it_is(tmp_path: Path) -> None:
    async with open_worker(tmp_path / "asked") as worker:
        found = await worker.send(CommandType.INTERVIEW, agent_id=2, prompt="Do you believe it?")
        outcome = await worker.work
        alone = create_run(validate(make_scenario()), tmp_path / "alone")
        resources = RunResources(environ={"OPENAI_BASE_URL": worker.url})
        assert (await work_on_run(alone, asyncio.Event(), resources=resources)).digest == outcome.digest
    assert found["platforms"].keys() == {"twitter", "reddit"}
    assert found["platforms"]["reddit"]["response"]
    assert (await replay(worker.run, asyncio.Event())).digest == outcome.digest
    ((agent, info),) = read_interviews(worker.run, "reddit")
    assert agent == 2
    assert info["prompt"] == "Do you believe it?"
    assert info["response"] == found["platforms"]["reddit"]["response"]
    assert "interview" not in (worker.run.path / "journal.jsonl").read_text()


async def test_an_interview_about_one_world_is_recorded_there_alone(tmp_path: Path) -> None:
    async with open_worker(tmp_path / "run") as worker:
        found = await worker.send(CommandType.INTERVIEW, agent_id=0, prompt="And here?", platform="reddit")
    assert found.keys() == {"agent_id", "response", "timestamp", "platform"}
    assert len(read_interviews(worker.run, "reddit")) == 1
    assert read_interviews(worker.run, "twitter") == []


async def test_a_batch_and_a_survey_of_all_are_keyed_by_world_and_agent(tmp_path: Path) -> None:
    async with open_worker(tmp_path / "run") as worker:
        interviews = [{"agent_id": 1, "prompt": "One?"}, {"agent_id": 3, "prompt": "Two?", "platform": "twitter"}]
        batch = await worker.send(CommandType.INTERVIEW_BATCH, interviews=interviews)
        everybody = await worker.send(CommandType.INTERVIEW_ALL, prompt="All?", platform="reddit")
    assert set(batch["results"]) == {"twitter_1", "reddit_1", "twitter_3"}
    assert set(everybody["results"]) == {f"reddit_{agent}" for agent in range(6)}
    assert everybody["interviews_count"] == 6


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"agent_id": 99, "prompt": "?"}, "there is no agent 99; there are agents 0 to 5"),
        ({"agent_id": 0, "prompt": "?", "platform": "../etc"}, "there is no world '../etc'"),
        ({"agent_id": "x", "prompt": "?"}, "bad arguments"),
        ({"prompt": "?"}, "bad arguments"),
        ({"agent_id": 0, "prompt": " "}, "there is no question to ask"),
    ],
)
async def test_a_wrong_interview_is_refused_with_the_reason(tmp_path: Path, args: dict[str, Any], why: str) -> None:
    async with open_worker(tmp_path / "run") as worker:
        with pytest.raises(QueryFailed, match=why):
            await worker.send(CommandType.INTERVIEW, **args)
        assert not worker.work.done()


async def test_a_command_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    async with open_worker(tmp_path / "run") as worker:
        files = CommandFiles(worker.run.path)
        (files.commands / "junk.json").write_text("{")
        (files.commands / "other.json").write_text('{"command_id": "../../escape", "command_type": "close_env"}')
        name = "make_coffee"
        with pytest.raises(QueryFailed, match="there is no command 'make_coffee'"):
            (await files.send(name, {}, 30)).unwrap()  # type: ignore[arg-type]


async def test_an_answer_that_comes_too_late_leaves_nothing_behind(tmp_path: Path) -> None:
    async with open_worker(tmp_path / "run") as worker:
        await worker.send(CommandType.PAUSE)
        files = CommandFiles(worker.run.path)
        with pytest.raises(TimeoutError):
            await worker.send(CommandType.INTERVIEW, timeout=0, agent_id=0, prompt="Quick!")
        # Another command is answered after it, so the worker has seen that nobody waits.
        await worker.send(CommandType.CONTINUE)
        assert list(files.commands.iterdir()) == []
        assert list(files.responses.iterdir()) == []


async def test_a_paused_run_begins_no_round_until_it_may_go_on(tmp_path: Path) -> None:
    async with open_worker(tmp_path / "run", rounds=8) as worker:
        assert await worker.send(CommandType.PAUSE) == {"runner_status": "paused"}
        assert worker.run.read_status() is Status.PAUSED
        held = worker.run.read_last_rounds()
        # Answers come from the same loop: whatever was under way had its chance meanwhile.
        for _ in range(3):
            await worker.send(CommandType.INTERVIEW, agent_id=0, prompt="Still there?")
        paused = worker.run.read_last_rounds()
        assert all(paused[world] <= held[world] + 1 for world in held)
        assert not worker.work.done()
        assert await worker.send(CommandType.CONTINUE) == {"runner_status": "running"}
        assert (await worker.work).status is Status.COMPLETED


async def test_a_paused_run_can_be_stopped(tmp_path: Path) -> None:
    async with open_worker(tmp_path / "run") as worker:
        await worker.send(CommandType.PAUSE)
        worker.stop.set()
        with pytest.raises(Stopped):
            await worker.work
    assert worker.run.read_status() is Status.STOPPED


async def test_an_injected_event_is_journaled_first_and_happens_again_in_a_replay(tmp_path: Path) -> None:
    async with open_worker(tmp_path / "run") as worker:
        event = await worker.send(CommandType.INJECT, event={"broadcast": "The bridge is closed."})
        later = await worker.send(CommandType.INJECT, event={"broadcast": "It opens again.", "round": MANY_ROUNDS})
        outcome = await worker.work
    assert (event["round"] > 1, later["round"]) == (True, MANY_ROUNDS)
    lines = [line for line in read_journal(worker.run.journal)[0] if line.event is not None]
    assert [line.event and line.event["broadcast"] for line in lines] == ["The bridge is closed.", "It opens again."]
    notices = [*worker.run.open_stream("twitter").read_notices(event_type="broadcast")]
    assert [(notice.round, notice.content) for notice in notices] == [
        (event["round"], "The bridge is closed."),
        (MANY_ROUNDS, "It opens again."),
    ]
    assert (await replay(worker.run, asyncio.Event())).digest == outcome.digest


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ({"brodcast": "x"}, "did you mean 'broadcast'"),
        ({"broadcast": "x", "round": 0}, "round"),
        ({"skip": "2 hours"}, "time cannot be skipped"),
        ({"broadcast": "x", "world": "elsewhere"}, "elsewhere"),
    ],
)
async def test_a_wrong_event_is_refused_and_not_journaled(tmp_path: Path, event: dict[str, Any], why: str) -> None:
    async with open_worker(tmp_path / "run") as worker:
        with pytest.raises(QueryFailed, match=why):
            await worker.send(CommandType.INJECT, event=event)
        worker.stop.set()
    assert [line for line in read_journal(worker.run.journal)[0] if line.event is not None] == []


async def test_after_its_run_a_worker_waits_for_commands_until_it_is_closed(tmp_path: Path) -> None:
    async with open_worker(tmp_path / "run", idle_seconds=300, rounds=3) as worker:
        await asyncio.wait_for(_wait_for_end(worker.run), 60)
        found = await worker.send(CommandType.INTERVIEW, agent_id=4, prompt="How was it?")
        assert found["platforms"]["twitter"]["response"]
        assert json.loads((worker.run.path / "env_status.json").read_text())["status"] == "alive"
        with pytest.raises(RunRefused, match="is not running"):
            await worker.send(CommandType.INJECT, event={"broadcast": "Too late."})
        await worker.send(CommandType.CLOSE)
        assert (await worker.work).status is Status.COMPLETED
    assert json.loads((worker.run.path / "env_status.json").read_text())["status"] == "stopped"


async def _wait_for_end(run: RunDirectory) -> None:
    while run.read_status() is not Status.COMPLETED:  # noqa: ASYNC110  # the state is a file
        await asyncio.sleep(0.01)


async def test_a_worker_is_revived_for_an_interview_and_leaves_the_run_as_it_is(tmp_path: Path) -> None:
    async with open_worker(tmp_path / "run") as worker:
        worker.stop.set()
        await asyncio.wait({worker.work})
        before = worker.run.read_state()
        launcher = LocalLauncher({**os.environ, "OPENAI_BASE_URL": worker.url}, idle_seconds=300)
        with pytest.raises(RunLocked, match="no worker is alive"):
            await call_worker(worker.run, None, CommandType.CLOSE, {}, 5)
        args = {"agent_id": 1, "prompt": "Where were we?", "platform": "reddit"}
        assert (await call_worker(worker.run, launcher, CommandType.INTERVIEW, args, 60))["response"]
        revived = find_worker(worker.run)
        assert revived is not None
        await call_worker(worker.run, None, CommandType.CLOSE, {}, 60)
        assert (await asyncio.wait_for(revived.wait(), 60)).status is before.runner_status is Status.STOPPED
        assert worker.run.read_state() == before


async def test_people_without_a_language_model_need_one_to_answer(tmp_path: Path) -> None:
    heuristic: dict[str, Any] = {"mind": {"kind": "heuristic"}}
    async with open_worker(tmp_path / "run", idle_seconds=300, rounds=3, **heuristic) as worker:
        await asyncio.wait_for(_wait_for_end(worker.run), 60)
        with pytest.raises(QueryFailed, match="have no language model"):
            await worker.send(CommandType.INTERVIEW, agent_id=0, prompt="Hello?")
        found = await worker.send(CommandType.INTERVIEW, agent_id=0, prompt="Hello?", model="openai/rehearsal")
        assert found["platforms"]["twitter"]["response"]


async def test_a_response_that_nobody_reads_is_removed_by_the_next_worker(tmp_path: Path) -> None:
    async with open_worker(tmp_path / "run", rounds=2) as worker:
        await worker.work
        files = CommandFiles(worker.run.path)
        left = files.responses / "left.json"
        left.write_bytes(json.dumps({"command_id": "left", "status": "completed"}).encode())
        await RunServing(worker.run).wait(asyncio.Event())
        assert not left.exists()


async def test_a_run_whose_worker_only_waits_can_be_worked_on_again(tmp_path: Path) -> None:
    run = create_run(validate({**make_scenario(3), "mind": {"kind": "heuristic"}}), tmp_path / "run")
    launcher = LocalLauncher(os.environ, idle_seconds=300)
    waiting = await start_run(run, launcher)
    await asyncio.wait_for(_wait_for_end(run), 60)
    while run.read_env_pid() != waiting.pid:  # noqa: ASYNC110  # another process writes it
        await asyncio.sleep(0.01)
    await make_room(run)
    assert find_worker(run) is None
    with run.lock(), pytest.raises(RunLocked, match="already"):
        # This process is about to work on it, and says nothing yet.
        await make_room(run)
