"""Reads the tables and graphs of an export from a run's databases, its streams, its people and its metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from sqlite3 import Connection
from typing import Any

import msgspec

from shoal.formats import DirectedGraph, Edge, ExportTable
from shoal.runs.directory import METRICS, RunDirectory
from shoal.runs.reports.summary import read_whole_lines
from shoal.runs.stream import is_own
from shoal.scenario import People
from shoal.types import USUAL_HABITS, Event
from shoal.worlds import NameIndex

_TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
_LAST_ROUND = "SELECT coalesce(max(round), -1) FROM shoal_round"

#: The commonest arguments of actions, each a column; all of them are in `action_args` as well.
COMMON_ARGS = (
    "content", "quote_content", "post_id", "new_post_id", "quoted_id", "comment_id", "followee_id", "target",
    "to_agent_id", "query", "opinion", "score",
)  # fmt: skip
_EVENT = ("id", "round", "timestamp", "agent_id", "agent_name", "action_type", "success", "result")

#: Actions towards a person -> the argument that names the person, or their post or comment.
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

_encode = msgspec.json.Encoder().encode


class ExportedPeople:
    """The people of a run as they were at the start."""

    def __init__(self, people: People) -> None:
        self._people = people
        self.index = NameIndex(people.names)

    def table(self) -> ExportTable:
        columns = tuple(dict.fromkeys(name for person in self._describe() for name in person))
        rows = (tuple(_to_cell(person.get(name)) for name in columns) for person in self._describe())
        return ExportTable("people", columns, rows)

    @cached_property
    def nodes(self) -> list[dict[str, Any]]:
        """What is known of people, without long texts."""
        long = ("agent_id", "bio", "persona")
        return [
            {name: _to_cell(value) for name, value in person.items() if name not in long} for person in self._describe()
        ]

    def _describe(self) -> Iterator[dict[str, Any]]:
        people = self._people
        for agent in range(len(people)):
            who, hours = people[agent], int(people.active_hours[agent])
            known: dict[str, Any] = {
                "agent_id": agent,
                "name": who.name,
                "username": who.username,
                "bio": who.bio,
                "persona": who.persona,
                "interests": list(who.interests),
                "stance": round(float(people.stances[agent]), 3),
                "activity": round(float(people.activity[agent]), 3),
                "active_hours": [hour for hour in range(24) if hours >> hour & 1],
            }
            taken = {*known, *USUAL_HABITS}
            for habit in USUAL_HABITS:
                column = getattr(people.habits, habit)
                value = None if column is None else float(column[agent])
                # A value that is not a number says that the person has no such habit.
                if value is not None and value == value:
                    known[habit] = round(value, 3)
            traits = {f"trait_{name}" if name in taken else name: value for name, value in who.traits.items()}
            yield known | traits


def _to_cell(value: Any) -> Any:
    """Return a value that fits into one cell; anything else becomes JSON."""
    return value if value is None or isinstance(value, str | int | float | bytes) else _encode(value).decode()


def read_metrics(directory: RunDirectory) -> ExportTable:
    """Read the metrics, which may differ between equal runs."""
    lines = [msgspec.json.decode(line) for line in read_whole_lines(directory.file(METRICS))]
    columns = tuple(dict.fromkeys(name for line in lines for name in line))
    return ExportTable("metrics", columns, [tuple(_to_cell(line.get(name)) for name in columns) for line in lines])


def read_tables(database: Connection, directory: RunDirectory, world: str) -> Iterator[ExportTable]:
    """Read every table of a world, and its stream as two more: actions and notices."""
    for (name,) in database.execute(_TABLES).fetchall():
        found = database.execute(f'SELECT * FROM "{name}"')
        columns = tuple(column for column, *_ in found.description)
        yield ExportTable(f"table_{name}" if name in ("actions", "notices") else name, columns, found)
    # The stream of a running run may have more rounds than the database.
    stream, last = directory.open_stream(world), database.execute(_LAST_ROUND).fetchone()[0]
    actions = (
        (
            *(getattr(event, name) for name in _EVENT),
            is_own(event),
            *(_to_cell(event.action_args.get(name)) for name in COMMON_ARGS),
            _encode(event.action_args).decode(),
        )
        for event in stream.read_actions(last)
    )
    yield ExportTable("actions", (*_EVENT, "own", *COMMON_ARGS, "action_args"), actions)
    notices = stream.read_notices(last)
    rows = ((note.round, note.timestamp, note.event_type, note.content, _to_cell(list(note.to))) for note in notices)
    yield ExportTable("notices", ("round", "timestamp", "event_type", "content", "to"), rows)


def read_graphs(
    database: Connection, directory: RunDirectory, world: str, people: ExportedPeople
) -> Iterator[tuple[str, DirectedGraph]]:
    """Read the follow graph at the end, where the world has one, and the counts of actions between agents."""
    tables = {name for (name,) in database.execute(_TABLES)}
    if "follow" in tables:
        found = database.execute("SELECT follower_id, followee_id FROM follow ORDER BY 1, 2")
        yield "follows", DirectedGraph(people.nodes, (Edge(one, other, {}) for one, other in found), {})
    between: dict[tuple[int, int], Counter[str]] = {}
    for event in directory.open_stream(world).read_actions(database.execute(_LAST_ROUND).fetchone()[0]):
        target = _find_target(event, database if {"post", "comment"} <= tables else None, people)
        if target is not None and target != event.agent_id:
            between.setdefault((event.agent_id, target), Counter())[event.action_type.lower()] += 1
    kinds = sorted({kind for counts in between.values() for kind in counts})
    edges = (
        Edge(one, other, {"weight": counts.total(), **{kind: counts[kind] for kind in kinds}})
        for (one, other), counts in sorted(between.items())
    )
    yield "talk", DirectedGraph(people.nodes, edges, {"weight": int, **dict.fromkeys(kinds, int)})


def _find_target(event: Event, posts: Connection | None, people: ExportedPeople) -> int | None:
    """Find the agent that an action was directed at. `posts` is the database, if it has posts and comments."""
    argument = _TOWARDS.get(event.action_type, "")
    value = event.action_args.get(argument)
    if value is None or not event.success:
        return None
    if argument in _AUTHORS:
        found = None if posts is None else posts.execute(_AUTHORS[argument], (value,)).fetchone()
        return int(found[0]) if found else None
    if argument == "to_agent_id":
        return int(value)
    return people.index.find(value) if isinstance(value, str) else None
