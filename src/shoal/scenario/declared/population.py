"""Who takes part: people written by hand, groups that people are sampled from, and files of people."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from shoal.errors import ScenarioInvalid
from shoal.scenario.declared.distributions import (
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
from shoal.scenario.fields import DeclaredModel, Hours, Number, Text, Whole
from shoal.scenario.importers.columns import ColumnRequest
from shoal.scenario.importers.people_file import PeopleFormat, PeopleTable, Source, make_unique, read_people
from shoal.scenario.validation.problems import Problem, expected, refuse, show, wrong, wrong_key
from shoal.text import hint

#: Words that stand for somebody in events, so nobody can be called that.
RANDOM, MOST_FOLLOWED = "random", "most_followed"
MAX_PEOPLE = 10_000_000

Name = Annotated[Text, Field(max_length=100)]


def _usable(value: str) -> str:
    if value in (RANDOM, MOST_FOLLOWED):
        raise wrong(f"{value!r} cannot be a name: in events it stands for somebody else")
    if value != value.strip() or not value.isprintable():
        raise wrong(f"expected a name without line breaks or spaces around it, found {value!r}")
    return value


OwnName = Annotated[Name, AfterValidator(_usable)]


Rate = Annotated[Number, Field(ge=0, le=1_000)]
_Minutes = Annotated[Whole, Field(ge=0, le=100_000)]


def _short_first(value: tuple[int, int]) -> tuple[int, int]:
    if value[0] > value[1]:
        raise wrong(f"expected the least first, found {list(value)}")
    return value


Delay = Annotated[tuple[_Minutes, _Minutes], AfterValidator(_short_first)]


class PersonEntry(DeclaredModel):
    """One person, written by hand."""

    name: OwnName = Field(description="The person's name; nobody else may have it.")
    username: OwnName | None = Field(default=None, description="Name of the account; default: made from the name.")
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
    influence: Annotated[Number, Field(ge=0, le=100)] = Field(
        default=1.0, description="How much the person's words count: in feeds, and with those who read them."
    )
    sentiment: Annotated[Number, Field(ge=-1, le=1)] = Field(
        default=0.0, description="Colours what the person writes, -1 (gloomy) to 1 (bright)."
    )
    posts_per_hour: Rate | None = Field(
        default=None, description="Posts written per simulated hour of acting; default: as the mind has it."
    )
    comments_per_hour: Rate | None = Field(default=None, description="The same for comments.")
    response_delay: Delay | None = Field(
        default=None, description="Least and most minutes until the person comes across a post."
    )
    follows: tuple[Name, ...] = Field(default=(), description="Names of people this person follows.")
    traits: dict[str, Any] = Field(default_factory=dict, description="Anything else worth knowing about the person.")

    @field_validator("interests")
    @classmethod
    def _distinct(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if value is None else tuple(dict.fromkeys(value))


class GroupEntry(DeclaredModel):
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


class FileColumn(DeclaredModel):
    """A column of a file, and how to read it."""

    column: Text = Field(description="What the column is called in the file.")
    separator: Text | None = Field(
        default=None,
        description="What stands between the items of a list; default: a semicolon, bar or comma, told from the cell.",
    )


def _column(value: object) -> object:
    return {"column": value} if isinstance(value, str) else value


def located(path: str, info: ValidationInfo) -> str:
    """A path from the folder of the scenario, or else from the current one, in full."""
    folder = (info.context or {}).get("folder") or Path()
    return os.path.abspath(folder / Path(path).expanduser())  # noqa: PTH100  # symlinks stay as they are


ColumnChoice = Annotated[FileColumn, BeforeValidator(_column)]


class FileEntry(DeclaredModel):
    """Many people, each a record of a file."""

    file: Text = Field(description="CSV, TSV, JSONL, JSON or Parquet, or a folder of *.agent.json.")
    format: PeopleFormat | None = Field(
        default=None, description="What the file is; default: told from name and content."
    )
    columns: dict[str, ColumnChoice | None] = Field(
        default_factory=dict,
        description="Field of a person -> column, or null for none; other columns are taken by their names.",
    )
    fragments: tuple[Text, ...] = Field(
        default=(), description="TinyTroupe: files that are merged into each specification."
    )
    limit: Annotated[Whole, Field(ge=1)] | None = Field(default=None, description="Take only so many of the first.")
    group: Text | None = Field(default=None, description="What to call these people.")

    _roster: PeopleTable | None = PrivateAttr(default=None)

    @field_validator("file")
    @classmethod
    def _located(cls, value: str, info: ValidationInfo) -> str:
        return located(value, info)

    @field_validator("fragments")
    @classmethod
    def _all_located(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return tuple(located(path, info) for path in value)

    @model_validator(mode="after")
    def _read(self) -> FileEntry:
        """What the file holds now is what counts, also if it changes later."""
        try:
            self._roster = read_people(self.source, PersonEntry)
        except ScenarioInvalid as error:
            raise refuse(*(Problem(("file",), text) for text in error.problems)) from error
        return self

    @property
    def source(self) -> Source:
        wanted = tuple(
            ColumnRequest(field, choice.column, choice.separator) if choice is not None else ColumnRequest(field, None)
            for field, choice in self.columns.items()
        )
        return Source(Path(self.file), self.format, wanted, tuple(map(Path, self.fragments)), self.limit)

    @property
    def roster(self) -> PeopleTable:
        assert self._roster is not None
        return self._roster


PopulationEntries = tuple[PersonEntry | GroupEntry | FileEntry, ...]
_KINDS: Mapping[str, str] = {"name": "<person>", "count": "<group>", "file": "<file>"}


def _which(value: object) -> str | None:
    if isinstance(value, (PersonEntry, GroupEntry, FileEntry)):
        return f"<{type(value).__name__.removesuffix('Entry').lower()}>"
    if not isinstance(value, Mapping):
        return None
    return next((tag for key, tag in _KINDS.items() if key in value), "<group>")


_ENTRY = "a person (`name`), a group (`count`) or a `file` of people"


def _require_entry(value: object) -> object:
    if _which(value) is None:
        raise wrong(expected(_ENTRY, value))
    if isinstance(value, Mapping):
        _require_kind(value)
    return value


def _require_kind(value: Mapping[str, Any]) -> None:
    kinds = [key for key in _KINDS if key in value]
    if kinds == ["name", "count"]:
        raise wrong("an entry is a person (`name`) or a group (`count`), not both; label a group with `group`")
    if len(kinds) > 1:
        raise wrong(f"an entry is {_ENTRY}, not several of them; to name a person's column, write `columns`")
    if kinds:
        return
    fields = {*GroupEntry.model_fields, *PersonEntry.model_fields, *FileEntry.model_fields}
    for key in value:
        guess = hint(key, _KINDS)
        if guess and key not in fields:
            raise wrong_key(f"unknown field {key!r}{guess}", key)
    raise wrong(f"expected {_ENTRY}, found none of them" if value else expected(_ENTRY, value))


Entry = Annotated[
    Annotated[PersonEntry, Tag("<person>")]
    | Annotated[GroupEntry, Tag("<group>")]
    | Annotated[FileEntry, Tag("<file>")],
    Discriminator(_which),
    BeforeValidator(_require_entry),
]


def _entries(value: object) -> object:
    """One group or file alone may stand without a list around it."""
    if isinstance(value, (Mapping, PersonEntry, GroupEntry, FileEntry)):
        return (value,)
    if isinstance(value, (list, tuple)) and value:
        return value
    raise wrong(f"expected a group such as {{count: 200}}, or a list of groups and people, found {show(value)}")


Entries = Annotated[tuple[Entry, ...], BeforeValidator(_entries)]


def placed(entries: PopulationEntries) -> Iterator[tuple[int, PersonEntry | GroupEntry | FileEntry]]:
    """The entries with the number of the first person of each."""
    start = 0
    for entry in entries:
        yield start, entry
        start += headcount(entry)


def headcount(entry: PersonEntry | GroupEntry | FileEntry) -> int:
    if isinstance(entry, PersonEntry):
        return 1
    return entry.count if isinstance(entry, GroupEntry) else entry.roster.count


def size(entries: PopulationEntries) -> int:
    """How many people there are."""
    return sum(map(headcount, entries))


def listed(entries: PopulationEntries) -> dict[str, int]:
    """Everybody who has a name that was not drawn, with their numbers."""
    return {name: number for number, name in reversed(own(entries, "name").items())}


def own(entries: PopulationEntries, field: Literal["name", "username"]) -> dict[int, str]:
    """The names that people have of their own, by number. Those in files give way to those written by hand."""
    found = {start: entry for start, entry in placed(entries) if isinstance(entry, PersonEntry)}
    names = {start: name for start, person in found.items() if (name := getattr(person, field)) is not None}
    for start, entry in placed(entries):
        if isinstance(entry, FileEntry):
            values, _ = make_unique(entry.roster.column(field), field, names.values())
            names |= {start + row: value for row, value in enumerate(values) if value is not None}
    return names
