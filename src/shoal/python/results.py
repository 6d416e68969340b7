"""What came out of a run, read from its directory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from shoal.engine.metrics import Metrics
from shoal.errors import QueryFailed
from shoal.python import display
from shoal.python.frames import build_action_columns, build_frame, build_row_columns
from shoal.runs.directory import RunDirectory
from shoal.runs.reports.summary import Summary, query_database, summarize
from shoal.runs.state import RunState, Status
from shoal.runs.worker import outcome_of
from shoal.text import hint, one_of
from shoal.types import Event, Notice


class Figures(Mapping[str, Any]):
    """Measured, never estimated: `metrics.speedup` and `metrics["speedup"]` are the same. None: nothing to measure."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    @classmethod
    def of(cls, state: RunState | None) -> Figures:
        """Errors and timeouts are counted whether or not steps are timed."""
        if state is None:
            return cls(Metrics().shown())
        return cls({**state.metrics.shown(), "errors": state.errors, "timeouts": state.timeouts})

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"there is no figure {name!r}{hint(name, self.__dict__.get('_values', ()))}")
        return self._values[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        width = max(map(len, self._values))
        return "\n".join(f"{name.ljust(width)}  {_shown(value)}" for name, value in self._values.items())

    def _repr_html_(self) -> str:
        return display.table((name.replace("_", " "), _shown(value)) for name, value in self._values.items())


def _shown(value: object) -> str:
    if value is None:
        return "not measured"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(below)}" for name, below in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)


#: What is not worth a line.
_NOTHING = ("DO_NOTHING", "DONE", "REFRESH")
_SAID = {"TALK": "", "SAY": "", "THINK": " (thinking)"}
#: A message to more people than this says how many.
_NAMED = 3


