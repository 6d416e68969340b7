"""HTML for notebooks. Every value from a scenario or a run is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def heading(text: object) -> str:
    return f"<p><strong>{escape(str(text))}</strong></p>"


def paragraph(text: object) -> str:
    return f"<p>{escape(str(text))}</p>"


def preformat(text: object) -> str:
    return f'<pre style="white-space: pre-wrap">{escape(str(text))}</pre>'


def table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """Return a table, or an empty text if there are no rows."""
    style = ' style="text-align: left"'

    def line(cells: Sequence[object], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}{style}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table>{line(head, 'th') if head else ''}{body}</table>" if body else ""
