"""One simulation over several processes: the same history, and no call lost or paid twice."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from shoal.engine import RoundRecord
from shoal.errors import BudgetReached, RunRefused, ScenarioInvalid
from shoal.rehearsal.server import Rehearsal
from shoal.runs.commands import CommandType
from shoal.runs.config import LimitSettings
from shoal.runs.directory import RunDirectory, read_outcome
from shoal.runs.operations import create_run, fork_run, plan_fork
from shoal.runs.progress import RunProgress, Watch
from shoal.runs.reports.database import query_database
from shoal.runs.rerun.rerun import replay
from shoal.runs.resources import RunResources
from shoal.runs.shards import count_shards
from shoal.runs.state import RunOutcome
from shoal.runs.worker import work_on_run
from shoal.scenario.loading import validate
from shoal.types import Action, Decision, Mind, Observation
from shoal.unix import read_command_line, wait_for_exit
from tests.contracts.own import Pot
from tests.rehearsal.client import Client
from tests.runs.commands.test_seats import ME, wait_for_turn
from tests.runs.commands.test_serving import open_worker
from tests.runs.harness import check_consistency, list_asked, repeat
from tests.runs.test_language_runs import PEOPLE, ROUNDS, count_paid, make_asking, run_to_end, serve

#: All kinds of world in one run, so that few processes do for many tests.
WORLDS: dict[str, Any] = {"twitter": None, "reddit": None, "room": None, "dialogue": {"turns": ROUNDS}}


class Homebound(Mind):
    """Can be built in no shard."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if "shoal.runs.shards.process" in sys.modules:
            raise ValueError("not in this process")

    def decide(self, observation: Observation) -> Decision:
        return Decision((Action("DO_NOTHING"),))


class LockedPot(Pot):
    """Shows what cannot be sent to another process."""

    def view(self, round: int, agent: int) -> dict[str, Any]:
        return {**super().view(round, agent), "lock": Lock()}


def make_asking_everywhere(**more: Any) -> dict[str, Any]:
    return {**make_asking("room"), "worlds": WORLDS, **more}


def create(scenario: dict[str, Any], run: Path, shards: int = 2, **limits: Any) -> RunDirectory:
    """Make a run of which every worker spreads its agents."""
    return create_run(validate(scenario), run, LimitSettings(shards=shards, **limits))


async def work(
    run: RunDirectory, server: Rehearsal | None = None, watch: Watch | None = None, **limits: Any
) -> RunOutcome:
    environ = {} if server is None else {"OPENAI_BASE_URL": server.base_url}
    resources = RunResources(environ=environ, limits=LimitSettings(**limits))
    return await work_on_run(run, asyncio.Event(), RunProgress.of(run, watch), resources)


def list_shards(run: RunDirectory) -> list[int]:
    """The processes of the shards of a run."""
    words = [b"shoal.runs.shards", str(run.path.absolute()).encode()]
    pids = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal())
    return sorted(pid for pid in pids if all(word in read_command_line(pid) for word in words))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of language minds in one process."""
    run = tmp_path_factory.mktemp("alone") / "run"
    run_to_end(make_asking_everywhere(), run)
    return run


@pytest.fixture(scope="module")
def spread(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run over two shards, one of which is killed in the middle of it."""
    run = create(make_asking_everywhere(), tmp_path_factory.mktemp("spread") / "run")
    killed: list[int] = []

    def kill_one(record: RoundRecord) -> None:
        if record.round == 2 and not killed:
            killed.append(list_shards(run)[1])
            os.kill(killed[0], signal.SIGKILL)

    async def work_and_lose(server: Rehearsal) -> None:
        await work(run, server, kill_one)
        await Client(server).stats()
        # What the lost shard had asked may have been answered, and was not journaled.
        in_flight = server.stats.answered.total() - count_paid(run.path)
        assert server.stats.repeated == in_flight <= len(PEOPLE) * len(WORLDS)

    serve(work_and_lose)
    assert killed
    assert list_shards(run) == []
    assert "shard 2 of 2 was killed by signal 9" in run.file("simulation.log").read_text()
    return run.path


def test_a_run_that_lost_a_shard_has_the_history_of_one_process(spread: Path, alone: Path) -> None:
    done = read_outcome(RunDirectory(spread))
    assert done.digest == read_outcome(RunDirectory(alone)).digest
    assert done.calls == count_paid(spread) == count_paid(alone)
    check_consistency(spread, finished=True)


def test_a_run_over_shards_is_replayed_in_one_process(spread: Path) -> None:
    assert repeat(RunDirectory(spread)).digest == read_outcome(RunDirectory(spread)).digest


def test_a_fork_over_shards_asks_only_those_whose_prompt_changed(spread: Path, tmp_path: Path) -> None:
    def branch(path: Path, shards: int) -> RunDirectory:
        event = {"broadcast": "Psst: the bridge is sold.", "to": ["Bea"], "round": 4}
        child = fork_run(plan_fork(RunDirectory(spread), 4, events=[event]), path, LimitSettings(shards=shards))
        serve(lambda server: work(child, server))
        return child

    over_two, in_one = branch(tmp_path / "two", 2), branch(tmp_path / "one", 1)
    assert read_outcome(over_two).digest == read_outcome(in_one).digest
    assert list_asked(over_two.path) == list_asked(in_one.path)
    assert f"twitter/4/{PEOPLE.index('Bea')}/decide/0" in list_asked(over_two.path)


