"""Seats: agents whose turns a person takes for a while, and the turns that wait for that person.

A seat is taken and given back by events, so the history says from which round on who decides. What the person answers
to a turn is journaled as any reply.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from shoal.types import Action, Observation

#: Kinds of happenings: a person takes the turns of agents from now on, and takes them no more.
SEAT, GIVE_BACK = "seat", "give_back"

_NOTHING = (Action("DO_NOTHING"),)


class DecidedBy(StrEnum):
    """Who decided a turn of an agent in whose seat a person is."""

    PERSON = "person"
    MIND = "mind"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class SeatTerms:
    """How long a person may take for a turn, and who decides when that time is over."""

    seconds: float
    otherwise: DecidedBy


class SeatAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a turn ended that waited for a person. Without actions, the agent's own mind decides."""

    by: DecidedBy
    actions: tuple[Action, ...] | None = None
    #: Why the person did not decide.
    reason: str | None = None

    @classmethod
    def of_person(cls, actions: tuple[Action, ...]) -> SeatAnswer:
        return cls(DecidedBy.PERSON, actions or _NOTHING)

    @classmethod
    def without_person(cls, otherwise: DecidedBy, reason: str) -> SeatAnswer:
        return cls(otherwise, _NOTHING if otherwise is DecidedBy.NOTHING else None, reason)


@dataclass(frozen=True, slots=True, eq=False)
class WaitingTurn:
    """A turn that waits for a person. Its times are in seconds since 1970."""

    observation: Observation
    terms: SeatTerms
    since: float
    answer: asyncio.Future[SeatAnswer] = field(repr=False)

    @property
    def until(self) -> float:
        return self.since + self.terms.seconds

    def settle(self, answer: SeatAnswer) -> None:
        """Let the turn end. The first answer counts."""
        if not self.answer.done():
            self.answer.set_result(answer)


_GIVEN_BACK = SeatAnswer.without_person(DecidedBy.MIND, "the seat was given back")


class Seats:
    """The seats of one run, in all its worlds and by round, as rounds may overlap.

    Turns wait only where somebody can answer them. Elsewhere, as in a script, they are decided at once as if the time
    were over.
    """

    def __init__(self) -> None:
        self.is_attended = False
        #: World and agent -> the first round and the terms of each change, in the order of rounds; None: given back.
        self._changes: defaultdict[tuple[str, int], dict[int, SeatTerms | None]] = defaultdict(dict)
        self._waiting: list[WaitingTurn] = []
        #: Agents whose person has left, and the first round after those that were begun with that person.
        self._left: dict[int, int] = {}
        self._watches: list[Callable[[], object]] = []

    def watch(self, watch: Callable[[], object]) -> None:
        """Call this whenever a seat changes, and whenever a turn begins or ends to wait."""
        self._watches.append(watch)

    def change(self, world: str, round: int, agent: int, terms: SeatTerms | None) -> None:
        """Let a person take the agent's turns from a round on, or no more. Saying it again changes nothing."""
        self._changes[world, agent][round] = terms
        self._report()

    @property
    def has_any(self) -> bool:
        """Whether any seat is or was taken."""
        return bool(self._changes)

    def enter(self, agent: int) -> None:
        """Let turns wait for the person who comes."""
        self._left.pop(agent, None)

    def leave(self, agent: int, until: int) -> None:
        """Let the agent's own mind decide all turns that wait, and those of other rounds in flight before `until`."""
        self._left[agent] = until
        for turn in self.list_waiting(agent):
            turn.settle(_GIVEN_BACK)

    def find(self, world: str, round: int, agent: int) -> SeatTerms | None:
        """Return on which terms a person takes the agent's turn of a round; None where its mind does."""
        if (changes := self._changes.get((world, agent))) is None:
            return None
        since = max((one for one in changes if one <= round), default=None)
        return None if since is None else changes[since]

    def list_taken(self) -> dict[int, tuple[int, SeatTerms]]:
        """Return the agents in whose seat a person is or soon will be, with the first round and the terms."""
        latest = ((agent, max(changes), changes[max(changes)]) for (_, agent), changes in self._changes.items())
        return {agent: (since, terms) for agent, since, terms in latest if terms is not None}

    def list_waiting(self, agent: int | None = None) -> Iterator[WaitingTurn]:
        """Yield the turns that wait for a person, of all agents or of one, oldest first."""
        yield from (turn for turn in self._waiting if agent in (None, turn.observation.agent))

    def is_waiting(self, observation: Observation) -> bool:
        """Return whether this turn waits for a person."""
        turns = self.list_waiting(observation.agent)
        wanted = observation.world, observation.round
        return any((turn.observation.world, turn.observation.round) == wanted for turn in turns)

    async def ask(self, observation: Observation, terms: SeatTerms) -> SeatAnswer:
        """Wait until the person has answered, or until the time is over."""
        if not self.is_attended:
            return SeatAnswer.without_person(terms.otherwise, "nobody could be asked where the run was worked on")
        if observation.round < self._left.get(observation.agent, 0):
            return _GIVEN_BACK
        loop = asyncio.get_running_loop()
        turn = WaitingTurn(observation, terms, time.time(), loop.create_future())
        self._waiting.append(turn)
        self._report()
        try:
            async with asyncio.timeout(terms.seconds):
                return await turn.answer
        except TimeoutError:
            return SeatAnswer.without_person(terms.otherwise, f"no answer within {terms.seconds:g} s")
        finally:
            self._waiting.remove(turn)
            self._report()

    def _report(self) -> None:
        for watch in self._watches:
            watch()
