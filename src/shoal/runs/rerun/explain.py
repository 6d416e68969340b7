"""Explains one turn of a run: what the agent saw, what its decision rests on, what it decided, and the result.

The run is run again from its journal up to that round. Nothing is written, and no model is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from shoal.agents import Remembering
from shoal.engine import DecidedBy, RoundRecord, SeatAnswer
from shoal.errors import QueryFailed
from shoal.journal import SEAT, Journal, JournalKey, JournalLine, digest
from shoal.models import Question
from shoal.runs.directory import RunDirectory
from shoal.runs.rerun.rerun import Rerun, TurnObserver, check_round, open_rerun, parse_round
from shoal.runs.stream import is_own
from shoal.types import Decision, Event, Mind, MindMode, Notice, Observation
from shoal.worlds import NameIndex


@dataclass(frozen=True, slots=True)
class JournaledReply:
    """The journal's line that answered a request."""

    key: str
    #: The digest of the request as it is made anew, and whether the line answers it.
    request: str
    matches: bool
    reply: Any
    outcome: str | None
    reason: str | None
    ms: int
    usage: Mapping[str, int] | None
    #: The run it was inherited from, in a fork that made the same request.
    inherited_from: str | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """One turn: what was seen, what the decision rests on, what was decided, and the result."""

    world: str
    round: int
    agent: int
    name: str
    time: str
    saw: Observation
    rests_on: Mapping[str, Any]
    memory: Any
    decision: Decision
    reply: JournaledReply | None
    events: tuple[Event, ...]
    #: Posts and notices of events since the agent's last turn.
    happened: tuple[Event | Notice, ...]


@dataclass(frozen=True, slots=True)
class NoTurn:
    """The reason why an agent had no turn in a round."""

    world: str
    round: int
    agent: int
    name: str
    time: str
    why: str
    #: The nearest rounds in which the agent had a turn.
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class ExplainResult:
    """One explanation for each world in which the agent had a turn, and the reasons for the other worlds."""

    run: str
    agent: int
    name: str
    round: int
    explanations: tuple[Explanation, ...]
    absences: tuple[NoTurn, ...]


async def explain_turn(directory: RunDirectory, agent: str, round: int, world: str | None = None) -> ExplainResult:
    """Explain the turn of an agent, given by name or number, in one world or in all that have this round."""
    run = open_rerun(directory)
    names = run.simulation.people.names
    number = NameIndex(names).resolve(agent)
    if world is not None and world not in run.rounds:
        raise QueryFailed(f"there is no world {world!r}; there are {', '.join(run.rounds)}")
    worlds = list(run.rounds) if world is None else [world]
    check_round({name: run.rounds[name] for name in worlds}, round)
    found: list[Explanation | NoTurn] = []
    for name in worlds:
        if round <= run.rounds[name]:
            turn = _ObservedTurn(number, round, run.journal)
            await run.observe(name, turn, round)
            found.append(turn.explanation() or _explain_absence(directory, run, name, number, round))
    return ExplainResult(
        run=str(directory.path),
        agent=number,
        name=names[number],
        round=round,
        explanations=tuple(one for one in found if isinstance(one, Explanation)),
        absences=tuple(one for one in found if isinstance(one, NoTurn)),
    )


async def explain_turns(directory: RunDirectory, world: str, wanted: Iterable[tuple[int, int]]) -> list[Explanation]:
    """Explain many turns in one world, each given as agent and round. The world is run again once, for all of them."""
    run = open_rerun(directory)
    turns = [_ObservedTurn(agent, round, run.journal) for agent, round in wanted]
    last = min(max((turn.round for turn in turns), default=0), run.rounds[world])
    await run.observe(world, _ObservedTurns(turns), last)
    return [explanation for turn in turns if (explanation := turn.explanation()) is not None]


class _ObservedTurns(TurnObserver):
    """Passes on what happens to the collectors of many turns, each for as long as its turn is to come."""

    def __init__(self, turns: Sequence[_ObservedTurn]) -> None:
        self._open = list(turns)
        self._by_agent: dict[int, list[_ObservedTurn]] = {}
        for turn in turns:
            self._by_agent.setdefault(turn.agent, []).append(turn)

    def before(self, mind: Mind, observation: Observation) -> None:
        for turn in self._by_agent.get(observation.agent, ()):
            turn.before(mind, observation)

    def after(self, observation: Observation, decision: Decision) -> None:
        for turn in self._by_agent.get(observation.agent, ()):
            turn.after(observation, decision)

    def commit(self, record: RoundRecord) -> None:
        for turn in self._open:
            turn.commit(record)
        self._open = [turn for turn in self._open if turn.round > record.round]


