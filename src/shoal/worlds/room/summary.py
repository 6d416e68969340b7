"""Reads from the database of a room how people spoke to one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shoal.worlds.world_kind import Remark, SummaryContext

#: How many people, pairs and remarks are named.
_MAX_NAMED = 5

_TALKERS = """
SELECT user_id, name, count(*) AS remarks, avg(num_hearers) FROM utterance JOIN user USING (user_id)
GROUP BY user_id ORDER BY remarks DESC, user_id LIMIT ?
"""
_ADDRESSES = """
SELECT speaker.name, target.name, count(*) AS remarks FROM utterance
JOIN user AS speaker ON speaker.user_id = utterance.user_id JOIN user AS target ON target.user_id = target_id
GROUP BY utterance.user_id, target_id ORDER BY remarks DESC, utterance.user_id, target_id LIMIT ?
"""
#: Relations of round 0 were declared, not formed.
_COUNT_RELATIONS = "SELECT count(*) FROM relation WHERE created_at > 0"
_BONDS = """
SELECT one.name, other.name, relation, relation.created_at FROM relation
JOIN user AS one ON one.user_id = relation.user_id JOIN user AS other ON other.user_id = other_id
WHERE relation.created_at > 0 ORDER BY relation.rowid DESC LIMIT ?
"""
_ATTENTION = """
SELECT content, count(*) AS people FROM
    (SELECT user_id, max(rowid), json_extract(info, '$.content') AS content FROM trace WHERE action = 'attend'
     GROUP BY user_id)
GROUP BY content ORDER BY people DESC, content LIMIT ?
"""
_LAST_REMARKS = """
SELECT utterance.created_at, speaker.name, target.name, content FROM utterance
JOIN user AS speaker ON speaker.user_id = utterance.user_id LEFT JOIN user AS target ON target.user_id = target_id
ORDER BY utterance.rowid DESC LIMIT ?
"""


@dataclass(frozen=True, slots=True)
class Talker:
    """A person who spoke much."""

    agent: int
    name: str
    remarks: int
    #: How many people heard a remark, on average.
    hearers: float


@dataclass(frozen=True, slots=True)
class Address:
    """How often one person spoke to another."""

    speaker: str
    target: str
    remarks: int


@dataclass(frozen=True, slots=True)
class Bond:
    """A relation that two people formed."""

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
    #: The number of relations formed during the run, and the latest of them.
    relations: int
    bonds: tuple[Bond, ...]
    attention: tuple[Attention, ...]
    last: tuple[Remark, ...]


def summarise(context: SummaryContext) -> Mapping[str, RoomTalk]:
    """Read the field `room` of a world's summary."""
    ask = context.database.execute
    last = [Remark(*row) for row in ask(_LAST_REMARKS, (_MAX_NAMED,))]
    talk = RoomTalk(
        remarks=ask("SELECT count(*) FROM utterance").fetchone()[0],
        talkers=tuple(Talker(*row) for row in ask(_TALKERS, (_MAX_NAMED,))),
        addresses=tuple(Address(*row) for row in ask(_ADDRESSES, (_MAX_NAMED,))),
        relations=ask(_COUNT_RELATIONS).fetchone()[0],
        bonds=tuple(Bond(*row) for row in ask(_BONDS, (_MAX_NAMED,))),
        attention=tuple(Attention(*row) for row in ask(_ATTENTION, (_MAX_NAMED,))),
        last=tuple(reversed(last)),
    )
    return {"room": talk}
