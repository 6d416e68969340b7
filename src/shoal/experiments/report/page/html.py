"""Pieces of HTML: words of others as words and nothing else, addresses, and tables that can be sorted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote

from shoal.experiments.report.wording import Sentence, Strong
from shoal.text import printable


def write_text(words: object) -> str:
    """Return words of others, so that they are words and nothing else, and keep their direction to themselves."""
    return f"<bdi>{escape(printable(str(words)))}</bdi>"


def write_sentence(sentence: Sentence) -> str:
    return "".join(
        f"<strong>{write_text(part.text)}</strong>" if isinstance(part, Strong) else escape(printable(part))
        for part in sentence
    )


def write_address(place: str) -> str:
    """Return the address of something in the experiment's folder."""
    return escape(quote(f"{place}/"), quote=True)


def write_table(
    columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[tuple[str, str]]], best: int | None = None
) -> str:
    """Write a table that can be sorted. A cell is its HTML and what it is sorted by."""
    head = ""
    for name, kind in columns:
        sorts = f" data-kind={kind}" if kind in ("num", "text") else ""
        head += f'<th scope="col"{f" class={kind}" if kind else ""}{sorts}>{write_text(name)}</th>'
    body = []
    for number, row in enumerate(rows):
        cells = "".join(
            f'<td data-label="{escape(printable(name), quote=True)}" data-sort="{escape(printable(key), quote=True)}"'
            f"{f' class={kind}' if kind else ''}>{cell}</td>"
            for (name, kind), (cell, key) in zip(columns, row, strict=True)
        )
        body.append(f"<tr{' class=best' if number == best else ''}>{cells}</tr>")
    return f'<table class="sortable"><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'
