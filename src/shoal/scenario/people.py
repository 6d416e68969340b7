"""Everybody, column by column; each person in words when asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.scenario import prose
from shoal.scenario.columns import Column, Labels, trait_of
from shoal.scenario.distributions import GENDERS
from shoal.scenario.entries import Person
from shoal.types import Persona


class People:
    """The population of one scenario. Agent i is row i of every column; names and texts are made when asked for."""

    def __init__(self, count: int, interests: int, topic: str | None) -> None:
        self.names: Sequence[str] = []
        self.topics: Sequence[str] = []
        self.interests: NDArray[np.int16] = np.full((count, interests), -1, dtype=np.int16)
        self.stances: NDArray[np.float32] = np.zeros(count, dtype=np.float32)
        self.activity: NDArray[np.float32] = np.zeros(count, dtype=np.float32)
        self.active_hours: NDArray[np.uint32] = np.zeros(count, dtype=np.uint32)
        #: -1 where the age is not known.
        self.ages: NDArray[np.int16] = np.full(count, -1, dtype=np.int16)
        #: Index into GENDERS, -1 where it is not known.
        self.genders: NDArray[np.int8] = np.full(count, -1, dtype=np.int8)
        self.groups, self.countries, self.professions = Labels(count), Labels(count), Labels(count)
        self.traits: dict[str, Column] = {}
        #: The people written by hand, by number.
        self.listed: dict[int, Person] = {}
        self._topic = topic
        self._usernames: dict[int, str] = {}
        self._taken: set[str] = set()

    def enlist(self, listed: dict[int, Person]) -> None:
        """Make known who is written by hand. The usernames they ask for go first."""
        self.listed = listed
        stated = {number: person.username for number, person in listed.items() if person.username is not None}
        self._usernames = dict(stated)
        self._taken = {username.casefold() for username in stated.values()}
        for number, person in listed.items():
            if number not in stated:
                self._usernames[number] = self._free(prose.username(person.name, number), number)
                self._taken.add(self._usernames[number].casefold())

    def __len__(self) -> int:
        return len(self.stances)

    def __getitem__(self, agent: int) -> Persona:
        if not 0 <= agent < len(self):
            raise IndexError(f"no person {agent}: people are numbered 0 to {len(self) - 1}")
        facts = self._facts(agent)
        person = self.listed.get(agent)
        return Persona(
            name=facts.name,
            username=self._username(agent),
            bio=(person.bio if person else None) or prose.bio(facts),
            persona=(person.persona if person else None) or prose.persona(facts),
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
        person = self.listed.get(agent)
        known |= person.traits if person else {name: trait_of(column, agent) for name, column in self.traits.items()}
        return {name: value for name, value in known.items() if value is not None}

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
