"""Everybody, column by column; each person in words when asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.scenario import habits, prose
from shoal.scenario.columns import Column, Labels, trait_of
from shoal.scenario.distributions import GENDERS
from shoal.scenario.entries import Person
from shoal.scenario.sources.roster import Roster
from shoal.types import Habits, Persona


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
        self.listed: dict[int, Person] = {}
        self._topic = topic
        self._rosters: Mapping[int, Roster] = {}
        self._starts: list[int] = []
        self._usernames: dict[int, str] = {}
        self._taken: set[str] = set()

    def enlist(self, listed: dict[int, Person], rosters: Mapping[int, Roster], usernames: Mapping[int, str]) -> None:
        """Make known who is not drawn: written by hand, or in a file that begins at a number.

        The usernames they ask for go first, then those made from their names.
        """
        self.listed, self._rosters = listed, rosters
        self._starts = list(rosters)
        self._usernames = dict(usernames)
        self._taken = {username.casefold() for username in usernames.values()}
        for number in (*listed, *(start + row for start in rosters for row in range(rosters[start].count))):
            if number not in usernames:
                self._usernames[number] = self._free(prose.username(self.names[number], number), number)
                self._taken.add(self._usernames[number].casefold())

    def _said(self, agent: int, field: str) -> Any:
        """What somebody who is not drawn says about this; None where they do not."""
        person = self.listed.get(agent)
        if person is not None:
            return getattr(person, field)
        start, roster = self._roster(agent)
        return roster.fields[field][agent - start] if roster is not None and field in roster.fields else None

    def _roster(self, agent: int) -> tuple[int, Roster | None]:
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
            bio=self._said(agent, "bio") or prose.bio(facts),
            persona=self._said(agent, "persona") or prose.persona(facts),
            interests=facts.interests,
            stance=facts.stance,
            activity=facts.activity,
            traits=self._known(agent, facts),
        )

    def _facts(self, agent: int) -> prose.Facts:
        age, gender = int(self.ages[agent]), int(self.genders[agent])
        return prose.Facts(
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

    def _known(self, agent: int, facts: prose.Facts) -> Mapping[str, Any]:
        known: dict[str, Any] = {
            "group": self.groups[agent],
            "age": facts.age,
            "gender": facts.gender,
            "country": facts.country,
            "profession": facts.profession,
        }
        known |= habits.of(self.habits, agent)
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
        return self._free(prose.username(self.names[agent], agent), agent)

    def _free(self, username: str, agent: int) -> str:
        if username.casefold() in self._taken:
            username = f"{username}_{agent}"
        while username.casefold() in self._taken:
            username += "_"
        return username
