"""Shows a run while it runs: a live view on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.constrain import Constrain
from rich.live import Live
from rich.text import Text

from shoal.engine import RoundRecord
from shoal.models import Pause
from shoal.runs import RunProgress, WorldProgress
from shoal.text import format_duration, format_kind, format_milliseconds, format_wait

FRAMES_PER_SECOND = 8
#: A plain line comes after a tenth of the rounds, but not more often than this, and at least this often.
LINE_SECONDS = 2.0
LONG_SECONDS = 60.0
#: A pause that ends earlier is not worth a line.
SHORTEST_PAUSE_SECONDS = 1.0
LINES = 10
BAR_WIDTH = 24
_TOP_KINDS = 6

STOPPING = "stopping after what is under way; once more to end at once"


class ProgressDisplay(Protocol):
    """Shows the progress of a run."""

    def open(self) -> None: ...

    def show_stopping(self) -> None:
        """Show that the run was asked to stop."""
        ...

    def close(self) -> None: ...


def choose_display(console: Console, progress: RunProgress, title: str, quiet: bool) -> ProgressDisplay:
    """Choose what suits the console: a live view for a person who watches, lines for a log."""
    if quiet:
        return SilentDisplay()
    is_watched = console.file.isatty() and not console.is_dumb_terminal
    return LiveView(console, progress, title) if is_watched else PlainLines(console.file.write, progress, title)


@contextmanager
def show_progress(display: ProgressDisplay) -> Iterator[None]:
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


class LiveView:
    """All worlds at once, drawn by another thread, so that it costs the run nothing."""

    def __init__(self, console: Console, progress: RunProgress, title: str) -> None:
        self._view = ProgressView(progress, title)
        self._live = Live(self._view, console=console, refresh_per_second=FRAMES_PER_SECOND, transient=True)

    def open(self) -> None:
        self._live.start(refresh=True)

    def show_stopping(self) -> None:
        self._view.is_stopping = True

    def close(self) -> None:
        self._live.stop()


@dataclass(slots=True)
class ProgressView:
    """The progress as it is when it is drawn."""

    progress: RunProgress
    title: str
    is_stopping: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        progress, now = self.progress, self.progress.now()
        head = Text.assemble(f"{format_duration(now - progress.began)}  ", (self.title, "bold"))
        parts = [Text(STOPPING, "yellow") if self.is_stopping else head]
        if progress.pause is not None:
            parts.append(Text(describe_pause(progress.pause, progress.now()), "yellow"))
        width = max(map(len, progress.worlds)) + 2
        for world in progress.worlds.values():
            # In halves of a character, so that a round of language models can be seen to go on.
            halves = int(2 * BAR_WIDTH * world.position / max(world.rounds, 1))
            bar = "━" * (halves // 2) + "╸" * (halves % 2)
            kinds = "  ".join(f"{format_kind(kind)} {count:,}" for kind, count in world.top_kinds(_TOP_KINDS))
            times = (_format_day(progress, world), _format_time_left(world, now))
            parts += [
                Text.assemble(
                    (world.name.ljust(width), "cyan"),
                    (bar, "green"),
                    ("─" * (BAR_WIDTH - len(bar)), "dim"),
                    "  ",
                    (f"round {world.round}/{world.rounds}", "bold"),
                    *(f"  {time}" for time in times if time),
                ),
                Text.assemble(" " * width, (_describe_pace(world, now), "dim"), (_count_troubles(world), "yellow")),
                Text(" " * width + kinds, "dim"),
            ]
        if spent := _describe_calls(progress):
            parts.append(Text(spent, "dim"))
        if progress.limits is not None:
            parts += [Text(alarm.text, "yellow") for alarm in progress.limits.alarms]
        for part in parts:
            part.no_wrap, part.overflow = True, "ellipsis"
        # Room at the right for the ^C that a terminal echoes: it must not start a new line.
        yield Constrain(Group(*parts), options.max_width - 4)


class PlainLines:
    """A line now and then, for logs and pipes."""

    def __init__(self, write: Callable[[str], object], progress: RunProgress, title: str) -> None:
        self._write = write
        self._progress = progress
        self._title = title
        #: World -> when its last line was written, and at which round.
        self._last = dict.fromkeys(progress.worlds, (progress.began, 0))
        progress.watch(self._show_round)
        self._is_pause_shown = False
        progress.watch_pauses(self._show_pause)

    def open(self) -> None:
        self._write(f"{self._title}\n")

    def _show_round(self, record: RoundRecord) -> None:
        world, now = self._progress.worlds[record.world], self._progress.now()
        since, round = self._last[world.name]
        is_far = world.round - round >= world.rounds / LINES
        if world.done or (is_far and now - since >= LINE_SECONDS) or now - since >= LONG_SECONDS:
            self._last[world.name] = (now, world.round)
            parts = [f"{world.name}: round {world.round}/{world.rounds}", _format_day(self._progress, world)]
            parts += [
                _describe_pace(world, now),
                _format_time_left(world, now),
                _count_troubles(world).strip(),
                _describe_calls(self._progress),
            ]
            self._write("  ".join(part for part in parts if part) + "\n")

    def _show_pause(self, pause: Pause | None) -> None:
        """Show a pause once it has lasted for a moment, and that it is over."""
        now = self._progress.now()
        if pause is not None and not self._is_pause_shown and now - pause.began >= SHORTEST_PAUSE_SECONDS:
            self._is_pause_shown = True
            self._write(f"{describe_pause(pause, now)}\n")
        elif pause is None and self._is_pause_shown:
            self._is_pause_shown = False
            self._write("the server answers again; going on\n")

    def show_stopping(self) -> None:
        self._write(f"{STOPPING}\n")

    def close(self) -> None: ...


def describe_pause(pause: Pause, now: float) -> str:
    """Say what a run waits for, since when, and for how long at most."""
    since = datetime.fromtimestamp(pause.since).astimezone()
    left = format_wait(max(pause.began + pause.patience_seconds - now, 0.0))
    return f"paused since {since:%H:%M:%S}, tries again for {left}: {pause.reason}"


def _format_day(progress: RunProgress, world: WorldProgress) -> str:
    start, at = progress.clock.at(0), progress.clock.at(world.round)
    return f"day {(at.date() - start.date()).days + 1}, {at:%H:%M}"


def _format_time_left(world: WorldProgress, now: float) -> str:
    if world.done:
        return "done"
    left = world.seconds_left(now)
    return "" if left is None else f"{format_duration(left)} left"


def _describe_pace(world: WorldProgress, now: float) -> str:
    if world.catching_up:
        return f"catching up from the journal to round {world.known}"
    if not world.steps:
        return _count_open_turns(world) or ("nobody acted" if world.done else "the first decisions are being made")
    rate = world.rates(now)[0]
    pace = f"  {rate:,.0f} agent-steps/s" if rate and not world.done else ""
    latencies, waiting = world.metrics.latencies, ""
    # How long decisions take says something only where they are asked for outside.
    if world.calls and world.speedup is not None:
        p50, p99 = (format_milliseconds(latencies.percentile(percent) * 1000) for percent in (50, 99))
        waiting = f"  speedup {world.speedup:.1f}  p50 {p50}  p99 {p99}"
    open_turns = _count_open_turns(world) or f"{world.acting:,} acting"
    return f"{open_turns}  {world.actions:,} actions{pace}{waiting}"


def _count_open_turns(world: WorldProgress) -> str:
    """Return how many of the turns in flight are decided; empty between two rounds."""
    open_turns = world.count_turns()
    return f"{open_turns.decided:,} of {open_turns.turns:,} decided" if open_turns.turns and not world.done else ""


def _count_troubles(world: WorldProgress) -> str:
    counts = {"rejected": world.rejected, "errors": world.errors, "timeouts": world.timeouts}
    return "".join(f"  {count:,} {name}" for name, count in counts.items() if count)


def _describe_calls(progress: RunProgress) -> str:
    """Describe what language models took so far; empty where none is asked."""
    if progress.spending is None:
        return ""
    total, in_flight = progress.spending.total, ""
    cost = "cost unknown" if total.cost is None else f"${total.cost:,.2f}"
    retries = f"  {progress.spending.retries:,} retries" if progress.spending.retries else ""
    if progress.limits is not None:
        waiting = f", {progress.limits.waiting:,} waiting" if progress.limits.waiting else ""
        in_flight = f"  {progress.limits.in_flight:,} in flight{waiting}"
    return f"{total.calls:,} calls  {total.tokens:,} tokens  {cost}{retries}{in_flight}"
