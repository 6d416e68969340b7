"""How many at once on the terminal: while it is measured, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from shoal.runs.tuning.calls import Gauge
from shoal.runs.tuning.knee import Knee, MeasuredLevel
from shoal.runs.tuning.result import CALLS, TuneResult
from shoal.runs.tuning.simulations import cores
from shoal.text import format_count, format_milliseconds, quote_path

_FEW = 10
_FAILING = 0.01
_WHOLE_CORE = 0.8


@dataclass(frozen=True, slots=True)
class TuningView:
    """What is measured so far, as it is when it is drawn."""

    gauge: Gauge
    kind: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts: list[RenderableType] = [table(self.gauge.levels, self.kind)] if self.gauge.levels else []
        yield Group(*parts, Text(self._now(), "dim", no_wrap=True, overflow="ellipsis"))

    def _now(self) -> str:
        gauge = self.gauge
        if gauge.waiting:
            return f"the server asked to wait for {gauge.waiting:.1f} s"
        if gauge.wanted <= 1 and self.kind == CALLS:
            return "asking once, to see whether there is an answer"
        if self.kind != CALLS:
            return f"measuring {format_count(max(gauge.at_once, 1), 'simulation')} at once"
        failed = f", {gauge.failed:,} failed" if gauge.failed else ""
        return f"measuring {gauge.at_once:,} at once: {gauge.done:,} of {gauge.wanted:,} calls{failed}{_spent(gauge)}"


def _spent(gauge: Gauge) -> str:
    total = gauge.spending.total if gauge.spending is not None else None
    if total is None or not total.calls:
        return ""
    return f"  ({total.tokens:,} tokens{'' if total.cost is None else f', ${total.cost:.3f}'} so far)"


def line(level: MeasuredLevel, kind: str) -> str:
    """A level in one line, for logs and pipes."""
    what = "answers/s" if kind == CALLS else "agent-steps/s"
    told = [f"{level.at_once:,} at once: {_figure(level.per_second)} {what}", f"p95 {_seconds(level.p95)}"]
    if level.failed:
        told.append(f"{level.failed_share:.0%} failed ({_kinds(level)})")
    return "  ".join(told)


def result_of(found: TuneResult, written: Iterable[Path], placed: str) -> Iterator[RenderableType]:
    """Everything that was found; `placed` says what became of the setting."""
    yield Text.assemble((found.name, "bold"), f"  {found.kind} at once, {_where(found)}")
    yield Text("")
    yield table(found.levels, found.kind, found.knee)
    yield Text("")
    if found.knee is not None:
        told = f"{format_count(found.knee.at_once, found.kind.removesuffix('s'))} at once"
        yield Text.assemble((f"{'best':<9}", "dim"), (told, "bold green"), f": {found.knee.reason}")
    if found.ended:
        yield _remark("ended", f"{found.ended}")
    if _is_disturbed(found):
        yield _remark("note", "something else keeps this machine busy: measure again when it does not")
    if found.spent:
        yield _remark("spent", _bill(found))
    yield _remark("files", "  ".join(quote_path(path) for path in written))
    if found.setting is not None:
        yield _remark("setting", f"{found.setting}   {placed}")


def ending(found: TuneResult) -> str:
    """Why there is nothing to recommend."""
    first = found.levels[0]
    return f"{first.failed_share:.0%} of the {found.kind} fail even one at a time ({_kinds(first)}): mend that first"


def table(levels: Iterable[MeasuredLevel], kind: str, knee: Knee | None = None) -> Table:
    """Level by level, the knee marked."""
    columns = _CALLS if kind == CALLS else _SIMULATIONS
    made = Table(box=None, pad_edge=False, header_style="dim")
    made.add_column("")
    for name in columns:
        made.add_column(name, justify="left" if name == "failed" else "right", overflow="fold")
    for level in sorted(levels, key=lambda level: level.at_once):
        is_knee = knee is not None and knee.at_once == level.at_once
        figures = [figure(level) for figure in columns.values()]
        made.add_row("▶" if is_knee else "", *figures, style="bold green" if is_knee else _style(level))
    return made


def _style(level: MeasuredLevel) -> str:
    return "yellow" if level.failed_share > _FAILING else ""


def _is_disturbed(found: TuneResult) -> bool:
    """Whether one simulation alone did not get a core to itself."""
    share = min(found.levels, key=lambda level: level.at_once).cpu
    return share is not None and share * cores() < _WHOLE_CORE


def _where(found: TuneResult) -> str:
    return f"at {found.where}" if found.kind == CALLS else f"on {found.where}"


def _bill(found: TuneResult) -> str:
    cost = found.spent.get("cost")
    told = "at a price that is not known" if cost is None else f"${cost:.3f}"
    tokens = found.spent["input"] + found.spent["output"]
    return f"{format_count(found.spent['calls'], 'answer')}, {tokens:,} tokens, {told}"


def _remark(label: str, words: str) -> Text:
    return Text.assemble((f"{label:<9}", "dim"), words)


def _failed(level: MeasuredLevel) -> str:
    if len(level.failures) == 1:
        return f"{level.failed_share:.0%} {_said(*level.failures)}"
    return f"{level.failed_share:.0%} {_kinds(level)}" if level.failed else "-"


def _kinds(level: MeasuredLevel) -> str:
    return ", ".join(f"{count:,} x {_said(name)}" for name, count in level.failures.items())


def _said(name: str) -> str:
    """`429 request_rate` as people say it."""
    return name.replace("_", " ")


def _figure(value: float) -> str:
    return f"{value:.1f}" if value < _FEW else f"{value:,.0f}"


def _seconds(seconds: float) -> str:
    return format_milliseconds(1000 * seconds)


_CALLS = {
    "at once": lambda level: f"{level.at_once:,}",
    "calls": lambda level: f"{level.tried:,}",
    "answers/s": lambda level: _figure(level.per_second),
    "tokens/s": lambda level: f"{level.tokens_per_second or 0:,.0f}",
    "p50": lambda level: _seconds(level.p50),
    "p95": lambda level: _seconds(level.p95),
    "failed": _failed,
}
_SIMULATIONS = {
    "at once": lambda level: f"{level.at_once:,}",
    "runs": lambda level: f"{level.tried:,}",
    "agent-steps/s": lambda level: _figure(level.per_second),
    "round p50": lambda level: _seconds(level.p50),
    "p95": lambda level: _seconds(level.p95),
    "CPU": lambda level: f"{level.cpu or 0:.0%}",
    "memory": lambda level: f"{level.memory_mb or 0:,.0f} MB",
    "failed": _failed,
}
