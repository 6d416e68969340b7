"""Conversations for the contract tests: how to build some, and how to act in them at random."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.seeds import Draws
from shoal.types import Action, Event, Happening
from shoal.worlds.dialogue.world import Dialogue
from tests.worlds.drivers import make_dialogue

PEOPLE = 8
DIALOGUE_EVENTS = (
    (0, Happening("broadcast", "Doors open.")),
    (2, Happening("mute", to=(1,), args={"rounds": 2})),
    (3, Happening("broadcast", "Breaking news.", to=(1, 2))),
    (5, Happening("change", to=(3,), args={"stance": 0.5})),
)
DIALOGUE_IMPOSSIBLE = (
    Action("FLY"),
    Action("say", {"content": "Hello."}),
    Action(""),
    Action("SAY"),
    Action("SAY", {"content": None}),
    Action("SAY", {"content": 5}),
    Action("THINK"),
    Action("THINK", {"content": ["Hm."]}),
    Action("RATE"),
    Action("RATE", {"score": "7"}),
    Action("RATE", {"score": 7.0}),
    Action("RATE", {"score": True}),
)
TEXTS = (
    "I love the campus curfew.",
    "I doubt the campus curfew.",
    "Football!",
    "Ünïcödé 今天 \0 '; --",
    "",
    " ",
    "x" * 500,
)


def dialogue_world(score: bool) -> Dialogue:
    """Two short scenes, which end early now and then."""
    scenes = [{"setting": "A kitchen.", "turning_point": "The phone rings.", "turns": 4}, {"turns": 3}]
    return make_dialogue(
        PEOPLE, scenes=scenes, score=score, stop={"said": ["football"], "silence": 3, "agreement": 0.1}
    )


class DialogueActions:
    """Invents actions of every kind, in and out of season."""

    def learn(self, events: Iterable[Event]) -> None:
        """There is nothing to act upon but the other."""

    def invent(self, draws: Draws) -> Action:
        kind = draws.choice(("SAY", "SAY", "SAY", "THINK", "RATE", "RATE", "LEAVE", "DO_NOTHING", "FLY"))
        return Action(kind, self._args(kind, draws))

    @staticmethod
    def _args(kind: str, draws: Draws) -> dict[str, Any]:
        if kind in ("SAY", "THINK"):
            opinion = draws.choice((None, None, 0.5, -1, 1, 2, "much", float("nan")))
            return {"content": draws.choice(TEXTS)} | ({} if opinion is None else {"opinion": opinion})
        if kind == "RATE":
            return {"score": draws.choice((-1, 0, 7, 10, 11, 10**30)), "reason": draws.choice(("Fine.", None, 3))}
        return {}
