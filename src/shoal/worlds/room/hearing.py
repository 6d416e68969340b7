"""What reached people and was not perceived yet.

A remark to the room is kept once for everybody who is there: each agent has a place in what was said where it is. Only
what reaches some and not others is kept for each of them.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from shoal.worlds.room.observations import Stimulus


class Inboxes:
    """Who is where, and what has come to each agent's ears, in the order in which it came."""

    def __init__(self, people: int, location: str) -> None:
        self._where = [location] * people
        #: Who is at a location, in order of their numbers.
        self._there: dict[str, list[int]] = {location: list(range(people))}
        self._said: dict[str, list[Stimulus]] = {}
        #: How much of what was said where it is an agent has in its inbox, or said itself.
        self._caught_up = [0] * people
        self._inboxes: list[list[Stimulus]] = [[] for _ in range(people)]
        self._shared: dict[str, tuple[Stimulus, ...]] = {}

    def where(self, agent: int) -> str:
        return self._where[agent]

    def together(self, agent: int, other: int) -> bool:
        return self._where[agent] == self._where[other]

    def others(self, agent: int) -> list[int]:
        """Everybody else at the agent's location."""
        there = self._there[self._where[agent]]
        place = bisect_left(there, agent)
        return there[:place] + there[place + 1 :]

    def move(self, agent: int, location: str) -> None:
        """What was said before the agent left, it has heard; of what was said elsewhere, nothing."""
        self._catch_up(agent)
        self._there[self._where[agent]].remove(agent)
        self._where[agent] = location
        insort(self._there.setdefault(location, []), agent)
        self._caught_up[agent] = len(self._said.get(location, ()))

    def tell(self, agent: int, stimulus: Stimulus) -> None:
        """Something for one agent."""
        self._catch_up(agent)
        self._inboxes[agent].append(stimulus)

    def say(self, agent: int, stimulus: Stimulus) -> None:
        """Something the agent says to everybody else where it is."""
        self._catch_up(agent)
        said = self._said.setdefault(self._where[agent], [])
        said.append(stimulus)
        self._caught_up[agent] = len(said)

    def heard(self, agent: int) -> tuple[Stimulus, ...]:
        """A pure read. Those who heard the same are given the same tuple."""
        inbox, since, where = self._inboxes[agent], self._caught_up[agent], self._where[agent]
        if inbox or since:
            return (*inbox, *self._said.get(where, ())[since:])
        return self._all_said(where)

    def perceived(self, agent: int) -> None:
        """The agent has taken its turn: what it heard lies behind it."""
        self._inboxes[agent] = []
        self._caught_up[agent] = len(self._said.get(self._where[agent], ()))

    def clear(self) -> None:
        """Hand out what was said but not perceived, so that it need not be kept for those who perceived it."""
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

    def _all_said(self, where: str) -> tuple[Stimulus, ...]:
        said = self._said.get(where)
        if not said:
            return ()
        shared = self._shared.get(where, ())
        if len(shared) != len(said):
            shared = self._shared[where] = tuple(said)
        return shared
