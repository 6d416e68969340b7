"""Parallel and sequential rooms side by side, as the engine runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from shoal.types import Action, Decision, Mind, Observation
from shoal.worlds.room.observations import RoomObservation
from tests.engine.harness import Ledger, play

NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn")


class RollCall(Mind):
    """Says the agent's name in every turn, and keeps the names it heard."""

    def __init__(self) -> None:
        self.heard: dict[tuple[int, str], list[str]] = {}

    def decide(self, observation: Observation) -> Decision:
        seen = cast(RoomObservation, observation)
        self.heard[seen.round, seen.name] = [stimulus.content for stimulus in seen.stimuli]
        return Decision((Action("TALK", {"content": f"{seen.name} {seen.round}"}),))


def meeting(turns: str, seed: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "seed": seed,
        "rounds": 4,
        "population": [{"name": name} for name in NAMES],
        "follows": "none",
        "worlds": {"room": {"turns": turns}},
        **more,
    }


def order(ledger: Ledger, round: int) -> list[str]:
    """Return the speakers in order."""
    lines = [msgspec.json.decode(line) for line in ledger.records[round].lines.splitlines()]
    return [line["agent_name"] for line in lines if line.get("action_type") == "TALK"]


async def test_parallel_turns_are_delivered_in_the_next_round_in_seeded_order(tmp_path: Path) -> None:
    mind = RollCall()
    ledger = await play(meeting("parallel"), tmp_path / "journal.jsonl", mind)
    orders = [order(ledger, round) for round in (1, 2, 3)]
    assert len({tuple(names) for names in orders}) > 1
    for round, names in enumerate(orders, start=1):
        for name in NAMES:
            expected = [f"{other} {round}" for other in names if other != name]
            assert mind.heard[round + 1, name] == expected
            assert mind.heard[1, name] == []


async def test_sequential_turns_hear_everything_since_their_own_last_one(tmp_path: Path) -> None:
    mind = RollCall()
    ledger = await play(meeting("sequential"), tmp_path / "journal.jsonl", mind)
    spoken = [f"{name} {round}" for round in (1, 2, 3, 4) for name in order(ledger, round)]
    assert len(spoken) == 24
    for (round, name), heard in mind.heard.items():
        now = spoken.index(f"{name} {round}")
        before = spoken.index(f"{name} {round - 1}") + 1 if round > 1 else 0
        assert heard == spoken[before:now]


@pytest.mark.parametrize("turns", ["parallel", "sequential"])
async def test_a_room_has_the_same_history_whichever_agent_decides_first(tmp_path: Path, turns: str) -> None:
    topic: dict[str, Any] = {"topic": "the old bridge", "rounds": 8}
    at_once = await play(meeting(turns, **topic), tmp_path / "1.jsonl")
    slow: dict[str, Any] = {"mind": {"latency": {"median_ms": 1, "sigma": 1.5}}}
    one_by_one = await play(meeting(turns, **topic, **slow), tmp_path / "2.jsonl")
    assert at_once.digests == one_by_one.digests
    other = await play(meeting(turns, seed=2, **topic), tmp_path / "3.jsonl")
    assert other.digests[-1] != at_once.digests[-1]


async def test_the_two_kinds_of_turns_are_different_simulations(tmp_path: Path) -> None:
    topic: dict[str, Any] = {"topic": "the old bridge", "rounds": 8}
    ends = [
        (await play(meeting(turns, **topic), tmp_path / f"{turns}.jsonl")).digests[-1]
        for turns in ("parallel", "sequential")
    ]
    assert ends[0] != ends[1]


async def test_a_room_that_has_gone_quiet_ends_the_run(tmp_path: Path) -> None:
    class Speechless(Mind):
        def decide(self, observation: Observation) -> Decision:
            return Decision((Action("TALK", {"content": "Bye."}),) if observation.round < 3 else ())

    scenario = meeting("parallel", rounds=50, worlds={"room": {"quiet_rounds": 4}})
    ledger = await play(scenario, tmp_path / "journal.jsonl", Speechless())
    assert [record.round for record in ledger.records] == list(range(7))
    assert ledger.records[-1].last
