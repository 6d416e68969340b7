"""Agents that do what a script lists, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar

from shoal.agents.settings import ScriptedSettings
from shoal.errors import ScenarioInvalid
from shoal.types import Action, Decision, Mind, Observation
from shoal.worlds import NameIndex

Play = Callable[[Observation], Sequence[Action]]


class ScriptedMind(Mind):
    """Takes each turn from a script, journaled like a reply from outside."""

    outside: ClassVar[bool] = True

    def __init__(self, play: Play, delay: Callable[[Observation], float] | None = None) -> None:
        super().__init__()
        self._play = play
        self._delay = delay
        #: (round, agent) of every decision that did not come from the journal, in order.
        self.asked: list[tuple[int, int]] = []

    @classmethod
    def from_turns(
        cls,
        settings: ScriptedSettings,
        names: Sequence[str],
        world: str,
        delay: Callable[[Observation], float] | None = None,
    ) -> ScriptedMind:
        """Build the mind of one world from the turns in a scenario. Several for one agent and round are one turn."""
        people = NameIndex(names)
        script: dict[tuple[int, int], list[Action]] = {}
        for turn in settings.turns:
            if turn.world in (None, world):
                agent = people.find(turn.agent)
                if agent is None:
                    raise ScenarioInvalid([f"mind.turns: round {turn.round}: there is no agent {turn.agent!r}"])
                script.setdefault((turn.round, agent), []).append(turn.build_action())
        return cls(lambda observation: script.get((observation.round, observation.agent), ()), delay)

    async def decide(self, observation: Observation) -> Decision:
        self.asked.append((observation.round, observation.agent))
        if self._delay is not None:
            await asyncio.sleep(self._delay(observation))
        return Decision(tuple(self._play(observation)) or (Action("DO_NOTHING"),))
