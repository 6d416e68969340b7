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
FRAMES_PER_SECOND = 2
_MAX_RUNNING_SHOWN = 8
#: Columns of what is shown of a simulation that runs, beside its name.
_FIGURES_WIDTH = 32
_MAX_FAILED_SHOWN = 5
_MAX_ERROR_CHARS = 200


def choose_batch_display(console: Console, progress: BatchProgress, title: str, quiet: bool) -> ProgressDisplay:
    """Choose what suits the console: a live view for a person who watches, lines for a log."""
    return choose_display(
        console,
        quiet,
        lambda: BatchView(progress, title),
        lambda write: SimulationLines(write, title, progress, lambda now: describe_progress(progress, now)),
        FRAMES_PER_SECOND,
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
        parts = draw_head(self.title, now - progress.began, share, describe_progress(progress, now), self.is_stopping)
        parts += draw_running(progress, _MAX_RUNNING_SHOWN, options.max_width - 4)
        parts += [Text(note, "yellow") for note in progress.notes[-1:]]
        yield fit_lines(parts, options)


def draw_running(progress: BatchProgress, most: int, width: int) -> list[Text]:
    """Draw a line for each simulation that runs, and the number of those that have no room."""
    running, lines = list(progress.running.items()), []
    for name, run in running[:most]:
        state = run.read_state()
        waiting = f"  waits for {state.waiting.model}" if state.waiting is not None else ""
        figures = f"  round {state.current_round}/{state.total_rounds}  {state.actions_count:,} actions{waiting}"
        # Simulations differ in the end of their names.
        room = width - _FIGURES_WIDTH
        shown = name if len(name) <= room else f"…{name[-room + 1 :]}"
        lines.append(Text.assemble("  ", (shown, "cyan"), (figures, "dim")))
    more = len(running) - most
    return lines + ([Text(f"  and {more} more", "dim")] if more > 0 else [])


class SimulationLines(LineDisplay):
    """Writes now and then how far many simulations are, and about each one that does not end well."""

    def __init__(
        self, write: Callable[[str], object], title: str, progress: BatchProgress, describe: Callable[[float], str]
    ) -> None:
        """`describe` says in one line how far they are at a time."""
        super().__init__(write, title)
        self._progress = progress
        self._describe = describe
        #: When the last line was written, and after how many results.
        self._last = (progress.began, 0)
        progress.watch = self._show

    def _show(self, what: BatchResult | str) -> None:
        if isinstance(what, str):
            self._write(f"{what}\n")
            return
        if what.status is not Status.COMPLETED:
            self._write(f"{what.id}: {what.status}: {clip(what.error or '', _MAX_ERROR_CHARS)}\n")
        now, (since, before), total = time.monotonic(), self._last, self._progress.total
        done = len(self._progress.results)
        if done >= total or is_line_due((done - before) / max(total, 1), now - since):
            self._last = (now, done)
            self._write(f"{self._describe(now)}\n")


def describe_running(progress: BatchProgress) -> list[str]:
    """Describe how many simulations run in a part of a line; nothing where none does."""
    count = len(progress.list_running())
    most = f" of {progress.at_once}" if count <= progress.at_once else ""
    return [f"{count}{most} running"] if count else []


def describe_progress(progress: BatchProgress, now: float) -> str:
    """Describe how far a batch is in one line."""
    done, left = len(progress.results), progress.seconds_left(now)
    parts = [f"{done:,}/{progress.total:,} done"]
    parts += describe_running(progress)
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
