"""Measuring a server, here a rehearsal of one, level by level."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from shoal.errors import RunRefused
from shoal.models.costs import Price
from shoal.models.openai.endpoints import Endpoint
from shoal.rehearsal.server import Rehearsal, start
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs.tuning.calls import TuneBounds, TuneTarget, count_most_calls, measure_calls
from shoal.runs.tuning.knee import MeasuredLevel, find_knee
from shoal.runs.tuning.levels import BUDGET_USED, TIME_USED, Gauge
from shoal.runs.tuning.probes import make_synthetic_probes

MODEL = "some/model"
#: Long enough that a busy machine is not taken for a busy server.
QUICK = 0.1


def target(server: Rehearsal, **more: Any) -> TuneTarget:
    endpoint = Endpoint(model="model", base_url=server.base_url, **more)
    return TuneTarget(MODEL, endpoint, make_synthetic_probes(MODEL, seed=1, prompt_tokens=50))


async def tune(
    settings: RehearsalSettings, endpoint: dict[str, Any] | None = None, **bounds: Any
) -> tuple[Gauge, str, Rehearsal]:
    gauge = Gauge()
    async with start(settings) as server:
        ended = await measure_calls(target(server, **(endpoint or {})), TuneBounds(**bounds), gauge)
        return gauge, ended, server


def at_once(gauge: Gauge) -> int:
    found = find_knee(gauge.levels)
    assert found is not None
    return found.at_once


async def test_the_cap_of_a_server_that_refuses_is_found() -> None:
    settings = RehearsalSettings(latency_seconds=QUICK, cap=6, retry_after_seconds=QUICK)
    gauge, ended, _ = await tune(settings)
    assert ended == ""
    assert 4 <= at_once(gauge) <= 6
    refused = next(level for level in gauge.levels if level.at_once == 8)
    assert set(refused.failures) == {"429 concurrency"}
    assert refused.failed_share > 0.1


async def test_the_cap_of_a_server_that_queues_is_found() -> None:
    gauge, _, _ = await tune(RehearsalSettings(latency_seconds=QUICK, latency_sigma=0.2, cap=4, queue=True))
    assert 2 <= at_once(gauge) <= 8
    assert not any(level.failed for level in gauge.levels)


async def test_a_level_is_measured_with_that_many_calls_in_flight_and_no_more() -> None:
    gauge, _, server = await tune(RehearsalSettings(latency_seconds=QUICK), up_to=8)
    assert [level.at_once for level in gauge.levels][:2] == [1, 2]
    assert server.stats.in_flight_peak == max(level.at_once for level in gauge.levels)


async def test_throughput_and_latency_are_those_of_the_server() -> None:
    gauge, _, _ = await tune(RehearsalSettings(latency_seconds=0.2), up_to=4)
    last = next(level for level in gauge.levels if level.at_once == 4)
    # No answer is faster than the server makes it; a busy machine makes it slower.
    assert 0.2 <= last.p50 < 0.5
    assert 6 < last.per_second <= 4 / 0.2
    assert last.tokens_per_second is not None
    assert last.tokens_per_second > last.per_second * 50


async def test_no_two_questions_are_alike_and_none_is_asked_twice() -> None:
    _, _, server = await tune(RehearsalSettings(latency_seconds=QUICK, errors=0.2), up_to=8)
    assert server.stats.repeated == 0
    assert server.stats.requests == server.stats.by_status[200] + server.stats.by_status[500]


async def test_failures_that_come_anyway_are_counted_and_do_not_stop_it() -> None:
    gauge, _, server = await tune(RehearsalSettings(latency_seconds=QUICK, errors=0.06), up_to=8)
    assert len(gauge.levels) >= 3
    counted = sum(level.failures.get("500 transient", 0) for level in gauge.levels)
    assert counted == server.stats.by_status[500] > 0


async def test_a_server_that_refuses_is_left_alone_for_as_long_as_it_asked() -> None:
    told: list[tuple[float, MeasuredLevel]] = []
    gauge = Gauge(tell=lambda level: told.append((time.monotonic(), level)))
    async with start(RehearsalSettings(latency_seconds=QUICK, cap=2, retry_after_seconds=1.0)) as server:
        await measure_calls(target(server), TuneBounds(), gauge)
    [(ended, above), (after, between)] = told[-2:]
    assert (above.at_once, between.at_once) == (4, 3)
    assert above.failed > 0
    # Each level is told of a little after it ended.
    assert (after - between.seconds) - (ended - above.seconds) > 0.5


async def test_what_the_calls_cost_is_counted() -> None:
    gauge, _, server = await tune(
        RehearsalSettings(latency_seconds=QUICK), {"price": Price(1.0, 2.0)}, up_to=2, max_cost=1.0
    )
    assert gauge.spending is not None
    total = gauge.spending.total
    assert (total.calls, total.input) == (server.stats.by_status[200], server.stats.input_tokens)
    assert total.cost == pytest.approx((total.input + 2 * total.output) / 1e6)


# Limits


@pytest.mark.parametrize("max_calls", [30, 60])
async def test_no_more_calls_are_made_than_allowed(max_calls: int) -> None:
    gauge, ended, server = await tune(RehearsalSettings(latency_seconds=QUICK), max_calls=max_calls)
    assert ended == BUDGET_USED
    assert len(gauge.levels) >= 2
    assert server.stats.requests <= max_calls


async def test_no_more_is_spent_than_allowed() -> None:
    price = {"price": Price(10.0, 10.0)}
    gauge, ended, _ = await tune(RehearsalSettings(latency_seconds=QUICK), price, max_cost=0.1)
    assert ended == BUDGET_USED
    assert gauge.spending is not None
    assert 0.03 < (gauge.spending.cost or 0.0) <= 0.1
    gauge, ended, _ = await tune(RehearsalSettings(latency_seconds=QUICK), max_tokens=10_000)
    assert ended == BUDGET_USED
    assert gauge.spending is not None
    assert gauge.spending.total.tokens <= 10_000


async def test_it_ends_when_its_time_is_over() -> None:
    # The first level alone takes nine calls of 0.2 s.
    gauge, ended, _ = await tune(RehearsalSettings(latency_seconds=0.2), seconds=1.2)
    assert ended == TIME_USED
    assert gauge.levels


async def test_who_cancels_it_finds_what_was_measured() -> None:
    first = asyncio.Event()
    gauge = Gauge(tell=lambda level: first.set())
    async with start(RehearsalSettings(latency_seconds=QUICK)) as server:
        measuring = asyncio.create_task(measure_calls(target(server), TuneBounds(), gauge))
        await first.wait()
        measuring.cancel()
        with pytest.raises(asyncio.CancelledError):
            await measuring
    assert [level.at_once for level in gauge.levels] == [1]


def test_what_it_takes_at_most_is_known_before() -> None:
    assert count_most_calls(1) == 1 + 4 * 9
    assert count_most_calls(64) > count_most_calls(32) > 3 * 32


# What cannot be measured


@pytest.mark.parametrize(
    ("settings", "bounds", "said"),
    [
        (RehearsalSettings(key="right"), {}, "key"),
        (RehearsalSettings(context_tokens=20), {}, "--prompt-tokens"),
        (RehearsalSettings(quota=0), {}, "quota"),
        (RehearsalSettings(), {"max_calls": 3}, "max_calls 3"),
        (RehearsalSettings(), {"max_tokens": 20}, "one call"),
        (RehearsalSettings(), {"max_tokens": 300}, "first level"),
    ],
)
async def test_where_nothing_can_be_measured_it_says_why(
    settings: RehearsalSettings, bounds: dict[str, Any], said: str
) -> None:
    with pytest.raises(RunRefused, match=said):
        await tune(settings, {"key": "wrong"}, **bounds)


async def test_a_limit_in_dollars_is_refused_where_the_price_is_not_known() -> None:
    endpoint = Endpoint(model="model", base_url="https://models.example/v1")
    with pytest.raises(RunRefused, match="price"):
        await measure_calls(
            TuneTarget(MODEL, endpoint, make_synthetic_probes(MODEL, 1)), TuneBounds(max_cost=1.0), Gauge()
        )


async def test_a_server_that_is_not_there_is_named() -> None:
    endpoint = Endpoint(model="model", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(RunRefused, match=r"no answer from http://127\.0\.0\.1:9/v1"):
        await measure_calls(TuneTarget(MODEL, endpoint, make_synthetic_probes(MODEL, 1)), TuneBounds(), Gauge())


async def test_a_credit_that_runs_out_ends_it_with_what_was_measured() -> None:
    gauge, ended, _ = await tune(RehearsalSettings(latency_seconds=QUICK, quota=25))
    assert "quota" in ended
    assert [level.at_once for level in gauge.levels] == [1, 2]


async def test_a_server_that_knows_no_schemas_is_asked_otherwise() -> None:
    simple = frozenset({"json_schema", "json_object", "tools", "temperature"})
    gauge, _, _ = await tune(RehearsalSettings(latency_seconds=QUICK, unsupported=simple), up_to=2)
    assert [level.failed for level in gauge.levels] == [0, 0]
