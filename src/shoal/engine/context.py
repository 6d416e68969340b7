"""The situation that agents are in: texts that they see in every turn, until they change."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from shoal.types import Observation


class Contexts:
    """The contexts of all agents of a world, by round, as rounds may overlap."""

    def __init__(self) -> None:
        #: First round, agents (empty: all) and texts, in the order of rounds.
        self._changes: list[tuple[int, frozenset[int], tuple[str, ...]]] = []

    def change(self, round: int, agents: Collection[int], texts: Sequence[str]) -> None:
        """Replace the context of these agents, or of all, from a round on. Rounds come in order."""
        self._changes.append((round, frozenset(agents), tuple(texts)))

    def at(self, round: int, agent: int) -> tuple[str, ...]:
        """Return the context of an agent in a round."""
        for since, agents, texts in reversed(self._changes):
            if since <= round and (not agents or agent in agents):
                return texts
        return ()

    def add_to(self, observations: Sequence[Observation]) -> Sequence[Observation]:
        """Return the observations with the context of the agents that have one."""
        if not self._changes:
            return observations
        return [
            msgspec.structs.replace(seen, context=texts) if (texts := self.at(seen.round, seen.agent)) else seen
            for seen in observations
        ]
