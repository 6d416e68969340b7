"""What an export holds: rows from a run's databases, its stream, its people and its metrics, as they are asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import msgspec

from shoal.formats.graphml import DirectedGraph, Edge
from shoal.formats.tables import ExportTable, Row
from shoal.runs.directory import METRICS, RunDirectory
from shoal.runs.stream import is_own
from shoal.scenario.sampling.people import People
from shoal.types import USUAL_HABITS, Event, Notice

Write = Callable[[ExportTable, Path], int]

#: Rows that are asked of a database at once.
_CHUNK = 10_000

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
_STREAM_END = "SELECT max(stream_bytes) FROM shoal_round"

#: The commonest arguments of actions, each a column; all of them are in `action_args` as well.
COMMON_ARGS = (
    "content", "quote_content", "post_id", "new_post_id", "quoted_id", "comment_id", "followee_id", "target",
    "to_agent_id", "query", "opinion", "score",
)  # fmt: skip
_ACTION = ("id", "round", "timestamp", "agent_id", "agent_name", "action_type", "success", "result", "own")

#: What somebody may do to somebody else -> the argument that says to whom, or to whose post or comment.
_TOWARDS = {
    "LIKE_POST": "post_id",
    "DISLIKE_POST": "post_id",
    "CREATE_COMMENT": "post_id",
    "REPOST": "post_id",
    "QUOTE_POST": "quoted_id",
    "REPORT_POST": "post_id",
    "LIKE_COMMENT": "comment_id",
    "DISLIKE_COMMENT": "comment_id",
    "SAY": "to_agent_id",
    "TALK": "target",
    "REACH_OUT": "target",
    "RELATE": "target",
}
_AUTHORS = {
    "post_id": "SELECT user_id FROM post WHERE post_id = ?",
    "quoted_id": "SELECT user_id FROM post WHERE post_id = ?",
    "comment_id": "SELECT user_id FROM comment WHERE comment_id = ?",
}

#: How lines of the stream begin that are not about what somebody did: notices, and markers of rounds.
_UNDONE = b'{"event_type"'

_event = msgspec.json.Decoder(Event).decode
_notice = msgspec.json.Decoder(Notice).decode
_encode = msgspec.json.Encoder().encode


# People


class ExportedPeople:
    """The people of a run as they were at the start."""

    def __init__(self, people: People) -> None:
        self._people = people

    def table(self) -> ExportTable:
        traits = list(dict.fromkeys(name for person in self.people() for name in person))
        rows = (tuple(_cell(person.get(name)) for name in traits) for person in self.people())
        return ExportTable("people", tuple(traits), rows)

    def people(self) -> Iterator[dict[str, Any]]:
        for agent in range(len(self._people)):
            who = self._people[agent]
            known = {"agent_id": agent, "name": who.name, "username": who.username, "bio": who.bio}
            known |= {"persona": who.persona, "interests": list(who.interests)}
            yield known | self._figures(agent) | _apart(who.traits, known)

    @cached_property
    def nodes(self) -> list[dict[str, Any]]:
        """What is known of people in few words."""
        prose = ("agent_id", "bio", "persona")
        return [{name: _cell(value) for name, value in person.items() if name not in prose} for person in self.people()]

    def number(self, name: object) -> int | None:
        """The first of those who are called so."""
        names: Sequence[str] = self._people.names
        return names.index(name) if isinstance(name, str) and name in names else None

    def _figures(self, agent: int) -> dict[str, Any]:
        people, hours = self._people, int(self._people.active_hours[agent])
        figures: dict[str, Any] = {
            "stance": round(float(people.stances[agent]), 3),
            "activity": round(float(people.activity[agent]), 3),
            "active_hours": [hour for hour in range(24) if hours >> hour & 1],
        }
        for habit in USUAL_HABITS:
            column = getattr(people.habits, habit)
            value = None if column is None else float(column[agent])
            if value is not None and value == value:
                figures[habit] = round(value, 3)
        return figures


def _apart(traits: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Traits under names of their own."""
    taken = {*known, "stance", "activity", "active_hours", *USUAL_HABITS}
    return {f"trait_{name}" if name in taken else name: value for name, value in traits.items()}


def _cell(value: Any) -> Any:
    """What does not fit into one cell becomes JSON."""
    return value if value is None or isinstance(value, str | int | float | bytes) else _encode(value).decode()


# What happened


def metrics(directory: RunDirectory) -> ExportTable:
    """What may differ between equal runs, line by line."""
    lines = [msgspec.json.decode(line) for line in _lines(directory.file(METRICS), None)]
    columns = tuple(dict.fromkeys(name for line in lines for name in line))
    return ExportTable("metrics", columns, [tuple(_cell(line.get(name)) for name in columns) for line in lines])


