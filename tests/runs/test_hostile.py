"""The short form of bench/hostile.py: no reply of a model ends a run, or keeps it from being resumed and read."""

from __future__ import annotations

from pathlib import Path

from bench.hostile import WORLDS, campaign


def test_hostile_replies_end_no_run_and_no_command(tmp_path: Path) -> None:
    tally = campaign(tmp_path, replies=150, seed=1)
    assert tally.internal_errors == []
    assert tally.not_resumable == []
    assert tally.runs >= len(WORLDS)
    assert tally.replies >= 150
