"""What all commands print with: the console, tables with titles or labels, labelled lines, and JSON."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import click
import msgspec
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from shoal.cli.errors import leave_broken_pipe
from shoal.text import hide_controls, make_storable

#: Control characters that JSON allows in a text as they are.
_UNESCAPED = re.compile("[\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]")
#: Columns of a terminal for the labels at the left, without the gap behind them.
LABEL_WIDTH = 15


class Output(Console):
    """Standard output without highlighting: numbers and paths keep the colour of the text around them.

    All that commands print goes through this class, `echo`, `echo_json` or `complain`.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(highlight=False, stderr=stderr)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Render without the control characters of texts, which a model, a server or a file may hold."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(hide_controls(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        leave_broken_pipe()


def make_table(*titles: str | Text, right: Collection[str] = ()) -> Table:
    """Make a table with a dim line of titles; columns named in `right` are aligned to the right.

    Text that does not fit is folded, so that nothing is lost on narrow terminals.
    """
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for title in titles:
        table.add_column(title, overflow="fold", justify="right" if str(title) in right else "left")
    return table


def label_table(rows: Iterable[tuple[str, RenderableType]] = (), width: int = LABEL_WIDTH) -> Table:
    """Make a table whose first column holds dim labels."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", min_width=width, no_wrap=True)
    table.add_column(overflow="fold")
    for label, content in rows:
        table.add_row(Text(label), content)
    return table


def label_line(label: str, words: str | Text, style: str = "", width: int = LABEL_WIDTH) -> Text:
    """Put a dim label before a text, without folding it."""
    return Text.assemble((label.ljust(width), "dim"), words if isinstance(words, Text) else (words, style))


def echo(text: object) -> None:
    """Print a line without control characters."""
    click.echo(hide_controls(str(text)))


def echo_json(value: Any) -> None:
    """Print one JSON object on one line; paths and other foreign values become strings.

    Control characters are written as escapes, which is the same value in JSON.
    """
    try:
        text = msgspec.json.encode(value, enc_hook=str).decode()
    except UnicodeEncodeError:
        # The name of a file that is no UTF-8.
        text = msgspec.json.encode(make_storable(msgspec.to_builtins(value, enc_hook=str))).decode()
    click.echo(_UNESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text))
