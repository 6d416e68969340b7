"""The time of scenarios without language models, from their first rounds."""

from __future__ import annotations

from shoal.runs.planning import time_rounds
from shoal.scenario import validate


async def test_a_long_run_is_timed_by_its_first_rounds() -> None:
    short, long = [
        await time_rounds(validate({"population": [{"count": 30}], "worlds": ["twitter"], "rounds": rounds}))
        for rounds in (4, 20_000)
    ]
    assert short is not None
    assert long is not None
    assert short < 5 < long


async def test_minds_of_the_user_are_not_timed() -> None:
    mind = {"kind": "heuristic", "latency": {"median_ms": 50}}
    assert await time_rounds(validate({"population": [{"count": 3}], "mind": mind})) is None
