"""Why somebody did what they did: one turn rebuilt from the journal, with everything that it rests on.

The run is run again up to the round in question, compared with what was committed, and listened in on. Nothing is
written, nobody is asked anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from shoal.agents.wrappers import Remembering
from shoal.engine.record import RoundRecord
from shoal.errors import QueryFailed
from shoal.journal import Journal, JournalKey, digest
from shoal.models.base import Question
from shoal.runs.directory import RunDirectory
from shoal.runs.rerun.rerun import Rerun, TurnObserver, open_rerun, parse_round
from shoal.runs.stream import is_own
from shoal.types import Decision, Event, Mind, MindMode, Notice, Observation
from shoal.worlds.clock import MutedAgents
from shoal.worlds.dialogue.world import Dialogue
from shoal.worlds.social.platform import Platform


@dataclass(frozen=True, slots=True)
class JournaledReply:
    """The journal's line that answered a request."""

    key: str
    #: The digest of the request, made anew; and whether it is the one that the line answers.
    request: str
    matches: bool
    reply: Any
    outcome: str | None
    reason: str | None
    ms: int
    usage: Mapping[str, int] | None
    #: The run it was taken over from, in a fork that asked the same.
    inherited_from: str | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """One turn: what was seen, what the decision rests on, what was decided, what came of it."""

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
    #: What was made to happen since the agent's last turn.
    happened: tuple[Event | Notice, ...]


@dataclass(frozen=True, slots=True)
class NoTurn:
    """Somebody had no turn in that round."""

    world: str
    round: int
    agent: int
    name: str
    time: str
    why: str
    #: The nearest rounds in which they had one.
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class ExplainResult:
    """The answer: one explanation for each world in which the agent had a turn, or why there is none."""

    run: str
    agent: int
    name: str
    round: int
    explanations: tuple[Explanation, ...]
    absences: tuple[NoTurn, ...]


async def explain_turn(directory: RunDirectory, agent: str, round: int, world: str | None = None) -> ExplainResult:
    """Rebuild what an agent, by name or number, saw in a round, and how the decision came about; changes nothing."""
    run = open_rerun(directory)
    names = run.simulation.people.names
    number = agent_number(agent, names)
    found = [await _in_world(directory, run, name, number, round) for name in _worlds(run, world, round)]
    return ExplainResult(
        run=str(directory.path),
        agent=number,
        name=names[number],
        round=round,
        explanations=tuple(one for one in found if isinstance(one, Explanation)),
        absences=tuple(one for one in found if isinstance(one, NoTurn)),
    )


def agent_number(agent: str, names: Sequence[str]) -> int:
    """Somebody's number; by number, by name, or by name in other letters."""
    for same in (str, str.casefold):
        found = [number for number, name in enumerate(names) if same(name) == same(agent)]
        if len(found) > 1:
            raise QueryFailed(f"several people are called {agent!r}; name one by number: {', '.join(map(str, found))}")
        if found:
            return found[0]
    if re.fullmatch(r"[0-9]+", agent) and int(agent) < len(names):
        return int(agent)
    near = get_close_matches(agent, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; people have numbers 0 to {len(names) - 1}"
    raise QueryFailed(f"there is no agent {agent!r}{hint}")


def _worlds(run: Rerun, world: str | None, round: int) -> list[str]:
    """The worlds to look into: those that have come as far as this."""
    if world is not None and world not in run.rounds:
        raise QueryFailed(f"there is no world {world!r}; there are {', '.join(run.rounds)}")
    asked = list(run.rounds) if world is None else [world]
    far_enough = [name for name in asked if round <= run.rounds[name]]
    if not far_enough:
        last = max(run.rounds[name] for name in asked)
        raise QueryFailed(f"round {round} has not been committed; there are rounds 0 to {last}")
    return far_enough


async def _in_world(directory: RunDirectory, run: Rerun, world: str, agent: int, round: int) -> Explanation | NoTurn:
    ear = _Ear(agent, round, run.journal)
    await run.observe(world, ear, round)
    return ear.explanation() or _absence(directory, run, world, ear)


@dataclass(slots=True)
class _Ear(TurnObserver):
    """Listens for one turn, and notes on the way what was made to happen since the one before."""

    agent: int
    round: int
    journal: Journal
    rests_on: Mapping[str, Any] = field(default_factory=dict)
    memory: Any = None
    reply: JournaledReply | None = None
    turn: tuple[Observation, Decision] | None = None
    last: int = -1
    happened: list[Event | Notice] = field(default_factory=list)
    events: tuple[Event, ...] = ()

    def before(self, mind: Mind, observation: Observation) -> None:
        if self._is_it(observation):
            self.rests_on = _explained(mind, observation)
            self.memory = msgspec.to_builtins(_memory(mind, self.agent), str_keys=True)
            self.reply = _reply(self.journal, mind, observation) if mind.mode(self.agent) is not MindMode.PURE else None

    def after(self, observation: Observation, decision: Decision) -> None:
        if self._is_it(observation):
            self.turn = observation, decision
        elif observation.agent == self.agent:
            self.last = observation.round

    def _is_it(self, observation: Observation) -> bool:
        return observation.agent == self.agent and observation.round == self.round

    def commit(self, record: RoundRecord) -> None:
        for event in parse_round(record):
            if isinstance(event, Notice):
                self._note(event)
            elif not is_own(event):
                self.happened.append(event)
            elif record.round == self.round and event.agent_id == self.agent:
                self.events += (event,)

    def _note(self, notice: Notice) -> None:
        if not notice.to or self.agent in notice.to:
            self.happened.append(notice)

    def explanation(self) -> Explanation | None:
        if self.turn is None:
            return None
        saw, decision = self.turn
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
            happened=tuple(event for event in self.happened if self._is_news(event)),
        )

    def _is_news(self, event: Event | Notice) -> bool:
        """People are told before they look; what is posted in a round is seen in the next."""
        return event.round > self.last or (event.round == self.last and isinstance(event, Event))


