"""Shows a run while it runs: a live view on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from shoal.cli.views.display import (
    BAR_WIDTH,
    STOPPING,
    LineDisplay,
    ProgressDisplay,
    choose_display,
    fit_lines,
    is_line_due,
)
from shoal.engine import RoundRecord
from shoal.models import Pause
from shoal.runs import RunProgress, WorldProgress
from shoal.text import format_duration, format_kind, format_milliseconds, format_wait

#: A pause that ends earlier is not worth a line.
SHORTEST_PAUSE_SECONDS = 1.0
_TOP_KINDS = 6


def choose_run_display(console: Console, progress: RunProgress, title: str, quiet: bool) -> ProgressDisplay:
    """Choose what suits the console: a live view for a person who watches, lines for a log."""
    return choose_display(
        console, quiet, lambda: ProgressView(progress, title), lambda write: PlainLines(write, progress, title)
    )


@dataclass(slots=True)
class ProgressView:
    """The progress of all worlds at once, as it is when it is drawn."""

    progress: RunProgress
    title: str
    is_stopping: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        progress, now = self.progress, self.progress.now()
        head = Text.assemble(f"{format_duration(now - progress.began)}  ", (self.title, "bold"))
        parts = [Text(STOPPING, "yellow") if self.is_stopping else head]
        if progress.pause is not None:
            parts.append(Text(describe_pause(progress.pause, progress.now()), "yellow"))
        for turn in progress.seats.list_waiting() if progress.seats is not None else ():
            until = datetime.fromtimestamp(turn.until).astimezone()
            parts.append(
                Text(f"waiting for the person in {turn.observation.name}'s seat until {until:%H:%M:%S}", "yellow")
            )
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
        yield fit_lines(parts, options)


class PlainLines(LineDisplay):
    """Writes about each world now and then, and about pauses."""

    def __init__(self, write: Callable[[str], object], progress: RunProgress, title: str) -> None:
        super().__init__(write, title)
        self._progress = progress
        #: World -> when its last line was written, and at which round.
        self._last = dict.fromkeys(progress.worlds, (progress.began, 0))
        progress.watch(self._show_round)
        self._is_pause_shown = False
        progress.watch_pauses(self._show_pause)

    def _show_round(self, record: RoundRecord) -> None:
        world, now = self._progress.worlds[record.world], self._progress.now()
        since, round = self._last[world.name]
        if world.done or is_line_due((world.round - round) / max(world.rounds, 1), now - since):
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
