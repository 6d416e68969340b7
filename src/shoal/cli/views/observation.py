"""What an agent saw, all of it, on the terminal; and any other plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from shoal.cli.views.output import label_table
from shoal.text import printable
from shoal.types import Action, Observation
from shoal.worlds import ViewLine, renderer_for

#: Cells of a table are not broken up to this width.
_CELL_WIDTH = 9

#: A label, and what is to be read beside it.
Row = tuple[str, RenderableType]


def render_observation(observation: Observation) -> Table:
    """Render everything that was there to be seen."""
    rows: list[Row] = []
    if observation.context:
        rows.append(("situation", Group(*(Text(printable(text)) for text in observation.context))))
    for row in renderer_for(observation).view(observation):
        if row.lines:
            lines = [(_render_line(line), line.is_reply) for line in row.lines]
            parts = (Padding(text, (0, 0, 0, 4)) if is_reply else text for text, is_reply in lines)
            rows.append((row.label, Group(*parts)))
        else:
            rows.append((_words(row.label), _render_value(row.value)))
    if observation.pending:
        rows.append(("own, unseen yet", Group(*map(render_action, observation.pending))))
    return label_table(rows or [("", Text("nothing", "dim"))])


def render_values(told: Mapping[str, Any]) -> RenderableType:
    """Render plain values by name: short ones in a line, lists of records as tables over the whole width."""
    parts: list[RenderableType] = []
    for name, value in told.items():
        if _are_records(value):
            parts += [Text(_words(name), "dim"), Padding(_render_records(value), (0, 0, 0, 2))]
        else:
            parts.append(label_table([(_words(name), _render_value(value))]))
    return Group(*parts)


def render_action(done: Action) -> Text:
    return _render_line(ViewLine(_args(done.args), done.kind))


def _render_line(line: ViewLine) -> Text:
    words = printable(line.text)
    if not line.who:
        return Text(words, "italic" if line.is_query else "")
    text = Text.assemble((printable(line.who), "bold"), f": {words}" if words else "")
    return text.append(f"  [{line.facts}]", "dim") if line.facts else text


def _render_value(value: Any) -> RenderableType:
    if isinstance(value, Mapping):
        return Text(_args(value)) if _is_record(value) else render_values(value)
    return _render_records(value) if _are_records(value) else Text(_plain(value))


def _is_record(value: Any) -> bool:
    return isinstance(value, Mapping) and not any(isinstance(part, Mapping | list | tuple) for part in value.values())


def _are_records(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(_is_record, value))


def _render_records(records: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    columns = list(dict.fromkeys(name for record in records for name in record))
    for column in columns:
        widest = max(len(_plain(record.get(column))) for record in records)
        table.add_column(Text(_words(column)), overflow="fold", min_width=min(widest, _CELL_WIDTH))
    for record in records:
        table.add_row(*(Text(_plain(record.get(column))) for column in columns))
    return table


def _args(args: Mapping[str, Any]) -> str:
    return ", ".join(f"{_words(name)} {_plain(value)}" for name, value in args.items())


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value in ((), [], {}):
        return "-"
    text = value if isinstance(value, str) else msgspec.json.encode(_round(value)).decode()
    return "\n".join(map(printable, text.splitlines()))


def _round(value: Any) -> Any:
    """Round numbers for reading; `--json` has all digits."""
    if isinstance(value, float):
        return round(value, 4)
    return [_round(item) for item in value] if isinstance(value, list | tuple) else value


def _words(name: object) -> str:
    """Return a name as people write it; kinds of actions stay as they are."""
    text = printable(str(name))
    return text if text.isupper() else text.replace("_", " ")
