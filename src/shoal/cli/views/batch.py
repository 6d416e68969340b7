"""Shows a batch: while it runs, and its results."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from shoal.cli.views.display import LineDisplay, ProgressDisplay, choose_display, draw_head, fit_lines, is_line_due
from shoal.cli.views.output import Output, label_table
from shoal.experiments import Batch, BatchProgress, BatchResult
from shoal.runs import Status
from shoal.text import clip, format_duration, quote_path

#: The states of simulations are read from disk for each frame.
_FRAMES_PER_SECOND = 2
_MAX_RUNNING_SHOWN = 8
_MAX_FAILED_SHOWN = 5
_MAX_ERROR_CHARS = 200


def choose_batch_display(console: Console, progress: BatchProgress, title: str, quiet: bool) -> ProgressDisplay:
    """Choose what suits the console: a live view for a person who watches, lines for a log."""
    return choose_display(
        console,
        quiet,
        lambda: BatchView(progress, title),
        lambda write: BatchLines(write, progress, title),
        _FRAMES_PER_SECOND,
    )


@dataclass(slots=True)
class BatchView:
    """The whole batch and the simulations that run, as they are when they are drawn."""

    progress: BatchProgress
    title: str
    is_stopping: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        progress, now = self.progress, time.monotonic()
        share = len(progress.results) / max(progress.total, 1)
        told = describe_progress(progress, now)
        parts = draw_head(self.title, now - progress.began, share, told, self.is_stopping)
        running = list(progress.running.items())
        for name, run in running[:_MAX_RUNNING_SHOWN]:
            state = run.read_state()
            waiting = f"  waits for {state.waiting.model}" if state.waiting is not None else ""
            figures = f"round {state.current_round}/{state.total_rounds}  {state.actions_count:,} actions"
            parts.append(Text.assemble("  ", (name, "cyan"), (f"  {figures}{waiting}", "dim")))
        if len(running) > _MAX_RUNNING_SHOWN:
            parts.append(Text(f"  and {len(running) - _MAX_RUNNING_SHOWN} more", "dim"))
        parts += [Text(note, "yellow") for note in progress.notes[-1:]]
        yield fit_lines(parts, options)


class BatchLines(LineDisplay):
    """Writes about the batch now and then, and about each simulation that does not end well."""

    def __init__(self, write: Callable[[str], object], progress: BatchProgress, title: str) -> None:
        super().__init__(write, title)
        self._progress = progress
        #: When the last line was written, and after how many results.
        self._last = (progress.began, 0)
        progress.watch = self._show

    def _show(self, what: BatchResult | str) -> None:
        if isinstance(what, str):
            self._write(f"{what}\n")
            return
        if what.status is not Status.COMPLETED:
            self._write(f"{what.id}: {what.status}: {clip(what.error or '', _MAX_ERROR_CHARS)}\n")
        progress, now, (since, before) = self._progress, time.monotonic(), self._last
        done = len(progress.results)
        if done == progress.total or is_line_due((done - before) / max(progress.total, 1), now - since):
            self._last = (now, done)
            self._write(f"{describe_progress(progress, now)}\n")


def describe_progress(progress: BatchProgress, now: float) -> str:
    """Describe how far a batch is in one line."""
    done, left = len(progress.results), progress.seconds_left(now)
    parts = [f"{done:,}/{progress.total:,} done"]
    parts += [f"{len(progress.running)} of {progress.at_once} running"] if progress.running else []
    parts += [f"{count} {status}" for status in (Status.FAILED, Status.STOPPED) if (count := progress.count(status))]
    if any(result.calls for result in progress.list_results()):
        parts.append("cost unknown" if progress.cost is None else f"${progress.cost:,.2f}")
    parts += [f"{format_duration(left)} left"] if left else []
    return "  ".join(parts)


def print_batch(batch: Batch) -> None:
    """Print the outcome of a batch, and where the results are."""
    progress, console = batch.progress, Output()
    counts = [(status, progress.count(status)) for status in (Status.COMPLETED, Status.FAILED, Status.STOPPED)]
    known = f" ({progress.known:,} before)" if progress.known else ""
    lines = [
        (
            "simulations",
            Text(
                (", ".join(f"{count:,} {status}" for status, count in counts if count) or "none has ended yet") + known
            ),
        ),
        ("results", Text(quote_path(batch.results_file))),
        ("runs", Text(quote_path(batch.runs_folder))),
    ]
    if left := progress.total - len(progress.results):
        lines.insert(1, ("left", Text(f"{left:,}; the same command goes on with them")))
    if any(result.calls for result in progress.list_results()):
        lines.insert(1, ("cost", Text("unknown" if progress.cost is None else f"${progress.cost:,.4f}")))
    bad = [result for result in progress.list_results() if result.status is not Status.COMPLETED]
    lines += [
        (result.id, Text(clip(result.error or "", _MAX_ERROR_CHARS), "red")) for result in bad[:_MAX_FAILED_SHOWN]
    ]
    if len(bad) > _MAX_FAILED_SHOWN:
        lines.append(("", Text(f"and {len(bad) - _MAX_FAILED_SHOWN:,} more, see {batch.results_file}", "red")))
    console.print(label_table(lines))
