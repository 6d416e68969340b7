"""The command metrics, as users type it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.terminal import call


def test_a_run_is_measured_at_its_end_and_over_rounds(folder: Path) -> None:
    call("run", "small.yaml", "--quiet")
    found = json.loads(call("metrics", "runs/small-1", "--json").stdout)
    assert found["metrics"]["twitter.participation"] > 0
    series = json.loads(call("metrics", "runs/small-1", "twitter.participation", "--over-rounds", "--json").stdout)
    assert series["twitter.participation"][-1] == [5, found["metrics"]["twitter.participation"]]
    table = call("metrics", "runs/small-1", "balance", "participation").stdout
    assert "participation" in table
    assert "balance: it is for room and dialogue worlds, and twitter is none" in table
    several = call("metrics", "runs/small-1", "participation", "--over-rounds").stderr
    assert "there are several; write which one: twitter.participation or reddit.participation" in several
    wrong = call("metrics", "runs/small-1", "participaton")
    assert "did you mean 'participation'?" in wrong.stderr
    assert "name the metrics" in call("metrics", "runs/small-1", "--over-rounds").stderr


def test_metrics_of_a_file_are_listed_and_measured(folder: Path) -> None:
    (folder / "mine.py").write_text("import shoal\n\n@shoal.metric\ndef two(world):\n    'Always 2.'\n    return 2\n")
    assert "Always 2." in call("metrics", "--file", "mine.py").stdout
    call("run", "small.yaml", "--quiet")
    found = json.loads(call("metrics", "runs/small-1", "two", "--file", "mine.py", "--json").stdout)
    assert found == {"metrics": {"twitter.two": 2.0, "reddit.two": 2.0}, "missing": {}}
    assert "cannot read other.py: No such file" in call("metrics", "--file", "other.py").stderr
