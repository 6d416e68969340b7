"""Draws everybody from what the scenario says about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.scenario.declared.distributions import GENDERS, Distribution, Interests, Normal
from shoal.scenario.declared.population import (
    FileEntry,
    GroupEntry,
    PersonEntry,
    PopulationEntries,
    count_entry,
    count_people,
    find_own_names,
    number_entries,
)
from shoal.scenario.importers.people_file import PeopleTable
from shoal.scenario.sampling import people as habits
from shoal.scenario.sampling.draws import Floats, picks, quantiles, subsets
from shoal.scenario.sampling.names import names
from shoal.scenario.sampling.people import Column, Labels, People
from shoal.scenario.scenario import Scenario
from shoal.seeds import derive, uniforms

__all__ = ["People", "sample"]

EVERYDAY_INTERESTS = (
    "music", "football", "cooking", "travel", "films", "books", "gardening", "gaming", "health", "money",
    "animals", "science",
)  # fmt: skip
COMMON_PROFESSIONS = (
    "teacher", "nurse", "shop assistant", "electrician", "accountant", "software developer", "driver", "cook", "farmer",
    "office clerk", "engineer", "carpenter", "social worker", "sales manager", "hairdresser", "police officer",
    "journalist", "doctor", "mechanic", "cleaner",
)  # fmt: skip
STUDENT, PENSIONER = "student", "pensioner"
STUDENTS_ARE_UNDER, PENSIONERS_ARE_FROM = 22, 67
#: Share of a group's people that has the scenario's topic among its interests.
TOPIC_SHARE = 0.6
#: Two camps and a middle: share of people, and their stances.
CAMPS = ((0.35, Normal(normal=(-0.55, 0.2))), (0.3, Normal(normal=(0.0, 0.15))), (0.35, Normal(normal=(0.55, 0.2))))
_EVERYDAY = Interests.model_validate({"from": EVERYDAY_INTERESTS})
#: Without hours of their own people get up between 6 and 9, and are awake for 16 hours.
_EARLIEST, _SPREAD, _AWAKE = 6, 4, 16
_HOURS_PER_DAY = 24
#: Decimals that are kept; fewer than machines could disagree on.
_DECIMALS = 3


def sample(scenario: Scenario) -> People:
    """Everybody in the scenario. What is drawn for one entry does not depend on the entries after it."""
    return _Sampler(scenario).fill()


class _Sampler:
    def __init__(self, scenario: Scenario) -> None:
        self._seed, self._topic, self._entries = scenario.seed, scenario.topic, scenario.population
        self._people = People(count_people(self._entries), _width(self._entries, self._topic), self._topic)
        self._words = Labels(0)

    def fill(self) -> People:
        people = self._people
        people.traits = _trait_columns(self._entries, len(people))
        if self._topic is not None:
            self._words.number(self._topic)
        listed: dict[int, PersonEntry] = {}
        rosters: dict[int, PeopleTable] = {}
        for number, (start, entry) in enumerate(number_entries(self._entries)):
            where = slice(start, start + count_entry(entry))
            if isinstance(entry, PersonEntry):
                listed[start] = entry
                self._fill_person(number, entry, start)
            elif isinstance(entry, GroupEntry):
                self._fill_group(number, entry, where)
            else:
                rosters[start] = entry.roster
                self._fill_file(number, entry, where)
        people.names = self._names()
        people.topics = self._words.words
        people.enlist(listed, rosters, find_own_names(self._entries, "username"))
        return people

    def _key(self, entry: int, *purpose: str) -> int:
        return derive(self._seed, "population", entry, *purpose)

    def _uniforms(self, entry: int, count: int, *purpose: str) -> Floats:
        return uniforms(self._key(entry, *purpose), np.arange(count))

    def _fill_group(self, entry: int, group: GroupEntry, where: slice) -> None:
        people, count = self._people, group.count
        if group.group is not None:
            people.groups.put(where, [group.group], np.zeros(count, dtype=np.int64))
        people.ages[where] = np.rint(quantiles(group.age, self._uniforms(entry, count, "age"), 0, 120))
        kinds = np.array([GENDERS.index(word) for word in group.gender], dtype=np.int8)
        people.genders[where] = kinds[picks(group.gender, self._uniforms(entry, count, "gender"))]
        if group.country is not None:
            where_from = picks(group.country, self._uniforms(entry, count, "country"))
            people.countries.put(where, list(group.country), where_from)
        self._fill_professions(entry, group, where)
        self._fill_stances(entry, group, where)
        activity = quantiles(group.activity, self._uniforms(entry, count, "activity"), 0, 1)
        people.activity[where] = np.round(activity, _DECIMALS)
        people.active_hours[where] = self._hours(entry, count, group.active_hours)
        self._fill_interests(entry, where, group.interests or _EVERYDAY)
        for name, distribution in group.traits.items():
            self._fill_trait(entry, where, name, distribution)

    def _fill_professions(self, entry: int, group: GroupEntry, where: slice) -> None:
        u = self._uniforms(entry, group.count, "profession")
        column = self._people.professions
        if group.profession is not None:
            column.put(where, list(group.profession), picks(group.profession, u))
            return
        ages = self._people.ages[where]
        jobs = np.floor(u * len(COMMON_PROFESSIONS)).astype(np.int64)
        jobs[ages < STUDENTS_ARE_UNDER] = len(COMMON_PROFESSIONS)
        jobs[ages >= PENSIONERS_ARE_FROM] = len(COMMON_PROFESSIONS) + 1
        column.put(where, [*COMMON_PROFESSIONS, STUDENT, PENSIONER], jobs)

    def _fill_stances(self, entry: int, group: GroupEntry, where: slice) -> None:
        u = self._uniforms(entry, group.count, "stance")
        if group.stance is not None:
            stances = quantiles(group.stance, u, -1, 1)
        else:
            camps = picks(dict(enumerate(share for share, _ in CAMPS)), self._uniforms(entry, group.count, "camp"))
            stances = np.choose(camps, [quantiles(camp, u, -1, 1) for _, camp in CAMPS])
        self._people.stances[where] = np.round(stances, _DECIMALS)

    def _hours(self, entry: int, count: int, hours: Sequence[int] | None) -> NDArray[np.uint32]:
        if hours is not None:
            return np.full(count, _mask(hours), dtype=np.uint32)
        days = [_mask(range(start, start + _AWAKE)) for start in range(_EARLIEST, _EARLIEST + _SPREAD)]
        starts = np.floor(self._uniforms(entry, count, "hours") * _SPREAD).astype(np.int64)
        return np.array(days, dtype=np.uint32)[starts]

    def _fill_interests(
        self, entry: int, where: slice, choice: Interests, keen_share: float | Floats = TOPIC_SHARE
    ) -> None:
        words, count = list(choice.among), where.stop - where.start
        low, high = choice.pick
        sizes = low + np.floor(self._uniforms(entry, count, "pick") * (high - low + 1)).astype(np.int64)
        chosen = subsets(list(choice.among.values()), sizes, self._key(entry, "interests"))
        codes = np.array([*(self._words.number(word) for word in words), -1], dtype=np.int16)[chosen]
        rows, width = self._people.interests[where], codes.shape[1]
        rows[:, :width] = codes
        if self._topic is not None and self._topic not in words:
            keen = self._uniforms(entry, count, "topic") < keen_share
            rows[keen, 1 : 1 + width] = codes[keen]
            rows[keen, 0] = 0

    def _fill_trait(self, entry: int, where: slice, name: str, distribution: Distribution | dict[str, float]) -> None:
        column = self._people.traits[name]
        u = self._uniforms(entry, where.stop - where.start, "trait", name)
        if isinstance(distribution, dict):
            _labels(column).put(where, list(distribution), picks(distribution, u))
        elif isinstance(column, Labels):
            values, numbers = np.unique(np.round(quantiles(distribution, u), _DECIMALS), return_inverse=True)
            column.put(where, [f"{value:g}" for value in values], numbers)
        else:
            column[where] = np.round(quantiles(distribution, u), _DECIMALS)

    def _fill_person(self, entry: int, person: PersonEntry, number: int) -> None:
        people = self._people
        people.ages[number] = -1 if person.age is None else person.age
        people.genders[number] = -1 if person.gender is None else GENDERS.index(person.gender)
        people.countries.put_one(number, person.country)
        people.professions.put_one(number, person.profession)
        people.stances[number], people.activity[number] = person.stance, person.activity
        people.active_hours[number] = self._hours(entry, 1, person.active_hours)[0]
        habits.fill(people.habits, len(people), number, {field: [getattr(person, field)] for field in habits.USUAL})
        self._fill_own_interests(entry, person, number)
        for name, value in person.traits.items():
            _put_trait(people.traits.get(name), number, value)

    def _fill_own_interests(self, entry: int, person: PersonEntry, number: int) -> None:
        """Who has an opinion cares about the topic; otherwise interests are exactly as stated."""
        if person.interests is None:
            self._fill_interests(entry, slice(number, number + 1), _EVERYDAY, 1.0 if person.stance else TOPIC_SHARE)
            return
        row = self._people.interests[number]
        row[:] = self._codes(person.interests, bool(person.stance), len(row))

    def _names(self) -> list[str]:
        result = names(self._seed, 0, self._people.genders)
        given = find_own_names(self._entries, "name")
        taken = set(given.values())
        if taken:
            result = [name if name not in taken else _junior(name, taken) for name in result]
        for number, name in given.items():
            result[number] = name
        return result

    def _fill_file(self, entry: int, file: FileEntry, where: slice) -> None:
        people, roster = self._people, file.roster
        if file.group is not None:
            people.groups.put(where, [file.group], np.zeros(roster.count, dtype=np.int64))
        people.ages[where] = _numbers(roster.column("age"), -1)
        people.genders[where] = [-1 if word is None else GENDERS.index(word) for word in roster.column("gender")]
        people.countries.put_each(where, roster.column("country"))
        people.professions.put_each(where, roster.column("profession"))
        people.stances[where] = _numbers(roster.column("stance"), _usual("stance"))
        people.activity[where] = _numbers(roster.column("activity"), _usual("activity"))
        hours = self._hours(entry, roster.count, None)
        stated = [(row, value) for row, value in enumerate(roster.column("active_hours")) if value is not None]
        hours[[row for row, _ in stated]] = [_mask(value) for _, value in stated]
        people.active_hours[where] = hours
        habits.fill(people.habits, len(people), where.start, {field: roster.column(field) for field in habits.USUAL})
        self._fill_file_interests(entry, roster, where)
        for name, values in roster.traits.items():
            _put_traits(people.traits[name], where, values)

    def _fill_file_interests(self, entry: int, roster: PeopleTable, where: slice) -> None:
        """As for people written by hand: who has an opinion cares about the topic."""
        stances, given = self._people.stances[where], roster.column("interests")
        rows = self._people.interests[where]
        stated = [row for row, words in enumerate(given) if words is not None]
        if len(stated) < roster.count:
            self._fill_interests(entry, where, _EVERYDAY, np.where(stances != 0, 1.0, TOPIC_SHARE))
        known: dict[tuple[tuple[str, ...], bool], list[int]] = {}
        codes = []
        for row, keen in zip(stated, (stances[stated] != 0).tolist(), strict=True):
            if (given[row], keen) not in known:
                known[given[row], keen] = self._codes(given[row], keen, rows.shape[1])
            codes.append(known[given[row], keen])
        if codes:
            rows[stated] = codes

    def _codes(self, interests: Sequence[str], keen: bool, width: int) -> list[int]:
        words = list(interests)
        if self._topic is not None and keen and self._topic not in words:
            words.insert(0, self._topic)
        return [*(self._words.number(word) for word in words), *[-1] * (width - len(words))]


def _width(entries: PopulationEntries, topic: str | None) -> int:
    """The most interests that anybody can have."""
    widths = [1]
    for entry in entries:
        if isinstance(entry, PersonEntry) and entry.interests is not None:
            widths.append(len(entry.interests))
        elif isinstance(entry, FileEntry):
            given = entry.roster.column("interests")
            widths.append(max(_EVERYDAY.pick[1] if words is None else len(words) for words in given))
        else:
            choice = entry.interests if isinstance(entry, GroupEntry) and entry.interests is not None else _EVERYDAY
            widths.append(min(choice.pick[1], len(choice.among)))
    return max(widths) + (topic is not None)


def _trait_columns(entries: PopulationEntries, count: int) -> dict[str, Column]:
    """A column of numbers for a trait that is a number wherever it is stated, a column of texts for any other."""
    numeric: dict[str, bool] = {}
    for entry in entries:
        if isinstance(entry, FileEntry):
            texts = {name: _has_texts(values) for name, values in entry.roster.traits.items()}
        else:
            texts = {name: _is_text(value) for name, value in entry.traits.items()}
        for name, is_text in texts.items():
            numeric[name] = numeric.get(name, True) and not is_text
    return {name: np.full(count, np.nan) if is_number else Labels(count) for name, is_number in numeric.items()}


def _is_text(value: object) -> bool:
    return isinstance(value, (str, dict, list, bool)) or value is None


def _has_texts(values: Sequence[object]) -> bool:
    return any(_is_text(value) for value in values if value is not None)


def _put_traits(column: Column, where: slice, values: Sequence[Any]) -> None:
    if isinstance(column, Labels):
        column.put_each(where, [None if value is None else str(value) for value in values])
    else:
        column[where] = _numbers(values, np.nan)


def _numbers(values: Sequence[float | None], otherwise: float) -> list[float]:
    return [otherwise if value is None else value for value in values]


def _usual(field: str) -> float:
    """What somebody has who does not say."""
    return float(PersonEntry.model_fields[field].default)


def _put_trait(column: Column | None, number: int, value: object) -> None:
    if isinstance(column, Labels):
        column.put_one(number, None if value is None else str(value))
    elif column is not None and isinstance(value, (int, float)):
        column[number] = value


def _labels(column: Column) -> Labels:
    if not isinstance(column, Labels):
        raise TypeError("a trait with weights has a column of texts")
    return column


def _mask(hours: Sequence[int]) -> int:
    return sum(1 << hour % _HOURS_PER_DAY for hour in hours)


def _junior(name: str, taken: set[str]) -> str:
    while name in taken:
        name += " Jr."
    return name
