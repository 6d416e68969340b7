from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from shoal.machine.pressure import LoadMonitor
from shoal.machine.sampling import Sample
from shoal.models.base import Answer, FailureKind, ModelFailure, Usage
from shoal.models.openai.endpoints import Endpoint
from shoal.rehearsal.server import start
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs.model_limits import RunLimits, name_pool, open_limits
from shoal.runs.operations import create_run
from shoal.runs.resources import RunResources
from shoal.runs.worker import work_on_run
from shoal.scenario.loading import validate
from shoal.slots.adaptive.limiter import Learned
from shoal.slots.adaptive.store import LimitStore
from shoal.slots.client import open_slots
from shoal.slots.leases import AGENTS, PoolView
from shoal.slots.location import BrokerLocation
from tests.models.fakes import MODEL, question

HERE = Endpoint(model="small", base_url="http://localhost:9/v1")
POOL = "small at localhost:9"
ANSWER = Answer("yes", Usage(100, 20))


@asynccontextmanager
async def open_test_limits(
    place: BrokerLocation | None = None, parallel: int | None = None, ceiling: int | None = None
) -> AsyncIterator[RunLimits]:
    async with open_limits("run", {MODEL: HERE}, place=place, parallel=parallel, ceiling=ceiling) as opened:
        yield opened


async def look_at_pool(found: RunLimits, name: str = POOL) -> PoolView:
    seen = await found.slots.request_snapshot()
    return next(pool for pool in seen.pools if pool.name == name)


def test_each_account_has_a_limit_of_its_own_and_no_name_holds_a_key() -> None:
    keys = [None, "sk-one-secret", "sk-other-secret"]
    names = [name_pool(Endpoint(model="small", base_url="https://api.example.com/v1", key=key)) for key in keys]
    assert names[0] == "small at api.example.com"
    assert len(set(names)) == 3
    assert not any("secret" in name for name in names)


async def test_a_call_holds_a_slot_while_it_lasts() -> None:
    async with open_test_limits() as found:
        slot = await found.limit.enter(question())
        assert ((await look_at_pool(found)).held, found.in_flight) == (1, 1)
        found.limit.leave(slot, question(), ANSWER, 0.5)
        seen = await look_at_pool(found)
        assert (seen.held, seen.control["ends"], seen.control["answer_seconds"]) == (0, {"ok": 1}, 0.5)


@pytest.mark.parametrize(
    ("kind", "end"),
    [
        (FailureKind.LIMITED, "limited"),
        (FailureKind.REQUEST_RATE, "requests"),
        (FailureKind.TOKEN_RATE, "tokens"),
        (FailureKind.CONCURRENCY, "concurrency"),
        (FailureKind.OVERLOAD, "overload"),
        (FailureKind.TRANSIENT, "failed"),
        (FailureKind.REFUSED, "ok"),
        (FailureKind.AUTH, "cancelled"),
        (FailureKind.FATAL, "cancelled"),
        (FailureKind.QUOTA, "cancelled"),
    ],
)
async def test_the_limit_learns_how_a_call_ended(kind: FailureKind, end: str) -> None:
    async with open_test_limits() as found:
        slot = await found.limit.enter(question())
        found.limit.leave(slot, question(), ModelFailure(kind, "no"), 0.1)
        assert (await look_at_pool(found)).control["ends"] == {end: 1}


async def test_what_failed_goes_before_what_was_not_asked_yet() -> None:
    order: list[int] = []

    async def ask(found: RunLimits, number: int) -> None:
        slot = await found.limit.enter(question(number))
        order.append(number)
        found.limit.leave(slot, question(number), ANSWER, 0.1)

    async with open_test_limits(ceiling=1) as found:
        slot = await found.limit.enter(question(0))
        found.limit.leave(slot, question(0), ModelFailure(FailureKind.OVERLOAD, "busy"), 0.1)
        held = await found.limit.enter(question(9))
        async with asyncio.TaskGroup() as group:
            for number in (1, 2, 0):
                group.create_task(ask(found, number))
            await asyncio.sleep(0)
            found.limit.leave(held, question(9), ANSWER, 0.1)
    assert order == [0, 1, 2]


async def test_a_backoff_is_seen_until_the_question_is_asked_again() -> None:
    failure = ModelFailure(FailureKind.OVERLOAD, "slow down")
    async with open_test_limits() as found:
        slot = await found.limit.enter(question())
        found.limit.leave(slot, question(), failure, 0.1)
        assert found.limit.back_off(question(), failure, 1, 3600.0) == 3600.0
        (seen,) = (await found.slots.request_snapshot()).backoffs
        assert (seen.label, seen.kind, seen.attempt, seen.pool) == (question().key, "overload", 1, POOL)
        assert 3000 < seen.seconds_left <= 3600
        await found.limit.enter(question())
        assert (await found.slots.request_snapshot()).backoffs_total == 0


async def test_a_refused_call_waits_for_a_slot_and_not_for_as_long_as_the_server_asked() -> None:
    failure = ModelFailure(FailureKind.LIMITED, "slow down", retry_after=60.0)
    async with open_test_limits() as found:
        found.limit.leave(await found.limit.enter(question()), question(), failure, 0.1)
        assert found.limit.back_off(question(), failure, 1, 60.0) == 0.0
        found.slots.resize(POOL, 5)
        assert found.limit.back_off(question(), failure, 1, 60.0) == 60.0


