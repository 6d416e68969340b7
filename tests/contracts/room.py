"""Rooms for the contract tests: how to build one, and act in it at random."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from shoal.seeds import Draws
from shoal.types import Action, Event, Happening, Versioned
from shoal.worlds.room.settings import RoomSettings
from shoal.worlds.room.world import Room
from tests.worlds.context import NAMES, make_context

PEOPLE = 8
FOLLOWS = [(agent, (agent + step) % PEOPLE) for agent in range(PEOPLE) for step in (1, 3)]
RELATIONS = ({"between": ["Mira Berg", "Bo Li"], "relation": "sisters"}, {"between": [2, 3], "relation": "neighbours"})
ROOM_EVENTS = (
    (0, Happening("location", "the hall", to=(6, 7))),
    (0, Happening("goal", "Find out about the campus curfew.", to=(0,))),
    (2, Happening("hear", "A bell rings.", to=(1, 2, 3))),
    (3, Happening("see", "The lights go out.")),
    (4, Happening("think", "I should speak up.", to=(5,))),
    (5, Happening("broadcast", "I doubt the campus curfew.", agent=4)),
    (6, Happening("location", "the garden")),
)
IMPOSSIBLE = (
    Action("FLY"),
    Action("talk", {"content": "Hello."}),
    Action("TALK"),
    Action("TALK", {"content": None}),
    Action("TALK", {"content": " "}),
    Action("TALK", {"content": "Hello.", "target": "Nobody"}),
    Action("TALK", {"content": "Hello.", "target": 3}),
    Action("TALK", {"content": "Hello.", "target": "Luis Berg"}),
    Action("TALK", {"content": "Hello.", "opinion": 1.5}),
    Action("TALK", {"content": "Hello.", "opinion": float("nan")}),
    Action("TALK", {"content": "Hello.", "opinion": True}),
    Action("THINK", {"content": 5}),
    Action("REACH_OUT", {"target": "Nobody"}),
    Action("RELATE", {"target": "Bo Li"}),
    Action("RELATE", {"target": "Bo Li", "relation": ""}),
    Action("MOVE_TO", {"location": ""}),
    Action("ATTEND", {}),
)


def room_world(turns: str = "parallel", hearing: str = "everyone", **settings: Any) -> Room:
    """Eight people who know one another a little."""
    first = RoomSettings.model_validate({"turns": turns, "hearing": hearing, "relations": RELATIONS, **settings})
    return Room("room", Versioned(first), make_context(PEOPLE, FOLLOWS))


class RoomActions:
    """Invents actions of every kind, towards people who are there and others who are not."""

    _texts = ("I love gardening.", "I doubt the campus curfew.", "Ünïcödé 今天 \0 '; --", "", "x" * 500)
    _names = (*NAMES[:PEOPLE], "bo li", "Nobody")

    def learn(self, events: Iterable[Event]) -> None:
        """There are only people to act upon, and they do not change."""

    def invent(self, draws: Draws) -> Action:
        if draws.chance(0.05):
            return draws.choice((*IMPOSSIBLE, Action("DONE"), Action("DO_NOTHING", {"why": "no reason"})))
        kind = draws.choice(("TALK", "TALK", *(kind for kind in Room.actions if kind != "DONE")))
        args = {name: self._argument(name, draws) for name in Room.actions[kind]}
        if kind == "TALK" and draws.chance(0.4):
            args["target"] = self._argument("target", draws)
        if kind == "TALK" and draws.chance(0.4):
            args["opinion"] = draws.choice((-1, 0.25, 1.0, 7))
        return Action(kind, args)

    def _argument(self, name: str, draws: Draws) -> Any:
        options: dict[str, Sequence[str]] = {
            "target": self._names,
            "relation": ("friends", "rivals", ""),
            "location": ("the hall", "the garden", ""),
        }
        return draws.choice(options.get(name, self._texts))
