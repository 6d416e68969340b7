"""What all commands print with: the console, tables with titles or labels, labelled lines, and JSON."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import click
import msgspec
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from shoal.cli.errors import JSON_WANTED, leave_broken_pipe
from shoal.text import hide_controls, make_storable

#: Control characters that JSON allows in a text as they are.
_UNESCAPED = re.compile("[\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]")
#: Columns of a terminal for the labels at the left, without the gap behind them.
LABEL_WIDTH = 15
#: Columns between those of a table.
_GAP = 2


#: Bars, lines and cuts for terminals that have only ASCII.
_ASCII = str.maketrans("━╸─█▁▂▃▄▅▆▇…", "=--#.,:-+*%~")
_PLAIN_LOCALES = ("C", "POSIX")


class Output(Console):
    """Standard output without highlighting: numbers and paths keep the colour of the text around them.

    All that commands print goes through this class, `echo`, `echo_json` or `complain`.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(highlight=False, stderr=stderr)
        self._is_ascii = not self.encoding.startswith("utf") or is_plain_locale(os.environ)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Render without the control characters of texts, which a model, a server or a file may hold."""
        for segment in super().render(renderable, options):
            text = segment.text.translate(_ASCII) if self._is_ascii else segment.text
            yield segment if segment.control else Segment(hide_controls(text), segment.style)

    def print_text(self, text: str | Text) -> None:
        """Print sentences: on a terminal no word of them is broken, elsewhere no line."""
        self.print(text, soft_wrap=not self.is_terminal)

    def on_broken_pipe(self) -> None:
        leave_broken_pipe()


def is_plain_locale(environ: Mapping[str, str]) -> bool:
    """Return whether the user's locale is one that has only ASCII. None at all says nothing about the terminal."""
    ctype, lang = environ.get("LC_CTYPE", ""), environ.get("LANG", "")
    # Python itself sets LC_CTYPE to this where the locale is a plain one.
    named = environ.get("LC_ALL") or (ctype if ctype != "C.UTF-8" else "") or lang
    return named in _PLAIN_LOCALES


class FittedTable(Table):
    """A table that breaks no word to fit the terminal. If its words need more room, each row is a block of lines."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._fit_widths(options.max_width)
        if widths is None:
            titles = [str(column.header) for column in self.columns]
            for n, row in enumerate(zip(*(column.cells for column in self.columns), strict=True)):
                yield from [Text()] if n else []
                yield label_table(zip(titles, row, strict=True), max(map(cell_len, titles)))
            return
        for column, width in zip(self.columns, widths, strict=True):
            column.width = width
        yield from super().__rich_console__(console, options)

    def _fit_widths(self, width: int) -> list[int] | None:
        """Return the width of each column: what its texts need, or as much as there is room for, but whole words."""
        texts = [[str(column.header), *map(str, column.cells)] for column in self.columns]
        full = [max(cell_len(line) for text in each for line in text.split("\n")) for each in texts]
        widths = [max((cell_len(word) for text in each for word in text.split()), default=0) for each in texts]
        room = width - _GAP * (len(full) - 1)
        if sum(full) <= room:
            return full
        if sum(widths) > room:
            return None
        while (spare := room - sum(widths)) > 0:
            short = [n for n, wanted in enumerate(full) if widths[n] < wanted]
            for n in short[:spare]:
                widths[n] += min(max(spare // len(short), 1), full[n] - widths[n])
        return widths


def make_table(*titles: str | Text, right: Collection[str] = ()) -> Table:
    """Make a table with a dim line of titles; columns named in `right` are aligned to the right.

    Text that does not fit is folded, so that nothing is lost on narrow terminals.
    """
    table = FittedTable(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))
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
    if (context := click.get_current_context(silent=True)) is not None:
        context.meta[JSON_WANTED] = False
    click.echo(_UNESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text))
