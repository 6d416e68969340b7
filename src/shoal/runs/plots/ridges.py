"""Distributions of opinions as ridges: one for each of some rounds, from the first on top to the last."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shoal.engine import TOPIC
from shoal.formats import Axis, Drawing, draw_line, draw_text, join_points, wrap_svg
from shoal.runs.plots.colours import CSS, GRADIENT, name_ends
from shoal.runs.plots.history import Opinions, WorldHistory

WIDTH, LEFT, RIGHT, TOP = 360, 66, 340, 86
_ROUNDS_SHOWN = 9
_GAP, _PEAK = 30, 52
#: Opinions are smoothed by this much, so that a ridge is a shape and not a comb.
_BANDWIDTH = 0.07
_GRID = np.linspace(-1, 1, 101)


def draw_ridges(history: WorldHistory) -> Iterator[Drawing]:
    """Draw how opinions on the topic, and beliefs in each claim, are distributed over time."""
    for about, values in history.opinions.items():
        title, ends = "opinions" if about == TOPIC else f"belief in {about}", name_ends(about)
        shown = np.unique(np.linspace(0, len(history.rounds) - 1, _ROUNDS_SHOWN).round().astype(int))
        shown = shown[[not np.isnan(values[row]).all() for row in shown]]
        if not len(shown):
            continue
        height = TOP + _GAP * len(shown) + 24
        parts = [
            f'<defs><linearGradient id="opinion">{GRADIENT}</linearGradient></defs>',
            f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
            draw_text(16, 26, title, "title"),
            *_draw_ridges(values, shown, [history.rounds[row] for row in shown]),
            *(
                draw_text(x, height - 10, words, anchor=anchor)
                for x, words, anchor in (
                    (LEFT, ends[0], "start"),
                    ((LEFT + RIGHT) / 2, "undecided", "middle"),
                    (RIGHT, ends[1], "end"),
                )
            ),
        ]
        svg = wrap_svg(parts, (WIDTH, height), f"{title}, by round", CSS)
        yield Drawing(f"opinions-{about}", title, svg)


def _draw_ridges(values: Opinions, shown: np.ndarray, rounds: list[int]) -> Iterator[str]:
    axis = Axis(-1, 1, LEFT, RIGHT)
    shapes = [_smooth(values[row]) for row in shown]
    tallest = max(float(shape.max()) for shape in shapes)
    for number, (shape, round) in enumerate(zip(shapes, rounds, strict=True)):
        base = TOP + _GAP * number + _GAP - 6
        outline = [
            (axis.at(x), base - y / tallest * _PEAK) for x, y in zip(_GRID.tolist(), shape.tolist(), strict=True)
        ]
        area = join_points([(LEFT, base), *outline, (RIGHT, base)])
        yield f'<polygon class="ridge" fill="url(#opinion)" points="{area}"/>'
        yield draw_line([(LEFT, base), (RIGHT, base)], "axis" if number == len(rounds) - 1 else "grid")
        yield draw_text(LEFT - 8, base, f"{'round ' if not number else ''}{round}", anchor="end")


def _smooth(opinions: Opinions) -> Opinions:
    """Return the density of opinions on a grid. It does not leak beyond the ends, where extreme people are."""
    known = opinions[~np.isnan(opinions)]
    counts, edges = np.histogram(known, bins=200, range=(-1, 1))
    centres = (edges[:-1] + edges[1:]) / 2
    density: Opinions = np.zeros(len(_GRID))
    for mirrored in (centres, 2 - centres, -2 - centres):
        density += np.exp(-((_GRID[:, None] - mirrored[None, :]) ** 2) / (2 * _BANDWIDTH**2)) @ counts
    return density / len(known)
