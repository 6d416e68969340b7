"""Answers questions from the graph: facts about the people and things a question names, and the episodes behind."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from shoal.sinks.graph.store import GraphStore, agent_term, person_term, space_scripts
from shoal.text import join_words

#: Parameters of one statement, at most.
_MAX_PARAMETERS = 500
#: Words of a text by which it is found.
_MAX_PHRASE_WORDS = 30
#: Words that carry no meaning in a question.
_STOP_WORDS = frozenset(
    "a about all an and any are as at be been being but by can did do does for from had has have he her him his how i "
    "in into is it its me my of on or our say says said she so tell than that the their them then there they think "
    "thinks thought this to us was we were what when where which who whom whose why will with you your anybody "
    "everybody somebody people person feel feels believe believes know knows now".split()
)
#: How many of the latest episodes that fit are compared.
_CANDIDATES = 400
_MAX_NAME_WORDS = 4
_MAX_NAMESAKES = 8
_MAX_FACTS = 12
#: The relations that are views, and the words that ask for each.
_VIEWS = {
    "SUPPORTS": "support supports supported favour favours favor favors for agree agrees like likes trust trusts",
    "DOUBTS": "doubt doubts doubted question questions undecided unsure",
    "OPPOSES": "oppose opposes opposed against deny denies denied disagree disagrees reject rejects refuse refuses",
}
#: Relations of people to what they made themselves.
_MADE = "('POSTED', 'MEMBER_OF')"
_VIEW_WORDS = {word: view for view, words in _VIEWS.items() for word in words.split()}


class FoundEpisode(msgspec.Struct, frozen=True):
    """An episode as evidence."""

    event: str
    world: str
    round: int
    time: str
    text: str


class FoundFact(msgspec.Struct, frozen=True):
    """A fact that answers a question, with the rounds in which it held and what shows it."""

    source: str
    relation: str
    target: str
    world: str
    since: int
    #: None while it holds.
    until: int | None
    times: int
    lean: float | None
    evidence: tuple[FoundEpisode, ...]
    #: The fact in words: `Ada Lund opposes “the bridge closes” since round 3, 4 times`.
    sentence: str


class GraphAnswer(msgspec.Struct, frozen=True):
    """What the graph knows about a question."""

    question: str
    #: The people and the words that were looked for.
    people: tuple[str, ...]
    words: tuple[str, ...]
    facts: tuple[FoundFact, ...]
    episodes: tuple[FoundEpisode, ...]
    #: For a question without a person: claim or topic -> view -> how many people have it.
    views: dict[str, dict[str, int]] = {}
    #: What the user should know about how the question was understood.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Person:
    entity: int
    number: int
    name: str


def answer_question(store: GraphStore, question: str, limit: int = 8) -> GraphAnswer:
    """Find what the graph knows about the people and things that a question names."""
    database = store.database
    people, rest, notes = _find_people(database, question)
    asked = [word for word in _list_words(rest) if word.casefold() not in _STOP_WORDS]
    words = tuple(dict.fromkeys(word for word in asked if word.casefold() not in _VIEW_WORDS))
    views = {_VIEW_WORDS[word.casefold()] for word in _list_words(rest) if word.casefold() in _VIEW_WORDS}
    things: list[int] = []
    stems = {_stem(word) for word in words}
    kinds = "('claim', 'topic', 'group', 'product')"
    for number, name in database.execute(f"SELECT id, name FROM entity WHERE kind IN {kinds}"):
        if stems & {_stem(word) for word in _list_words(name)}:
            things.append(number)
    facts = tuple(_find_facts(database, people, things, views or set(_VIEWS)))
    shown = {} if people else {fact.evidence[-1].event: fact.evidence[-1] for fact in facts[:limit]}
    episodes = list(shown.values()) or _find_episodes(database, people, words, limit)
    if people and words and not episodes:
        notes.append(f"nothing about {join_words((each.name for each in people), 3)} has {join_words(words, 5)} in it")
        episodes = _find_episodes(database, people, (), limit)
    return GraphAnswer(
        question,
        people=tuple(each.name for each in people),
        words=words,
        facts=facts,
        episodes=tuple(episodes),
        views={} if people else _count_views(database, things),
        notes=tuple(notes),
    )


def _find_people(database: sqlite3.Connection, question: str) -> tuple[list[_Person], str, list[str]]:
    """Return the people that a question names, what is left of it, and notes on names that several people have."""
    words, people, left, notes = list(_list_words(question)), [], [], []
    at = 0
    while at < len(words):
        for length in range(min(_MAX_NAME_WORDS, len(words) - at), 0, -1):
            name = " ".join(words[at : at + length])
            found = _look_up_name(database, name) if name[0].isupper() or not name[0].isascii() or length > 1 else []
            if found:
                people += found
                if len(found) > 1:
                    notes.append(f"{name} could be {join_words((f'{one.name} ({one.number})' for one in found), 5)}")
                at += length
                break
        else:
            left.append(words[at])
            at += 1
    return list(dict.fromkeys(people)), " ".join(left), notes


def _look_up_name(database: sqlite3.Connection, name: str) -> list[_Person]:
    """Return the people of this name, or else those whose first name it is."""
    if name.casefold() in _STOP_WORDS:
        return []
    columns = "SELECT id, CAST(key AS INTEGER), name FROM entity WHERE kind = 'person' AND name"
    rows = database.execute(f"{columns} = ? COLLATE NOCASE ORDER BY 2 LIMIT ?", (name, _MAX_NAMESAKES)).fetchall()
    if not rows and " " not in name:
        bounds = (f"{name} ", f"{name}!", _MAX_NAMESAKES)
        rows = database.execute(
            f"{columns} >= ? COLLATE NOCASE AND name < ? COLLATE NOCASE ORDER BY 2 LIMIT ?", bounds
        ).fetchall()
    return [_Person(*row) for row in rows]


def _find_facts(
    database: sqlite3.Connection, people: Sequence[_Person], things: Sequence[int], views: Collection[str]
) -> Iterator[FoundFact]:
    """Yield what the people make of what is asked, what is between them, or who has these views of it."""
    entities = _list([person.entity for person in people])
    those = f"relation IN ({', '.join(repr(view) for view in sorted(views))})"
    if people and things:
        yield from _read_facts(database, f"source IN {entities} AND target IN {_list(things)}")
    elif len(people) > 1:
        theirs = f"SELECT id FROM entity WHERE owner IN {_list([person.number for person in people])}"
        ends = f"(target IN {entities} OR target IN ({theirs}))"
        yield from _read_facts(database, f"source IN {entities} AND {ends} AND relation NOT IN {_MADE}")
    elif people:
        yield from _read_facts(database, f"source IN {entities} AND {those}")
    else:
        # One view of one thing at a time, each in the order of its index.
        parts = [f"target = {thing} AND relation = '{view}' AND until IS NULL" for thing in things for view in views]
        found = [fact for part in parts for fact in _read_facts(database, part)]
        yield from sorted(found, key=lambda fact: fact.evidence[-1].round, reverse=True)[:_MAX_FACTS]


def _count_views(database: sqlite3.Connection, things: Sequence[int]) -> dict[str, dict[str, int]]:
    """Count the people who have each view of the claims and topics now."""
    query = (
        "SELECT entity.name, relation, count(DISTINCT source) FROM fact JOIN entity ON entity.id = fact.target"
        f" WHERE target IN {_list(things)} AND relation IN {tuple(_VIEWS)} AND until IS NULL GROUP BY 1, 2"
    )
    counts: dict[str, dict[str, int]] = {}
    for name, view, count in database.execute(query):
        counts.setdefault(name, {})[view] = count
    return counts


def _read_facts(database: sqlite3.Connection, condition: str) -> Iterator[FoundFact]:
    """Yield the facts of a condition: those that hold first, then the latest."""
    order = "latest DESC" if "until IS NULL" in condition else "until IS NOT NULL, latest DESC"
    query = (
        "SELECT s.name, f.relation, t.name, f.world, f.since, f.until, f.times, f.lean, f.episode, f.latest FROM"
        f" (SELECT * FROM fact WHERE {condition} ORDER BY {order} LIMIT {_MAX_FACTS}) AS f"
        " JOIN entity AS s ON s.id = f.source JOIN entity AS t ON t.id = f.target"
        " ORDER BY f.until IS NOT NULL, f.latest DESC"
    )
    for source, relation, target, world, since, until, times, lean, first, latest in database.execute(query).fetchall():
        held = f"since round {since}" if until is None else f"in rounds {since} to {until}"
        when = f"in round {since}" if until == since else held
        often = f", {times} times" if times > 1 else ""
        sentence = f"{source} {relation.lower().replace('_', ' ')} “{target}” {when}{often}"
        evidence = tuple(_read_episodes(database, sorted({first, latest})))
        yield FoundFact(source, relation, target, world, since, until, times, lean, evidence, sentence)


def _find_episodes(
    database: sqlite3.Connection, people: Sequence[_Person], words: Sequence[str], limit: int
) -> list[FoundEpisode]:
    """Return the episodes that fit best: what the people did before what was done to them, the latest first.

    Those with all words go before those with some.
    """
    phrases = [f'"{space_scripts(word)}"' for word in words]
    joiners = (" AND ", " OR ") if len(phrases) > 1 else (" AND ",)
    found: dict[int, None] = {}
    for joiner in joiners:
        for about in _list_scopes([person.number for person in people]):
            query = " AND ".join(
                part for part in (about, f"text : ({joiner.join(phrases)})" if phrases else "") if part
            )
            if query and len(found) < limit:
                found |= dict.fromkeys(_match(database, query, limit, is_ranked=joiner == " OR "))
    return list(_read_episodes(database, list(found)[:limit]))


def _list_scopes(people: Sequence[int]) -> list[str]:
    """Return the searches for the people, the narrowest first: all of them together, their own acts, any of them."""
    if not people:
        return [""]
    everyone = " AND ".join(f"people : {person_term(person)}" for person in people)
    acts = " OR ".join(f"people : {agent_term(person)}" for person in people)
    anyone = " OR ".join(f"people : {person_term(person)}" for person in people)
    return [*([everyone] if len(people) > 1 else []), f"({acts})", f"({anyone})"]


def _match(database: sqlite3.Connection, query: str, limit: int, *, is_ranked: bool) -> list[int]:
    """Return the latest episodes that match, or of the latest candidates those that match best."""
    latest = "SELECT rowid FROM episode_text WHERE episode_text MATCH ? ORDER BY rowid DESC LIMIT ?"
    rows = [row[0] for row in database.execute(latest, (query, _CANDIDATES if is_ranked else limit))]
    if not is_ranked or len(rows) <= 1:
        return rows
    best = "SELECT rowid FROM episode_text WHERE episode_text MATCH ? AND rowid >= ? ORDER BY rank, rowid DESC LIMIT ?"
    return [row[0] for row in database.execute(best, (query, min(rows), limit))]


def _read_episodes(database: sqlite3.Connection, numbers: Sequence[int]) -> Iterator[FoundEpisode]:
    columns = "SELECT event, world, round, time, text FROM episode WHERE id = ?"
    for number in numbers:
        yield FoundEpisode(*database.execute(columns, (number,)).fetchone())


def _list_words(text: str) -> Iterator[str]:
    return (match[0] for match in re.finditer(r"[^\W_]+(?:['’-][^\W_]+)*", text))


def _stem(word: str) -> str:
    """Return the beginning that `close`, `closed` and `closing` have in common."""
    folded = word.casefold()
    return folded if len(folded) < 5 else re.sub(r"(ing|ed|es|s|e)$", "", folded)


def _list(numbers: Sequence[int]) -> str:
    return f"({', '.join(map(str, numbers))})"


def read_events(store: GraphStore, events: Sequence[str]) -> list[FoundEpisode]:
    """Return the episodes of some actions, in the order in which they happened."""
    found: list[FoundEpisode] = []
    for start in range(0, len(events), _MAX_PARAMETERS):
        part = events[start : start + _MAX_PARAMETERS]
        marks = ", ".join("?" * len(part))
        query = f"SELECT event, world, round, time, text FROM episode WHERE event IN ({marks}) ORDER BY id"
        found += [FoundEpisode(*row) for row in store.database.execute(query, part)]
    return found


def find_announcements(store: GraphStore, world: str, first: int, last: int) -> list[FoundEpisode]:
    """Return the announcements in some rounds of a world."""
    query = "SELECT id FROM episode WHERE agent IS NULL AND world = ? AND round BETWEEN ? AND ? ORDER BY id"
    numbers = [number for (number,) in store.database.execute(query, (world, first, last))]
    return list(_read_episodes(store.database, numbers))


def find_reacted_posts(store: GraphStore, world: str, first: int, last: int, limit: int) -> list[FoundEpisode]:
    """Return the posts that most reactions were to in some rounds of a world."""
    query = (
        "SELECT posted.episode FROM fact AS reaction"
        " JOIN entity ON entity.id = reaction.target AND entity.kind = 'post'"
        " JOIN fact AS posted ON posted.target = entity.id AND posted.relation = 'POSTED'"
        " WHERE reaction.world = ? AND reaction.since BETWEEN ? AND ? AND reaction.relation != 'POSTED'"
        " GROUP BY entity.id ORDER BY count(*) DESC, entity.id LIMIT ?"
    )
    rows = store.database.execute(query, (world, first, last, limit)).fetchall()
    return list(_read_episodes(store.database, [number for (number,) in rows]))


def find_text(store: GraphStore, agent: int, text: str) -> FoundEpisode | None:
    """Return the first episode in which an agent wrote a text."""
    words = list(_list_words(text))[:_MAX_PHRASE_WORDS]
    if not words:
        return None
    phrase = space_scripts(" ".join(words))
    query = f'people : {agent_term(agent)} AND text : "{phrase}"'
    found = "SELECT min(rowid) FROM episode_text WHERE episode_text MATCH ?"
    (number,) = store.database.execute(found, (query,)).fetchone()
    return None if number is None else next(_read_episodes(store.database, [number]))
