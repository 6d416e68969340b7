"""The pictures of a report as SVG without a separate style: the page's style sheet colours them, light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import isfinite

from shoal.experiments.report.figures import ArmReport
from shoal.experiments.report.series import Band
from shoal.experiments.report.wording import MINUS, format_money
from shoal.experiments.statistics import Interval
from shoal.formats import Axis, draw_line, draw_text, join_points, spread_labels

#: Arms that one chart can tell apart by colour and dash. More have a chart each, beside the control in grey.
MAX_LINES = 6
_WIDTH, _HEIGHT = 400, 236
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 304, 16, 200
_LABEL_HEIGHT = 14
_LETTER_WIDTH = 6.4
_FOREST_WIDTH, _FOREST_HEIGHT = 220, 24
_MAX_LABEL = 14


def _wrap(parts: Iterable[str], size: tuple[int, int], label: str, style: str) -> str:
    width, height = size
    return (
        f'<svg class="{style}" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label, quote=True)}">'
        + "".join(parts)
        + "</svg>"
    )


def draw_bands(bands: Sequence[Band], colours: Sequence[int], label: str, scale: tuple[float, float]) -> str:
    """Draw the mean of each arm over rounds with its interval. `colours` are the numbers of their colours."""
    low, high = scale
    rounds = Axis(min(band.rounds[0] for band in bands), max(band.rounds[-1] for band in bands), _LEFT, _RIGHT)
    values = Axis(low, high, _BOTTOM, _TOP)
    parts = list(_draw_frame(rounds, values))
    parts.append(draw_text(_RIGHT, _BOTTOM + 32, "round", "dim", "end"))
    for band, colour in zip(bands, colours, strict=True):
        places = [rounds.at(round) for round in band.rounds]
        upper = [(x, values.at(min(value, high))) for x, value in zip(places, band.high, strict=True)]
        lower = [(x, values.at(max(value, low))) for x, value in zip(places, band.low, strict=True)]
        parts.append(f'<polygon class="band c{colour}" points="{join_points([*upper, *reversed(lower)])}"/>')
    for band, colour in zip(bands, colours, strict=True):
        line = [(rounds.at(round), values.at(value)) for round, value in zip(band.rounds, band.mean, strict=True)]
        parts.append(draw_line(line, f"line c{colour}"))
    ends = [(values.at(band.mean[-1]), (f"t{colour}", band.arm)) for band, colour in zip(bands, colours, strict=True)]
    for y, (style, arm) in spread_labels(ends, _LABEL_HEIGHT, _BOTTOM, _TOP):
        name = arm if len(arm) <= _MAX_LABEL else arm[: _MAX_LABEL - 1] + "…"
        parts.append(draw_text(_RIGHT + 6, y + 4, name, f"label {style}"))
    return _wrap(parts, (_WIDTH, _HEIGHT), label, "chart")


def find_scale(bands: Iterable[Band]) -> tuple[float, float]:
    """Return the ends of an axis that holds all intervals."""
    ends = [float(end) for band in bands for end in (band.low.min(), band.high.max())]
    low, high = min(ends), max(ends)
    if 0 <= low < (high - low):
        low = 0.0
    # What is the same everywhere has no span: an axis of one unit shows it without powers of ten.
    return low, high + (0.04 * (high - low) or 1.0)


def _draw_frame(across: Axis, up: Axis, about: int = 4) -> Iterator[str]:
    for tick in up.ticks(about):
        y = up.at(tick)
        text = f"{tick:,.0f}" if abs(tick) >= 1000 else f"{tick + 0.0:.3g}".replace("-", MINUS)
        yield draw_line([(across.start, y), (across.end, y)], "zero" if abs(tick) < 1e-12 else "rule")
        yield draw_text(across.start - 8, y + 4, text, anchor="end")
    for tick in across.ticks(5):
        if tick == int(tick):
            yield draw_text(across.at(tick), up.start + 17, f"{tick:.0f}", anchor="middle")


@dataclass(frozen=True, slots=True)
class _Dot:
    """An arm in the chart of cost against pass rate."""

    number: int
    name: str
    cost: Interval
    rate: Interval


def list_dots(arms: Sequence[ArmReport]) -> list[_Dot]:
    """Return the arms whose cost and pass rate are known."""
    dots = []
    for number, arm in enumerate(arms, 1):
        rate = arm.totals.pass_rate
        if arm.cost is not None and rate is not None:
            dots.append(_Dot(number, arm.name, arm.cost, rate))
    return dots


def find_front(dots: Sequence[_Dot]) -> list[_Dot]:
    """Return the arms that no other beats in cost and pass rate at once, from cheap to dear."""
    front: list[_Dot] = []
    for dot in sorted(dots, key=lambda dot: (dot.cost.value, -dot.rate.value)):
        if not front or dot.rate.value > front[-1].rate.value:
            front.append(dot)
    return front


def draw_front(dots: Sequence[_Dot], label: str) -> str:
    """Draw cost against pass rate with both intervals; the front of arms that no other beats is a line."""
    front = find_front(dots)
    ends = [end for dot in dots for end in (dot.cost.low, dot.cost.high) if isfinite(end)]
    costs = [dot.cost.value for dot in dots]
    highest = max(min(max([*ends, *costs]), 2.5 * max(costs)), 1e-9)
    across, up = Axis(0.0, highest * 1.08, _LEFT, _WIDTH - 16), Axis(0.0, 1.0, _BOTTOM, _TOP)
    parts = []
    for tick in up.ticks(4):
        parts += [draw_line([(across.start, up.at(tick)), (across.end, up.at(tick))], "rule")]
        parts += [draw_text(_LEFT - 8, up.at(tick) + 4, f"{tick:.0%}", anchor="end")]
    parts += [draw_text(across.at(tick), _BOTTOM + 17, format_money(tick), anchor="middle") for tick in across.ticks(4)]
    parts.append(draw_text(across.end, _BOTTOM + 32, "cost of a run", "dim", "end"))
    steps = [(across.at(dot.cost.value), up.at(dot.rate.value)) for dot in front]
    parts.append(draw_line([steps[0], *(p for a, b in pairwise(steps) for p in ((b[0], a[1]), b))], "front"))
    places = [(across.at(dot.cost.value), up.at(dot.rate.value)) for dot in dots]
    for dot, (x, y) in zip(dots, places, strict=True):
        style = "on" if dot in front else "off"
        low, high = max(dot.cost.low, 0.0), min(dot.cost.high, highest * 1.08)
        parts.append(draw_line([(across.at(low), y), (across.at(high), y)], f"cross {style}"))
        parts.append(draw_line([(x, up.at(dot.rate.low)), (x, up.at(dot.rate.high))], f"cross {style}"))
    for dot, (x, y) in zip(dots, places, strict=True):
        style = "on" if dot in front else "off"
        title = f"{dot.number} {dot.name}: {dot.rate.value:.0%} for {format_money(dot.cost.value)}"
        parts.append(
            f'<circle class="dot {style}" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{escape(title)}</title></circle>'
        )
    parts += _label_dots(dots, places)
    return _wrap(parts, (_WIDTH, _HEIGHT), label, "chart")


def _label_dots(dots: Sequence[_Dot], places: Sequence[tuple[float, float]]) -> Iterator[str]:
    """Put a name beside each dot where it covers no dot and no other label: a number where the name has no room."""
    boxes = [(x - 6, y - 6, x + 6, y + 6) for x, y in places]
    for dot, (x, y) in zip(dots, places, strict=True):
        for text in (dot.name, str(dot.number)):
            width = _LETTER_WIDTH * sum(1 if ord(letter) < 0x2E80 else 2 for letter in text)
            spots = [(x + 9, y - 7), (x + 9, y + 16), (x - 9 - width, y - 7), (x - 9 - width, y + 16)]
            spots += [(x - width / 2, y - 12), (x - width / 2, y + 22)]
            inside = (
                (left, base) for left, base in spots if left >= _LEFT + 2 and left + width <= _WIDTH and base > _TOP
            )
            free = ((left, base) for left, base in inside if not _covers(boxes, left, base, width))
            if (spot := next(free, None)) is not None:
                boxes.append((spot[0], spot[1] - 11, spot[0] + width, spot[1] + 3))
                yield draw_text(spot[0], spot[1], text, "label")
                break


def _covers(boxes: Sequence[tuple[float, float, float, float]], left: float, base: float, width: float) -> bool:
    return any(left < x2 and left + width > x1 and base - 11 < y2 and base + 3 > y1 for x1, y1, x2, y2 in boxes)


def find_forest_axis(intervals: Sequence[Interval]) -> Axis | None:
    """Return the axis that the effects of a table share, zero on it; None where there is nothing to show."""
    ends = [0.0, *(end for each in intervals for end in (each.low, each.value, each.high) if isfinite(end))]
    span = max(ends) - min(ends)
    if not span:
        return None
    return Axis(min(ends) - 0.04 * span, max(ends) + 0.04 * span, 4, _FOREST_WIDTH - 4)


def draw_effect(interval: Interval, axis: Axis, is_found: bool, label: str) -> str:
    """Draw one effect as a square on its interval, with a dotted line at zero."""
    middle = _FOREST_HEIGHT / 2
    low, high = (axis.at(min(max(end, axis.low), axis.high)) for end in (interval.low, interval.high))
    parts = [
        draw_line([(axis.at(0.0), 0), (axis.at(0.0), _FOREST_HEIGHT)], "zero"),
        draw_line([(low, middle), (high, middle)], "whisker"),
        f'<rect class="mark" x="{axis.at(interval.value) - 4:.1f}" y="{middle - 4}" width="8" height="8"/>',
    ]
    if not isfinite(interval.low):
        parts.append(draw_line([(low + 6, middle - 4), (low, middle), (low + 6, middle + 4)], "whisker"))
    if not isfinite(interval.high):
        parts.append(draw_line([(high - 6, middle - 4), (high, middle), (high - 6, middle + 4)], "whisker"))
    return _wrap(parts, (_FOREST_WIDTH, _FOREST_HEIGHT), label, "forest found" if is_found else "forest")


def draw_rate(interval: Interval, label: str) -> str:
    """Draw a rate as a bar with its interval."""
    width, height = 90, 10
    axis = Axis(0.0, 1.0, 1, width - 1)
    parts = [
        f'<rect class="track" x="1" y="3" width="{width - 2}" height="4" rx="2"/>',
        f'<rect class="bar" x="1" y="3" width="{max(axis.at(interval.value) - 1, 0):.1f}" height="4" rx="2"/>',
        draw_line([(axis.at(interval.low), 5), (axis.at(interval.high), 5)], "whisker"),
        draw_line([(axis.at(interval.low), 2), (axis.at(interval.low), 8)], "whisker"),
        draw_line([(axis.at(interval.high), 2), (axis.at(interval.high), 8)], "whisker"),
    ]
    return _wrap(parts, (width, height), label, "rate")
