"""What a preparation makes before it is written down as a scenario: people, groups, claims, posts and settings."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from shoal.preparation.reading.findings import DraftClaim, Kind

Lean = Literal["supports", "denies", "none"]


class DraftPerson(msgspec.Struct, omit_defaults=True):
    """One person, organisation or group with an account: the fields of a person of a scenario."""

    name: str
    persona: str
    bio: str
    kind: Kind = "person"
    age: int | None = None
    gender: str | None = None
    country: str | None = None
    profession: str | None = None
    interests: list[str] | None = None
    stance: float | None = None
    activity: float = 0.5
    active_hours: str | None = None
    influence: float = 1.0
    sentiment: float = 0.0
    follows: list[str] = msgspec.field(default_factory=list)

    def to_record(self) -> dict[str, Any]:
        """Return the fields that a file of people has; what is not known is left out."""
        values = msgspec.structs.asdict(self)
        del values["kind"]
        return {name: value for name, value in values.items() if value is not None and value != []}


class DraftGroup(msgspec.Struct):
    """A group that people are sampled from, with its share of all of them."""

    group: str
    share: float
    stance: tuple[float, float] | None = None
    age: tuple[float, float] | None = None
    professions: list[str] = msgspec.field(default_factory=list)
    interests: list[str] = msgspec.field(default_factory=list)


class DraftPost(msgspec.Struct):
    """An initial post; without an author, the most followed person writes it."""

    text: str
    author: str | None = None
    claim: str | None = None
    lean: Lean = "none"


class Draft(msgspec.Struct):
    """A whole scenario as it is drafted."""

    topic: str
    people: list[DraftPerson] = msgspec.field(default_factory=list)
    groups: list[DraftGroup] = msgspec.field(default_factory=list)
    claims: list[DraftClaim] = msgspec.field(default_factory=list)
    posts: list[DraftPost] = msgspec.field(default_factory=list)
    #: What all people know, for agents with a language model.
    context: str = ""
    rounds: int = 24
    minutes_per_round: int = 60
    notes: list[str] = msgspec.field(default_factory=list)
