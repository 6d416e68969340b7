"""Samples the people of a scenario from its population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.scenario.declared.distributions import GENDERS, STANCE_WORDS, Distribution, Interests, Normal
from shoal.scenario.declared.population import (
    AssistantEntry,
    FileEntry,
    GroupEntry,
    MarginalsEntry,
    PersonEntry,
    PopulationEntries,
    count_entry,
    count_people,
    find_own_names,
    number_entries,
)
from shoal.scenario.importers.marginals import parse_ages
from shoal.scenario.importers.people_file import PeopleTable
from shoal.scenario.sampling.draws import Floats, draw_subsets, find_quantiles, pick_options
from shoal.scenario.sampling.fitting import GrownAttribute, MarginalFit, grow_people, measure_fit
from shoal.scenario.sampling.people import USUAL, Column, Labels, People, fill_habits
from shoal.scenario.sampling.profiles import draw_names
from shoal.scenario.scenario import Scenario
from shoal.seeds import derive, uniforms

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
#: Decimals that are kept, few enough for all machines to agree.
_DECIMALS = 3


def _to_mask(hours: Sequence[int]) -> int:
    return sum(1 << hour % 24 for hour in hours)


#: The hours of people who do not state theirs: they get up at 6, 7, 8 or 9, and are awake for 16 hours.
_DAYS = np.array([_to_mask(range(start, start + 16)) for start in (6, 7, 8, 9)], dtype=np.uint32)


def sample(scenario: Scenario) -> People:
    """Sample the people of the scenario. What is drawn for one entry does not depend on the entries after it."""
    return _Sampler(scenario).fill()


def measure_group_fit(scenario: Scenario, number: int) -> list[MarginalFit]:
    """Measure how well the people of an entry that is grown from tables fit each of them."""
    entry = scenario.population[number]
    assert isinstance(entry, MarginalsEntry)
    grown = grow_people(entry.tables, entry.count, _derive_key(scenario.seed, number, "grown"))
    return [*measure_fit(entry.tables, grown)]


def _derive_key(seed: int, entry: int, *purpose: str) -> int:
    return derive(seed, "population", entry, *purpose)


class _Sampler:
    def __init__(self, scenario: Scenario) -> None:
        self._seed, self._topic, self._entries = scenario.seed, scenario.topic, scenario.population
        count = count_people(self._entries)
        widths = [1]
        for entry in self._entries:
            if isinstance(entry, GroupEntry):
                choice = entry.interests or _EVERYDAY
                widths.append(min(choice.pick[1], len(choice.among)))
            else:
                interests = [entry.interests] if isinstance(entry, PersonEntry) else entry.roster.column("interests")
                drawn = entry.interests_from
                most = 0 if drawn is None else min(drawn.pick[1], len(drawn.among))
                widths += [most if words is None else len(words) for words in interests]
        self._people = People(count, max(widths) + (self._topic is not None), self._topic)
        self._people.traits = _make_trait_columns(self._entries, count)
        self._words = Labels(0)

    def fill(self) -> People:
        people = self._people
        if self._topic is not None:
            self._words.number(self._topic)
        listed: dict[int, PersonEntry] = {}
        rosters: dict[int, PeopleTable] = {}
        assistants: set[int] = set()
        for number, (start, entry) in enumerate(number_entries(self._entries)):
            where = slice(start, start + count_entry(entry))
            if isinstance(entry, GroupEntry):
                self.fill_group(number, entry, where)
            else:
                self.fill_roster(number, entry, where)
            if isinstance(entry, PersonEntry):
                listed[start] = entry
            elif entry.group is not None:
                people.groups.put(where, [entry.group], np.zeros(count_entry(entry), dtype=np.int64))
            if isinstance(entry, FileEntry | AssistantEntry):
                rosters[start] = entry.roster
            if isinstance(entry, AssistantEntry):
                assistants.update(range(where.start, where.stop))
            elif isinstance(entry, GroupEntry) and (entry.persona or entry.bio):
                people.templates.append((where, entry.persona, entry.bio))
        people.names = self.draw_names()
        people.topics = self._words.words
        people.assistants = frozenset(assistants)
        people.enlist(listed, rosters, find_own_names(self._entries, "username"))
        return people

    def derive_key(self, entry: int, *purpose: str) -> int:
        return _derive_key(self._seed, entry, *purpose)

    def draw_uniforms(self, entry: int, count: int, *purpose: str) -> Floats:
        return uniforms(self.derive_key(entry, *purpose), np.arange(count))

    def draw_names(self) -> list[str]:
        """Draw names; a drawn name that is also stated somewhere gets `Jr.`, so that names stay unique."""
        result = draw_names(self._seed, self._people.genders)
        own_names = find_own_names(self._entries, "name")
        taken = set(own_names.values())
        for number in [number for number, name in enumerate(result) if name in taken]:
            while result[number] in taken:
                result[number] += " Jr."
        for number, name in own_names.items():
            result[number] = name
        return result

    def fill_group(self, entry: int, group: GroupEntry, where: slice) -> None:
        people, count = self._people, group.count
        tables = group.tables if isinstance(group, MarginalsEntry) else ()
        grown = grow_people(tables, count, self.derive_key(entry, "grown"))
        u = self.draw_uniforms(entry, count, "age")
        ages = _draw_ages(grown["age"], u) if "age" in grown else np.rint(find_quantiles(group.age, u, 0, 120))
        people.ages[where] = ages
        genders = np.array([GENDERS.index(word) for word in group.gender], dtype=np.int8)
        people.genders[where] = genders[pick_options(group.gender, self.draw_uniforms(entry, count, "gender"))]
        if group.country is not None:
            countries = pick_options(group.country, self.draw_uniforms(entry, count, "country"))
            people.countries.put(where, list(group.country), countries)
        u = self.draw_uniforms(entry, count, "profession")
        if group.profession is not None:
            people.professions.put(where, list(group.profession), pick_options(group.profession, u))
        else:
            jobs = np.floor(u * len(COMMON_PROFESSIONS)).astype(np.int64)
            jobs[people.ages[where] < STUDENTS_ARE_UNDER] = len(COMMON_PROFESSIONS)
            jobs[people.ages[where] >= PENSIONERS_ARE_FROM] = len(COMMON_PROFESSIONS) + 1
            people.professions.put(where, [*COMMON_PROFESSIONS, STUDENT, PENSIONER], jobs)
        u = self.draw_uniforms(entry, count, "stance")
        if group.stance is not None:
            stances = find_quantiles(group.stance, u, -1, 1)
        else:
            shares = dict(enumerate(share for share, _ in CAMPS))
            camps = pick_options(shares, self.draw_uniforms(entry, count, "camp"))
            stances = np.choose(camps, [find_quantiles(camp, u, -1, 1) for _, camp in CAMPS])
        people.stances[where] = np.round(stances, _DECIMALS)
        activity = find_quantiles(group.activity, self.draw_uniforms(entry, count, "activity"), 0, 1)
        people.activity[where] = np.round(activity, _DECIMALS)
        people.active_hours[where] = self.draw_hours(entry, count, group.active_hours)
        self.draw_interests(entry, where, group.interests or _EVERYDAY)
        for name, distribution in group.traits.items():
            self.fill_trait(entry, where, name, distribution)
        self.fill_grown(grown, where)

    def fill_grown(self, grown: Mapping[str, GrownAttribute], where: slice) -> None:
        """Fill in what was grown from tables, except for ages, which others depend on."""
        people = self._people
        columns = {"country": people.countries, "profession": people.professions}
        for attribute, (values, codes) in grown.items():
            if attribute == "gender":
                people.genders[where] = np.array([GENDERS.index(word) for word in values], dtype=np.int8)[codes]
            elif attribute == "stance":
                stances = [STANCE_WORDS[word] if word in STANCE_WORDS else float(word) for word in values]
                people.stances[where] = np.array(stances)[codes]
            elif attribute != "age":
                column = columns[attribute] if attribute in columns else people.traits[attribute]
                assert isinstance(column, Labels)
                column.put(where, values, codes)

    def draw_hours(self, entry: int, count: int, hours: Sequence[int] | None) -> NDArray[np.uint32]:
        if hours is not None:
            return np.full(count, _to_mask(hours), dtype=np.uint32)
        return _DAYS[np.floor(self.draw_uniforms(entry, count, "hours") * len(_DAYS)).astype(np.int64)]

    def draw_interests(
        self, entry: int, where: slice, choice: Interests, keen_share: float | Floats = TOPIC_SHARE
    ) -> None:
        """Draw interests for the people in the slice; a share of them has the topic as their first one."""
        words, count = list(choice.among), where.stop - where.start
        low, high = choice.pick
        sizes = low + np.floor(self.draw_uniforms(entry, count, "pick") * (high - low + 1)).astype(np.int64)
        chosen = draw_subsets(list(choice.among.values()), sizes, self.derive_key(entry, "interests"))
        codes = np.array([*(self._words.number(word) for word in words), -1], dtype=np.int16)[chosen]
        rows, width = self._people.interests[where], codes.shape[1]
        rows[:, :width] = codes
        if self._topic is not None and self._topic not in words:
            keen = self.draw_uniforms(entry, count, "topic") < keen_share
            rows[keen, 1 : 1 + width] = codes[keen]
            rows[keen, 0] = 0

    def fill_trait(self, entry: int, where: slice, name: str, distribution: Distribution | dict[str, float]) -> None:
        column = self._people.traits[name]
        u = self.draw_uniforms(entry, where.stop - where.start, "trait", name)
        if isinstance(distribution, dict):
            assert isinstance(column, Labels)
            column.put(where, list(distribution), pick_options(distribution, u))
        elif isinstance(column, Labels):
            values, numbers = np.unique(np.round(find_quantiles(distribution, u), _DECIMALS), return_inverse=True)
            column.put(where, [f"{value:g}" for value in values], numbers)
        else:
            column[where] = np.round(find_quantiles(distribution, u), _DECIMALS)

    def fill_roster(self, entry: int, declared: PersonEntry | FileEntry | AssistantEntry, where: slice) -> None:
        """Fill in people who are stated in a file or by hand."""
        people, roster = self._people, declared.roster
        people.ages[where] = _replace_none(roster.column("age"), -1)
        people.genders[where] = [-1 if word is None else GENDERS.index(word) for word in roster.column("gender")]
        people.countries.put_each(where, roster.column("country"))
        people.professions.put_each(where, roster.column("profession"))
        people.activity[where] = _replace_none(
            roster.column("activity"), float(PersonEntry.model_fields["activity"].default)
        )
        stances = roster.column("stance")
        is_open = np.array([stance is None for stance in stances])
        people.stances[where] = _replace_none(stances, 0.0)
        if isinstance(declared, FileEntry) and declared.stance is not None:
            drawn = find_quantiles(declared.stance, self.draw_uniforms(entry, roster.count, "stance"), -1, 1)
            people.stances[where][is_open] = np.round(drawn, _DECIMALS)[is_open]
        else:
            people.has_stance[where] = ~is_open
        hours = self.draw_hours(entry, roster.count, None)
        stated = [(row, value) for row, value in enumerate(roster.column("active_hours")) if value is not None]
        hours[[row for row, _ in stated]] = [_to_mask(value) for _, value in stated]
        people.active_hours[where] = hours
        fill_habits(people.habits, len(people), where.start, {field: roster.column(field) for field in USUAL})
        self.fill_stated_interests(entry, roster, where, declared.interests_from)
        for name, values in roster.traits.items():
            traits = people.traits[name]
            if isinstance(traits, Labels):
                traits.put_each(where, [None if value is None else str(value) for value in values])
            else:
                traits[where] = _replace_none(values, np.nan)

    def fill_stated_interests(
        self, entry: int, roster: PeopleTable, where: slice, drawn_from: Interests | None
    ) -> None:
        """Fill in interests as stated, and the topic for people with an opinion.

        Interests that are not stated are drawn where the population asks for it, and else there are none.
        """
        stances, interests = self._people.stances[where], roster.column("interests")
        rows = self._people.interests[where]
        if drawn_from is None:
            interests = [() if words is None else words for words in interests]
        stated = [row for row, words in enumerate(interests) if words is not None]
        if drawn_from is not None and len(stated) < roster.count:
            self.draw_interests(entry, where, drawn_from, np.where(stances != 0, 1.0, TOPIC_SHARE))
        known: dict[tuple[tuple[str, ...], bool], list[int]] = {}
        codes = []
        for row, keen in zip(stated, (stances[stated] != 0).tolist(), strict=True):
            words = interests[row]
            if (words, keen) not in known:
                known[words, keen] = self.encode_interests(words, keen, rows.shape[1])
            codes.append(known[words, keen])
        if codes:
            rows[stated] = codes

    def encode_interests(self, interests: Sequence[str], keen: bool, width: int) -> list[int]:
        words = list(interests)
        if self._topic is not None and keen and self._topic not in words:
            words.insert(0, self._topic)
        return [*(self._words.number(word) for word in words), *[-1] * (width - len(words))]


def _make_trait_columns(entries: PopulationEntries, count: int) -> dict[str, Column]:
    """Make a column of numbers for each trait that is a number wherever it is stated, and of texts for any other."""
    numeric: dict[str, bool] = {}
    for entry in entries:
        if isinstance(entry, FileEntry):
            texts = {name: any(map(_is_text, values)) for name, values in entry.roster.traits.items()}
        else:
            texts = {name: value is None or _is_text(value) for name, value in entry.traits.items()}
            if isinstance(entry, MarginalsEntry):
                texts |= {name: True for name in entry.trait_names if name not in entry.traits}
        for name, is_text in texts.items():
            numeric[name] = numeric.get(name, True) and not is_text
    return {name: np.full(count, np.nan) if is_number else Labels(count) for name, is_number in numeric.items()}


def _draw_ages(grown: GrownAttribute, u: Floats) -> Floats:
    """Draw an age in each person's age group, all of them alike."""
    groups = np.array([parse_ages(value) for value in grown.values], dtype=np.int64)
    first, last = groups[grown.codes, 0], groups[grown.codes, 1]
    ages: Floats = np.floor(first + u * (last - first + 1))
    return ages


def _is_text(value: object) -> bool:
    return isinstance(value, (str, dict, list, tuple, bool))


def _replace_none(values: Sequence[float | None], default: float) -> list[float]:
    return [default if value is None else value for value in values]
