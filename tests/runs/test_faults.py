"""The short form of scripts/faults: what fails or is killed loses nothing, and is not paid for twice."""

from __future__ import annotations

from pathlib import Path

from bench.faults import Case, campaign

SMALL = Case(
    people=20,
    rounds=5,
    # A call is cut at less than half of it, and a busy machine must not be taken for a hung server.
    deadline_seconds=5,
    server={
        "latency_seconds": 0.02,
        "latency_sigma": 0.5,
        "errors": 0.05,
        "limits": 0.05,
        "hangs": 0.02,
        "retry_after_seconds": 0.05,
        "outages": [[0.2, 0.3]],
    },
    flaws={"malformed": 0.05, "truncated": 0.05},
)


def test_a_run_that_meets_every_fault_and_is_killed_comes_to_the_same_end(tmp_path: Path) -> None:
    tally = campaign(tmp_path, SMALL, kills=2, seed=5)
    assert tally.kills == 2
    assert tally.runs >= 2
