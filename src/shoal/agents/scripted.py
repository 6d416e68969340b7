"""Agents that do what is written down, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from shoal.agents.settings import ScriptedSettings, ScriptedTurn
from shoal.errors import ScenarioInvalid
from shoal.types import Action, Decision, Mind, Observation

Play = Callable[[Observation], Sequence[Action]]


class ScriptedMind(Mind):
    """Plays its part as if somebody outside had been asked."""

    outside: ClassVar[bool] = True

    def __init__(self, play: Play, delay: Callable[[Observation], float] | None = None) -> None:
        super().__init__()
        self._play = play
        self._delay = delay
        #: (round, agent) of every decision that was really asked for, in order.
        self.asked: list[tuple[int, int]] = []

    @classmethod
    def from_turns(
        cls,
        settings: ScriptedSettings,
        names: Sequence[str],
        world: str,
        delay: Callable[[Observation], float] | None = None,
    ) -> ScriptedMind:
        """Plays the turns that a scenario lists for this world; several for one agent and round are one turn."""
        numbers = {name: number for number, name in reversed(list(enumerate(names)))}
        script: dict[tuple[int, int], list[Action]] = {}
        for turn in settings.turns:
            if turn.world in (None, world):
                agent = _number(turn, numbers, len(names))
                script.setdefault((turn.round, agent), []).append(Action(turn.action, dict(turn.args)))
        return cls(lambda observation: script.get((observation.round, observation.agent), ()), delay)

    async def decide(self, observation: Observation) -> Decision:
        self.asked.append((observation.round, observation.agent))
        if self._delay is not None:
            await asyncio.sleep(self._delay(observation))
        return Decision(tuple(self._play(observation)) or (Action("DO_NOTHING"),))


def _number(turn: ScriptedTurn, numbers: Mapping[str, int], people: int) -> int:
    """The agent's number, by name or number; the first of those who share a name."""
    agent = turn.agent if isinstance(turn.agent, int) else numbers.get(turn.agent)
    if agent is None or not 0 <= agent < people:
        raise ScenarioInvalid([f"mind.turns: round {turn.round}: there is no agent {turn.agent!r}"])
    return agent
