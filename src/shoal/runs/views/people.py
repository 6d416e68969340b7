"""The people of a run as pages list them: who they are, what they think, how much they did and how much it moved."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Literal

from shoal.runs.directory import CONFIG, RunDirectory
from shoal.runs.reports import find_opinions, open_world
from shoal.runs.views.activity import WorldActivity
from shoal.runs.views.figures import name_subject
from shoal.runs.views.pages import ViewPage
from shoal.scenario import People, sample
from shoal.types import Persona

PeopleOrder = Literal["number", "name", "opinion", "actions", "followers", "influence"]

#: The populations of this many runs are kept, as drawing one takes a while where it is large.
_MAX_DRAWN = 8
_MAX_TRAIT_CHARS = 80
_EVER = 1 << 60


@dataclass(frozen=True, slots=True)
class PersonCard:
    """One person of a run; figures are summed over the worlds, the opinion is the mean over them."""

    agent_id: int
    name: str
    traits: dict[str, str | float | None]
    opinion: float | None
    #: What the person did up to the round, beside looking on.
    actions: int
    followers: int
    #: How often others liked or passed on what the person wrote.
    influence: int


@dataclass(frozen=True, slots=True)
class PeopleFilter:
    """Which people are wanted, and in which order."""

    words: str = ""
    order: PeopleOrder = "number"
    #: Figures are those after this round; None: as they are now.
    round: int | None = None


class PeopleReader:
    """Reads the people of runs. A population is drawn once, for as long as the run's input stays the same."""

    def __init__(self) -> None:
        self._drawn: OrderedDict[tuple[Path, int, int], People] = OrderedDict()
        self._drawing = Lock()

    def draw(self, run: RunDirectory) -> People:
        """Return the people of a run."""
        scenario = run.scenario
        key = run.path, run.file(CONFIG).stat().st_mtime_ns, len(run.scenario_versions.changes)
        with self._drawing:
            if key not in self._drawn:
                self._drawn[key] = sample(scenario)
            self._drawn.move_to_end(key)
            if len(self._drawn) > _MAX_DRAWN:
                self._drawn.popitem(last=False)
            return self._drawn[key]

    def read_page(self, run: RunDirectory, wanted: PeopleFilter, offset: int, limit: int) -> ViewPage[PersonCard]:
        """List some people. Of all of them, only the figure is counted that decides about the order."""
        people = self.draw(run)
        words = wanted.words.casefold().split()
        names = enumerate(map(str.casefold, people.names))
        numbers = [number for number, name in names if all(word in name for word in words)]
        if wanted.order == "name":
            numbers.sort(key=lambda number: (people.names[number].casefold(), number))
        elif wanted.order != "number":
            values = _PeopleFigures.read(run, None, wanted.round, wanted.order).find_order(wanted.order)
            numbers.sort(key=lambda number: (-values.get(number, -_EVER), number))
        shown = numbers[offset : offset + limit]
        figures = _PeopleFigures.read(run, shown, wanted.round)
        following = str(offset + limit) if offset + limit < len(numbers) else None
        return ViewPage([figures.describe(number, people[number]) for number in shown], len(numbers), following)


class _PeopleFigures:
    """What was counted of some people, or of all."""

    def __init__(self) -> None:
        self.actions: Counter[int] = Counter()
        self.followers: Counter[int] = Counter()
        self.influence: Counter[int] = Counter()
        self._opinions: dict[int, list[float]] = {}

    @classmethod
    def read(
        cls, run: RunDirectory, agents: Collection[int] | None, round: int | None, only: PeopleOrder | None = None
    ) -> _PeopleFigures:
        """Count for these people, or for all where none are named; `only` names the one figure that is wanted."""
        figures, about = cls(), name_subject(run)
        for world in run.worlds:
            with open_world(run, world) as database:
                if database is not None:
                    activity = WorldActivity(run, database, round)
                    if only in (None, "actions"):
                        figures.actions += activity.count_actions(agents)
                    if only in (None, "followers"):
                        figures.followers += activity.count_followers(agents)
                    if only in (None, "influence"):
                        figures.influence += activity.count_reactions(agents)
                    if only in (None, "opinion"):
                        for agent, value in find_opinions(database, about, round, agents).items():
                            figures._opinions.setdefault(agent, []).append(value)
        return figures

    def find_opinion(self, agent: int) -> float | None:
        values = self._opinions.get(agent)
        return None if not values else round(sum(values) / len(values), 4)

    def find_order(self, order: PeopleOrder) -> Mapping[int, float]:
        """Return each person's figure by which people are put in order."""
        if order == "opinion":
            return {agent: sum(values) / len(values) for agent, values in self._opinions.items()}
        figures: Mapping[str, Mapping[int, float]] = {
            "actions": self.actions,
            "followers": self.followers,
            "influence": self.influence,
        }
        return figures[order]

    def describe(self, number: int, person: Persona) -> PersonCard:
        return PersonCard(
            agent_id=number,
            name=person.name,
            traits=list_traits(person),
            opinion=self.find_opinion(number),
            actions=self.actions[number],
            followers=self.followers[number],
            influence=self.influence[number],
        )


def list_traits(person: Persona) -> dict[str, str | float | None]:
    """Return the traits of a person that fit into a table."""
    traits: dict[str, str | float | None] = {}
    for name, value in person.traits.items():
        if value is None or isinstance(value, float | int):
            traits[name] = value
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            traits[name] = text if len(text) <= _MAX_TRAIT_CHARS else text[: _MAX_TRAIT_CHARS - 1] + "…"
    if person.interests:
        traits["interests"] = ", ".join(person.interests)
    return traits