class Transcript(str):
    """A text that looks like one in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return display.preformatted(self)


class Teller:
    """Tells the lines of a stream; of one person only what it did and what it was told, where that is asked for."""

    def __init__(self, names: Mapping[int, str], person: str | None = None) -> None:
        self._names = names
        self._person = person

    def told(self, lines: Iterable[Event | Notice]) -> Iterator[str]:
        """The lines to be read, with the round where a new one begins."""
        round = -1
        for line in lines:
            text = self._of_notice(line) if isinstance(line, Notice) else _of_event(line)
            if text is None or not self._concerns(line):
                continue
            if line.round != round:
                round = line.round
                yield f"-- round {round}, {line.timestamp[:16].replace('T', ' ')}"
            yield text

    def _concerns(self, line: Event | Notice) -> bool:
        if self._person is None:
            return True
        if isinstance(line, Event):
            return line.agent_name == self._person
        return not line.to or self._person in (self._names.get(agent) for agent in line.to)

    def _of_notice(self, notice: Notice) -> str:
        to = [self._names.get(agent, str(agent)) for agent in notice.to[:_NAMED]]
        more = f" and {len(notice.to) - _NAMED} more" if len(notice.to) > _NAMED else ""
        return f"[{notice.event_type}{' to ' if to else ''}{', '.join(to)}{more}] {notice.content}"


def _of_event(event: Event) -> str | None:
    if event.action_type in _NOTHING:
        return None if event.success else f"{event.agent_name} did nothing ({event.result})"
    refused = "" if event.success else f" [refused: {event.result}]"
    args = event.action_args
    target = f" to {args['target']}" if isinstance(args.get("target"), str) else ""
    if event.action_type in _SAID:
        return f"{event.agent_name}{target}{_SAID[event.action_type]}: {args.get('content', '')}{refused}"
    content = args.get("content") or args.get("quote_content")
    what = event.action_type.lower().replace("_", " ")
    rest = f": {content}" if content else "".join(f" {name}={value}" for name, value in args.items())
    return f"{event.agent_name} ({what}){rest}{refused}"


ACTIONS = "actions"
#: How many lines and people a notebook shows.
_LAST_LINES = 12
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
_NAMES = "SELECT user_id, name FROM user"
_KINDS = "SELECT action, count(*) FROM trace WHERE action != 'sign_up' GROUP BY 1 ORDER BY 2 DESC, 1"
_ACTIVE = """SELECT name, count(*) AS actions FROM trace JOIN user USING (user_id)
WHERE action NOT IN ('sign_up', 'do_nothing', 'refresh', 'done')
GROUP BY user_id ORDER BY actions DESC, user_id LIMIT 5"""


class Results:
    """A run that can be looked at: while it goes on, and long after."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory

    @property
    def path(self) -> Path:
        """The run directory; `shoal show`, `shoal replay` and `shoal fork` work on it too."""
        return self._directory.path

    @property
    def status(self) -> Status:
        return self._directory.status()

    @property
    def digest(self) -> str:
        """Two runs with the same digest have the same history."""
        return outcome_of(self._directory).digest

    @property
    def rounds(self) -> int:
        """The last round that was committed."""
        return self._directory.state().current_round

    @property
    def worlds(self) -> tuple[str, ...]:
        return tuple(self._directory.worlds)

    @property
    def metrics(self) -> Figures:
        """Steps by mode, measured speedup, errors, timeouts and how long decisions took."""
        return Figures.of(self._directory.state())

    @property
    def actions(self) -> Iterator[Event]:
        """Everything that anybody did or tried to do, world by world, in the order in which it happened."""
        return (event for _, event in self._actions(None))

    def summary(self) -> Summary:
        """The figures that `shoal show` prints."""
        return summarize(self._directory)

    def transcript(self, person: object = None, *, world: str | None = None, last: int | None = None) -> Transcript:
        """What happened, to be read; of one person, and only the last lines, where that is asked for."""
        name = None if person is None else str(getattr(person, "name", person))
        told = (text for place in self._named(world) for text in self._told(place, name))
        return Transcript("\n".join(told if last is None else deque(told, last)))

    def _told(self, world: str, person: str | None) -> Iterator[str]:
        names = {int(str(agent)): str(name) for agent, name in query_database(self._directory, world, _NAMES)[1]}
        return Teller(names, person).told(self._lines(world))

    def tables(self, world: str | None = None) -> list[str]:
        """What `frame` can be asked for."""
        return [ACTIONS, *(str(name) for (name,) in query_database(self._directory, self._one(world), _TABLES)[1])]

    def frame(self, table: str = ACTIONS, *, world: str | None = None, kind: str = "pandas") -> Any:
        """A table as a pandas or polars frame: `actions`, of all worlds, or a table of one world's database."""
        if table == ACTIONS:
            return build_frame(build_action_columns(self._actions(world)), kind)
        if table not in (known := self.tables(world)):
            raise QueryFailed(f"there is no table {table!r}{hint(table, known) or '; there is ' + one_of(known)}")
        return self.query(f'SELECT * FROM "{table}"', world=world, kind=kind)

    def query(self, sql: str, *, world: str | None = None, kind: str = "pandas") -> Any:
        """What a world's database answers to a question in SQL, as a frame."""
        return build_frame(build_row_columns(*query_database(self._directory, self._one(world), sql)), kind)

    def to_pandas(self) -> Any:
        """All actions as a pandas frame."""
        return self.frame(kind="pandas")

    def to_polars(self) -> Any:
        """All actions as a polars frame."""
        return self.frame(kind="polars")

    def __repr__(self) -> str:
        state = self._directory.state()
        return f"<Results {self.path}: {self.status}, {state.current_round} rounds, {state.actions_count:,} actions>"

    def _repr_html_(self) -> str:
        state = self._directory.state()
        figures = f"{self.status}, {state.current_round} rounds, {state.actions_count:,} actions, digest {self.digest}"
        parts = [display.heading(self.path), display.paragraph(figures)]
        for world in self.worlds:
            parts += [
                display.table(query_database(self._directory, world, _KINDS)[1], (world, "times")),
                display.table(query_database(self._directory, world, _ACTIVE)[1], ("most active", "actions")),
                display.preformatted(self.transcript(world=world, last=_LAST_LINES)),
            ]
        return "".join(parts)

    def _one(self, world: str | None) -> str:
        if world is None and len(self.worlds) > 1:
            raise QueryFailed(f"this run has several worlds; say which with world=: {one_of(self.worlds)}")
        return self._named(world)[0]

    def _named(self, world: str | None) -> tuple[str, ...]:
        if world is None:
            return self.worlds
        if world not in self.worlds:
            near = hint(world, self.worlds) or f"; there is {one_of(self.worlds)}"
            raise QueryFailed(f"there is no world {world!r} in this run{near}")
        return (world,)

    def _actions(self, world: str | None) -> Iterator[tuple[str, Event]]:
        for name in self._named(world):
            yield from ((name, event) for event in self._directory.stream(name).read_actions())

    def _lines(self, world: str) -> Iterator[Event | Notice]:
        """Read the stream without its markers."""
        return (line for line in self._directory.stream(world).read() if isinstance(line, Event | Notice))


def open_run(path: str | Path) -> Results:
    """The results of a run that is there already."""
    return Results(RunDirectory.open(Path(path)))
