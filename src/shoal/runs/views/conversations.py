"""Conversations of two as pages show them: a list of all, and each turn by turn, after any round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from sqlite3 import Connection

from shoal.errors import ArgumentInvalid
from shoal.runs.directory import RunDirectory
from shoal.runs.reports import open_world
from shoal.runs.store import has_table
from shoal.runs.views.pages import ViewPage, check_world, make_placeholders, parse_cursor
from shoal.runs.views.talk import NO_AUTHOR, TalkTurn

_EVER = 1 << 60
_MAX_SHOWN_CHARS = 160
_LINES = "SELECT round, agent_id, content, slant FROM line WHERE pair_id = ? AND round <= ? ORDER BY line_id"
_SCENES = """SELECT started_round, setting, turned_round, turning_point FROM scene
WHERE pair_id = ? AND started_round <= ? ORDER BY scene"""
_SCORES = "SELECT round, agent_id, score, reason FROM score WHERE pair_id = ? AND round <= ? AND score IS NOT NULL"
_COUNTS = """SELECT pair_id, count(*), max(line_id) FROM line WHERE pair_id IN ({pairs}) AND round <= ? GROUP BY 1"""


@dataclass(frozen=True, slots=True)
class Speaker:
    """One of the two of a conversation."""

    agent_id: int
    name: str


@dataclass(frozen=True, slots=True)
class ConversationCard:
    """A conversation as a row of a list: both people, the number of lines, and the last one."""

    conversation: int
    people: list[Speaker]
    lines: int
    last_round: int | None
    last_text: str


def list_conversations(
    run: RunDirectory, world: str, until: int | None, agent: int | None, offset: int, limit: int
) -> ViewPage[ConversationCard]:
    """List the conversations of a world, or those of one person. A world without pairs has none."""
    check_world(run, world)
    with open_world(run, world) as database:
        if database is None or not has_table(database, "pair"):
            return ViewPage([], 0, None)
        who, values = ("", ()) if agent is None else (" WHERE ? IN (first_id, second_id)", (agent,))
        (total,) = database.execute(f"SELECT count(*) FROM pair{who}", values).fetchone()
        query = f"SELECT pair_id, first_id, second_id FROM pair{who} ORDER BY pair_id LIMIT ? OFFSET ?"
        pairs = database.execute(query, (*values, limit, offset)).fetchall()
        numbers = [pair for pair, *_ in pairs]
        names = _find_names(database, {agent for _, *both in pairs for agent in both})
        counted = database.execute(
            _COUNTS.format(pairs=make_placeholders(len(numbers))), (*numbers, _EVER if until is None else until)
        ).fetchall()
        lasts = [last for *_, last in counted]
        query = f"SELECT line_id, round, content FROM line WHERE line_id IN ({make_placeholders(len(lasts))})"
        said = {line: (round, content) for line, round, content in database.execute(query, lasts)}
        found = {pair: (count, *said[last]) for pair, count, last in counted}
        cards = []
        for pair, *both in pairs:
            lines, last_round, text = found.get(pair, (0, None, ""))
            people = [Speaker(agent, names[agent]) for agent in both]
            cards.append(ConversationCard(pair, people, lines, last_round, text[:_MAX_SHOWN_CHARS]))
    return ViewPage(cards, total, str(offset + limit) if offset + limit < total else None)


def read_conversation(
    run: RunDirectory, world: str, conversation: int, until: int | None, limit: int, before: str | None
) -> ViewPage[TalkTurn]:
    """Read a page of one conversation, the newest first: scenes with their lines and ratings."""
    check_world(run, world)
    with open_world(run, world) as database:
        both = None
        if database is not None and has_table(database, "pair"):
            query = "SELECT first_id, second_id FROM pair WHERE pair_id = ?"
            both = database.execute(query, (conversation,)).fetchone()
        if database is None or both is None:
            raise ArgumentInvalid("conversation", f"there is no conversation {conversation} in {world}")
        names = _find_names(database, set(both))
        turns = [*_read_turns(run, database, conversation, names, _EVER if until is None else until)]
    # Sorting keeps what is of one round in the order in which it happened.
    turns.sort(key=lambda turn: turn.round)
    end = len(turns) if (place := parse_cursor(before)) is None else min(place, len(turns))
    start = max(0, end - limit)
    return ViewPage(turns[start:end][::-1], len(turns), str(start) if start else None)


def _read_turns(
    run: RunDirectory, database: Connection, conversation: int, names: dict[int, str], until: int
) -> Iterator[TalkTurn]:
    about, clock = (conversation, until), run.clock
    for started, setting, turned, turning_point in database.execute(_SCENES, about):
        if setting:
            yield TalkTurn(started, NO_AUTHOR, "", "setting", setting, None, None, clock.stamp(started))
        if turning_point and turned is not None and turned <= until:
            yield TalkTurn(turned, NO_AUTHOR, "", "turning_point", turning_point, None, None, clock.stamp(turned))
    for round, agent, content, slant in database.execute(_LINES, about):
        partner = next((name for other, name in names.items() if other != agent), None)
        yield TalkTurn(round, agent, names[agent], "say", content, partner, slant, clock.stamp(round))
    for round, agent, score, reason in database.execute(_SCORES, about):
        text = f"{score} of 10. {reason or ''}".strip()
        yield TalkTurn(round, agent, names[agent], "rate", text, None, None, clock.stamp(round))


def _find_names(database: Connection, agents: set[int]) -> dict[int, str]:
    query = f"SELECT user_id, name FROM user WHERE user_id IN ({make_placeholders(len(agents))})"
    return dict(database.execute(query, list(agents)).fetchall())
