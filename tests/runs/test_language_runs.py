"""Language minds from the scenario to the server and back: what was paid for once is never paid for again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner

from shoal.cli.main import cli
from shoal.errors import BudgetReached, ScenarioInvalid
from shoal.journal import JournalLine, read_journal
from shoal.rehearsal.server import Rehearsal, start
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs.config import LimitSettings
from shoal.runs.directory import RunDirectory, read_outcome
from shoal.runs.operations import create_run, extend_run, fork_run, plan_fork
from shoal.runs.reports.summary import summarize
from shoal.runs.rerun.explain import explain_turn
from shoal.runs.resources import RunResources
from shoal.runs.state import RunOutcome, Status
from shoal.runs.worker import work_on_run
from shoal.scenario.loading import validate
from tests.rehearsal.client import Client
from tests.runs.harness import check_consistency, list_asked, repeat

T = TypeVar("T")

MODEL = "openai/rehearsal"
PEOPLE = ["Ada", "Bea", "Cid", "Dan", "Eve", "Fay"]
ROUNDS = 4
WORLDS = ("twitter", "reddit", "room", "dialogue")
SECRET = "sk-this-must-not-be-written-anywhere"

#: More than any run here needs.
PLENTY = LimitSettings(max_calls=10_000)


def make_asking(world: str, **more: Any) -> dict[str, Any]:
    """Six people who ask a model in every round."""
    return {
        "topic": "the old bridge",
        "rounds": ROUNDS,
        "time": {"daily_rhythm": False},
        "population": [{"name": name, "activity": 1.0, "active_hours": "0-23"} for name in PEOPLE],
        "worlds": {world: {"turns": ROUNDS} if world == "dialogue" else None},
        "mind": {"kind": "language", "model": MODEL, "memory": {"consolidate_every": 2, "lag_rounds": 1}},
        **more,
    }


def serve(do: Callable[[Rehearsal], Awaitable[T]], settings: RehearsalSettings | None = None) -> T:
    """Do something while a server is there."""

    async def main() -> T:
        async with start(settings or RehearsalSettings()) as server:
            return await do(server)

    return asyncio.run(main())


async def go_on(run: Path, server: Rehearsal, **outside: Any) -> RunOutcome:
    environ = {"OPENAI_BASE_URL": server.base_url}
    return await work_on_run(RunDirectory(run), asyncio.Event(), None, RunResources(**{"environ": environ, **outside}))


async def begin(scenario: dict[str, Any], run: Path, server: Rehearsal, **outside: Any) -> RunOutcome:
    create_run(validate(scenario), run)
    return await go_on(run, server, **outside)


def run_to_end(scenario: dict[str, Any], run: Path, settings: RehearsalSettings | None = None) -> RunOutcome:
    """Run it to its end, against a server of its own."""
    return serve(lambda server: begin(scenario, run, server), settings)


def read_by_key(run: Path) -> dict[str, JournalLine]:
    return {line.key: line for line in read_journal(run / "journal.jsonl")[0]}


def count_paid(run: Path) -> int:
    """Answers in the journal that the run paid for."""
    return sum(line.usage is not None and line.inherited is None for line in read_by_key(run).values())


@pytest.mark.parametrize("world", WORLDS)
def test_a_run_is_replayed_without_a_server(world: str, tmp_path: Path) -> None:
    done = run_to_end(make_asking(world), tmp_path / "run")
    assert (done.status, done.rounds) == (Status.COMPLETED, ROUNDS)
    assert done.calls > len(PEOPLE)
    check_consistency(tmp_path / "run", finished=True)
    again = repeat(RunDirectory(tmp_path / "run"))
    assert again.digest == done.digest


@pytest.mark.parametrize("world", WORLDS)
def test_every_answer_is_journaled_once_and_none_is_asked_for_that_is_not_needed(world: str, tmp_path: Path) -> None:
    async def count(server: Rehearsal) -> tuple[int, int]:
        await begin(make_asking(world), tmp_path / "run", server)
        return server.stats.answered.total(), server.stats.repeated

    answered, repeated = serve(count)
    assert answered == count_paid(tmp_path / "run")
    assert repeated == 0


@pytest.mark.parametrize("world", WORLDS)
def test_the_history_is_the_same_however_many_are_asked_at_once(world: str, tmp_path: Path) -> None:
    uneven = RehearsalSettings(latency_seconds=0.003, latency_sigma=1.0)
    one_by_one = run_to_end(make_asking(world, max_workers=1), tmp_path / "one")
    all_at_once = run_to_end(make_asking(world, max_workers=64), tmp_path / "all", uneven)
    assert one_by_one.digest == all_at_once.digest


@pytest.mark.parametrize("world", WORLDS)
def test_a_killed_run_goes_on_and_pays_again_only_for_what_was_in_flight(world: str, tmp_path: Path) -> None:
    async def kill_and_go_on(server: Rehearsal) -> tuple[RunOutcome, int]:
        create_run(validate(make_asking(world)), tmp_path / "run")
        command = ["-m", "tests.runs.killed", str(tmp_path / "run"), "2", server.base_url]
        process = await asyncio.create_subprocess_exec(sys.executable, *command)
        assert await process.wait() == -signal.SIGKILL
        # Whoever asks now is answered after the server has read all that the killed process had sent.
        await Client(server).stats()
        check_consistency(tmp_path / "run", finished=False)
        # What an agent makes of its past is asked for in the background, and may be under way.
        in_flight = server.stats.answered.total() - count_paid(tmp_path / "run")
        done = await go_on(tmp_path / "run", server)
        assert server.stats.repeated == in_flight
        return done, server.stats.answered.total() - in_flight

    unbroken = run_to_end(make_asking(world), tmp_path / "unbroken")
    done, needed = serve(kill_and_go_on)
    assert done.digest == unbroken.digest
    assert needed == count_paid(tmp_path / "run") == count_paid(tmp_path / "unbroken")
    check_consistency(tmp_path / "run", finished=True)


def test_a_fork_asks_only_those_whose_prompt_changed(tmp_path: Path) -> None:
    at = 3
    event = {"broadcast": "Psst: the bridge is sold.", "to": ["Bea"], "round": at}

    async def branch(server: Rehearsal) -> int:
        await begin(make_asking("twitter"), tmp_path / "parent", server)
        server.reset()
        parent = RunDirectory(tmp_path / "parent")
        fork_run(plan_fork(parent, at, events=[event]), tmp_path / "child")
        await go_on(tmp_path / "child", server)
        return server.stats.answered.total()

    answered = serve(branch)
    before, after, again = (
        read_by_key(tmp_path / "parent"),
        read_by_key(tmp_path / "child"),
        list_asked(tmp_path / "child"),
    )
    assert f"twitter/{at}/{PEOPLE.index('Bea')}/decide/0" in again
    assert {int(key.split("/")[1]) for key in again} <= set(range(at, ROUNDS + 1))
    assert answered == len(again) < len(before)
    assert all(key not in before or after[key].request != before[key].request for key in again)
    assert repeat(RunDirectory(tmp_path / "child")).status is Status.COMPLETED


def test_a_fork_that_changes_nothing_needs_no_server(tmp_path: Path) -> None:
    done = run_to_end(make_asking("room"), tmp_path / "parent")
    parent = RunDirectory(tmp_path / "parent")
    child = fork_run(plan_fork(parent, 2), tmp_path / "child")
    nowhere = RunResources(environ={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    again = asyncio.run(work_on_run(child, asyncio.Event(), None, nowhere))
    assert again.digest == done.digest
    assert list_asked(tmp_path / "child") == set()


@pytest.mark.parametrize("world", WORLDS)
def test_a_budget_stops_a_run_cleanly_and_a_larger_one_lets_it_go_on(world: str, tmp_path: Path) -> None:
    async def spend(server: Rehearsal) -> tuple[RunOutcome, int, int]:
        with pytest.raises(BudgetReached, match="max_calls 7"):
            await begin(make_asking(world), tmp_path / "run", server, limits=LimitSettings(max_calls=7))
        check_consistency(tmp_path / "run", finished=False)
        spent = server.stats.answered.total()
        assert RunDirectory(tmp_path / "run").read_status() is Status.STOPPED
        done = await go_on(tmp_path / "run", server, limits=PLENTY)
        return done, spent, server.stats.repeated

    done, spent, repeated = serve(spend)
    assert spent == 7
    assert repeated == 0
    assert done.digest == run_to_end(make_asking(world), tmp_path / "unlimited").digest


def test_what_nobody_would_remember_in_time_is_paid_for_only_when_the_run_goes_on(tmp_path: Path) -> None:
    """What is made of rounds 3 and 4 counts from round 5 on, in a run that has one."""

    def remembered() -> set[int]:
        return {int(key.split("/")[1]) for key in read_by_key(tmp_path / "run") if "/remember/" in key}

    run_to_end(make_asking("room"), tmp_path / "run")
    assert remembered() == {2}
    extend_run(RunDirectory(tmp_path / "run"), validate(make_asking("room", rounds=6)))
    done = serve(lambda server: go_on(tmp_path / "run", server))
    assert remembered() == {2, 4}
    assert done.digest == run_to_end(make_asking("room", rounds=6), tmp_path / "longer").digest


def test_a_turn_that_comes_to_nothing_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    """A model that refuses is not asked again, neither at once nor by a replay."""
    done = run_to_end(make_asking("twitter"), tmp_path / "run", RehearsalSettings(refused=0.3))
    outcomes = [line for line in read_by_key(tmp_path / "run").values() if line.outcome is not None]
    assert 0 < done.errors < ROUNDS * len(PEOPLE)
    assert all("refused" in (line.reason or "") for line in outcomes)
    assert repeat(RunDirectory(tmp_path / "run")).digest == done.digest


def test_groups_and_single_people_have_models_of_their_own(tmp_path: Path) -> None:
    mind = {
        "kind": "language",
        "model": MODEL,
        "by_group": {"experts": "openai/large"},
        "by_agent": {"Ada": "openai/small"},
    }
    people = [{"name": "Ada"}, {"name": "Bea"}, {"group": "experts", "count": 2}]
    run_to_end(make_asking("room", population=people, mind=mind), tmp_path / "run")
    models = {
        (key.split("/")[2], line.reply["model"]) for key, line in read_by_key(tmp_path / "run").items() if line.reply
    }
    assert models == {("0", "openai/small"), ("1", MODEL), ("2", "openai/large"), ("3", "openai/large")}


@pytest.mark.parametrize("world", WORLDS)
def test_an_explanation_shows_the_prompt_that_was_sent(world: str, tmp_path: Path) -> None:
    run_to_end(make_asking(world), tmp_path / "run")
    (found,) = asyncio.run(explain_turn(RunDirectory(tmp_path / "run"), "Bea", 2, world)).explanations
    assert [message["role"] for message in found.rests_on["prompt"]] == ["system", "user"]
    assert "Bea" in found.rests_on["prompt"][1]["content"]
    assert found.reply is not None
    assert found.reply.matches
    assert found.reply.request == read_by_key(tmp_path / "run")[f"{world}/2/1/decide/0"].request


def test_another_run_takes_answers_from_the_cache(tmp_path: Path) -> None:
    async def twice(server: Rehearsal) -> tuple[list[RunOutcome], int]:
        cache = tmp_path / "replies.db"
        runs = [await begin(make_asking("reddit"), tmp_path / name, server, cache=cache) for name in ("one", "two")]
        return runs, server.stats.repeated

    (one, two), repeated = serve(twice)
    assert one.digest == two.digest
    assert (two.calls, repeated) == (0, 0)


def test_a_run_tells_how_much_of_its_prompts_repeats_earlier_ones(tmp_path: Path) -> None:
    """In its state, in its metrics and on the terminal."""
    run_to_end(make_asking("twitter"), tmp_path / "run")
    found = RunDirectory(tmp_path / "run").read_state().prefixes
    assert found is not None
    assert found["prompts"] == sum(key.endswith("/decide/0") for key in read_by_key(tmp_path / "run"))
    assert 0.2 < found["own_share"] < found["any_share"] < 1
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_bytes().splitlines()[-1])
    assert last["prefixes"] == found
    shown = CliRunner().invoke(cli, ["show", str(tmp_path / "run")]).output
    assert f"{found['any_share']:.0%} of what is in the prompts repeats" in " ".join(shown.split())


def test_of_a_run_without_language_minds_there_is_nothing_to_tell_about_prompts(tmp_path: Path) -> None:
    run_to_end(make_asking("twitter", mind={"kind": "heuristic"}), tmp_path / "run")
    assert RunDirectory(tmp_path / "run").read_state().prefixes is None
    assert "prefixes" not in (tmp_path / "run" / "metrics.jsonl").read_text()


def test_a_resumed_run_tells_the_same_of_its_prompts_as_an_unbroken_one(tmp_path: Path) -> None:
    async def stop_and_go_on(server: Rehearsal) -> dict[str, Any] | None:
        with pytest.raises(BudgetReached):
            await begin(make_asking("twitter"), tmp_path / "run", server, limits=LimitSettings(max_calls=13))
        stopped = RunDirectory(tmp_path / "run").read_state().prefixes
        await go_on(tmp_path / "run", server, limits=PLENTY)
        return stopped

    stopped = serve(stop_and_go_on)
    run_to_end(make_asking("twitter"), tmp_path / "unbroken")
    resumed, unbroken = (RunDirectory(tmp_path / name).read_state().prefixes for name in ("run", "unbroken"))
    assert resumed == unbroken
    assert stopped is not None
    assert unbroken is not None
    assert 0 < stopped["prompts"] < unbroken["prompts"]


def test_a_resumed_run_tells_what_went_wrong_in_all_its_sessions(tmp_path: Path) -> None:
    """The server knows how often it failed; the run says the same, whichever of its workers met it."""
    flawed = RehearsalSettings(errors=0.3, truncated=0.2, refused=0.2)
    scenario = make_asking("twitter", deadline_seconds=20)

    def told() -> dict[str, Any]:
        spending = RunDirectory(tmp_path / "run").read_state().spending
        assert spending is not None
        return spending

    async def stop_and_go_on(server: Rehearsal) -> tuple[dict[str, Any], Counter[str]]:
        with pytest.raises(BudgetReached):
            await begin(scenario, tmp_path / "run", server, limits=LimitSettings(max_calls=15))
        first = told()
        await go_on(tmp_path / "run", server, limits=PLENTY)
        return first, server.stats.faults

    first, faults = serve(stop_and_go_on, flawed)
    last = told()
    assert (first["failures"]["transient"], first["cut_off"], first["refused"]) > (0, 0, 0)
    assert last["failures"] == {"transient": faults["error"]}
    assert (last["cut_off"], last["refused"]) == (faults["truncated"], faults["refused"])
    assert last["retries"] + sum(last["unanswered"].values()) == faults["error"]
    assert last["retries"] > first["retries"]


def test_answers_from_the_cache_are_told_of_all_sessions(tmp_path: Path) -> None:
    async def stop_and_go_on(server: Rehearsal) -> None:
        outside = {"cache": tmp_path / "replies.db"}
        await begin(make_asking("reddit", rounds=2), tmp_path / "before", server, **outside)
        with pytest.raises(BudgetReached):
            await begin(make_asking("reddit"), tmp_path / "run", server, limits=LimitSettings(max_calls=1), **outside)
        await go_on(tmp_path / "run", server, limits=PLENTY)

    serve(stop_and_go_on)
    spending = RunDirectory(tmp_path / "run").read_state().spending
    assert spending is not None
    replies = [line for line in read_by_key(tmp_path / "run").values() if line.reply is not None]
    assert spending["cache_hits"] == len(replies) - spending["calls"] > 0


@pytest.mark.parametrize("accepted", [True, False], ids=["a key that is right", "a key that is refused"])
def test_the_key_is_written_nowhere(accepted: bool, tmp_path: Path) -> None:
    """Neither in the run, nor in the cache, nor on the terminal; also not by a server that repeats it."""
    (tmp_path / "scenario.json").write_text(json.dumps(make_asking("twitter")))
    shoal = Path(sys.executable).with_name("shoal")

    async def run(server: Rehearsal) -> tuple[bytes, int]:
        environ = {"HOME": str(tmp_path), "OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": server.base_url}
        process = await asyncio.create_subprocess_exec(
            str(shoal),
            *("run", str(tmp_path / "scenario.json"), "--out", str(tmp_path / "run")),
            env={**os.environ, **environ, "XDG_CACHE_HOME": ""},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return output, server.stats.answered.total()

    output, answered = serve(run, RehearsalSettings(key=SECRET if accepted else "sk-another"))
    assert bool(answered) is accepted
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"journal.jsonl", "simulation.log", "run_state.json"} <= {path.name for path in files}
    assert (tmp_path / ".cache" / "shoal" / "replies.db") in files or not accepted
    assert SECRET.encode() not in output
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


# limits beside the scenario


def test_limits_hold_for_all_sessions_until_others_are_given(tmp_path: Path) -> None:
    run = tmp_path / "run"

    async def stop_and_go_on(server: Rehearsal) -> None:
        with pytest.raises(BudgetReached, match="7 of max_calls 7"):
            await begin(make_asking("twitter"), run, server, limits=LimitSettings(max_calls=7, parallel=3))
        with pytest.raises(BudgetReached, match="7 of max_calls 7"):
            await go_on(run, server)
        assert server.stats.answers == 7
        with pytest.raises(BudgetReached, match="9 of max_calls 9"):
            await go_on(run, server, limits=LimitSettings(max_calls=9))
        assert server.stats.answers == 9
        assert RunDirectory(run).read_limits() == LimitSettings(max_calls=9, parallel=3)
        await go_on(run, server, limits=PLENTY)

    serve(stop_and_go_on)
    run_to_end(make_asking("twitter"), tmp_path / "unlimited")
    digests = [read_outcome(RunDirectory(path)).digest for path in (run, tmp_path / "unlimited")]
    assert digests[0] == digests[1], "no history depends on a limit"
    limits = summarize(RunDirectory(run)).limits
    assert (limits["max_calls"], limits["parallel"]) == (10_000, 3)


def test_a_limit_replaces_only_its_own_part_of_the_budget(tmp_path: Path) -> None:
    async def stop(server: Rehearsal) -> None:
        scenario = make_asking("twitter", budget={"max_calls": 5, "max_tokens": 10_000_000})
        with pytest.raises(BudgetReached, match="5 of max_calls 5"):
            await begin(scenario, tmp_path / "run", server, limits=LimitSettings(max_tokens=20_000_000))

    serve(stop)
    limits = summarize(RunDirectory(tmp_path / "run")).limits
    assert (limits["max_calls"], limits["max_tokens"]) == (5, 20_000_000)


CLAIM = {"id": "closing", "text": "The old bridge will be closed for good"}


@pytest.mark.parametrize("world", ["twitter", "dialogue"])
def test_asking_agents_what_they_think_changes_nothing_in_their_history(tmp_path: Path, world: str) -> None:
    async def do(server: Rehearsal) -> tuple[str, str]:
        plain = await begin(make_asking(world, claims=[CLAIM]), tmp_path / "plain", server)
        asked = await begin(make_asking(world, claims=[CLAIM], measure={"every": 2}), tmp_path / "asked", server)
        return plain.digest, asked.digest

    plain, asked = serve(do)
    assert plain == asked == repeat(RunDirectory(tmp_path / "asked")).digest
    with closing(sqlite3.connect(tmp_path / "asked" / f"{world}_simulation.db")) as database:
        rows = database.execute("SELECT DISTINCT round, about FROM opinion_change ORDER BY 1, 2").fetchall()
        assert {about for _, about in rows} == {"topic", "closing"}
        assert {round for round, _ in rows} <= {2, 4}
        known = database.execute("SELECT count(DISTINCT agent_id) FROM opinion WHERE round = 4").fetchone()
        assert known == (len(PEOPLE),)
    lines, _ = read_journal(tmp_path / "asked/journal.jsonl")
    measured = [line for line in lines if "/measure/" in line.key]
    assert len(measured) >= 2 * len(PEOPLE)


def test_opinions_are_asked_only_of_agents_who_have_a_model_and_a_subject() -> None:
    for change, message in (
        ({"mind": "heuristic"}, "only agents with a language model"),
        ({"topic": None}, "there is nothing to ask about"),
        ({"worlds": {"twitter": {"visibility": 2}}}, "only known where visibility is 1"),
    ):
        with pytest.raises(ScenarioInvalid, match=message):
            validate(make_asking("twitter", measure={"every": 2}) | change)
