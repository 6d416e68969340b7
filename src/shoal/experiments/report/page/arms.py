"""The tables of a tier in the page: its arms, and every metric of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from html import escape
from math import isfinite
from typing import Any

import msgspec

from shoal.experiments.report.figures import ArmReport, ExperimentReport, TierReport
from shoal.experiments.report.page.charts import draw_effect, draw_rate, find_forest_axis
from shoal.experiments.report.page.html import write_address, write_table, write_text
from shoal.experiments.report.wording import (
    describe_effect,
    format_money,
    format_money_range,
    format_p,
    format_range,
    format_signed,
    format_value,
    name_outcome,
)
from shoal.experiments.results import PASS_RATE
from shoal.formats import Axis
from shoal.text import clip, format_duration, printable

#: Seeds of an arm that are shown as squares.
_MAX_SQUARES = 120
_MAX_CHANGE_CHARS = 60
#: Tables with more rows are closed when the page is opened.
_OPEN_ROWS = 24


def write_arms(tier: TierReport, outcome: str) -> str:
    """Write the table of a tier's arms. A column that says nothing of any arm is left out."""
    effects = [arm.effects[outcome].effect.difference for arm in tier.arms if outcome in arm.effects]
    axis = find_forest_axis(effects)
    changes = [set(_list_changes(arm.record.changes)) for arm in tier.arms]
    shared = set.intersection(*changes) if len(changes) > 1 else set()
    is_judged, has_cost = tier.totals.judged > 0, bool(tier.totals.cost)
    #: Name, kind, whether it is shown, and the cell of an arm.
    every: list[tuple[str, str, bool, Callable[[ArmReport], tuple[str, str]]]] = [
        ("Arm", "text", True, lambda arm: _write_name(arm, shared)),
        (name_outcome(outcome), "num", True, lambda arm: _write_outcome(arm, outcome)),
        ("Effect, 95 %", "effect", axis is not None, lambda arm: (_draw_arm(arm, outcome, axis), "")),
        ("Difference", "num", bool(effects), lambda arm: _write_difference(arm, outcome)),
        ("Seeds", "", True, lambda arm: (_write_squares(arm), "")),
        ("Pass rate", "num", is_judged and outcome != PASS_RATE, lambda arm: _write_outcome(arm, PASS_RATE)),
        ("Cost a run", "num", has_cost, _write_cost),
        ("Cost of a pass", "num", is_judged and has_cost, _write_cost_of_pass),
        ("Tokens", "num", tier.totals.tokens > 0, lambda arm: (_shorten(arm.totals.tokens), str(arm.totals.tokens))),
        ("Time", "num", True, lambda arm: (format_duration(arm.totals.seconds), f"{arm.totals.seconds}")),
    ]
    columns = [(name, kind, write) for name, kind, is_shown, write in every if is_shown]
    table = write_table(
        [(name, kind) for name, kind, _ in columns],
        [[write(arm) for _, _, write in columns] for arm in tier.arms],
        best=next((number for number, arm in enumerate(tier.arms) if arm is tier.best_arm), None),
    )
    return (
        f'<section class="card"><div class="bar-of-card"><h3>Arms</h3>{_write_legend(is_judged)}</div>{table}</section>'
    )


def _shorten(number: int) -> str:
    """Write a large number with three digits."""
    for least, unit, letter in ((10**9, 10**9, "G"), (10**6, 10**6, "M"), (10**4, 10**3, "k")):
        if number >= least:
            return f"{number / unit:.3g} {letter}"
    return f"{number:,}"


def _write_legend(is_judged: bool) -> str:
    kinds = (
        [("pass", "passed"), ("fail", "not passed"), ("unknown", "not judged")]
        if is_judged
        else [("done", "completed")]
    )
    kinds.append(("lost", "did not complete"))
    marks = "".join(f'<span><i class="sq {kind}"></i>{name}</span>' for kind, name in kinds)
    return f'<p class="legend">{marks}<span>each opens its run</span></p>'


def _write_name(arm: ArmReport, shared: Collection[tuple[str, str]]) -> tuple[str, str]:
    """Write what an arm is called, and what it changes otherwise than all others do."""
    tag = ' <span class="tag">control</span>' if arm.is_control else ""
    own = [(path, text) for path, text in _list_changes(arm.record.changes) if (path, text) not in shared]
    changes = ", ".join(f"{path} = {clip(text, _MAX_CHANGE_CHARS)}" for path, text in own)
    shown = f'<small class="code" title="{escape(printable(changes), quote=True)}">{write_text(changes)}</small>'
    link = f'<a href="{write_address(arm.record.folder)}"><b>{write_text(arm.name)}</b></a>'
    return link + tag + (shown if changes else ""), arm.name