def _explained(mind: Mind, observation: Observation) -> Mapping[str, Any]:
    """What the mind says about itself. One that cannot must not change the turn that it is asked about."""
    try:
        plain: Mapping[str, Any] = msgspec.to_builtins(dict(mind.explain(observation)), str_keys=True)
    except Exception as error:
        return {"cannot be explained": f"{type(error).__name__}: {error}"}
    return plain


def _memory(mind: Mind, agent: int) -> object:
    return mind.memory(agent) if isinstance(mind, Remembering) else None


def _reply(journal: Journal, mind: Mind, observation: Observation) -> JournaledReply | None:
    key = JournalKey.of_turn(observation)
    asked = mind.request(observation)
    request = asked.digest if isinstance(asked, Question) else digest(asked)
    line = journal.find(key, lambda: request)
    if line is None:
        return None
    return JournaledReply(
        key=key,
        request=request,
        matches=line.request == request,
        reply=line.reply,
        outcome=line.outcome,
        reason=line.reason,
        ms=line.ms,
        usage=line.usage,
        inherited_from=line.inherited,
    )


# Somebody who had no turn


def _absence(directory: RunDirectory, run: Rerun, world: str, ear: _Ear) -> NoTurn:
    agent, round = ear.agent, ear.round
    turns = _turns(directory.file(world) / "actions.jsonl", agent, run.rounds[world])
    return NoTurn(
        world=world,
        round=round,
        agent=agent,
        name=run.simulation.people.names[agent],
        time=run.simulation.worlds[world].timestamp(round),
        why=_why(run, world, ear),
        before=max((turn for turn in turns if turn < round), default=None),
        after=min((turn for turn in turns if turn > round), default=None),
    )


def _why(run: Rerun, world: str, ear: _Ear) -> str:
    if ear.round == 0:
        return "nobody has a turn in round 0, which is what is there before anybody looks"
    live, people = run.simulation.worlds[world], run.simulation.people
    muted = getattr(live, "muted", None)
    if isinstance(muted, MutedAgents) and (ear.round, ear.agent) in muted:
        return f"muted until round {muted.until(ear.agent)}"
    if live.over:
        return "nothing happens here any more"
    if isinstance(live, Platform):
        hour = datetime.fromisoformat(live.timestamp(ear.round)).hour
        if not int(people.active_hours[ear.agent]) >> hour & 1:
            return f"asleep at {hour:02}:00"
        return (
            f"awake but elsewhere: the lot, drawn with an activity of {people.activity[ear.agent]:.2f}, fell otherwise"
        )
    return "it was the other one's turn, or the conversation was over" if isinstance(live, Dialogue) else "no turn"


class _Turn(msgspec.Struct):
    round: int
    id: str = ""


def _turns(stream: Path, agent: int, last: int) -> list[int]:
    """Rounds in which somebody had a turn: every turn leaves a line, also one in which nothing is done."""
    if not stream.exists():
        return []
    mark = f'"agent_id":{agent},'.encode()
    decode = msgspec.json.Decoder(_Turn).decode
    with stream.open("rb") as lines:
        found = [decode(line) for line in lines if mark in line[:60] and line.endswith(b"\n")]
    return sorted({turn.round for turn in found if turn.round <= last and turn.id.rpartition("-")[2].isdigit()})
