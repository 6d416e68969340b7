"""One kind of world: everything that the rest of the package needs to know about it, in one object."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.types import Observation, Versioned, WorldProtocol
from shoal.worlds.clock import Clock
from shoal.worlds.context import WorldContext
from shoal.worlds.playing import PlayAdapter
from shoal.worlds.rendering import ObservationRenderer
from shoal.worlds.settings import WorldSettings

_EXAMPLES: dict[type, Any] = {int: 12, float: 1.5, str: "...", bool: True, list: ["..."]}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of an action, described for language models."""

    #: The name that models write.
    name: str
    value_type: type = str
    is_needed: bool = True
    #: The name that the world uses, where it is another one.
    meant: str = ""
    #: What the argument names: a `user`, a `person`, a `post` or a `group`. Then a name may stand for a number.
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

    def line(self) -> str:
        """Return `LIKE_POST(post_id): like a post`."""
        names = ", ".join(argument.name + ("" if argument.is_needed else "?") for argument in self.arguments)
        return f"{self.kind}({names})" + (f": {self.meaning}" if self.meaning else "")


@dataclass(frozen=True, slots=True)
class WorldRules:
    """The rules of one world, described for language models."""

    place: str
    actions: tuple[ActionCard, ...]
    notes: str = ""


#: Events that can happen in every world.
COMMON_EVENTS = frozenset({"broadcast", "change", "mute", "stop", "skip"})
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


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that a person said."""

    round: int
    speaker: str
    #: The person addressed; None where all within hearing were.
    target: str | None
    text: str


def no_summary(context: SummaryContext) -> Mapping[str, Any]:
    """Return no figures besides those that every world has."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldKind:
    """One kind of world."""

    #: What a scenario writes under `kind`; a kind may have several flavours.
    names: tuple[str, ...]
    settings: type[WorldSettings]
    observation: type[Observation]
    build: Callable[[str, Versioned[Any], WorldContext], WorldProtocol]
    #: Kind of action -> names of the arguments it needs.
    actions: Mapping[str, Iterable[str]]
    #: Events that can happen here, besides those that can happen everywhere.
    events: frozenset[str]
    #: All actions that language models can be told about.
    cards: tuple[ActionCard, ...]
    rules: Callable[[Any], WorldRules]
    renderer: ObservationRenderer[Any]
    play: PlayAdapter[Any]
    #: Actions with which an agent ends something before its time.
    ending_actions: frozenset[str] = frozenset()
    #: A setting of the world that is worth changing in a fork, as an example for users.
    example_change: str = ""
    #: Reads figures from the database that only this kind has, as fields of a world's summary.
    summarise: Callable[[SummaryContext], Mapping[str, Any]] = no_summary

    def accepts_event(self, event: str) -> bool:
        return event in COMMON_EVENTS or event in self.events
