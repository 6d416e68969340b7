"""Shows an experiment: while it runs, its plan, and how far it is."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from shoal.cli.views.batch import FRAMES_PER_SECOND, SimulationLines, describe_running, draw_running
from shoal.cli.views.display import ProgressDisplay, choose_display, draw_head, fit_lines
from shoal.cli.views.output import Output, label_table, make_table
from shoal.experiments import (
    ArmStanding,
    ExperimentRun,
    ExperimentStanding,
    Forecast,
    take_standing,
)
from shoal.slots import AGENTS, BrokerLocation, PoolView, fetch_snapshot
from shoal.text import format_count, format_duration

#: Limits are asked for at most this often.
_LIMITS_SECONDS = 2.0
_MAX_RUNNING_SHOWN = 4
_MAX_POOLS_SHOWN = 3
_MAX_NOTES_SHOWN = 2
#: Columns of a name, at least, and of notes, where names need more than there is.
_NAME_WIDTH, _NOTE_WIDTH = 6, 20
_GAP = 2


def choose_experiment_display(console: Console, work: ExperimentRun, title: str, quiet: bool) -> ProgressDisplay:
    """Choose what suits the console: a live view for a person who watches, lines for a log."""
    return choose_display(
        console,
        quiet,
        lambda: ExperimentView(work, title),
        lambda write: SimulationLines(
            write, title, work.batch.progress, lambda now: describe_standing(work, take_live_standing(work), now)
        ),
        FRAMES_PER_SECOND,
    )


@dataclass(slots=True)
class ExperimentView:
    """Tiers, arms, what runs now and what limits it, as they are when they are drawn."""

    work: ExperimentRun
    title: str
    is_stopping: bool = False
    _pools: tuple[PoolView, ...] = ()
    _asked_at: float = field(default=0.0)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        batch, now = self.work.batch, time.monotonic()
        progress, standing, width = batch.progress, take_live_standing(self.work), options.max_width - 4
        share = standing.ended / max(standing.runs, 1)
        told = describe_standing(self.work, standing, now)
        parts = draw_head(self.title, now - progress.began, share, told, self.is_stopping)
        below = draw_running(progress, _MAX_RUNNING_SHOWN, width)
        below += [Text(text, "dim") for text in self._describe_limits(now)]
        below += [Text(note, "yellow") for note in progress.notes[-_MAX_NOTES_SHOWN:]]
        # One line for the cursor, one for the titles, and one for what is hidden.
        height = max((console.height or 24) - len(parts) - len(below) - 3, 4)
        yield fit_lines([*parts, *_draw_arms(standing.arms, width, height), *below], options)

    def _describe_limits(self, now: float) -> Iterator[str]:
        """Yield what was learned about how many calls the servers bear."""
        if now - self._asked_at > _LIMITS_SECONDS and self.work.batch.progress.running:
            self._asked_at = now
            snapshot = fetch_snapshot(BrokerLocation.of_user(os.environ))
            self._pools = () if snapshot is None else snapshot.pools
        for pool in sorted(self._pools, key=lambda pool: pool.name != AGENTS)[:_MAX_POOLS_SHOWN]:
            parts = [f"{pool.held:,} of {pool.control['size']:,} at once"]
            parts += [f"{pool.waiting:,} waiting"] if pool.waiting else []
            for what in ("requests", "tokens"):
                if rate := pool.control.get(f"{what}_per_minute"):
                    parts.append(f"{rate:,.0f} {what} a minute")
            yield f"limit  {pool.name}: {', '.join(parts)}"


def take_live_standing(work: ExperimentRun) -> ExperimentStanding:
    """Count what has ended so far, also for a thread that draws it while more is added."""
    batch = work.batch
    return take_standing(work.experiment, list(batch.judged.values()), work.make_state(), batch.progress.list_running())


def describe_standing(work: ExperimentRun, standing: ExperimentStanding, now: float) -> str:
    """Describe how far an experiment is in one line."""
    progress = work.batch.progress
    left = progress.seconds_left(now)
    # A run that has ended and is being judged has no result yet.
    ended = max(standing.ended, min(len(progress.results) - standing.state.uncounted, standing.runs))
    parts = [f"{ended:,}/{standing.runs:,} done"]
    parts += describe_running(progress)
    parts += [f"{count} {name}" for name in ("failed", "stopped") if (count := standing.count(name))]
    if standing.count("calls"):
        parts.append(describe_cost(standing))
    parts += [f"{format_duration(left)} left"] if left else []
    return "  ".join(parts)


def describe_cost(standing: ExperimentStanding) -> str:
    """Describe what was spent, and what is expected in all."""
    cost, expected = standing.cost, standing.expected_cost
    if cost is None:
        return "cost unknown"
    more = f" of about ${expected:,.2f}" if expected is not None and standing.ended < standing.runs else ""
    return f"${cost:,.2f}{more}"


def _draw_arms(arms: Sequence[ArmStanding], width: int, height: int) -> list[Text]:
    """Draw a line for each arm, or for each tier where the terminal has too few lines: first what is under way."""
    tiers = [(name, list(each)) for name, each in groupby(arms, key=lambda arm: arm.tier)]
    room, unfolded = height - len(tiers), set()
    for name, each in sorted(tiers, key=lambda tier: not any(arm.running for arm in tier[1])):
        if len(each) - 1 <= room:
            room -= len(each) - 1
            unfolded.add(name)
    rows: list[tuple[str, ...]] = []
    for name, each in tiers:
        if name in unfolded:
            rows += [(name if n == 0 else "", arm.arm, *_show_counts([arm]), arm.note) for n, arm in enumerate(each)]
        else:
            note = next((arm.note for arm in each if arm.note), "")
            rows.append((name, format_count(len(each), "arm"), *_show_counts(each), note))
    hidden = len(rows) - height
    titles = ("tier", "arm", "done", "running", "failed", "cost", "")
    lines = _align([titles, *rows[:height]], width)
    lines[0].stylize("dim")
    return lines + ([Text(f"  and {hidden} more", "dim")] if hidden > 0 else [])


def _show_counts(arms: Sequence[ArmStanding]) -> tuple[str, str, str, str]:
    def add(name: str) -> int:
        return sum(getattr(arm, name) for arm in arms)

    costs = [arm.cost for arm in arms]
    cost = "unknown" if None in costs else f"${sum(cost or 0.0 for cost in costs):,.2f}"
    done, failed = f"{add('ended'):,}/{add('runs'):,}", add("failed") + add("stopped")
    return done, str(add("running") or ""), str(failed or ""), cost if add("calls") else ""


def _align(rows: Sequence[tuple[str, ...]], width: int) -> list[Text]:
    """Align cells in columns; the first two hold names, which are cut where there is too little room."""
    widths = [max(cell_len(row[n]) for row in rows) for n in range(len(rows[0]) - 1)]
    notes = min(max(cell_len(row[-1]) for row in rows), _NOTE_WIDTH)
    room = max(width - sum(widths[2:]) - notes - _GAP * len(widths), 2 * _NAME_WIDTH)
    while widths[0] + widths[1] > room:
        widths[0 if widths[0] > widths[1] else 1] -= 1
    lines = []
    for row in rows:
        line = Text()
        for n, cell in enumerate(row[:-1]):
            text = Text(cell, "cyan" if n == 1 else "red" if n == 4 else "")
            text.truncate(widths[n], overflow="ellipsis", pad=True)
            line.append_text(text).append(" " * _GAP)
        lines.append(line.append(row[-1], "dim"))
    return lines


# Before and afterwards


def print_forecast(forecast: Forecast) -> None:
    """Print what each arm will take, and all of them."""
    figures = ("runs", "calls", "cost", "time of one")
    table, console = make_table("tier", "arm", *figures, right=figures), Output()
    for arm in forecast.arms:
        table.add_row(
            arm.tier, arm.arm, f"{arm.runs:,}", f"{arm.calls:,}", _show_cost(arm.cost), _show_time(arm.seconds)
        )
    total = f"{forecast.simulations:,}", f"{forecast.calls:,}", _show_cost(forecast.cost), ""
    table.add_row("in all", "", *total, style="bold")
    console.print(table)
    agents = f", at most {format_count(forecast.parallel, 'agent')} acting at once" if forecast.parallel else ""
    lines = [("time", Text(f"{_show_time(forecast.seconds)}, {forecast.max_simulations} side by side{agents}"))]
    lines += [("inherits", Text(f"{tier} is planned without what it will inherit")) for tier in forecast.inheriting]
    lines += [("budget", Text(text, "yellow")) for text in forecast.short]
    lines.append(("", Text("nothing was run")))
    console.print()
    console.print(label_table(lines, 10))


def print_standing(standing: ExperimentStanding, lines: Sequence[tuple[str, Text]]) -> None:
    """Print where each arm stands, and what else there is to know."""
    console, has_verdicts, has_cost = Output(), standing.count("judged") > 0, standing.count("calls") > 0
    titles = ["tier", "arm", "done", "failed", *(["passed"] if has_verdicts else []), *(["cost"] if has_cost else [])]
    table: Table = make_table(*titles, right=titles[2:])
    for arm in standing.arms:
        done, failed = f"{arm.ended:,}/{arm.runs:,}", str(arm.failed + arm.stopped or "")
        passed = [f"{arm.passed:,} of {arm.judged:,}"] if has_verdicts else []
        cost = [_show_cost(arm.cost)] if has_cost else []
        table.add_row(arm.tier, Text(arm.arm, "cyan"), done, Text(failed, "red"), *passed, *cost)
    console.print(table)
    state = standing.state
    notes = [("inherits", Text(f"{tier} starts from {start}")) for tier, start in state.starts.items()]
    notes += [
        ("stopped", Text(f"{stop.tier}/{stop.arm} after {stop.seeds} seeds: {stop.reason}")) for stop in state.stops
    ]
    notes += [("skipped", Text(f"{tier}: {why}", "yellow")) for tier, why in state.skipped.items()]
    if state.uncounted > 0:
        runs = format_count(state.uncounted, "run")
        notes.append(("beside", Text(f"{runs} under way when an arm stopped, not counted")))
    console.print()
    console.print(label_table([*notes, *lines], 10))


def _show_cost(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}"


def _show_time(seconds: float | None) -> str:
    return "unknown" if seconds is None else format_duration(seconds)
