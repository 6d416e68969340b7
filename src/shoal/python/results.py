"""What a script or notebook sees of a run: figures, frames, transcripts. Whatever HTML shows is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any

import msgspec

from shoal.engine import Metrics
from shoal.errors import ShoalError
from shoal.runs import RunState
from shoal.runs.interviews import AnswerTable
from shoal.text import hide_controls, hint, one_of
from shoal.types import Event, Notice

KINDS = ("pandas", "polars")
#: Columns of every action; its arguments follow, one column each.
ACTION_COLUMNS = ("world", "round", "agent_id", "agent_name", "action_type", "success", "result", "timestamp", "id")
#: Actions that get no line in a transcript where they succeed.
_SILENT = ("DO_NOTHING", "DONE", "REFRESH")
_SPOKEN = {"TALK": "", "SAY": "", "THINK": " (thinking)"}
#: A notice to more people than this names these and counts the others.
_MAX_NAMES = 3

Columns = Mapping[str, Sequence[Any]]


# HTML


def render_heading(text: object) -> str:
    return f"<p><strong>{escape(str(text))}</strong></p>"


def render_paragraph(text: object) -> str:
    return f"<p>{escape(str(text))}</p>"


def render_text(text: object) -> str:
    return f'<pre style="white-space: pre-wrap">{escape(str(text))}</pre>'


def render_table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """Return a table, or an empty text if there are no rows."""
    style = ' style="text-align: left"'

    def line(cells: Sequence[object], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}{style}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table>{line(head, 'th') if head else ''}{body}</table>" if body else ""


# Figures


class Figures(dict[str, Any]):
    """Measured figures by name: `metrics.speedup` is `metrics["speedup"]`. None: there was nothing to measure."""

    @classmethod
    def of(cls, state: RunState | None) -> Figures:
        """Take the figures of a run; errors and timeouts are counted also where steps are not timed."""
        if state is None:
            return cls(Metrics().as_dict())
        return cls({**state.metrics.as_dict(), "errors": state.errors, "timeouts": state.timeouts})

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(f"there is no figure {name!r}{hint(name, self)}")
        return self[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        width = max(map(len, self))
        return "\n".join(f"{name.ljust(width)}  {_format_figure(value)}" for name, value in self.items())

    def _repr_html_(self) -> str:
        return render_table((name.replace("_", " "), _format_figure(value)) for name, value in self.items())


def _format_figure(value: object) -> str:
    """Write a figure; one of several parts is written part by part."""
    if value is None:
        return "not measured"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_format_figure(below)}" for name, below in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)


# Answers


class Answers:
    """Answers to questions, forms filled in from records, or scores of claims: a row for each agent or world."""

    def __init__(self, table: AnswerTable) -> None:
        self.rows = table.rows
        self.columns = table.columns
        #: Calls, tokens and cost.
        self.spending = Figures(table.spending)
        #: Whether a model answered in the name of agents that had none, or another, in the run.
        self.stand_in = table.stand_in
        self._table = table

    def records(self) -> list[dict[str, Any]]:
        """Return one mapping for each row."""
        return self._table.records()

    def frame(self, kind: str = "pandas") -> Any:
        """Return the rows as a pandas or polars frame."""
        rows = self.records()
        names = rows[0] if rows else ()
        return build_frame({name: _unify([row[name] for row in rows]) for name in names}, kind)

    def __getitem__(self, name: str) -> dict[str, Any]:
        """Return the answer of a person, or about a world, by column."""
        found = next((row for row in self.rows if row.name == name), None)
        if found is None:
            raise KeyError(f"there is no answer of {name!r}{hint(name, (row.name for row in self.rows))}")
        return dict(found.values)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.records())

    def __repr__(self) -> str:
        failed = sum(row.error is not None for row in self.rows)
        return f"<Answers: {len(self.rows)} rows of {', '.join(self.columns)}{f', {failed} failed' if failed else ''}>"

    def _repr_html_(self) -> str:
        rows = [(row.name, *(row.values.get(name, row.error or "") for name in self.columns)) for row in self.rows]
        return render_table(rows, ("name", *self.columns))


# Frames of pandas or polars, which are imported when one is asked for


def build_frame(columns: Columns, kind: str) -> Any:
    """Return a pandas.DataFrame or a polars.DataFrame."""
    if kind not in KINDS:
        raise ShoalError(f"there are no {kind!r} frames, only {one_of(KINDS)}{hint(kind, KINDS)}")
    try:
        library = import_module(kind)
    except ImportError as error:
        raise ShoalError(f"frames of this kind need {kind}: install it with `pip install {kind}`") from error
    if kind == "polars":
        return library.DataFrame(columns, strict=False, infer_schema_length=None)
    return library.DataFrame(columns)


def build_action_columns(actions: Iterable[tuple[str, Event]]) -> Columns:
    """Return a row for each action, with a column for each argument; a missing argument is None."""
    rows = list(actions)
    names = dict.fromkeys(name for _, event in rows for name in event.action_args)
    columns = {
        name: [world if name == "world" else getattr(event, name) for world, event in rows] for name in ACTION_COLUMNS
    }
    for name in names:
        column = f"args.{name}" if name in columns else name
        columns[column] = _unify([event.action_args.get(name) for _, event in rows])
    return columns


def build_row_columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Columns:
    """Turn the rows of a database into columns."""
    return {name: _unify([row[place] for row in rows]) for place, name in enumerate(names)}


def _unify(values: list[Any]) -> list[Any]:
    """Give a column one type: mixed and nested values become text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or kinds in ({str}, {bool}):
        return values

    def text(value: Any) -> str | None:
        if value is None or isinstance(value, str):
            return value
        return value.hex() if isinstance(value, bytes) else msgspec.json.encode(value).decode()

    return [text(value) for value in values]


# Transcripts


class Transcript(str):
    """A text that keeps its lines in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return render_text(self)


def render_lines(lines: Iterable[Event | Notice], names: Mapping[int, str], person: str | None = None) -> Iterator[str]:
    """Render the lines of a stream, with a heading for each round; for one person only its actions and notices."""
    round = -1
    for line in lines:
        if isinstance(line, Event):
            text, concerns = _render_event(line), person in (None, line.agent_name)
        else:
            to = [names.get(agent, str(agent)) for agent in line.to[:_MAX_NAMES]]
            more = f" and {len(line.to) - _MAX_NAMES} more" if len(line.to) > _MAX_NAMES else ""
            text = f"[{line.event_type}{' to ' if to else ''}{', '.join(to)}{more}] {line.content}"
            concerns = person is None or not line.to or person in (names.get(agent) for agent in line.to)
        if text is None or not concerns:
            continue
        if line.round != round:
            round = line.round
            yield f"-- round {round}, {line.timestamp[:16].replace('T', ' ')}"
        yield hide_controls(text)


def _render_event(event: Event) -> str | None:
    if event.action_type in _SILENT:
        return None if event.success else f"{event.agent_name} did nothing ({event.result})"
    refused = "" if event.success else f" [refused: {event.result}]"
    args = event.action_args
    if event.action_type in _SPOKEN:
        target = f" to {args['target']}" if isinstance(args.get("target"), str) else ""
        return f"{event.agent_name}{target}{_SPOKEN[event.action_type]}: {args.get('content', '')}{refused}"
    content = args.get("content") or args.get("quote_content")
    what = event.action_type.lower().replace("_", " ")
    rest = f": {content}" if content else "".join(f" {name}={value}" for name, value in args.items())
    return f"{event.agent_name} ({what}){rest}{refused}"