def test_shards_spend_one_budget_to_the_last_call(alone: Path, tmp_path: Path) -> None:
    run = create(make_asking_everywhere(), tmp_path / "run", max_calls=7)

    async def spend(server: Rehearsal) -> tuple[RunOutcome, int, int]:
        with pytest.raises(BudgetReached, match="max_calls 7"):
            await work(run, server)
        check_consistency(run.path, finished=False)
        spent = server.stats.answered.total()
        return await work(run, server, max_calls=10_000, shards=1), spent, server.stats.repeated

    done, spent, repeated = serve(spend)
    assert (spent, repeated) == (7, 0)
    assert done.digest == read_outcome(RunDirectory(alone)).digest


def test_shards_end_with_a_killed_head_and_one_process_goes_on(alone: Path, tmp_path: Path) -> None:
    run = create(make_asking_everywhere(), tmp_path / "run")

    async def kill_and_go_on(server: Rehearsal) -> RunOutcome:
        command = ["-m", "tests.runs.killed", str(run.path), "2", server.base_url]
        process = await asyncio.create_subprocess_exec(sys.executable, *command)
        assert await process.wait() == -signal.SIGKILL
        for shard in list_shards(run):
            await wait_for_exit(shard)
        await Client(server).stats()
        check_consistency(run.path, finished=False)
        in_flight = server.stats.answered.total() - count_paid(run.path)
        done = await work(run, server, shards=1)
        assert server.stats.repeated == in_flight
        return done

    assert serve(kill_and_go_on).digest == read_outcome(RunDirectory(alone)).digest


@pytest.mark.parametrize("latency", [None, {"median_ms": 1}], ids=["at once", "journaled"])
def test_minds_without_a_model_decide_the_same_in_shards(latency: dict[str, Any] | None, tmp_path: Path) -> None:
    """Influence counts with others, so a change of it must reach all shards at the same place."""
    scenario = make_asking(
        "room",
        mind={"latency": latency},
        worlds={"twitter": {"visibility": 2}, "room": None},
        claims=[{"id": "sold", "text": "The bridge is sold."}],
        interventions=[{"when": "round >= 2", "do": {"change": {"influence": 5.0, "stance": -1.0}, "to": ["Bea"]}}],
    )
    runs = [create(scenario, tmp_path / str(shards), shards) for shards in (1, 2)]
    alone, spread = (asyncio.run(work(run)) for run in runs)
    assert spread.digest == alone.digest
    opinions = [query_database(run, "room", "SELECT * FROM opinion_change") for run in runs]
    assert opinions[0] == opinions[1] != ([], [])
    assert repeat(runs[1]).digest == alone.digest


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"play": ["Ada"]}, "a person plays in this run"),
        ({"mind": {"kind": "__main__:Thrifty"}}, "Thrifty is defined in a script or notebook"),
    ],
)
def test_what_cannot_be_spread_is_refused_in_one_sentence(change: dict[str, Any], why: str) -> None:
    with pytest.raises(RunRefused, match=why):
        count_shards(validate(make_asking("room", **change)), RunResources(limits=LimitSettings(shards=2)))


def test_a_world_that_shows_what_cannot_be_sent_ends_the_run_in_one_sentence(tmp_path: Path) -> None:
    pot = {"worlds": {"pot": {"kind": f"{__name__}:LockedPot"}}, "rounds": 2, "population": {"count": 4}}
    run = create(pot, tmp_path / "run")
    with pytest.raises(RunRefused, match="cannot be sent to another process: cannot pickle"):
        asyncio.run(work(run))
    assert list_shards(run) == []


def test_an_error_while_a_shard_builds_its_minds_ends_the_run_with_the_reason(tmp_path: Path) -> None:
    run = create({**make_asking("twitter"), "mind": {"kind": f"{__name__}:Homebound"}}, tmp_path / "run")
    with pytest.raises(ScenarioInvalid, match="Homebound cannot be built: ValueError: not in this process"):
        asyncio.run(work(run))
    assert list_shards(run) == []


async def test_a_person_takes_a_seat_and_agents_are_interviewed_while_shards_decide(tmp_path: Path) -> None:
    events = [{"seat": 0, "round": 2, "seconds": 300}]
    more: dict[str, Any] = {"rounds": 3, "worlds": {"twitter": None}, "events": events}
    async with open_worker(tmp_path / "run", limits=LimitSettings(shards=2), **more) as worker:
        turn = await wait_for_turn(worker)
        assert len(list_shards(worker.run)) == 2
        found = await worker.send(CommandType.INTERVIEW, agent_id=1, prompt="Do you believe it?")
        assert found["platforms"]["twitter"]["response"]
        words = {"action": "create post", "content": "I am no model."}
        answer = {**ME, "world": "twitter", "round": turn["round"], "actions": [words]}
        assert (await worker.send(CommandType.ANSWER_TURN, **answer))["is_accepted"]
        await worker.send(CommandType.GIVE_SEAT_BACK, **ME)
        outcome = await worker.work
        again = await replay(worker.run, asyncio.Event())
    assert again.digest == outcome.digest
    _, said = query_database(worker.run, "twitter", "SELECT content FROM post WHERE user_id = 0")
    assert ("I am no model.",) in said


def test_there_are_no_more_shards_than_people_or_calls_at_once() -> None:
    many = RunResources(limits=LimitSettings(shards=1_000))
    assert count_shards(validate(make_asking("room")), many) == len(PEOPLE)
    assert count_shards(validate(make_asking("room", max_workers=2)), many) == 2
    assert count_shards(validate(make_asking("room")), RunResources()) == 1
