"""Everybody, column by column; each person in words when asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.scenario.declared.distributions import GENDERS
from shoal.scenario.declared.population import PersonEntry
from shoal.scenario.importers.people_file import PeopleTable
from shoal.scenario.sampling import profiles
from shoal.types import USUAL_HABITS, Habits, Persona


class Labels(Sequence[str | None]):
    """One text per person out of few different ones; None where there is none."""

    __slots__ = ("_numbers", "codes", "words")

    def __init__(self, people: int) -> None:
        #: Index into `words` for each person, -1 where there is none.
        self.codes: NDArray[np.int32] = np.full(people, -1, dtype=np.int32)
        self.words: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, word: str) -> int:
        """The number of a word, which is added if it is new."""
        number = self._numbers.setdefault(word, len(self.words))
        if number == len(self.words):
            self.words.append(word)
        return number

    def put(self, where: slice, words: Sequence[str], picks: NDArray[np.integer]) -> None:
        """People in the slice get the words that the picks point to."""
        self.codes[where] = np.array([self.number(word) for word in words], dtype=np.int32)[picks]

    def put_each(self, where: slice, words: Sequence[str | None]) -> None:
        """Each person in the slice gets the word at their place."""
        self.codes[where] = [-1 if word is None else self.number(word) for word in words]

    def put_one(self, person: int, word: str | None) -> None:
        if word is not None:
            self.codes[person] = self.number(word)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, person: int) -> str | None:  # type: ignore[override]  # one person at a time, no slices
        code = int(self.codes[person])
        return None if code < 0 else self.words[code]

    def __iter__(self) -> Iterator[str | None]:
        words = [*self.words, None]
        return (words[code] for code in self.codes.tolist())


#: Numbers (NaN where somebody has none) or texts.
Column = NDArray[np.float64] | Labels


def trait_of(column: Column, person: int) -> float | str | None:
    if isinstance(column, Labels):
        return column[person]
    value = float(column[person])
    return None if np.isnan(value) else value


#: Fields of a person, and what those have who do not say.
USUAL: Mapping[str, float] = {**USUAL_HABITS, "response_delay": 0}


def fill(habits: Habits, people: int, start: int, said: Mapping[str, Sequence[Any]]) -> None:
    """Take in what people say who are numbered from `start` on, field by field; None is said by those who do not."""
    for field, values in said.items():
        stated = [start + row for row, value in enumerate(values) if value not in (None, USUAL[field])]
        if stated:
            _column(habits, field, people)[stated] = [values[number - start] for number in stated]


def of(habits: Habits, agent: int) -> dict[str, Any]:
    """What is not as it is with everybody, by field."""
    columns = {field: getattr(habits, field) for field in USUAL}
    said = {field: column[agent].tolist() for field, column in columns.items() if column is not None}
    usual = {**USUAL, "response_delay": [0, 0]}
    return {
        field: round(value, 3) if isinstance(value, float) else value
        for field, value in said.items()
        if value != usual[field] and value == value  # not a number is not equal to itself
    }


def _column(habits: Habits, field: str, people: int) -> NDArray[Any]:
    """The column of a field, made when the first person needs it."""
    column: NDArray[Any] | None = getattr(habits, field)
    if column is None:
        is_delay = field == "response_delay"
        shape = (people, 2) if is_delay else (people,)
        column = np.full(shape, USUAL[field], dtype=np.int32 if is_delay else np.float32)
        setattr(habits, field, column)
    return column


class People:
    """The population of one scenario. Agent i is row i of every column; names and texts are made when asked for."""

    def __init__(self, count: int, interests: int, topic: str | None) -> None:
        self.names: Sequence[str] = []
        self.topics: Sequence[str] = []
        self.interests: NDArray[np.int16] = np.full((count, interests), -1, dtype=np.int16)
        self.stances: NDArray[np.float32] = np.zeros(count, dtype=np.float32)
        self.activity: NDArray[np.float32] = np.zeros(count, dtype=np.float32)
        self.active_hours: NDArray[np.uint32] = np.zeros(count, dtype=np.uint32)
        self.habits = Habits()
        #: -1 where the age is not known.
        self.ages: NDArray[np.int16] = np.full(count, -1, dtype=np.int16)
        #: Index into GENDERS, -1 where it is not known.
        self.genders: NDArray[np.int8] = np.full(count, -1, dtype=np.int8)
        self.groups, self.countries, self.professions = Labels(count), Labels(count), Labels(count)
        self.traits: dict[str, Column] = {}
        #: The people written by hand, by number.
        self.listed: dict[int, PersonEntry] = {}
        self._topic = topic
        self._rosters: Mapping[int, PeopleTable] = {}
        self._starts: list[int] = []
        self._usernames: dict[int, str] = {}
        self._taken: set[str] = set()

    def enlist(
        self, listed: dict[int, PersonEntry], rosters: Mapping[int, PeopleTable], usernames: Mapping[int, str]
    ) -> None:
        """Make known who is not drawn: written by hand, or in a file that begins at a number.

        The usernames they ask for go first, then those made from their names.
        """
        self.listed, self._rosters = listed, rosters
        self._starts = list(rosters)
        self._usernames = dict(usernames)
        self._taken = {username.casefold() for username in usernames.values()}
        for number in (*listed, *(start + row for start in rosters for row in range(rosters[start].count))):
            if number not in usernames:
                self._usernames[number] = self._free(profiles.username(self.names[number], number), number)
                self._taken.add(self._usernames[number].casefold())

    def _said(self, agent: int, field: str) -> Any:
        """What somebody who is not drawn says about this; None where they do not."""
        person = self.listed.get(agent)
        if person is not None:
            return getattr(person, field)
        start, roster = self._roster(agent)
        return roster.fields[field][agent - start] if roster is not None and field in roster.fields else None

    def _roster(self, agent: int) -> tuple[int, PeopleTable | None]:
        """The file that somebody stands in, and the number it begins at."""
        place = bisect_right(self._starts, agent) - 1
        start = self._starts[place] if place >= 0 else agent
        roster = self._rosters.get(start)
        return start, roster if roster is not None and agent < start + roster.count else None

    def __len__(self) -> int:
        return len(self.stances)

    def __getitem__(self, agent: int) -> Persona:
        if not 0 <= agent < len(self):
            raise IndexError(f"no person {agent}: people are numbered 0 to {len(self) - 1}")
        facts = self._facts(agent)
        return Persona(
            name=facts.name,
            username=self._username(agent),
            bio=self._said(agent, "bio") or profiles.bio(facts),
            persona=self._said(agent, "persona") or profiles.persona(facts),
            interests=facts.interests,
            stance=facts.stance,
            activity=facts.activity,
            traits=self._known(agent, facts),
        )

    def _facts(self, agent: int) -> profiles.PersonFacts:
        age, gender = int(self.ages[agent]), int(self.genders[agent])
        return profiles.PersonFacts(
            name=self.names[agent],
            age=None if age < 0 else age,
            gender=None if gender < 0 else GENDERS[gender],
            country=self.countries[agent],
            profession=self.professions[agent],
            interests=tuple(self.topics[word] for word in self.interests[agent].tolist() if word >= 0),
            stance=round(float(self.stances[agent]), 3),
            activity=round(float(self.activity[agent]), 3),
            topic=self._topic,
        )

    def _known(self, agent: int, facts: profiles.PersonFacts) -> Mapping[str, Any]:
        known: dict[str, Any] = {
            "group": self.groups[agent],
            "age": facts.age,
            "gender": facts.gender,
            "country": facts.country,
            "profession": facts.profession,
        }
        known |= of(self.habits, agent)
        known |= self._own_traits(agent)
        return {name: value for name, value in known.items() if value is not None}

    def _own_traits(self, agent: int) -> Mapping[str, Any]:
        start, roster = self._roster(agent)
        if roster is not None:
            return {name: values[agent - start] for name, values in roster.traits.items()}
        person = self.listed.get(agent)
        return person.traits if person else {name: trait_of(column, agent) for name, column in self.traits.items()}

    def _username(self, agent: int) -> str:
        if agent in self._usernames:
            return self._usernames[agent]
        return self._free(profiles.username(self.names[agent], agent), agent)

    def _free(self, username: str, agent: int) -> str:
        if username.casefold() in self._taken:
            username = f"{username}_{agent}"
        while username.casefold() in self._taken:
            username += "_"
        return username
