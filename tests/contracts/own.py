"""A world and a mind as a user would write them: a pot that people fill and empty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from shoal.seeds import Draws, derive
from shoal.types import Action, Decision, Event, Happening, Mind, Observation
from shoal.worlds.base import BaseWorld, Needs, Rejected, ViewObservation, WorldContext
from tests.worlds.context import make_context

PEOPLE = 8
OWN_EVENTS = (
    (2, Happening("broadcast", "The pot is for everybody.")),
    (3, Happening("mute", "for 2 rounds", to=(1, 4), args={"rounds": 2})),
    (5, Happening("broadcast", "Only for you.", to=(2,))),
    (6, Happening("rain", "It rains into the pot.")),
)
OWN_IMPOSSIBLE = (
    Action("FLY"),
    Action("put", {"coins": 1}),
    Action("PUT"),
    Action("PUT", {"coins": None}),
    Action("PUT", {"coins": "1"}),
    Action("PUT", {"coins": True}),
    Action("PUT", {"coins": 1.0}),
    Action("PUT", {"coins": -1}),
    Action("SAY", {"content": 5}),
)


class Thrifty(Mind):
    """Puts in what chance says, and takes when there is enough."""

    def decide(self, observation: Observation) -> Decision:
        assert isinstance(observation, ViewObservation)
        draws = Draws(derive(self.given.seed, observation.world, observation.round, observation.agent, "thrift"))
        if observation.view["pot"] >= self.settings.get("enough", 6):
            return Decision((Action("TAKE", {"coins": 1 + draws.below(3)}),))
        coins = Action("PUT", {"coins": draws.below(3)})
        return Decision((coins, Action("SAY", {"content": f"{observation.view['pot']} in the pot"})))


class Pot(BaseWorld):
    """Coins come in and go out. The world ends when the pot has held as much as the settings say."""

    actions: ClassVar[Mapping[str, Needs]] = {"PUT": {"coins": int}, "TAKE": {"coins": int}, "SAY": {"content": str}}
    tables = "CREATE TABLE coin (round INTEGER, agent_id INTEGER, coins INTEGER);"
    mind = Thrifty

    def __init__(self, name: str, given: WorldContext, settings: Any = None) -> None:
        super().__init__(name, given, settings)
        self._pot = 0
        self._full = (settings or {}).get("full")

    @property
    def over(self) -> bool:
        return self._full is not None and self._pot >= self._full

    def view(self, round: int, agent: int) -> dict[str, Any]:
        return {"pot": self._pot}

    def act(self, round: int, agent: int, action: Action) -> dict[str, Any] | None:
        if action.kind == "SAY":
            return None
        coins: int = action.args["coins"]
        if coins < 0 or (action.kind == "TAKE" and coins > self._pot):
            raise Rejected(f"there are {self._pot} coins in the pot")
        self._pot += coins if action.kind == "PUT" else -coins
        self.add("INSERT INTO coin VALUES (?,?,?)", round, agent, coins)
        return {"coins": coins, "pot": self._pot}


class Broken(Pot):
    """Cannot be built."""

    def __init__(self, name: str, given: WorldContext, settings: Any = None) -> None:
        raise KeyError("nothing to build it from")


class Mindless(BaseWorld):
    """Does not say what decides in it."""


not_a_class = 5


def own_world() -> Pot:
    return Pot("pot", make_context(PEOPLE, [(0, 1)]), {})


class OwnActions:
    """Invents actions of every kind."""

    def learn(self, events: Iterable[Event]) -> None:
        """There is nothing to learn: the pot is always the pot."""

    def invent(self, draws: Draws) -> Action:
        if draws.chance(0.1):
            return draws.choice((*OWN_IMPOSSIBLE, Action("DO_NOTHING", {"why": "no reason"})))
        kind = draws.choice(tuple(Pot.actions))
        return Action(kind, {"content": "Ünïcödé 今天 \0 '; --"} if kind == "SAY" else {"coins": draws.below(5)})