async def test_no_more_agents_act_than_parallel_says_over_all_runs(tmp_path: Path) -> None:
    place = BrokerLocation.of_user({**os.environ, "XDG_STATE_HOME": str(tmp_path)})
    acting, most, both = 0, 0, asyncio.Event()

    async def act(found: RunLimits, number: int) -> None:
        nonlocal acting, most
        slot = await found.limit.enter(question(number))
        acting += 1
        most = max(most, acting)
        if acting == 2:
            both.set()
        # The first agent waits for a second one, so that two are seen to act at once on a slow machine as well.
        await both.wait()
        await asyncio.sleep(0)
        acting -= 1
        found.limit.leave(slot, question(number), ANSWER, 0.1)

    async with (
        open_test_limits(place, parallel=2) as one,
        open_test_limits(place, parallel=2) as other,
        asyncio.TaskGroup() as group,
    ):
        for number in range(40):
            group.create_task(act(one if number % 2 else other, number))
    assert most == 2


async def test_parallel_and_the_provider_both_limit() -> None:
    async with open_test_limits(parallel=3) as found:
        slots = [await found.limit.enter(question(number)) for number in range(3)]
        assert ((await look_at_pool(found)).held, (await look_at_pool(found, AGENTS)).held) == (3, 3)
        for number, slot in enumerate(slots):
            found.limit.leave(slot, question(number), ANSWER, 0.1)


def keep_busy(monitor: LoadMonitor, seconds: range, cpu: float) -> Any:
    for at in seconds:
        throttle = monitor.update(Sample(at=float(at), cpu=cpu, memory=0.1))
    return throttle


async def test_a_strained_machine_makes_fewer_calls_at_once_and_then_as_many_as_before() -> None:
    monitor = LoadMonitor()
    async with open_test_limits(ceiling=100) as found:
        slots = [await found.limit.enter(question(number)) for number in range(8)]
        found.apply_throttle(monitor.update(Sample(at=-1.0, cpu=0.1, memory=0.1)))
        found.apply_throttle(keep_busy(monitor, range(20), 0.99))
        assert found.as_dict()["ceiling"] < 8
        assert found.as_dict()["strained"] == ["cpu"]
        found.apply_throttle(keep_busy(monitor, range(20, 200), 0.2))
        assert (found.as_dict()["ceiling"], found.alarms) == (100, ())
        for number, slot in enumerate(slots):
            found.limit.leave(slot, question(number), ANSWER, 0.1)


# in a run

ASKING = {
    "population": {"count": 12, "activity": 1.0, "active_hours": "0-23"},
    "time": {"daily_rhythm": False},
    "rounds": 4,
    "mind": {"kind": "language", "model": "rehearsal"},
}


async def ask(
    folder: Path, server: RehearsalSettings, slots: BrokerLocation | None = None
) -> tuple[dict[str, Any], Any]:
    """A run against a server; its state, and what the server saw."""
    scenario = validate(ASKING)
    async with start(server) as rehearsal:
        outside = RunResources(environ={"OPENAI_BASE_URL": rehearsal.base_url}, slots=slots)
        await work_on_run(create_run(scenario, folder), asyncio.Event(), None, outside)
    return json.loads((folder / "run_state.json").read_text()), rehearsal.stats


async def test_a_run_finds_a_hidden_cap_and_says_so(tmp_path: Path) -> None:
    server = RehearsalSettings(cap=4, latency_seconds=0.02, labelled=False, retry_after_seconds=0.0)
    state, stats = await ask(tmp_path, server)
    (found,) = state["limits"]["pools"].values()
    assert found["size"] == 4
    assert state["spending"]["failures"]["limited"] == stats.refusals["concurrency"]
    metric = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])
    assert metric["limits"].keys() == state["limits"].keys()


async def test_the_next_run_begins_with_what_the_last_one_learned(
    tmp_path: Path,
) -> None:
    place = BrokerLocation(Path(os.environ["SHOAL_SLOTS"]).with_name("next.sock"), tmp_path / "limits.json", 5.0)
    server = RehearsalSettings(cap=3, latency_seconds=0.02, labelled=False, retry_after_seconds=0.0)
    scenario = validate(ASKING)
    refused = []
    async with start(server) as rehearsal:
        for number in range(2):
            before = rehearsal.stats.refusals["concurrency"]
            outside = RunResources(environ={"OPENAI_BASE_URL": rehearsal.base_url}, slots=place)
            await work_on_run(create_run(scenario, tmp_path / f"{number}"), asyncio.Event(), None, outside)
            refused.append(rehearsal.stats.refusals["concurrency"] - before)
    assert refused[1] < refused[0]


async def test_what_is_learned_reaches_the_memory_of_every_user_of_a_broker(tmp_path: Path) -> None:
    socket = Path(os.environ["SHOAL_SLOTS"]).with_name("shared.sock")
    own, other = (BrokerLocation(socket, tmp_path / name / "limits.json", 5.0) for name in ("own", "other"))
    server = RehearsalSettings(cap=4, latency_seconds=0.02, labelled=False, retry_after_seconds=0.0)
    async with open_slots("starts the broker", other):
        state, _ = await ask(tmp_path / "run", server, own)
    (pool,) = state["limits"]["pools"]
    assert LimitStore(own.memory, time.time()).of(pool, Learned) is not None


async def test_what_a_run_without_a_broker_learns_is_kept_too(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    nowhere = BrokerLocation(tmp_path / "file" / "s", tmp_path / "limits.json")
    server = RehearsalSettings(cap=4, latency_seconds=0.02, labelled=False, retry_after_seconds=0.0)
    state, _ = await ask(tmp_path / "run", server, nowhere)
    (pool,) = state["limits"]["pools"]
    assert LimitStore(nowhere.memory, time.time()).of(pool, Learned) is not None
