"""Shows a preparation while it goes on: a bar on a terminal, a line for each stage elsewhere, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn

from shoal.cli.errors import complain
from shoal.cli.views.display import BAR_WIDTH
from shoal.cli.views.output import Output
from shoal.preparation import STAGE_NAMES, PreparationState
from shoal.text import clip

_MAX_ITEM_CHARS = 50


@contextmanager
def show_preparation(quiet: bool) -> Iterator[Callable[[PreparationState], object]]:
    """Yield what is to be told of every step."""
    console = Output(stderr=True)
    if quiet:
        yield lambda state: None
    elif console.file.isatty() and not console.is_dumb_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(BAR_WIDTH), TextColumn("{task.percentage:>3.0f} %"))
        with Progress(*columns, TextColumn("{task.fields[item]}"), console=console, transient=True) as bar:
            task = bar.add_task("", total=100, item="")

            def draw(state: PreparationState) -> None:
                item = clip(state.item, _MAX_ITEM_CHARS)
                bar.update(task, description=STAGE_NAMES[state.stage], completed=state.progress, item=item)

            yield draw
    else:
        yield _LineView().show


class _LineView:
    """Writes a line when a stage of more than one item begins."""

    def __init__(self) -> None:
        self._stage = ""

    def show(self, state: PreparationState) -> None:
        if state.stage != self._stage and state.total > 1:
            self._stage = state.stage
            complain(f"{STAGE_NAMES[state.stage]}: {state.total:,}")
