"""One kind of world: everything that the rest of the package needs to know about it, in one object."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from shoal.types import Observation, Versioned, WorldProtocol
from shoal.worlds.base import Needs, WorldContext
from shoal.worlds.clock import Clock
from shoal.worlds.lexicon import CompareTexts
from shoal.worlds.rendering import ObservationRenderer

_EXAMPLES: dict[type, Any] = {int: 12, float: 1.5, str: "...", bool: True, list: ["..."]}


#: Where something stands in the settings, such as `("pairs", 2, 0)`.
Path = tuple[str | int, ...]
#: A person by name or number.
Who = str | int


class WorldSettings(BaseModel):
    """The settings of one world. What a kind of world does not override holds for worlds of the user's own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str

    @property
    def compares_meaning(self) -> bool:
        """Whether the world compares texts by meaning, for which it needs their vectors."""
        return False

    def mentions(self) -> Iterator[tuple[Path, Who]]:
        """Yield the people that the settings name, and where."""
        yield from ()

    def groups(self) -> Iterator[tuple[Path, str]]:
        """Yield the groups that the settings name, and where."""
        yield from ()

    def problems(self, number: Callable[[Who], Who]) -> Iterator[tuple[Path, str]]:
        """Yield what is wrong with the people that the settings name, and where; `number` turns names into numbers."""
        yield from ()

    def offers(self, action: str) -> bool:
        """Return whether the world has an action of this kind for language models."""
        return True

    def rounds_needed(self) -> int | None:
        """Return the rounds after which the world is over by itself, or None where it goes on for ever."""
        return None

    def without_early_end(self) -> Self:
        """Return the settings with which the world lasts as long as it can."""
        return self

    def least_turns(self, acting: int) -> int | None:
        """Return the fewest turns that a world takes if it ends as early as possible; None where it cannot end early.

        `acting` is the number of agents that act in the busiest of the first rounds.
        """
        return None


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of an action, described for language models."""

    #: The name that models write.
    name: str
    value_type: type = str
    is_needed: bool = True
    #: The name that the world uses, where it is another one.
    meant: str = ""
    #: The least and the most that a whole number may be.
    bounds: tuple[int, int] | None = None
    #: What the argument names: a `user`, `person`, `post`, `comment` or `group`. Then a name may stand for a number.
    names: str = ""

    @property
    def argument(self) -> str:
        return self.meant or self.name

    def example(self) -> Any:
        return _EXAMPLES.get(self.value_type, "...")


@dataclass(frozen=True, slots=True)
class ActionCard:
    """One kind of action, described for language models."""

    kind: str
    arguments: tuple[Argument, ...] = ()
    meaning: str = ""
    #: What an agent remembers to have done, as in `You liked ...`.
    past: str = ""

    @property
    def needs(self) -> Needs:
        """The names and types of the arguments that the world needs."""
        needed = [argument for argument in self.arguments if argument.is_needed]
        return {one.argument: int if one.names == "user" else one.value_type for one in needed}

    def line(self, *, is_brief: bool = False) -> str:
        """Return `LIKE_POST(post_id): like a post`, or the first half of it."""
        names = ", ".join(argument.name + ("" if argument.is_needed else "?") for argument in self.arguments)
        return f"{self.kind}({names})" + (f": {self.meaning}" if self.meaning and not is_brief else "")


@dataclass(frozen=True, slots=True)
class WorldRules:
    """The rules of one world, described for language models."""

    place: str
    actions: tuple[ActionCard, ...]
    notes: str = ""
    #: The same in a few words, for small models; empty where the long form will do.
    brief_place: str = ""
    brief_notes: str = ""
    #: Rounds until an agent learns the results of its actions.
    visibility: int = 1


#: Events that can happen in every world.
COMMON_EVENTS = frozenset({"broadcast", "change", "context", "mute", "stop", "seat", "give_back", "skip"})
#: The action that exists in every world.
NOTHING = ActionCard("DO_NOTHING", (), "only look on, as people mostly do", "only looked on")


@dataclass(frozen=True, slots=True)
class SummaryContext:
    """What the summary of a world is read from."""

    database: sqlite3.Connection
    #: The settings of the world.
    settings: Any
    topic: str | None
    clock: Clock
    #: The last committed round.
    last_round: int
    #: Opinion at the start -> agents, where the run lists all people.
    camps: Mapping[str, Sequence[int]] | None
    #: Compares texts by their meaning, where this can be done.
    compare: CompareTexts | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that a person said."""

    round: int
    speaker: str
    #: The person addressed; None where all within hearing were.
    target: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldKind:
    """One kind of world."""

    #: What a scenario writes under `kind` -> the place, described for language models.
    places: Mapping[str, str]
    settings: type[WorldSettings]
    observation: type[Observation]
    build: Callable[[str, Versioned[Any], WorldContext], WorldProtocol]
    #: Kind of action -> names of the arguments it needs.
    actions: Mapping[str, Iterable[str]]
    #: Events that can happen here, besides those that can happen everywhere.
    events: frozenset[str]
    #: All actions that language models can be told about.
    cards: tuple[ActionCard, ...]
    renderer: ObservationRenderer[Any]
    #: Reads figures from the database that only this kind has, as fields of a world's summary.
    summarise: Callable[[SummaryContext], Mapping[str, Any]]
    #: Actions with which an agent ends something before its time.
    ending_actions: frozenset[str] = frozenset()
    #: What language models should know besides the actions.
    notes: str = ""
    #: The places and the notes in a few words, for small models.
    brief_places: Mapping[str, str] = field(default_factory=dict)
    brief_notes: str = ""
    #: A setting of the world that is worth changing in a fork, as an example for users.
    example_change: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.places)

    def rules(self, settings: Any) -> WorldRules:
        """Describe a world with these settings for language models."""
        offered = tuple(card for card in self.cards if settings.offers(card.kind))
        brief = self.brief_places.get(settings.kind, "")
        return WorldRules(self.places[settings.kind], offered, self.notes, brief, self.brief_notes)

    def accepts_event(self, event: str) -> bool:
        return event in COMMON_EVENTS or event in self.events
