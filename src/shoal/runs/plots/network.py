"""The network of people at the start and at the end, in the colours of their opinions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.engine import TOPIC
from shoal.formats import Axis, Drawing, draw_circle, draw_text, wrap_svg
from shoal.runs.network.communities import find_communities
from shoal.runs.network.layout import arrange
from shoal.runs.plots.colours import CSS, colour_of, draw_legend
from shoal.runs.plots.history import WorldHistory
from shoal.text import clip, format_count

WIDTH, HEIGHT, TOP, MARGIN = 740, 430, 62, 22
#: More people or ties than these are a hairball: those with most ties are shown.
MAX_PEOPLE, MAX_EDGES = 400, 4000
#: Two people are no network.
_MIN_PEOPLE = 3
_LABELS = 5
_LABEL_CHARS = 18
_SMALL, _LARGE = 2.6, 10.0
_WORDS = {"follow": "who follows whom", "relation": "who knows whom", "pair": "who talks with whom"}

Places = NDArray[np.float64]


def draw_network(history: WorldHistory) -> Drawing | None:
    """Draw the people twice at the same places, so that only opinions differ; None without ties or for two people."""
    about = history.find_subject()
    if not history.edges or about is None or len(history.names) < _MIN_PEOPLE:
        return None
    opinions = history.opinions[about]
    edges = np.array([edge for edge in history.edges if edge[0] != edge[1]], dtype=np.int32).reshape(-1, 2)
    ties = np.bincount(edges.ravel(), minlength=len(history.names))
    shown = np.argsort(-ties, kind="stable")[:MAX_PEOPLE]
    position = np.full(len(ties), -1, np.int32)
    position[shown] = np.arange(len(shown), dtype=np.int32)
    inner = position[edges]
    inner = inner[(inner >= 0).all(axis=1)]
    communities = find_communities(len(shown), inner)
    places = arrange(len(shown), inner, communities, opinions[0][shown])
    people = format_count(len(ties), "person", "people")
    facts = f"{_WORDS[history.tie]}; {people}, {format_count(len(edges), 'tie')}"
    if len(shown) < len(ties):
        facts += f"; shown are the {len(shown)} with most ties"
    parts = [
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>',
        draw_text(16, 26, f"the network, coloured by {'opinion' if about == TOPIC else f'belief in {about}'}", "title"),
        draw_text(16, 46, facts),
        *draw_legend(about, WIDTH - 16, 26),
    ]
    halves = ((0, MARGIN), (len(history.rounds) - 1, WIDTH / 2 + MARGIN / 2))
    for row, left in halves:
        frame = Axis(0, 1, left, left + WIDTH / 2 - 1.5 * MARGIN), Axis(0, 1, TOP + 22, HEIGHT - MARGIN)
        parts.append(draw_text(left, TOP + 10, f"round {history.rounds[row]}", "value"))
        names = [history.names.get(int(agent), str(agent)) for agent in shown]
        parts += _draw_people(places, inner, frame, names, ties[shown], opinions[row][shown])
    return Drawing("network", "the network", wrap_svg(parts, (WIDTH, HEIGHT), "The network of people", CSS))


def _draw_people(
    places: Places,
    edges: NDArray[np.int32],
    frame: tuple[Axis, Axis],
    names: Sequence[str],
    ties: NDArray[np.int_],
    opinions: Places,
) -> list[str]:
    at = [(frame[0].at(x), frame[1].at(y)) for x, y in places.tolist()]
    parts = []
    for one, other in edges[:MAX_EDGES].tolist():
        (x1, y1), (x2, y2) = at[one], at[other]
        parts.append(f'<line class="edge" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')
    most = max(int(ties.max()), 1)
    # The person with most ties is drawn last, on top.
    for person in reversed(range(len(names))):
        style = f'class="node" fill="{colour_of(float(opinions[person]))}"'
        radius = _SMALL + (_LARGE - _SMALL) * float(ties[person] / most) ** 0.5
        parts.append(draw_circle(at[person], radius, style, f"{names[person]}: {opinions[person]:+.2f}"))
    taken: list[tuple[float, float]] = []
    for person in range(len(names)):
        x, y = at[person]
        if len(taken) < _LABELS and all(abs(y - other_y) > 14 or abs(x - other_x) > 110 for other_x, other_y in taken):
            taken.append((x, y))
            anchor = "end" if x > frame[0].at(0.5) else "start"
            parts.append(
                draw_text(
                    x + (-12 if anchor == "end" else 12), y + 4, clip(names[person], _LABEL_CHARS), "halo", anchor
                )
            )
    return parts
