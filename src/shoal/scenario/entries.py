"""Who takes part: people written by hand, and groups that people are sampled from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator

from shoal.scenario.distributions import (
    MAX_INTERESTS,
    Activity,
    Age,
    Beta,
    GenderWeights,
    InterestChoice,
    Normal,
    Stance,
    Trait,
    Weights,
    stance_number,
)
from shoal.scenario.fields import Hours, Model, Number, Text, Whole
from shoal.scenario.problems import expected, hint, show, wrong, wrong_key

#: Words that stand for somebody in events, so nobody can be called that.
RANDOM, MOST_FOLLOWED = "random", "most_followed"
MAX_PEOPLE = 10_000_000

Name = Annotated[Text, Field(max_length=100)]


class Person(Model):
    """One person, written by hand."""

    name: Name = Field(description="The person's name; nobody else may have it.")
    username: Name | None = Field(default=None, description="Name of the account; default: made from the name.")
    bio: Text | None = Field(default=None, description="What the profile says; default: made from the rest.")
    persona: Text | None = Field(default=None, description="Who this is, in free text; default: made from the rest.")
    age: Annotated[Whole, Field(ge=0, le=120)] | None = Field(default=None, description="Age in years.")
    gender: Literal["female", "male", "other"] | None = Field(default=None, description="female, male or other.")
    country: Text | None = Field(default=None, description="Where the person lives.")
    profession: Text | None = Field(default=None, description="What the person does.")
    interests: Annotated[tuple[Text, ...], Field(max_length=MAX_INTERESTS)] | None = Field(
        default=None, description="What the person cares about; default: drawn as for a group."
    )
    stance: Annotated[Number, Field(ge=-1, le=1), BeforeValidator(stance_number)] = Field(
        default=0.0, description="Opinion on the topic, -1 to 1, or supportive, opposing, neutral, observer."
    )
    activity: Annotated[Number, Field(ge=0, le=1)] = Field(default=0.5, description="Chance to act in a round.")
    active_hours: Hours | None = Field(default=None, description="Waking hours, such as 8-22; default: drawn.")
    follows: tuple[Name, ...] = Field(default=(), description="Names of people this person follows.")
    traits: dict[str, Any] = Field(default_factory=dict, description="Anything else worth knowing about the person.")

    @field_validator("name", "username")
    @classmethod
    def _usable(cls, value: str | None) -> str | None:
        if value is None:
            return value
        if value in (RANDOM, MOST_FOLLOWED):
            raise wrong(f"{value!r} cannot be a name: in events it stands for somebody else")
        if value != value.strip() or not value.isprintable():
            raise wrong(f"expected a name without line breaks or spaces around it, found {value!r}")
        return value

    @field_validator("interests")
    @classmethod
    def _distinct(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if value is None else tuple(dict.fromkeys(value))


class Group(Model):
    """Many people, each drawn from the distributions given here."""

    count: Annotated[Whole, Field(ge=1, le=MAX_PEOPLE)] = Field(description="How many people.")
    group: Text | None = Field(default=None, description="What to call the group.")
    age: Age = Field(default=Normal(normal=(38, 15), min=16, max=85), description="Age in years.")
    gender: GenderWeights = Field(
        default={"female": 0.49, "male": 0.49, "other": 0.02}, description="female, male, other, with weights."
    )
    country: Weights | None = Field(default=None, description="Where people live; default: not said.")
    profession: Weights | None = Field(default=None, description="What people do; default: common jobs.")
    interests: InterestChoice | None = Field(default=None, description="What they care about; default: everyday.")
    stance: Stance | None = Field(
        default=None, description="Opinion on the topic, -1 to 1; default: two camps and a middle."
    )
    activity: Activity = Field(default=Beta(beta=(2, 3)), description="Chance to act in a round, 0 to 1.")
    active_hours: Hours | None = Field(default=None, description="Waking hours, such as 8-22; default: drawn.")
    traits: dict[str, Trait] = Field(default_factory=dict, description="Name -> distribution of anything else.")


def _which(value: object) -> str | None:
    if isinstance(value, Person) or (isinstance(value, Mapping) and "name" in value):
        return "<person>"
    return "<group>" if isinstance(value, (Group, Mapping)) else None


_ENTRY = "a person with a `name` or a group with a `count`"


def _require_entry(value: object) -> object:
    if _which(value) is None:
        raise wrong(expected(_ENTRY, value))
    if isinstance(value, Mapping):
        _require_kind(value)
    return value


def _require_kind(value: Mapping[str, Any]) -> None:
    if "name" in value and "count" in value:
        raise wrong("an entry is a person (`name`) or a group (`count`), not both; label a group with `group`")
    if "name" in value or "count" in value:
        return
    for key in value:
        guess = hint(key, ("name", "count"))
        if guess and key not in Group.model_fields and key not in Person.model_fields:
            raise wrong_key(f"unknown field {key!r}{guess}", key)
    raise wrong(f"expected {_ENTRY}, found neither" if value else expected(_ENTRY, value))


Entry = Annotated[
    Annotated[Person, Tag("<person>")] | Annotated[Group, Tag("<group>")],
    Discriminator(_which),
    BeforeValidator(_require_entry),
]


def _entries(value: object) -> object:
    """One group alone may stand without a list around it."""
    if isinstance(value, (Mapping, Person, Group)):
        return (value,)
    if isinstance(value, (list, tuple)) and value:
        return value
    raise wrong(f"expected a group such as {{count: 200}}, or a list of groups and people, found {show(value)}")


Entries = Annotated[tuple[Entry, ...], BeforeValidator(_entries)]


def size(entries: tuple[Person | Group, ...]) -> int:
    """How many people there are."""
    return sum(entry.count if isinstance(entry, Group) else 1 for entry in entries)


def listed(entries: tuple[Person | Group, ...]) -> dict[str, int]:
    """The people written by hand, with their numbers."""
    numbers: dict[str, int] = {}
    number = 0
    for entry in entries:
        if isinstance(entry, Person):
            numbers.setdefault(entry.name, number)
        number += entry.count if isinstance(entry, Group) else 1
    return numbers