def _list_changes(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every changed value with its path, those in lists and mappings by themselves."""
    if isinstance(value, Mapping | list) and value:
        parts = value.items() if isinstance(value, Mapping) else enumerate(value)
        for name, part in parts:
            yield from _list_changes(part, f"{path}.{name}" if path else str(name))
    elif path:
        yield path, value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _write_cost(arm: ArmReport) -> tuple[str, str]:
    if arm.cost is None:
        return '<span class="dim">unknown</span>', ""
    words = f"<b>{format_money(arm.cost.value)}</b><small>{format_money_range(arm.cost)}</small>"
    return words, f"{arm.cost.value}"


def _write_outcome(arm: ArmReport, outcome: str) -> tuple[str, str]:
    found = arm.read_outcome(outcome)
    if found is None:
        return '<span class="dim">not known</span>', ""
    words = f"<b>{format_value(found.value, outcome)}</b><small>{format_range(found, outcome)}</small>"
    if outcome == PASS_RATE:
        about = f"{arm.totals.passed} of {arm.totals.judged} passed, 95 % interval {format_range(found, outcome)}"
        words += draw_rate(found, about)
    return words, f"{found.value}"


def _write_difference(arm: ArmReport, outcome: str) -> tuple[str, str]:
    effect = arm.effects.get(outcome)
    if effect is None:
        return '<span class="dim">–</span>', ""
    found = effect.effect
    d = "" if found.standardised is None else f", d {format_signed(found.standardised)}"
    return (
        f"<b{' class=yes' if effect.is_found else ''}>{format_signed(found.difference.value, outcome)}</b>"
        f"<small>{format_range(found.difference, outcome, signed=True)}</small>"
        f'<small class="dim">corrected {escape(format_p(effect.corrected_p))}{d}</small>',
        f"{found.difference.value}",
    )


def _write_cost_of_pass(arm: ArmReport) -> tuple[str, str]:
    cost = arm.cost_of_pass
    if cost is None:
        return '<span class="dim">not known</span>', ""
    if not isfinite(cost.value):
        return f"<b>∞</b><small>none passed; at least {format_money(cost.low)}</small>", "1e300"
    return f"<b>{format_money(cost.value)}</b><small>{format_money_range(cost)}</small>", f"{cost.value}"


def _write_squares(arm: ArmReport) -> str:
    runs = arm.record.runs
    marks = []
    for run in runs[:_MAX_SQUARES]:
        kind, words = "done", "completed"
        if run.status != "completed":
            kind, words = "lost", run.status
        elif run.passed is not None:
            kind, words = ("pass", "passed") if run.passed else ("fail", "not passed")
        elif run.error:
            kind, words = "unknown", "not judged"
        label = f"seed {run.seed}, {words}"
        address = write_address(run.folder)
        marks.append(f'<a class="sq {kind}" href="{address}" title="{label}" aria-label="{label}"></a>')
    if len(runs) > _MAX_SQUARES:
        marks.append(f' <a href="{write_address(arm.record.folder)}">and {len(runs) - _MAX_SQUARES:,} more</a>')
    return f'<span class="squares">{"".join(marks)}</span>'


# Tables


def write_metrics(report: ExperimentReport, tier: TierReport) -> Iterator[str]:
    """Write every metric of every arm beside that of the control."""
    rows = []
    control = tier.control if len(tier.arms) > 1 else None
    for name in report.metrics:
        effects = [arm.effects[name].effect.difference for arm in tier.arms if name in arm.effects]
        axis = find_forest_axis(effects)
        for arm in tier.arms:
            if name not in arm.metrics or arm is control:
                continue
            link = f'<a href="{write_address(arm.record.folder)}">{write_text(arm.name)}</a>'
            cells = [(write_text(name), name), (link, arm.name), _write_outcome(arm, name)]
            if control is not None:
                cells += [_write_outcome(control, name), (_draw_arm(arm, name, axis), ""), _write_difference(arm, name)]
            runs = str(arm.metrics[name].runs)
            rows.append([*cells, (runs, runs)])
    if not rows:
        return
    columns = [("Metric", "text"), ("Arm", "text"), ("Mean", "num")]
    if control is not None:
        columns += [("Control", "num"), ("Effect, 95 %", "effect"), ("Difference", "num")]
    state = " open" if len(rows) <= _OPEN_ROWS else ""
    yield f'<details{state}><summary>{write_text(f"All metrics of {tier.name}")}</summary><section class="card">'
    yield write_table([*columns, ("Runs", "num")], rows) + "</section></details>"


def _draw_arm(arm: ArmReport, outcome: str, axis: Axis | None) -> str:
    effect = arm.effects.get(outcome)
    if effect is None or axis is None:
        return ""
    return draw_effect(effect.effect.difference, axis, effect.is_found, describe_effect(effect, outcome))
