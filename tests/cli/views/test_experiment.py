"""How an experiment is drawn: in few columns and lines, with long names, and as lines for a log."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest
from rich.console import Console

from shoal.cli.views.experiment import ExperimentView, choose_experiment_display
from shoal.errors import Stopped
from shoal.experiments import ExperimentRun
from tests.experiments.harness import InlineLauncher, make_study

LONG = "a-tier-with-a-name-that-is-longer-than-a-terminal-is-wide-and-then-some-more-of-it-until-here"
TEXT = f"""\
name: town
population: [{{count: 8}}]
rounds: 2
worlds: [twitter]
experiment:
  seeds: 2
  tiers:
    - {{name: {LONG}, grid: {{rounds: [1, 2, 3, 4, 5, 6, 7, 8], population.0.count: [4, 5]}}}}
    - {{name: short, arms: {{x: {{}}}}}}
    - {{name: last, inherits: {{tier: short, highest: activity}}, arms: {{x: {{}}}}}}
"""


def draw(work: ExperimentRun, width: int = 80, height: int = 24) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as captured:
        console.print(ExperimentView(work, "town: 36 simulations in results, 2 side by side"))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_many_arms_with_long_names_fit_a_small_terminal(tmp_path: Path) -> None:
    work = make_study(tmp_path, TEXT)
    for width, height in ((80, 24), (60, 12), (200, 60)):
        lines = draw(work, width, height)
        assert len(lines) < height
        assert max(map(len, lines)) <= width - 4
        assert any("0/36 done" in line for line in lines)
        assert any("waits for" in line for line in lines)
    assert any(line.endswith("0/32") and "16 arms" in line for line in draw(work, height=20))
    assert sum("rounds-" in line for line in draw(work, height=60)) == 16


async def test_what_runs_is_shown_with_the_end_of_its_name(tmp_path: Path) -> None:
    work, shown = make_study(tmp_path, TEXT), list[str]()
    stop = asyncio.Event()

    def take(_: object) -> None:
        shown.extend(draw(work))
        stop.set()

    work.batch.progress.watch = take
    with pytest.raises(Stopped):
        await work.run(InlineLauncher(), stop)
    assert any(line.strip().startswith("…") and "_count-4/" in line and "  round " in line for line in shown)


def test_a_log_has_lines_without_colours(tmp_path: Path) -> None:
    text = TEXT.replace(LONG, "long").replace("[1, 2, 3, 4, 5, 6, 7, 8]", "[1]")
    work, written = make_study(tmp_path, text), io.StringIO()
    display = choose_experiment_display(Console(file=written), work, "title", quiet=False)
    display.open()
    asyncio.run(work.run(InlineLauncher(), asyncio.Event()))
    lines = written.getvalue().splitlines()
    assert lines[0] == "title"
    assert lines[-1].startswith("8/8 done")
    assert "\x1b" not in written.getvalue()
    assert any(line.startswith("tier last starts from x") for line in lines)
