"""Cascades as trees: how a post was passed on, from left to right, step by step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from shoal.formats import Drawing, draw_circle, draw_text, wrap_svg
from shoal.runs.plots.colours import CSS, colour_of, draw_legend
from shoal.runs.plots.history import WorldHistory
from shoal.runs.reports import SharedPost
from shoal.text import clip, format_count

WIDTH, LEFT, TOP = 740, 30, 70
_STEP_WIDTH_MAX, _ROW_MIN, _ROW_MAX = 190, 3.0, 16.0
_TREE_HEIGHT = 360
_MAX_SHARES = 600
_SMALL, _LARGE = 3.0, 9.0
_TITLE_CHARS, _HINT_CHARS = 84, 120


def draw_cascades(history: WorldHistory) -> Iterator[Drawing]:
    """Draw the largest cascades of a platform. People have the colour of their opinion at the end."""
    for number, shares in enumerate(history.cascades, 1):
        root, depth = shares[0], max(share.depth for share in shares)
        about = root.claim if root.claim in history.opinions else history.find_subject()
        last = {} if about is None else dict(enumerate(history.opinions[about][-1].tolist()))
        title = f"“{clip(root.text, _TITLE_CHARS)}”"
        known = history.names.get(root.agent, str(root.agent))
        facts = f"{known}; passed on {format_count(len(shares) - 1, 'time')}, {format_count(depth, 'step')} deep"
        if len(shares) > _MAX_SHARES:
            facts += f"; the first {_MAX_SHARES} are shown"
        tree, bottom = _draw_tree(shares[:_MAX_SHARES], history, last)
        height = round(bottom + 24)
        parts = [
            f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
            draw_text(16, 26, title, "title"),
            draw_text(16, 46, facts),
            *(draw_legend(about, WIDTH - 16, 46) if about else ()),
            *tree,
        ]
        svg = wrap_svg(parts, (WIDTH, height), f"Cascade of {title}", CSS)
        yield Drawing(f"cascade-{number}", title, svg)


def _draw_tree(
    shares: Sequence[SharedPost], history: WorldHistory, opinions: dict[int, float]
) -> tuple[list[str], float]:
    """Return the drawn tree and its lower end. Each leaf has its own row; a parent is halfway between its children."""
    rows = _place_rows(shares)
    depth = max(share.depth for share in shares)
    across = min((WIDTH - 2 * LEFT) / max(depth, 1), _STEP_WIDTH_MAX)
    down = float(np.clip(_TREE_HEIGHT / max(*rows, 1.0), _ROW_MIN, _ROW_MAX))
    places = [(LEFT + share.depth * across, TOP + row * down) for share, row in zip(shares, rows, strict=True)]
    most = max(share.likes for share in shares) or 1
    links, nodes = [], []
    for share, (x, y) in zip(shares, places, strict=True):
        if share.parent is not None:
            from_x, from_y = places[share.parent]
            middle = (from_x + x) / 2
            curve = f"M{from_x:.1f},{from_y:.1f} C{middle:.1f},{from_y:.1f} {middle:.1f},{y:.1f} {x:.1f},{y:.1f}"
            links.append(f'<path class="branch" d="{curve}"/>')
        said = "quotes: " + clip(share.text, _HINT_CHARS) if share.is_quote else "passes it on"
        hint = f"{history.names.get(share.agent, share.agent)} {said if share.depth else clip(share.text, _HINT_CHARS)}"
        style = f'class="node" fill="{colour_of(opinions.get(share.agent, float("nan")))}"'
        nodes.append(draw_circle((x, y), _SMALL + (_LARGE - _SMALL) * (share.likes / most) ** 0.5, style, hint))
    return links + nodes, max(y for _, y in places)


def _place_rows(shares: Sequence[SharedPost]) -> list[float]:
    children: dict[int, list[int]] = defaultdict(list)
    for at, share in enumerate(shares):
        if share.parent is not None:
            children[share.parent].append(at)
    rows, leaves = [0.0] * len(shares), 0
    # Children come after their parent, so going backwards over a walk in depth visits them first.
    walk, stack = [], [0]
    while stack:
        at = stack.pop()
        walk.append(at)
        stack.extend(reversed(children[at]))
    for at in walk:
        if not children[at]:
            rows[at], leaves = float(leaves), leaves + 1
    for at in reversed(walk):
        if children[at]:
            rows[at] = sum(rows[child] for child in children[at]) / len(children[at])
    return rows
