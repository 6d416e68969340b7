"""The pictures of a tier in the page: metrics over rounds, and cost against pass rate."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.experiments.report.figures import ExperimentReport, TierReport
from shoal.experiments.report.page.charts import MAX_LINES, draw_bands, draw_front, find_front, find_scale, list_dots
from shoal.experiments.report.page.html import write_text
from shoal.experiments.report.series import Band, TierCurves
from shoal.experiments.report.wording import format_money, format_value
from shoal.text import format_count

#: Metrics whose curves are open when the page is.
_OPEN_CURVES = 4


# Charts


def write_charts(report: ExperimentReport, tier: TierReport, curves: TierCurves) -> Iterator[str]:
    charts = list(_write_front(tier))
    names = sorted(curves.bands, key=lambda name: (name != report.outcome, _find_smallest_p(tier, name)))
    drawn = [(name, list(_write_curves(name, tier, curves))) for name in names]
    shown = [figure for _, figures in drawn[:_OPEN_CURVES] for figure in figures]
    if charts or shown:
        yield '<div class="charts">' + "".join([*shown, *charts]) + "</div>"
    if rest := [figure for _, figures in drawn[_OPEN_CURVES:] for figure in figures]:
        words = format_count(len(drawn) - _OPEN_CURVES, "more metric") + " over rounds"
        yield f'<details><summary>{words}</summary><div class="charts">{"".join(rest)}</div></details>'


def _find_smallest_p(tier: TierReport, metric: str) -> float:
    """Say by which metric the arms differ most clearly; 1 where they are not compared."""
    effects = [arm.effects[metric].effect for arm in tier.arms if metric in arm.effects]
    return min((effect.p for effect in effects if effect.p is not None), default=1.0)


def _write_figure(heading: str, about: str, svg: str) -> str:
    return (
        f'<figure class="card"><figcaption><b>{heading}</b> <span class="dim">{about}</span></figcaption>{svg}</figure>'
    )


def _write_curves(name: str, tier: TierReport, curves: TierCurves) -> Iterator[str]:
    bands = [band for band in curves.bands[name] if len(band.rounds) > 1]
    if not bands:
        return
    about = "mean and 95 % interval over seeds"
    if curves.sampled is not None:
        about += f", first {curves.sampled} seeds of each arm"
    scale = find_scale(bands)
    order = [arm.name for arm in tier.arms if not arm.is_control]
    colours = {arm: number % MAX_LINES + 1 for number, arm in enumerate(order)}
    control = tier.record.control
    if len(bands) <= MAX_LINES:
        label = f"{name} over rounds: " + "; ".join(_describe_band(band) for band in bands)
        numbers = [0 if band.arm == control else colours.get(band.arm, 1) for band in bands]
        yield _write_figure(write_text(name), about, draw_bands(bands, numbers, label, scale))
        return
    grey = [band for band in bands if band.arm == control]
    for band in bands:
        if band.arm != control:
            label = f"{name} over rounds: {_describe_band(band)}"
            svg = draw_bands([*grey, band], [0] * len(grey) + [1], label, scale)
            yield _write_figure(f"{write_text(name)}: {write_text(band.arm)}", about, svg)


def _describe_band(band: Band) -> str:
    return f"{band.arm} ends at {format_value(float(band.mean[-1]))}"


def _write_front(tier: TierReport) -> Iterator[str]:
    dots = list_dots(tier.arms)
    if len(dots) < 2 or not tier.totals.cost:
        return
    front = find_front(dots)
    label = "Cost against pass rate. No arm is both cheaper and better than " + ", ".join(dot.name for dot in front)
    items = "".join(
        f'<li{" class=on" if dot in front else ""} value="{dot.number}">{write_text(dot.name)} <span class="dim">'
        f"{dot.rate.value:.0%} for {format_money(dot.cost.value)}</span></li>"
        for dot in dots
    )
    listed = f'<ol class="dots">{items}</ol>'
    yield _write_figure(
        "Cost against pass rate", "line: arms that no other beats in both", draw_front(dots, label) + listed
    )
