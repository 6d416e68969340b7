"""The runs that pages are shown with: every kind of world, every alphabet, texts that would like to be code."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from shoal.runs.directory import RunDirectory
from shoal.runs.operations import create_run, fork_run, plan_fork, work_on_run
from shoal.scenario.loading import load, validate

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=1</script>{@html 1}'
LONG = "incomprehensibilities" * 12

SOCIAL: dict[str, Any] = {
    "topic": "the old bridge",
    "population": [
        {"count": 40},
        {"name": "李小龙"},
        {"name": "عائشة بنت أبي بكر"},
        {"name": "Wolfeschlegelsteinhausenbergerdorff-Bartholomew von und zu Hohenfels the Third"},
    ],
    "follows": {"graph": "scale-free", "mean_degree": 6},
    "rounds": 12,
    "time": {"minutes_per_round": 60},
    "worlds": {"twitter": None, "reddit": None},
    "mind": {"talkativeness": 3},
    "claims": [{"id": "closing", "text": "The old bridge is closed for good.", "truth": "false", "appeal": 3}],
    "events": [
        {"post": HOSTILE, "by": 3, "round": 0},
        {"post": "这座老桥真的要拆了吗？大家怎么看？", "by": "李小龙", "round": 1},
        {"post": "هل سيُغلق الجسر القديم حقًا؟ أخبروني بما تعرفون", "by": 41, "round": 1},
        {"post": LONG, "by": 42, "round": 2},
        {"post": "They close it for good!", "by": "most_followed", "supports": "closing"},
        {"broadcast": "Town hall: the bridge stays open.", "round": 5, "denies": "closing"},
    ],
    "seed": 11,
}


def make_run(scenario: dict[str, Any], path: Path) -> None:
    asyncio.run(work_on_run(create_run(validate(scenario), path), asyncio.Event()))


def make_runs(folder: Path) -> None:
    """Make the runs, and a fork of the first one."""
    make_run({"name": "bridge", **SOCIAL}, folder / "bridge")
    for name in ("focus-group", "negotiation"):
        run = create_run(load(EXAMPLES / f"{name}.yaml"), folder / name)
        asyncio.run(work_on_run(run, asyncio.Event()))
    create_run(validate({**SOCIAL, "name": "waiting"}), folder / "waiting")
    plan = plan_fork(RunDirectory(folder / "bridge"), 6, events=[{"broadcast": "It is closed after all.", "round": 6}])
    asyncio.run(work_on_run(fork_run(plan, folder / "bridge-fork-1"), asyncio.Event()))


if __name__ == "__main__":
    make_runs(Path(sys.argv[1]))