@dataclass(slots=True)
class _ObservedTurn(TurnObserver):
    """Collects one turn of one agent, and the posts and notices of events since the turn before."""

    agent: int
    round: int
    journal: Journal
    rests_on: dict[str, Any] = field(default_factory=dict)
    memory: Any = None
    reply: JournaledReply | None = None
    turn: tuple[Observation, Decision] | None = None
    last_turn: int = -1
    happened: list[Event | Notice] = field(default_factory=list)
    events: tuple[Event, ...] = ()

    def before(self, mind: Mind, observation: Observation) -> None:
        if (observation.agent, observation.round) != (self.agent, self.round):
            return
        try:
            self.rests_on = msgspec.to_builtins(dict(mind.explain(observation)), str_keys=True)
        except Exception as error:
            # A mind that cannot explain itself must not change the turn.
            self.rests_on = {"cannot be explained": f"{type(error).__name__}: {error}"}
        remembered = mind.memory(self.agent) if isinstance(mind, Remembering) else None
        self.memory = msgspec.to_builtins(remembered, str_keys=True)
        if mind.mode(self.agent) is not MindMode.PURE:
            key, asked = JournalKey.of_turn(observation), mind.request(observation)
            request = asked.digest if isinstance(asked, Question) else digest(asked)
            if (line := self.journal.find(key, lambda: request)) is not None:
                self.reply = _read_reply(line, request)

    def after(self, observation: Observation, decision: Decision) -> None:
        if observation.agent == self.agent:
            if observation.round == self.round:
                self.turn = observation, decision
                self._note_seat(observation)
            elif self.turn is None:
                self.last_turn = observation.round

    def _note_seat(self, observation: Observation) -> None:
        """Note who decided, where a person was in the agent's seat."""
        key, request = JournalKey.of_turn(observation, SEAT), digest(observation)
        if (line := self.journal.find(key, lambda: request)) is None:
            return
        answer = msgspec.convert(line.reply, SeatAnswer)
        by = {DecidedBy.PERSON: "a person", DecidedBy.MIND: "the agent's own mind", DecidedBy.NOTHING: "nobody"}
        self.rests_on = {**self.rests_on, "decided_by": by[answer.by]}
        if answer.reason is None:
            self.reply = _read_reply(line, request)
        else:
            self.rests_on["because"] = answer.reason

    def commit(self, record: RoundRecord) -> None:
        for line in parse_round(record):
            if isinstance(line, Notice):
                if not line.to or self.agent in line.to:
                    self.happened.append(line)
            elif not is_own(line):
                self.happened.append(line)
            elif record.round == self.round and line.agent_id == self.agent:
                self.events += (line,)

    def explanation(self) -> Explanation | None:
        if self.turn is None:
            return None
        saw, decision = self.turn
        # Agents get notices before they look. A post of a round is seen in the next.
        news = [
            line
            for line in self.happened
            if line.round > self.last_turn or (line.round == self.last_turn and isinstance(line, Event))
        ]
        return Explanation(
            world=saw.world,
            round=self.round,
            agent=self.agent,
            name=saw.name,
            time=saw.time,
            saw=saw,
            rests_on=self.rests_on,
            memory=self.memory,
            decision=decision,
            reply=self.reply,
            events=self.events,
            happened=tuple(news),
        )


def _read_reply(line: JournalLine, request: str) -> JournaledReply:
    return JournaledReply(
        key=str(line.key),
        request=request,
        matches=line.request == request,
        reply=line.reply,
        outcome=line.outcome,
        reason=line.reason,
        ms=line.ms,
        usage=line.usage,
        inherited_from=line.inherited,
    )


def _explain_absence(directory: RunDirectory, run: Rerun, world: str, agent: int, round: int) -> NoTurn:
    live = run.simulation.worlds[world]
    explain = getattr(live, "explain_absence", None)
    if round == 0:
        why = "nobody has a turn in round 0, which is the start before anybody acts"
    elif live.over:
        why = "nothing happens here any more"
    else:
        why = explain(round, agent) if explain else "no turn"
    # Every turn leaves a line, also one in which nothing is done.
    actions = directory.open_stream(world).read_actions(run.rounds[world], agent)
    turns = sorted({event.round for event in actions if is_own(event)})
    return NoTurn(
        world=world,
        round=round,
        agent=agent,
        name=run.simulation.people.names[agent],
        time=live.timestamp(round),
        why=why,
        before=max((turn for turn in turns if turn < round), default=None),
        after=min((turn for turn in turns if turn > round), default=None),
    )
