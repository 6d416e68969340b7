"""The short form of scripts/campaign: killed with -9 at random moments, a run loses nothing."""

from __future__ import annotations

from pathlib import Path

from bench.campaign import campaign


def test_a_run_killed_at_random_moments_comes_to_the_same_end(tmp_path: Path) -> None:
    tally = campaign(tmp_path, kills=6, seed=11)
    assert tally.kills == 6
    assert tally.runs >= 1