def tables(database: Connection, directory: RunDirectory, world: str) -> Iterator[ExportTable]:
    """Every table of a world, and its stream as two more: what was done, and what was made known."""
    names = [name for (name,) in database.execute(_TABLES)]
    for name in names:
        found = database.execute(f'SELECT * FROM "{name}"')
        columns = tuple(column for column, *_ in found.description)
        yield ExportTable(f"table_{name}" if name in ("actions", "notices") else name, columns, _fetched(found))
    yield ExportTable(
        "actions", (*_ACTION, *COMMON_ARGS, "action_args"), map(_action, events(database, directory, world))
    )
    stream = _stream(database, directory, world)
    notices = (_notice(line) for line in stream if line.startswith(_UNDONE) and b'"to":' in line)
    rows = ((note.round, note.timestamp, note.event_type, note.content, _cell(list(note.to))) for note in notices)
    yield ExportTable("notices", ("round", "timestamp", "event_type", "content", "to"), rows)


def _fetched(found: Any) -> Iterator[Row]:
    while rows := found.fetchmany(_CHUNK):
        yield from rows


def events(database: Connection, directory: RunDirectory, world: str) -> Iterator[Event]:
    """What everybody did, or was made to do, in order."""
    return (_event(line) for line in _stream(database, directory, world) if not line.startswith(_UNDONE))


def _action(event: Event) -> Row:
    args = event.action_args
    common = [_cell(args.get(name)) for name in COMMON_ARGS]
    head = [event.id, event.round, event.timestamp, event.agent_id, event.agent_name, event.action_type]
    return (*head, event.success, event.result, is_own(event), *common, _encode(args).decode())


def _stream(database: Connection, directory: RunDirectory, world: str) -> Iterator[bytes]:
    """The lines of the rounds that the database has: the stream may be ahead of it."""
    end = database.execute(_STREAM_END).fetchone()[0] or 0
    return _lines(directory.file(world) / "actions.jsonl", end)


def _lines(path: Path, end: int | None) -> Iterator[bytes]:
    if not path.exists():
        return
    read = 0
    with path.open("rb") as file:
        for line in file:
            read += len(line)
            if (end is not None and read > end) or not line.endswith(b"\n"):
                return
            yield line


# Who and whom


def graphs(
    database: Connection, directory: RunDirectory, world: str, roster: ExportedPeople
) -> Iterator[tuple[str, DirectedGraph]]:
    """Who follows whom at the end, where people follow one another; and who did something to whom, how often."""
    tables = {name for (name,) in database.execute(_TABLES)}
    nodes = roster.nodes
    if "follow" in tables:
        found = database.execute("SELECT follower_id, followee_id FROM follow ORDER BY 1, 2")
        yield "follows", DirectedGraph(nodes, (Edge(one, other, {}) for one, other in _fetched(found)), {})
    between = _between(events(database, directory, world), _Whom(database, roster, tables))
    kinds = sorted({kind for counts in between.values() for kind in counts})
    edges = (
        Edge(one, other, {"weight": counts.total(), **{kind: counts[kind] for kind in kinds}})
        for (one, other), counts in sorted(between.items())
    )
    yield "talk", DirectedGraph(nodes, edges, {"weight": int, **dict.fromkeys(kinds, int)})


class _Whom:
    """Finds out whom an action was directed at."""

    def __init__(self, database: Connection, roster: ExportedPeople, tables: Iterable[str]) -> None:
        self._database = database
        self._roster = roster
        self._social = {"post", "comment"} <= set(tables)
        self._names: dict[object, int | None] = {}

    def __call__(self, event: Event) -> int | None:
        argument = _TOWARDS.get(event.action_type, "")
        value = event.action_args.get(argument)
        if value is None or not event.success:
            return None
        if argument in _AUTHORS:
            found = self._database.execute(_AUTHORS[argument], (value,)).fetchone() if self._social else None
            return int(found[0]) if found else None
        return int(value) if argument == "to_agent_id" else self._called(value)

    def _called(self, name: object) -> int | None:
        if name not in self._names:
            self._names[name] = self._roster.number(name)
        return self._names[name]


def _between(done: Iterable[Event], whom: _Whom) -> dict[tuple[int, int], Counter[str]]:
    """(Who, whom) -> how often of each kind."""
    found: dict[tuple[int, int], Counter[str]] = {}
    for event in done:
        target = whom(event)
        if target is not None and target != event.agent_id:
            found.setdefault((event.agent_id, target), Counter())[event.action_type.lower()] += 1
    return found
