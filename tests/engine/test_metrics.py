"""Time is measured and never estimated: with known delays, what is measured is known too."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.engine.decisions import DecisionLimits
from shoal.engine.metrics import Latencies, Metrics, Step
from shoal.types import Decision, Mind, Observation
from tests.engine.harness import Ledger, play, village

PEOPLE = ["Ada", "Ben", "Cid", "Dan", "Eve", "Fay", "Gus", "Hal"]
#: Long beside what a busy machine and a slow disk add to it.
DELAY_SECONDS = 0.25


class Sleeper(Mind):
    """Takes the same time for every decision."""

    outside = True

    async def decide(self, observation: Observation) -> Decision:
        await asyncio.sleep(DELAY_SECONDS)
        return Decision()


def room(turns: str, rounds: int = 1) -> dict[str, Any]:
    return {
        "population": [{"name": name} for name in PEOPLE],
        "rounds": rounds,
        "worlds": {"room": {"turns": turns}},
    }


def measured(ledger: Ledger) -> Metrics:
    metrics = Metrics()
    for record in ledger.records:
        assert record.step is not None
        metrics.add_step(record.step, record.tally.errors, record.tally.timeouts)
    return metrics


def latencies(*seconds: float) -> Latencies:
    found = Latencies()
    for each in seconds:
        found.add(each)
    return found


# Latencies


@pytest.mark.parametrize("seed", range(5))
def test_percentiles_are_right_within_two_percent(seed: int) -> None:
    draws = random.Random(seed)
    times = sorted(draws.lognormvariate(-3, 1.5) for _ in range(2_000))
    found = latencies(*times)
    for percent in (1, 10, 50, 90, 99):
        assert found.percentile(percent) == pytest.approx(times[percent * 20 - 1], rel=0.02)
    assert found.longest == times[-1]
    assert found.count == 2_000


def test_a_single_decision_is_every_percentile() -> None:
    assert latencies(0.25).percentile(1) == pytest.approx(0.25, rel=0.02)
    assert latencies(0.25).percentile(99) == pytest.approx(0.25, rel=0.02)


def test_no_percentile_is_longer_than_the_longest() -> None:
    assert latencies(*[0.1] * 50).percentile(99) <= 0.1


def test_without_decisions_there_is_no_time() -> None:
    assert Latencies().percentile(50) == 0.0
    assert Latencies().milliseconds() == {"p50": 0.0, "p90": 0.0, "p99": 0.0, "max": 0.0}


def test_a_decision_in_no_time_at_all_is_counted() -> None:
    assert latencies(0.0).count == 1


def test_merged_latencies_are_those_of_all_decisions() -> None:
    draws = random.Random(3)
    times = [draws.uniform(0.001, 2) for _ in range(500)]
    merged = latencies(*times[:200])
    merged.merge(latencies(*times[200:]))
    assert merged == latencies(*times)


def test_merging_leaves_the_other_as_it_was() -> None:
    other, merged = latencies(0.1), Latencies()
    merged.merge(other)
    merged.add(0.1)
    assert other.count == 1


def test_what_was_measured_can_be_written_down_and_read_again() -> None:
    metrics = Metrics()
    metrics.add_step(Step("parallel", 1.0, 2.0, latencies(0.5, 1.5)), errors=1, timeouts=2)
    assert msgspec.json.decode(msgspec.json.encode(metrics), type=Metrics) == metrics


# Steps


def test_steps_are_added_up_by_mode_and_rounds_without_turns_are_in_neither() -> None:
    metrics = Metrics()
    metrics.add_step(Step("idle", 5.0), 0, 0)
    metrics.add_step(Step("parallel", 1.0, 4.0, latencies(2.0, 2.0)), 1, 0)
    metrics.add_step(Step("parallel", 1.0, 2.0, latencies(2.0)), 0, 1)
    metrics.add_step(Step("sequential", 2.0, 1.0, latencies(1.0)), 0, 0)
    shown = metrics.as_dict()
    assert (shown["parallel_steps"], shown["sequential_steps"]) == (2, 1)
    assert (shown["speedup"], shown["sequential_speedup"]) == (3.0, 0.5)
    assert (shown["decisions"], shown["errors"], shown["timeouts"]) == (4, 1, 1)
    assert shown["latency_ms"]["max"] == 2000.0


def test_without_decisions_there_is_no_speedup() -> None:
    assert Step("parallel", 1.0).speedup is None
    assert Metrics().speedup is None
    assert Metrics().steps == 0


# Through the engine


async def test_eight_decisions_side_by_side_are_nearly_eight_times_as_fast(tmp_path: Path) -> None:
    metrics = measured(await play(room("parallel"), tmp_path / "j.jsonl", Sleeper()))
    assert (metrics.parallel_steps, metrics.sequential_steps) == (1, 0)
    assert metrics.speedup is not None
    # One after the other would be at most 1; what is no decision, such as writing to the disk, makes it less than 8.
    assert 1 < metrics.speedup <= 8.05
    assert 0.98 * DELAY_SECONDS <= metrics.latencies.percentile(50) <= metrics.parallel_seconds


async def test_decisions_one_after_another_are_no_faster(tmp_path: Path) -> None:
    metrics = measured(await play(room("sequential"), tmp_path / "j.jsonl", Sleeper()))
    assert (metrics.parallel_steps, metrics.sequential_steps) == (0, 1)
    assert metrics.speedup is None
    assert metrics.sequential_speedup is not None
    assert 0 < metrics.sequential_speedup <= 1.0


async def test_two_workers_are_nearly_twice_as_fast_and_waiting_for_one_is_not_deciding(tmp_path: Path) -> None:
    metrics = measured(await play(room("parallel"), tmp_path / "j.jsonl", Sleeper(), DecisionLimits(max_workers=2)))
    assert metrics.speedup is not None
    # Waiting for a worker, if it counted, would make it 5.
    assert 1 < metrics.speedup <= 2.05
    assert metrics.decisions == 8


async def test_an_agents_own_decisions_never_overlap_however_many_rounds_are_in_flight(tmp_path: Path) -> None:
    scenario = village(PEOPLE[:2], rounds=6)
    scenario["worlds"]["twitter"]["visibility"] = 3
    metrics = measured(await play(scenario, tmp_path / "j.jsonl", Sleeper()))
    assert metrics.speedup is not None
    assert 1 < metrics.speedup <= 2.05


async def test_decisions_from_the_journal_are_not_measured(tmp_path: Path) -> None:
    await play(room("parallel"), tmp_path / "j.jsonl", Sleeper())
    again = measured(await play(room("parallel"), tmp_path / "j.jsonl", Sleeper()))
    assert (again.parallel_steps, again.decisions, again.speedup) == (1, 0, None)
    assert again.latencies.count == 0


async def test_decisions_made_at_once_are_measured_too(tmp_path: Path) -> None:
    metrics = measured(await play(room("parallel", rounds=3), tmp_path / "j.jsonl"))
    assert (metrics.parallel_steps, metrics.decisions) == (3, 24)
    assert metrics.speedup is not None
    assert 0 < metrics.speedup <= 1.0


async def test_errors_and_timeouts_are_counted_and_their_time_was_taken(tmp_path: Path) -> None:
    class Troubled(Mind):
        outside = True

        async def decide(self, observation: Observation) -> Decision:
            if observation.agent == 0:
                raise ValueError("no idea")
            await asyncio.sleep(0 if observation.agent > 1 else 60)
            return Decision()

    limits = DecisionLimits(deadline_seconds=0.05)
    metrics = measured(await play(room("parallel"), tmp_path / "j.jsonl", Troubled(), limits))
    assert (metrics.decisions, metrics.errors, metrics.timeouts) == (8, 1, 1)
    assert metrics.latencies.longest >= 0.05


async def test_nothing_is_measured_where_metrics_are_off(tmp_path: Path) -> None:
    ledger = await play({**room("parallel"), "metrics": False}, tmp_path / "j.jsonl")
    assert [record.step for record in ledger.records] == [None, None]


async def test_measuring_changes_nothing_in_the_history(tmp_path: Path) -> None:
    one = await play(room("parallel", rounds=3), tmp_path / "1.jsonl")
    two = await play({**room("parallel", rounds=3), "metrics": False}, tmp_path / "2.jsonl")
    assert one.digests == two.digests
