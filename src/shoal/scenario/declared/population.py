"""The population as declared: people written by hand, groups that people are sampled from, and files of people."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

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
    parse_stance,
)
from shoal.scenario.fields import DeclaredModel, Hours, Number, Text, Whole, make_tag
from shoal.scenario.importers.columns import FileColumn
from shoal.scenario.importers.marginals import MarginalTable, read_marginals
from shoal.scenario.importers.people_file import PeopleFormat, PeopleTable, make_unique, read_people
from shoal.scenario.sampling.fitting import check_tables
from shoal.scenario.validation.problems import InvalidValue, Problem
from shoal.text import make_storable, nearest, printable

#: Words that stand for a person in events, which cannot be names.
RANDOM, MOST_FOLLOWED = "random", "most_followed"
MAX_PEOPLE = 10_000_000


def check_own_name(value: str) -> str:
    """Refuse names with another meaning in events, and names that one line cannot show."""
    if value in (RANDOM, MOST_FOLLOWED):
        raise InvalidValue(Problem((), f"{value!r} cannot be a name: in events it stands for somebody else"))
    if value != value.strip() or value != printable(value) or not value[0].isprintable():
        raise InvalidValue(Problem((), expected="a name without line breaks or spaces around it", found=repr(value)))
    return value


def check_delay(value: tuple[int, int]) -> tuple[int, int]:
    if value[0] > value[1]:
        raise InvalidValue(Problem((), expected="the least first", found=str(list(value))))
    return value


Name = Annotated[Text, Field(max_length=100)]
OwnName = Annotated[Name, AfterValidator(check_own_name)]
Rate = Annotated[Number, Field(ge=0, le=1_000)]
_Minutes = Annotated[Whole, Field(ge=0, le=100_000)]
Delay = Annotated[tuple[_Minutes, _Minutes], AfterValidator(check_delay)]


class PersonEntry(DeclaredModel):
    """One person, written by hand."""

    name: OwnName = Field(description="The person's name; it must be unique.")
    username: OwnName | None = Field(default=None, description="Name of the account; default: made from the name.")
    bio: Text | None = Field(default=None, description="What the profile says; default: made from the rest.")
    persona: Text | None = Field(default=None, description="Who this is, in free text; default: made from the rest.")
    age: Annotated[Whole, Field(ge=0, le=120)] | None = Field(default=None, description="Age in years.")
    gender: Literal["female", "male", "other"] | None = Field(default=None, description="female, male or other.")
    country: Text | None = Field(default=None, description="Where the person lives.")
    profession: Text | None = Field(default=None, description="What the person does.")
    interests: Annotated[tuple[Text, ...], Field(max_length=MAX_INTERESTS)] | None = Field(
        default=None, description="What the person cares about; default: not said."
    )
    interests_from: InterestChoice | None = Field(
        default=None, description="Draw interests from these if none are stated; default: none are drawn."
    )
    stance: Annotated[Number, Field(ge=-1, le=1), BeforeValidator(parse_stance)] | None = Field(
        default=None, description="Opinion on the topic, -1 to 1, or supportive, opposing, neutral; default: not said."
    )
    activity: Annotated[Number, Field(ge=0, le=1)] = Field(default=0.5, description="Chance to act in a round.")
    active_hours: Hours | None = Field(default=None, description="Waking hours, such as 8-22; default: drawn.")
    influence: Annotated[Number, Field(ge=0, le=100)] = Field(
        default=1.0, description="How much the person's words count, in feeds and with readers."
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
    traits: Annotated[dict[str, Any], AfterValidator(make_storable)] = Field(
        default_factory=dict, description="Anything else worth knowing about the person."
    )

    @field_validator("interests")
    @classmethod
    def _drop_repeated(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if value is None else tuple(dict.fromkeys(value))

    @property
    def roster(self) -> PeopleTable:
        """The person as a table with one row."""
        fields = {field: [value] for field, value in vars(self).items() if field not in ("traits", "interests_from")}
        return PeopleTable("", 1, fields, {name: [value] for name, value in self.traits.items()})


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
    persona: Text | None = Field(
        default=None, description="Who each of them is, with variables such as {name} and {age}; default: made."
    )
    bio: Text | None = Field(default=None, description="What each profile says, in the same way; default: made.")

    @property
    def trait_names(self) -> tuple[str, ...]:
        return tuple(self.traits)


class AssistantEntry(DeclaredModel):
    """An assistant under test, as often as people talk to it at once. Its model sees a plain chat."""

    assistant: OwnName = Field(description="What people call it; also the name of its group.")
    count: Annotated[Whole, Field(ge=1, le=MAX_PEOPLE)] = Field(default=1, description="One for each conversation.")
    system: Text | None = Field(default=None, description="Its system message, sent as it is; default: none is sent.")
    bio: Text = Field(default="an AI assistant", description="What people know about it.")

    interests: ClassVar[None] = None
    interests_from: ClassVar[None] = None
    traits: ClassVar[Mapping[str, Any]] = {}

    @property
    def group(self) -> str:
        return self.assistant

    @property
    def roster(self) -> PeopleTable:
        """The assistant as a table with a row for each conversation. Its persona is its system message."""
        texts = {"name": self.assistant, "bio": self.bio, "persona": self.system or ""}
        return PeopleTable("", self.count, {field: [text] * self.count for field, text in texts.items()}, {})


ColumnChoice = Annotated[
    FileColumn, BeforeValidator(lambda value: {"column": value} if isinstance(value, str) else value)
]


def resolve_path(path: str, info: ValidationInfo) -> str:
    """Return the full path of a file, which starts at the folder of the scenario, or else at the current one."""
    folder = (info.context or {}).get("folder") or Path()
    return os.path.abspath(folder / Path(path).expanduser())  # noqa: PTH100  # symlinks stay as they are


FullPath = Annotated[Text, AfterValidator(resolve_path)]


def list_texts(value: object) -> object:
    """Put a single text, which may stand without a list around it, into a list."""
    return [value] if isinstance(value, str) else value


class FileEntry(DeclaredModel):
    """Many people, each a record of a file."""

    file: FullPath = Field(description="CSV, TSV, JSONL, JSON or Parquet, or a folder of *.agent.json.")
    format: PeopleFormat | None = Field(
        default=None, description="What the file is; default: detected from name and content."
    )
    columns: dict[str, ColumnChoice | None] = Field(
        default_factory=dict,
        description="Field of a person -> column, or null for none; other columns are taken by their names.",
    )
    fragments: tuple[FullPath, ...] = Field(
        default=(), description="TinyTroupe: files that are merged into each specification."
    )
    limit: Annotated[Whole, Field(ge=1)] | None = Field(
        default=None, description="Take at most this many people from the start of the file."
    )
    group: Text | None = Field(default=None, description="What to call these people.")
    interests_from: InterestChoice | None = Field(
        default=None, description="Draw interests from these for people who state none; default: none are drawn."
    )
    stance: Stance | None = Field(
        default=None, description="Opinion of people who state none, such as {normal: [0, 0.4]}; default: not said."
    )

    _roster: PeopleTable | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _read(self) -> FileEntry:
        """Read the file now, so that later changes to it mean nothing."""
        try:
            fragments = map(Path, self.fragments)
            self._roster = read_people(Path(self.file), PersonEntry, self.format, self.columns, fragments, self.limit)
        except ScenarioInvalid as error:
            raise InvalidValue(*(Problem(("file",), text) for text in error.problems)) from error
        return self

    @property
    def roster(self) -> PeopleTable:
        assert self._roster is not None
        return self._roster


#: Fields of a person that a table can have as an attribute.
GROWN_FIELDS = ("age", "gender", "country", "profession", "stance")


class MarginalsEntry(GroupEntry):
    """Many people who together fit demographic tables. What the tables do not say is drawn as for any group."""

    marginals: Annotated[tuple[FullPath, ...], BeforeValidator(list_texts), Field(min_length=1)] = Field(
        description="Files of tables with a column for each attribute, and one called count, share or percent; "
        "age, gender, country, profession and stance fill fields, other attributes are traits."
    )

    _tables: tuple[MarginalTable, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _read(self) -> MarginalsEntry:
        """Read the tables now, so that later changes to the files mean nothing."""
        try:
            self._tables = read_marginals(map(Path, self.marginals), PersonEntry)
            check_tables(self._tables)
        except ScenarioInvalid as error:
            raise InvalidValue(*(Problem(("marginals",), text) for text in error.problems)) from error
        for attribute in self.attributes:
            stated = (
                attribute in GROWN_FIELDS and getattr(self, attribute) != GroupEntry.model_fields[attribute].default
            )
            if stated or attribute in self.traits:
                raise InvalidValue(Problem((attribute,), f"{attribute} is in the tables already; leave it out here"))
        return self

    @property
    def tables(self) -> tuple[MarginalTable, ...]:
        return self._tables

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(attribute for table in self._tables for attribute in table.attributes))

    @property
    def trait_names(self) -> tuple[str, ...]:
        return (*self.traits, *(attribute for attribute in self.attributes if attribute not in GROWN_FIELDS))


PopulationEntry = PersonEntry | AssistantEntry | GroupEntry | FileEntry
PopulationEntries = tuple[PopulationEntry, ...]
_KINDS: Mapping[str, type[DeclaredModel]] = {
    "name": PersonEntry,
    "assistant": AssistantEntry,
    "marginals": MarginalsEntry,
    "count": GroupEntry,
    "file": FileEntry,
}
_ENTRY = "a person (`name`), a group (`count`), a `file` of people, tables (`marginals`) or an `assistant`"


def find_entry_tag(value: object) -> str | None:
    if isinstance(value, Mapping):
        return make_tag(next((model for key, model in _KINDS.items() if key in value), GroupEntry))
    return make_tag(type(value)) if isinstance(value, PopulationEntry) else None


def require_entry(value: object) -> object:
    if isinstance(value, PopulationEntry):
        return value
    if not isinstance(value, Mapping) or not value:
        raise InvalidValue(Problem.mismatch(_ENTRY, value))
    kinds = [key for key in _KINDS if key in value]
    if "count" in kinds and any(kind in value for kind in ("assistant", "marginals")):
        kinds.remove("count")
    if kinds == ["name", "count"]:
        message = "an entry is a person (`name`) or a group (`count`), not both; label a group with `group`"
        raise InvalidValue(Problem((), message))
    if len(kinds) > 1:
        message = f"an entry is {_ENTRY}, not several of them; to name a person's column, write `columns`"
        raise InvalidValue(Problem((), message))
    if not kinds:
        fields = {name for model in _KINDS.values() for name in model.model_fields}
        for key in value:
            if key not in fields and nearest(key, _KINDS):
                raise InvalidValue(Problem.unknown("field", key, _KINDS, key, at_key=True))
        raise InvalidValue(Problem((), expected=_ENTRY, found="none of them"))
    return value


def list_entries(value: object) -> object:
    """Put a single entry, which may stand without a list around it, into a list."""
    if isinstance(value, Mapping | PopulationEntry):
        return (value,)
    if isinstance(value, (list, tuple)):
        return value
    raise InvalidValue(Problem.mismatch("a group such as {count: 200}, or a list of groups and people", value))


_EntryField = Annotated[
    Annotated[PersonEntry, Tag(make_tag(PersonEntry))]
    | Annotated[AssistantEntry, Tag(make_tag(AssistantEntry))]
    | Annotated[MarginalsEntry, Tag(make_tag(MarginalsEntry))]
    | Annotated[GroupEntry, Tag(make_tag(GroupEntry))]
    | Annotated[FileEntry, Tag(make_tag(FileEntry))],
    Discriminator(find_entry_tag),
    BeforeValidator(require_entry),
]
Entries = Annotated[tuple[_EntryField, ...], BeforeValidator(list_entries)]


def number_entries(entries: PopulationEntries) -> Iterator[tuple[int, PopulationEntry]]:
    """Yield the entries, each with the number of its first person."""
    start = 0
    for entry in entries:
        yield start, entry
        start += count_entry(entry)


def count_people(entries: PopulationEntries) -> int:
    return sum(count_entry(entry) for entry in entries)


def count_entry(entry: PopulationEntry) -> int:
    if isinstance(entry, PersonEntry):
        return 1
    return entry.roster.count if isinstance(entry, FileEntry) else entry.count


def number_own_names(entries: PopulationEntries) -> dict[str, int]:
    """Return the numbers of the people whose names are not drawn, by name."""
    return {name: number for number, name in reversed(find_own_names(entries, "name").items())}


def find_own_names(entries: PopulationEntries, field: Literal["name", "username"]) -> dict[int, str]:
    """Return the names that are not drawn, by number. Names written by hand go before the same names in files."""
    people = {start: entry for start, entry in number_entries(entries) if isinstance(entry, PersonEntry)}
    names = {start: name for start, person in people.items() if (name := getattr(person, field)) is not None}
    for start, entry in number_entries(entries):
        if isinstance(entry, FileEntry):
            values, _ = make_unique(entry.roster.column(field), field, names.values())
            names |= {start + row: value for row, value in enumerate(values) if value is not None}
        elif isinstance(entry, AssistantEntry) and field == "name":
            # All of them are the same assistant, and people call it by the same name.
            names |= dict.fromkeys(range(start, start + entry.count), entry.assistant)
    return names
