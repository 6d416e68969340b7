"""Figures over rounds: a small chart for each, with a line for each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shoal.engine import TOPIC
from shoal.formats import Axis, Drawing, draw_line, draw_text, spread_labels, wrap_svg
from shoal.runs.plots.colours import CSS
from shoal.runs.plots.history import WorldHistory
from shoal.text import clip

WIDTH, HEIGHT = 360, 210
LEFT, RIGHT, TOP, BOTTOM = 46, 300, 46, 178
#: Runs that one chart can tell apart.
MAX_RUNS = 6
_LINE_HEIGHT = 13
#: How far the axis of opinions reaches at least.
_LEAST = 0.1
#: Marks in a chart, and characters of each.
_MAX_MARKS, _MARK_CHARS = 3, 22
#: Figures that are opinions: their axis shows where zero is. Others start at zero.
_SIGNED = "mean"
_ON_TOPIC = {"mean": "mean opinion", "spread": "spread of opinions", "polarisation": "polarisation of opinions"}
_OF_CLAIMS = {"mean": "mean belief in {}", "spread": "spread of belief in {}", "polarisation": "polarisation on {}"}
_OF_NOTHING = {"activity": "actions per person", "inequality": "inequality of attention"}


def draw_curves(histories: Sequence[WorldHistory]) -> Iterator[Drawing]:
    """Draw every figure that at least one of the runs has, and that is not zero all the time."""
    marks = {mark.round: mark.text for history in histories for mark in history.marks if mark.round > 0}
    for name, about in dict.fromkeys(key for history in histories for key in history.figures):
        titles = {TOPIC: _ON_TOPIC, "": _OF_NOTHING}.get(about, _OF_CLAIMS)
        title = titles.get(name, f"{name} of {{}}" if about else name).format(about)
        lines = [sorted(history.figures.get((name, about), {}).items()) for history in histories]
        if not any(value for line in lines for _, value in line):
            continue
        parts = _draw_chart(title, lines, marks, is_signed=name == _SIGNED)
        svg = wrap_svg(parts, (WIDTH, HEIGHT), f"{title} over rounds", CSS)
        yield Drawing(f"{name}-{about}" if about else name, title, svg)


def _draw_chart(
    title: str, lines: Sequence[Sequence[tuple[int, float]]], marks: Mapping[int, str], is_signed: bool
) -> list[str]:
    values = [value for line in lines for _, value in line]
    low, high = min(values), max(values)
    # Opinions that hardly move are not made to look as if they did.
    low, high = (min(low, -_LEAST), max(high, _LEAST)) if is_signed else (0.0, high)
    rounds = Axis(0, max((round for line in lines for round, _ in line if round), default=1), LEFT, RIGHT)
    scale = Axis(low, max(high, low + 0.1, 0.0) * (1 if high <= 0 else 1.05), BOTTOM, TOP)
    parts = [f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>']
    parts.append(draw_text(16, 26, title, "title"))
    for tick in scale.ticks():
        y = scale.at(tick)
        style = "axis" if tick == scale.low else "zero" if tick == 0 else "grid"
        parts += [draw_line([(LEFT, y), (RIGHT, y)], style), draw_text(LEFT - 8, y + 4, f"{tick:.3g}", anchor="end")]
    parts += [
        draw_text(rounds.at(tick), BOTTOM + 17, f"{tick:.0f}", anchor="middle")
        for tick in rounds.ticks(5)
        if tick == int(tick)
    ]
    parts.append(draw_text(RIGHT + 15, BOTTOM + 17, "round"))
    for round, text in list(marks.items())[:_MAX_MARKS]:
        x = rounds.at(round)
        parts += [draw_line([(x, TOP - 4), (x, BOTTOM)], "event"), draw_text(x + 4, TOP - 4, clip(text, _MARK_CHARS))]
    ends = [(index, line[-1][1]) for index, line in enumerate(lines) if line]
    for index, _ in ends:
        parts.append(draw_line(((rounds.at(round), scale.at(value)) for round, value in lines[index]), f"run{index}"))
    for y, value in spread_labels([(scale.at(value), value) for _, value in ends], _LINE_HEIGHT, BOTTOM):
        parts.append(draw_text(RIGHT + 8, y + 4, f"{value + 0.0:z.2f}", "value"))
    return parts
