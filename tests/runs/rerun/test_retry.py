"""Turns that runs of older versions lost to an outage are asked for again."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest

import shoal
from shoal.journal import JournalKey, JournalLine, add_line, read_journal
from shoal.rehearsal.server import Rehearsal
from shoal.runs.directory import RunDirectory
from shoal.runs.operations import create_run, fork_run, plan_fork
from shoal.runs.rerun.retry import archive_failed, plan_retry
from shoal.runs.state import RunOutcome, Status
from shoal.scenario.loading import validate
from tests.runs.harness import check_consistency, repeat
from tests.runs.test_language_runs import go_on, make_asking, run_to_end, serve

#: Round and agents of the outage.
ROUND, LOST = 2, (1, 4)


def lose_turns(run: Path, reason: str = "transient: openai/rehearsal: the server cannot be reached") -> None:
    """Make a run that records an outage in its second round, as older versions did."""
    create_run(validate(make_asking("twitter")), run)
    for agent in LOST:
        key = JournalKey("twitter", ROUND, agent, "outcome")
        add_line(run / "journal.jsonl", JournalLine(key, outcome="error", reason=reason))


async def run_with_outage(run: Path, server: Rehearsal) -> RunOutcome:
    lose_turns(run)
    return await go_on(run, server)


def list_lost(run: Path) -> list[str]:
    return [line.key for line in read_journal(run / "journal.jsonl")[0] if line.outcome is not None]


def test_lost_turns_are_asked_for_again_and_the_history_is_that_of_an_undisturbed_run(tmp_path: Path) -> None:
    run = tmp_path / "run"

    async def retry(server: Rehearsal) -> tuple[RunOutcome, RunOutcome, int, int]:
        broken = await run_with_outage(run, server)
        asked = server.stats.answered.total()
        plan = plan_retry(RunDirectory(run))
        assert plan is not None
        assert (plan.first_round, len(plan.lost)) == (ROUND, len(LOST))
        archive = archive_failed(plan)
        assert archive == run / "archive" / "1"
        mended = await go_on(run, server)
        return broken, mended, asked, server.stats.repeated

    broken, mended, asked, repeated = serve(retry)
    whole = run_to_end(make_asking("twitter"), tmp_path / "whole")
    assert broken.errors == len(LOST)
    assert (mended.errors, mended.digest) == (0, whole.digest)
    assert broken.digest != whole.digest
    assert repeated == 0, "what was paid for is not paid for again"
    assert mended.calls > asked, "what was paid for is still counted"
    assert list_lost(run) == []
    check_consistency(run, finished=True)
    assert repeat(RunDirectory(run)).digest == whole.digest


def test_nothing_is_deleted(tmp_path: Path) -> None:
    run = tmp_path / "run"

    async def retry(server: Rehearsal) -> None:
        await run_with_outage(run, server)
        before = {
            name: (run / name).read_bytes() for name in ("journal.jsonl", "twitter/actions.jsonl", "run_state.json")
        }
        plan = plan_retry(RunDirectory(run))
        assert plan is not None
        archive = archive_failed(plan)
        assert {name: (archive / name).read_bytes() for name in before} == before
        assert (archive / "twitter_simulation.db").exists()
        await go_on(run, server)

    serve(retry)
    paid = {(line.key, line.request) for line in read_journal(run / "archive/1/journal.jsonl")[0] if line.usage}
    assert paid <= {(line.key, line.request) for line in read_journal(run / "journal.jsonl")[0]}


def test_a_command_that_is_killed_on_the_way_leaves_a_run_that_goes_on_as_before(tmp_path: Path) -> None:
    run = tmp_path / "run"

    async def interrupt(server: Rehearsal) -> tuple[RunOutcome, RunOutcome]:
        broken = await run_with_outage(run, server)
        plan = plan_retry(RunDirectory(run))
        assert plan is not None
        archive = archive_failed(plan)
        # The journal is replaced last.
        shutil.copy(archive / "journal.jsonl", run / "journal.jsonl")
        return broken, await go_on(run, server)

    broken, again = serve(interrupt)
    assert again.digest == broken.digest


@pytest.mark.parametrize("reason", ["refused: the content filter", "TypeError: a mind of one's own", "timeout"])
def test_what_belongs_to_a_question_is_not_asked_for_again(reason: str, tmp_path: Path) -> None:
    lose_turns(tmp_path / "run", reason)
    assert plan_retry(RunDirectory(tmp_path / "run")) is None


def test_a_fork_of_a_mended_run_takes_over_what_still_answers(tmp_path: Path) -> None:
    async def retry_and_fork(server: Rehearsal) -> tuple[RunOutcome, RunOutcome]:
        await run_with_outage(tmp_path / "run", server)
        plan = plan_retry(RunDirectory(tmp_path / "run"))
        assert plan is not None
        archive_failed(plan)
        mended = await go_on(tmp_path / "run", server)
        fork_run(plan_fork(RunDirectory(tmp_path / "run"), 3), tmp_path / "fork")
        return mended, await go_on(tmp_path / "fork", server)

    mended, forked = serve(retry_and_fork)
    assert forked.digest == mended.digest


async def resume_by_command(run: Path, server: Rehearsal) -> tuple[int | None, str]:
    environ = {**os.environ, "OPENAI_BASE_URL": server.base_url, "XDG_CACHE_HOME": str(run.parent / "cache")}
    command = ["-c", "from shoal.cli.main import main; main()", "resume", str(run), "--retry-failed", "--yes"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, env=environ, stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    return process.returncode, said.decode()


def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    async def retry(server: Rehearsal) -> list[tuple[int | None, str]]:
        await run_with_outage(tmp_path / "run", server)
        return [await resume_by_command(tmp_path / "run", server) for _ in range(2)]

    (code, said), (again, nothing) = serve(retry)
    assert (code, again) == (0, 0)
    assert "asking again for 2 turns from round 2 on; what was there is in" in said
    assert "has lost no turn to an outage" in nothing
    assert RunDirectory(tmp_path / "run").read_status() is Status.COMPLETED
    assert list_lost(tmp_path / "run") == []


def test_python_does_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def retry(server: Rehearsal) -> str:
        await run_with_outage(tmp_path / "run", server)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        run = shoal.open(tmp_path / "run")
        await asyncio.to_thread(lambda: run.resume(retry_failed=True, limits={"patience": 5}, quiet=True))
        return run.digest

    assert serve(retry) == run_to_end(make_asking("twitter"), tmp_path / "whole").digest
