"""The short form of scripts/campaign: killed with -9 at random moments, a run loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.campaign import CASES, campaign


@pytest.mark.parametrize("name", CASES)
def test_a_run_killed_at_random_moments_comes_to_the_same_end(name: str, tmp_path: Path) -> None:
    tally = campaign(tmp_path, kills=3, seed=11, cases={name: CASES[name]})
    assert tally.kills == 3
    assert tally.runs >= 1
