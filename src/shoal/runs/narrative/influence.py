"""Measures influence: changes of opinion that go together with what a person reacted to in the same round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from shoal.runs.directory import RunDirectory
from shoal.runs.reports import open_database
from shoal.runs.store import database_path
from shoal.types import Event

#: Kinds of action with which people react to a post, and the argument that names it.
_REACTIONS = {
    "LIKE_POST": "post_id",
    "REPOST": "post_id",
    "QUOTE_POST": "quoted_id",
    "CREATE_COMMENT": "post_id",
}
#: Smaller changes in a round are noise.
_LEAST_CHANGE = 0.01
TOPIC = "topic"
_POSTS = "SELECT post_id, user_id, claim, lean FROM post WHERE lean IS NOT NULL"
_CHANGES = "SELECT about, round, agent_id, value FROM opinion_change ORDER BY round"
_TABLES = "SELECT count(*) FROM sqlite_master WHERE name IN ('post', 'opinion_change')"


@dataclass(slots=True)
class Influence:
    """What moved with one person's posts."""

    agent: int
    #: How far others moved towards what the posts say, in all.
    moved: float = 0.0
    #: Person -> how far they moved, and the action that shows it.
    people: dict[int, tuple[float, str]] = field(default_factory=dict)


def measure_influence(run: RunDirectory, world: str) -> list[Influence]:
    """Share each change of opinion among the authors of the posts that the person reacted to in its round.

    Only posts count that lie in the direction of the change. This shows what went together, not what caused what.
    """
    with open_database(database_path(run.path, world)) as database:
        if database is None or database.execute(_TABLES).fetchone()[0] < 2:
            return []
        posts = {number: (author, claim or TOPIC, lean) for number, author, claim, lean in database.execute(_POSTS)}
        changes: dict[tuple[int, int], list[tuple[str, float, float]]] = defaultdict(list)
        held: dict[tuple[str, int], float] = {}
        for about, round, agent, value in database.execute(_CHANGES):
            before = held.get((about, agent))
            held[about, agent] = value
            if before is not None and abs(value - before) >= _LEAST_CHANGE:
                changes[round, agent].append((about, before, value))
    found: dict[int, Influence] = {}
    for (round, agent), events in _read_reactions(run, world):
        for about, before, after in changes.get((round, agent), ()):
            _share_change(found, agent, after - before, list(_list_causes(events, posts, about, before, after)))
    return sorted(found.values(), key=lambda one: (-one.moved, one.agent))


def _read_reactions(run: RunDirectory, world: str) -> Iterator[tuple[tuple[int, int], list[Event]]]:
    """Yield what each person reacted to in each round."""
    turn: tuple[int, int] | None = None
    events: list[Event] = []
    for event in run.open_stream(world).read_actions():
        if not event.success or event.action_type not in _REACTIONS:
            continue
        if (event.round, event.agent_id) != turn:
            if turn is not None:
                yield turn, events
            turn, events = (event.round, event.agent_id), []
        events.append(event)
    if turn is not None:
        yield turn, events


def _list_causes(
    events: list[Event], posts: Mapping[int, tuple[int, str, float]], about: str, before: float, after: float
) -> Iterator[tuple[int, str]]:
    """Yield author and action of those reactions that the change may come from."""
    for event in events:
        author, subject, lean = posts.get(event.action_args.get(_REACTIONS[event.action_type], -1), (-1, "", 0.0))
        if subject == about and author != event.agent_id and (lean - before) * (after - before) > 0:
            yield author, event.id


def _share_change(found: dict[int, Influence], agent: int, change: float, causes: list[tuple[int, str]]) -> None:
    for author, event in causes:
        influence = found.setdefault(author, Influence(author))
        part = abs(change) / len(causes)
        influence.moved += part
        moved, first = influence.people.get(agent, (0.0, event))
        influence.people[agent] = (moved + part, first)
