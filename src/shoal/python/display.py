"""How things look in a notebook. Everything that comes from a scenario or a run is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def heading(text: object) -> str:
    return f"<p><strong>{escape(str(text))}</strong></p>"


def paragraph(text: object) -> str:
    return f"<p>{escape(str(text))}</p>"


def preformatted(text: object) -> str:
    return f'<pre style="white-space: pre-wrap">{escape(str(text))}</pre>'


def table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """A table, or nothing where there are no rows."""
    body = "".join(_row(row, "td") for row in rows)
    return f"<table>{_row(head, 'th') if head else ''}{body}</table>" if body else ""


def _row(cells: Sequence[object], tag: str) -> str:
    style = ' style="text-align: left"'
    return f"<tr>{''.join(f'<{tag}{style}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"
