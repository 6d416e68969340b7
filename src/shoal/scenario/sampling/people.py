"""The people of a scenario, column by column. The texts about a person are written when they are asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.agents.language import fill, find_variables
from shoal.scenario.declared.distributions import GENDERS
from shoal.scenario.declared.population import PersonEntry
from shoal.scenario.importers.people_file import PeopleTable
from shoal.scenario.sampling.profiles import PersonFacts, list_facts, make_username, write_bio, write_persona
from shoal.types import USUAL_HABITS, Habits, Persona

#: Optional fields of a person, each with the value of people who do not state it.
USUAL: Mapping[str, float] = {**USUAL_HABITS, "response_delay": 0}


_FACTS = frozenset({"age", "gender", "country", "profession"})


class Labels(Sequence[str | None]):
    """One text per person out of few different ones; None for people without one."""

    __slots__ = ("_numbers", "codes", "words")

    def __init__(self, people: int) -> None:
        #: Index into `words` for each person, -1 for none.
        self.codes: NDArray[np.int32] = np.full(people, -1, dtype=np.int32)
        self.words: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, word: str) -> int:
        """Return the number of a word, and add the word if it is new."""
        number = self._numbers.setdefault(word, len(self.words))
        if number == len(self.words):
            self.words.append(word)
        return number

    def put(self, where: slice, words: Sequence[str], picks: NDArray[np.integer]) -> None:
        """Give the people in the slice the words that the picks point to."""
        self.codes[where] = np.array([self.number(word) for word in words], dtype=np.int32)[picks]

    def put_each(self, where: slice, words: Sequence[str | None]) -> None:
        """Give each person in the slice the word at their place."""
        self.codes[where] = [-1 if word is None else self.number(word) for word in words]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, person: int) -> str | None:  # type: ignore[override]  # one person at a time, no slices
        code = int(self.codes[person])
        return None if code < 0 else self.words[code]

    def __iter__(self) -> Iterator[str | None]:
        words = [*self.words, None]
        return (words[code] for code in self.codes.tolist())


#: Numbers (NaN where a person has none) or texts.
Column = NDArray[np.float64] | Labels


def fill_habits(habits: Habits, count: int, start: int, stated: Mapping[str, Sequence[Any]]) -> None:
    """Enter what people numbered from `start` on state, field by field; None means not stated.

    A column is made when the first of the `count` people needs it.
    """
    for field, values in stated.items():
        people = [start + row for row, value in enumerate(values) if value not in (None, USUAL[field])]
        if not people:
            continue
        column: NDArray[Any] | None = getattr(habits, field)
        if column is None:
            is_delay = field == "response_delay"
            shape, kind = ((count, 2), np.int32) if is_delay else ((count,), np.float32)
            column = np.full(shape, USUAL[field], dtype=kind)
            setattr(habits, field, column)
        column[people] = [values[number - start] for number in people]


def list_unusual_habits(habits: Habits, agent: int) -> dict[str, Any]:
    """Return the habits of a person that differ from the usual ones, by field."""
    columns = {field: getattr(habits, field) for field in USUAL}
    stated = {field: column[agent].tolist() for field, column in columns.items() if column is not None}
    usual = {**USUAL, "response_delay": [0, 0]}
    return {
        field: round(value, 3) if isinstance(value, float) else value
        for field, value in stated.items()
        if value != usual[field] and value == value  # NaN is not equal to itself
    }


class People:
    """The population of one scenario. Agent i is row i of every column."""

    def __init__(self, count: int, interests: int, topic: str | None) -> None:
        self.names: Sequence[str] = []
        self.topics: Sequence[str] = []
        self.interests: NDArray[np.int16] = np.full((count, interests), -1, dtype=np.int16)
        self.stances: NDArray[np.float32] = np.zeros(count, dtype=np.float32)
        #: Whether the opinion is stated or drawn. Where it is not, the stance is 0 and no prompt mentions it.
        self.has_stance: NDArray[np.bool_] = np.ones(count, dtype=np.bool_)
        self.activity: NDArray[np.float32] = np.zeros(count, dtype=np.float32)
        self.active_hours: NDArray[np.uint32] = np.zeros(count, dtype=np.uint32)
        self.habits = Habits()
        #: -1 where the age is not known.
        self.ages: NDArray[np.int16] = np.full(count, -1, dtype=np.int16)
        #: Index into GENDERS, -1 where it is not known.
        self.genders: NDArray[np.int8] = np.full(count, -1, dtype=np.int8)
        self.groups, self.countries, self.professions = Labels(count), Labels(count), Labels(count)
        self.traits: dict[str, Column] = {}
        self.assistants: frozenset[int] = frozenset()
        #: Persona and bio of groups that have templates for them, and whose they are.
        self.templates: list[tuple[slice, str | None, str | None]] = []
        #: The people written by hand, by number.
        self.listed: dict[int, PersonEntry] = {}
        self._topic = topic
        self._rosters: Mapping[int, PeopleTable] = {}
        self._starts: list[int] = []
        self._usernames: dict[int, str] = {}
        #: Usernames in use, in small letters.
        self._taken: set[str] = set()

    def enlist(
        self, listed: dict[int, PersonEntry], rosters: Mapping[int, PeopleTable], usernames: Mapping[int, str]
    ) -> None:
        """Add the people who are not drawn: written by hand, or in files, each by the number of its first person.

        The usernames that they state are taken first, then those made from their names.
        """
        self.listed, self._rosters = listed, rosters
        self._starts = list(rosters)
        self._usernames = dict(usernames)
        self._taken = {username.casefold() for username in usernames.values()}
        for number in (*listed, *(start + row for start in rosters for row in range(rosters[start].count))):
            if number not in usernames:
                self._usernames[number] = self._make_free_username(number)
                self._taken.add(self._usernames[number].casefold())

    def __len__(self) -> int:
        return len(self.stances)

    def __getitem__(self, agent: int) -> Persona:
        if not 0 <= agent < len(self):
            raise IndexError(f"no person {agent}: people are numbered 0 to {len(self) - 1}")
        age, gender = int(self.ages[agent]), int(self.genders[agent])
        facts = PersonFacts(
            name=self.names[agent],
            age=None if age < 0 else age,
            gender=None if gender < 0 else GENDERS[gender],
            country=self.countries[agent],
            profession=self.professions[agent],
            interests=tuple(self.topics[word] for word in self.interests[agent].tolist() if word >= 0),
            stance=round(float(self.stances[agent]), 3) if self.has_stance[agent] else None,
            activity=round(float(self.activity[agent]), 3),
            topic=self._topic,
        )
        bio, persona, own_traits = self._find_own_texts_and_traits(agent)
        traits: dict[str, Any] = {
            "group": self.groups[agent],
            "age": facts.age,
            "gender": facts.gender,
            "country": facts.country,
            "profession": facts.profession,
            **list_unusual_habits(self.habits, agent),
            **own_traits,
        }
        told: frozenset[str] = frozenset()
        for where, persona_template, bio_template in self.templates:
            if where.start <= agent < where.stop:
                values = {
                    **list_facts(facts),
                    **{name: str(value) for name, value in traits.items() if value is not None},
                }
                if persona_template is not None:
                    # What is drawn unasked, such as a profession, is mentioned only where the template names it.
                    persona, told = fill(persona_template, values), _FACTS.union(find_variables(persona_template))
                bio = None if bio_template is None else fill(bio_template, values)
        return Persona(
            name=facts.name,
            username=self._usernames[agent] if agent in self._usernames else self._make_free_username(agent),
            bio=bio or write_bio(facts),
            persona=write_persona(facts) if persona is None else persona,
            interests=facts.interests,
            stance=facts.stance,
            activity=facts.activity,
            traits={name: value for name, value in traits.items() if value is not None},
            told=told,
        )

    def _find_own_texts_and_traits(self, agent: int) -> tuple[str | None, str | None, Mapping[str, Any]]:
        """Return bio, persona and traits as stated by hand or in a file; traits of other people are drawn."""
        person = self.listed.get(agent)
        if person is not None:
            return person.bio, person.persona, person.traits
        place = bisect_right(self._starts, agent) - 1
        start = self._starts[place] if place >= 0 else agent
        roster = self._rosters.get(start)
        if roster is not None and agent < start + roster.count:
            row, fields = agent - start, roster.fields
            bio, persona = (fields[field][row] if field in fields else None for field in ("bio", "persona"))
            return bio, persona, {name: values[row] for name, values in roster.traits.items()}
        traits: dict[str, Any] = {}
        for name, column in self.traits.items():
            value = column[agent] if isinstance(column, Labels) else float(column[agent])
            traits[name] = None if isinstance(value, float) and np.isnan(value) else value
        return None, None, traits

    def _make_free_username(self, agent: int) -> str:
        username = make_username(self.names[agent], agent)
        if username.casefold() in self._taken:
            username = f"{username}_{agent}"
        while username.casefold() in self._taken:
            username += "_"
        return username
