"""The ways to show what goes on: a live view on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, ConsoleOptions, ConsoleRenderable, Group
from rich.constrain import Constrain
from rich.live import Live
from rich.text import Text

from shoal.text import format_duration

FRAMES_PER_SECOND = 8
#: A plain line comes after a tenth of the work, but not more often than this, and at least this often.
LINES = 10
LINE_SECONDS = 2.0
LONG_SECONDS = 60.0
BAR_WIDTH = 24

STOPPING = "stopping after what is under way; once more to end at once"


class ProgressDisplay(Protocol):
    """Shows the progress of a run, or of many."""

    def open(self) -> None: ...

    def show_stopping(self) -> None:
        """Show that it was asked to stop."""
        ...

    def close(self) -> None: ...


def choose_display(
    console: Console,
    quiet: bool,
    view: Callable[[], StoppableView],
    lines: Callable[[Callable[[str], object]], ProgressDisplay],
    frames_per_second: float = FRAMES_PER_SECOND,
) -> ProgressDisplay:
    """Choose what suits the console: a live view for a person who watches, lines for a log, or nothing."""
    if quiet:
        return SilentDisplay()
    if console.file.isatty() and not console.is_dumb_terminal:
        return LiveDisplay(console, view(), frames_per_second)
    return lines(console.file.write)


@contextmanager
def show_progress(display: ProgressDisplay) -> Iterator[None]:
    """Keep a display open as long as this lasts."""
    display.open()
    try:
        yield
    finally:
        display.close()


class SilentDisplay:
    """Shows nothing."""

    def open(self) -> None: ...

    def show_stopping(self) -> None: ...

    def close(self) -> None: ...


class StoppableView(ConsoleRenderable, Protocol):
    """What is drawn, as it is when it is drawn."""

    is_stopping: bool


class LiveDisplay:
    """Shows a view that another thread draws, so that it costs the work nothing."""

    def __init__(self, console: Console, view: StoppableView, frames_per_second: float = FRAMES_PER_SECOND) -> None:
        self._view = view
        self._live = Live(view, console=console, refresh_per_second=frames_per_second, transient=True)

    def open(self) -> None:
        self._live.start(refresh=True)

    def show_stopping(self) -> None:
        self._view.is_stopping = True

    def close(self) -> None:
        self._live.stop()


class LineDisplay:
    """Writes a line now and then, for logs and pipes."""

    def __init__(self, write: Callable[[str], object], title: str) -> None:
        self._write = write
        self._title = title

    def open(self) -> None:
        self._write(f"{self._title}\n")

    def show_stopping(self) -> None:
        self._write(f"{STOPPING}\n")

    def close(self) -> None: ...


def is_line_due(share: float, seconds: float) -> bool:
    """Return whether it is time for a line: this share of the work was done since the last one, in these seconds."""
    return (share >= 1 / LINES and seconds >= LINE_SECONDS) or seconds >= LONG_SECONDS


def draw_head(title: str, seconds: float, share: float, progress: str, is_stopping: bool) -> list[Text]:
    """Draw what work on many simulations is called, how long it has taken, and how far it is."""
    done = int(BAR_WIDTH * share)
    head = Text.assemble(f"{format_duration(seconds)}  ", (title, "bold"))
    return [
        Text(STOPPING, "yellow") if is_stopping else head,
        Text.assemble(("━" * done, "green"), ("─" * (BAR_WIDTH - done), "dim"), "  ", progress),
    ]


def fit_lines(lines: Sequence[Text], options: ConsoleOptions) -> Constrain:
    """Cut lines to the width of a terminal."""
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    # Room at the right for the ^C that a terminal echoes: it must not start a new line.
    return Constrain(Group(*lines), options.max_width - 4)
