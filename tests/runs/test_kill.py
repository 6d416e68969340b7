"""The short form of scripts/campaign: killed with -9 at random moments, a run loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.campaign import CASES, campaign

KILLS = 2


@pytest.mark.parametrize("name", CASES)
def test_a_run_killed_at_random_moments_comes_to_the_same_end(name: str, tmp_path: Path) -> None:
    tally = campaign(tmp_path, kills=KILLS, seed=11, cases={name: CASES[name]})
    assert tally.kills == KILLS
    assert tally.runs >= 1
