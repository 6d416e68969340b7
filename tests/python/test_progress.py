"""The bar that a script or a notebook shows."""

from __future__ import annotations

import io

from rich.console import Console
from rich.progress import BarColumn

from shoal.engine.engine import TurnCount
from shoal.python.session import LiveBars
from shoal.runs.progress import RunProgress
from shoal.worlds.clock import Clock, TimeSettings


def test_the_bar_moves_within_a_round() -> None:
    progress, turns = RunProgress(2, {"room": 0}, Clock(TimeSettings())), TurnCount(1, 8, 0)
    progress.follow_turns("room", lambda: turns)
    console = Console(file=io.StringIO(), width=100)
    bars, positions = LiveBars(progress, "Town", BarColumn(), console=console), []
    for decided in (0, 2, 4, 8):
        turns = TurnCount(1, 8, decided)
        console.print(*bars.get_renderables())
        positions.append(bars.tasks[0].completed)
    assert positions == [0, 0.25, 0.5, 1]
