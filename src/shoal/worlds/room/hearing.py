"""What reached people and was not perceived yet.

A remark to the room is kept once for all who are there: each agent has a place in what was said at its location. Only
what reaches some agents and not others is kept per agent.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Set

from shoal.worlds.room.observations import Stimulus

#: Where agents are that have not joined yet, or have left. No text is a location.
NOWHERE = "\0"


class Inboxes:
    """Where each agent is, and what has reached it, in the order in which it came."""

    def __init__(self, people: int, location: str, absent: Set[int] = frozenset()) -> None:
        self._where = [NOWHERE if agent in absent else location for agent in range(people)]
        #: Location -> the agents there, in order of their numbers.
        self._there: dict[str, list[int]] = {}
        for agent, where in enumerate(self._where):
            self._there.setdefault(where, []).append(agent)
        self._said: dict[str, list[Stimulus]] = {}
        #: How much of what was said at its location an agent has in its inbox, or said itself.
        self._caught_up = [0] * people
        self._inboxes: list[list[Stimulus]] = [[] for _ in range(people)]
        self._shared: dict[str, tuple[Stimulus, ...]] = {}

    def location(self, agent: int) -> str:
        return self._where[agent]

    def together(self, agent: int, other: int) -> bool:
        return self._where[agent] == self._where[other]

    def others(self, agent: int) -> list[int]:
        """Return all other agents at the agent's location."""
        there = self._there[self._where[agent]]
        place = bisect_left(there, agent)
        return there[:place] + there[place + 1 :]

    def move(self, agent: int, location: str) -> None:
        """Move an agent. It has heard what was said before it left, and nothing of what was said elsewhere."""
        self._catch_up(agent)
        self._there[self._where[agent]].remove(agent)
        self._where[agent] = location
        insort(self._there.setdefault(location, []), agent)
        self._caught_up[agent] = len(self._said.get(location, ()))

    def tell(self, agent: int, stimulus: Stimulus) -> None:
        """Add something for one agent."""
        self._catch_up(agent)
        self._inboxes[agent].append(stimulus)

    def say(self, agent: int, stimulus: Stimulus) -> None:
        """Add something that the agent says to all others at its location."""
        self._catch_up(agent)
        said = self._said.setdefault(self._where[agent], [])
        said.append(stimulus)
        self._caught_up[agent] = len(said)

    def peek(self, agent: int) -> tuple[Stimulus, ...]:
        """Return what reached the agent, and change nothing. Agents that heard the same get the same tuple."""
        inbox, since, where = self._inboxes[agent], self._caught_up[agent], self._where[agent]
        if inbox or since:
            return (*inbox, *self._said.get(where, ())[since:])
        said = self._said.get(where)
        if not said:
            return ()
        shared = self._shared.get(where, ())
        if len(shared) != len(said):
            shared = self._shared[where] = tuple(said)
        return shared

    def empty(self, agent: int) -> None:
        """Forget what reached the agent, because it has taken its turn."""
        self._inboxes[agent] = []
        self._caught_up[agent] = len(self._said.get(self._where[agent], ()))

    def distribute(self) -> None:
        """Move what was said to the inboxes of agents that have not perceived it, so that it need not be kept."""
        if self._said:
            for agent in range(len(self._where)):
                self._catch_up(agent)
                self._caught_up[agent] = 0
            self._said.clear()
            self._shared.clear()

    def _catch_up(self, agent: int) -> None:
        said = self._said.get(self._where[agent])
        if said:
            self._inboxes[agent] += said[self._caught_up[agent] :]
            self._caught_up[agent] = len(said)
