"""Shows a measurement of how many at once: while it is made, and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from shoal.cli.views.output import label_line, make_table
from shoal.runs.tuning import CALLS, Gauge, Knee, MeasuredLevel, TuneResult, count_cores
from shoal.text import format_count, format_milliseconds, quote_path

#: Below this, figures are shown with a decimal.
_FEW = 10
#: Levels with a larger share of failures are coloured.
_FAILING_SHARE = 0.01
#: A single simulation that gets less than this share of a core is disturbed by other programs.
_WHOLE_CORE = 0.8
_label = partial(label_line, width=9)


@dataclass(frozen=True, slots=True)
class TuningView:
    """What is measured so far, at the moment when it is drawn."""

    gauge: Gauge
    kind: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts: list[RenderableType] = [tabulate_levels(self.gauge.levels, self.kind)] if self.gauge.levels else []
        yield Group(*parts, Text(self._describe_now(), "dim", no_wrap=True, overflow="ellipsis"))

    def _describe_now(self) -> str:
        gauge = self.gauge
        if gauge.waiting:
            return f"the server asked to wait for {gauge.waiting:.1f} s"
        if self.kind != CALLS:
            return f"measuring {format_count(max(gauge.at_once, 1), 'simulation')} at once"
        if gauge.wanted <= 1:
            return "asking once, to see whether there is an answer"
        total, spent = gauge.spending.total if gauge.spending is not None else None, ""
        if total is not None and total.calls:
            spent = f"  ({total.tokens:,} tokens{'' if total.cost is None else f', ${total.cost:.3f}'} so far)"
        failed = f", {gauge.failed:,} failed" if gauge.failed else ""
        return f"measuring {gauge.at_once:,} at once: {gauge.done:,} of {gauge.wanted:,} calls{failed}{spent}"


def describe_level(level: MeasuredLevel, kind: str) -> str:
    """Describe a level in one line, for logs and pipes."""
    what = "answers/s" if kind == CALLS else "agent-steps/s"
    parts = [f"{level.at_once:,} at once: {_format_rate(level.per_second)} {what}", f"p95 {_format_time(level.p95)}"]
    if level.failed:
        parts.append(f"{level.failed_share:.0%} failed ({_list_failures(level)})")
    return "  ".join(parts)


def render_result(found: TuneResult, written: Iterable[Path], where: str) -> Iterator[RenderableType]:
    """Show the whole result; `where` says where the setting goes or went."""
    place = f"at {found.where}" if found.kind == CALLS else f"on {found.where}"
    yield Text.assemble((found.name, "bold"), f"  {found.kind} at once, {place}")
    yield Text("")
    yield tabulate_levels(found.levels, found.kind, found.knee)
    yield Text("")
    if found.knee is not None:
        best = f"{format_count(found.knee.at_once, found.kind.removesuffix('s'))} at once"
        yield _label("best", Text.assemble((best, "bold green"), f": {found.knee.reason}"))
    if found.ended:
        yield _label("ended", found.ended)
    share = min(found.levels, key=lambda level: level.at_once).cpu
    if share is not None and share * count_cores() < _WHOLE_CORE:
        yield _label("note", "something else keeps this machine busy: measure again when it does not")
    if found.spent:
        cost, tokens = found.spent.get("cost"), found.spent["input"] + found.spent["output"]
        price = "at a price that is not known" if cost is None else f"${cost:.3f}"
        yield _label("spent", f"{format_count(found.spent['calls'], 'answer')}, {tokens:,} tokens, {price}")
    yield _label("files", "  ".join(quote_path(path) for path in written))
    if found.setting is not None:
        yield _label("setting", f"{found.setting}   {where}")


def describe_failure(found: TuneResult) -> str:
    """Say why there is nothing to recommend."""
    first = found.levels[0]
    share = f"{first.failed_share:.0%} of the {found.kind}"
    return f"{share} fail even one at a time ({_list_failures(first)}): mend that first"


def tabulate_levels(levels: Iterable[MeasuredLevel], kind: str, knee: Knee | None = None) -> Table:
    """Make a table with a row for each level, the knee marked."""
    columns = _CALL_COLUMNS if kind == CALLS else _SIMULATION_COLUMNS
    table = make_table("", *columns, right=columns.keys() - {"failed"})
    for level in sorted(levels, key=lambda level: level.at_once):
        is_knee = knee is not None and knee.at_once == level.at_once
        style = "yellow" if level.failed_share > _FAILING_SHARE else ""
        figures = [figure(level) for figure in columns.values()]
        table.add_row("▶" if is_knee else "", *figures, style="bold green" if is_knee else style)
    return table


def _describe_failed(level: MeasuredLevel) -> str:
    if len(level.failures) == 1:
        return f"{level.failed_share:.0%} {next(iter(level.failures)).replace('_', ' ')}"
    return f"{level.failed_share:.0%} {_list_failures(level)}" if level.failed else "-"


def _list_failures(level: MeasuredLevel) -> str:
    return ", ".join(f"{count:,} x {name.replace('_', ' ')}" for name, count in level.failures.items())


def _format_rate(value: float) -> str:
    return f"{value:.1f}" if value < _FEW else f"{value:,.0f}"


def _format_time(seconds: float) -> str:
    return format_milliseconds(1000 * seconds)


_CALL_COLUMNS: dict[str, Callable[[MeasuredLevel], str]] = {
    "at once": lambda level: f"{level.at_once:,}",
    "calls": lambda level: f"{level.tried:,}",
    "answers/s": lambda level: _format_rate(level.per_second),
    "tokens/s": lambda level: f"{level.tokens_per_second or 0:,.0f}",
    "p50": lambda level: _format_time(level.p50),
    "p95": lambda level: _format_time(level.p95),
    "failed": _describe_failed,
}
_SIMULATION_COLUMNS: dict[str, Callable[[MeasuredLevel], str]] = {
    "at once": lambda level: f"{level.at_once:,}",
    "runs": lambda level: f"{level.tried:,}",
    "agent-steps/s": lambda level: _format_rate(level.per_second),
    "round p50": lambda level: _format_time(level.p50),
    "p95": lambda level: _format_time(level.p95),
    "CPU": lambda level: f"{level.cpu or 0:.0%}",
    "memory": lambda level: f"{level.memory_mb or 0:,.0f} MB",
    "failed": _describe_failed,
}
