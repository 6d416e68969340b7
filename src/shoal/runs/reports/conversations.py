"""What was said in rooms and in conversations of two, read from their databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from shoal.runs.reports import queries

#: How many people, pairs and remarks are named.
_NAMED = 5
#: The last lines of a conversation that are shown, and of how many conversations at each end.
_LINES = 3
_RATED = 2


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that somebody said."""

    round: int
    speaker: str
    #: To whom; None: to everybody who could hear it.
    target: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Talker:
    """Somebody who spoke much."""

    agent: int
    name: str
    remarks: int
    #: How many heard one of them, on average.
    hearers: float


@dataclass(frozen=True, slots=True)
class Address:
    """Somebody who often spoke to somebody in particular."""

    speaker: str
    target: str
    remarks: int


@dataclass(frozen=True, slots=True)
class Bond:
    """What two people have become to one another."""

    first: str
    second: str
    relation: str
    round: int


@dataclass(frozen=True, slots=True)
class Attention:
    """What people have turned to, and how many of them."""

    content: str
    people: int


@dataclass(frozen=True, slots=True)
class RoomTalk:
    """How people in a room spoke to one another."""

    remarks: int
    talkers: tuple[Talker, ...]
    addresses: tuple[Address, ...]
    #: Relations that were formed during the run, and the latest of them.
    relations: int
    bonds: tuple[Bond, ...]
    attention: tuple[Attention, ...]
    last: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class SceneEnding:
    """Why scenes ended, and how often."""

    reason: str
    scenes: int


@dataclass(frozen=True, slots=True)
class RatedPair:
    """One conversation, how the two found it, and how it ended."""

    pair_id: int
    first: str
    second: str
    score: float
    agreement: float | None
    last: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class Conversations:
    """How conversations of two went."""

    pairs: int
    finished: int
    scenes: int
    endings: tuple[SceneEnding, ...]
    mean_turns: float | None
    mean_score: float | None
    mean_agreement: float | None
    highest: tuple[RatedPair, ...] = ()
    lowest: tuple[RatedPair, ...] = ()


def room_talk(database: sqlite3.Connection) -> RoomTalk:
    last = [Remark(*row) for row in database.execute(queries.LAST_REMARKS, (_NAMED,))]
    return RoomTalk(
        remarks=database.execute(queries.REMARKS).fetchone()[0],
        talkers=tuple(Talker(*row) for row in database.execute(queries.TALKERS, (_NAMED,))),
        addresses=tuple(Address(*row) for row in database.execute(queries.ADDRESSES, (_NAMED,))),
        relations=database.execute(queries.RELATIONS).fetchone()[0],
        bonds=tuple(Bond(*row) for row in database.execute(queries.BONDS, (_NAMED,))),
        attention=tuple(Attention(*row) for row in database.execute(queries.ATTENTION, (_NAMED,))),
        last=tuple(reversed(last)),
    )


def conversations(database: sqlite3.Connection, scenes: int) -> Conversations:
    """Conversations of so many scenes each."""
    rated = database.execute(queries.RATED_PAIRS).fetchall()
    ends = min(_RATED, len(rated) // 2)
    turns, agreement = database.execute(queries.MEAN_SCENE).fetchone()
    return Conversations(
        pairs=database.execute(queries.PAIRS).fetchone()[0],
        finished=database.execute(queries.FINISHED, (scenes,)).fetchone()[0],
        scenes=scenes,
        endings=tuple(SceneEnding(*row) for row in database.execute(queries.ENDINGS)),
        mean_turns=turns,
        mean_score=database.execute(queries.MEAN_SCORE).fetchone()[0],
        mean_agreement=agreement,
        highest=tuple(_rated(database, row) for row in rated[:ends]),
        lowest=tuple(_rated(database, row) for row in rated[len(rated) - ends :]),
    )


def _rated(database: sqlite3.Connection, row: Sequence[object]) -> RatedPair:
    pair_id, first, second, score, agreement = row
    last = [Remark(*line) for line in database.execute(queries.LAST_LINES, (pair_id, _LINES))]
    return RatedPair(pair_id, first, second, score, agreement, tuple(reversed(last)))  # type: ignore[arg-type]
