"""One turn of an agent as pages show it: what it saw, its prompt and reply, its decision and the results.

The run is run again from its journal up to the turn. Nothing is written, and no model is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from shoal.runs.directory import RunDirectory
from shoal.runs.interviews import AgentSelection, snapshot_agents
from shoal.runs.rerun import Explanation, explain_turn, explain_turns
from shoal.runs.views.sight import SightLine, SightRow, view_sight
from shoal.types import Notice


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A message of the prompt that a language model answered."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The journaled reply of a language model, or the reason why there is none."""

    key: str
    text: str
    model: str
    outcome: str | None
    reason: str | None
    ms: int
    input_tokens: int | None
    output_tokens: int | None
    #: Whether the journal's digest is that of the prompt as it is shown.
    matches: bool
    #: The run that paid for the reply, in a fork.
    inherited_from: str | None


@dataclass(frozen=True, slots=True)
class TurnAction:
    """An action that was decided on, and its result."""

    action: str
    args: dict[str, Any]
    success: bool
    #: Why it was refused.
    result: str | None


@dataclass(frozen=True, slots=True)
class TurnView:
    """One turn of an agent in one world, or the reason why it had none."""

    world: str
    round: int
    time: str
    #: Why there was no turn; the other fields are empty then.
    absence: str | None
    #: The nearest rounds with a turn.
    before: int | None
    after: int | None
    saw: list[SightRow]
    #: Events and posts of the scenario since the last turn.
    happened: list[SightLine]
    #: The values that an offline mind decided by, as it names them.
    rests_on: dict[str, Any]
    prompt: list[PromptMessage]
    #: The memories that the prompt holds.
    recalled: str
    reply: ModelReply | None
    #: Why there is no usable decision.
    failure: str | None
    actions: list[TurnAction]


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """What an agent remembers at the end of a round."""

    round: int
    persona: str
    memory: str
    #: Its last observation, as its prompt holds it.
    sight: str
    #: Its turns so far, one line each.
    turns: list[str]


async def read_turns(run: RunDirectory, agent: int, round: int, world: str | None) -> list[TurnView]:
    """Explain the turns of an agent in a round, in one world or in all."""
    found = await explain_turn(run, str(agent), round, world)
    absent = [
        TurnView(one.world, one.round, one.time, one.why, one.before, one.after, [], [], {}, [], "", None, None, [])
        for one in found.absences
    ]
    return [*map(_view_turn, found.explanations), *absent]


async def read_many_turns(
    run: RunDirectory, world: str, wanted: Iterable[tuple[int, int]]
) -> dict[int, list[TurnView]]:
    """Explain many turns in one world, each given as agent and round, by agent."""
    found: dict[int, list[TurnView]] = {}
    for turn in await explain_turns(run, world, wanted):
        found.setdefault(turn.agent, []).append(_view_turn(turn))
    return found


async def read_memory(run: RunDirectory, agent: int, round: int | None, cue: str) -> AgentMemory:
    """Return what an agent remembers after a round, in view of a cue."""
    copies = await snapshot_agents(run, AgentSelection(who=(agent,)), round, cue)
    copy = copies.respondents[0]
    return AgentMemory(copies.round, copy.persona, copy.memory, copy.sight, list(copies.records[agent]))


def _view_turn(turn: Explanation) -> TurnView:
    rests_on = dict(turn.rests_on)
    prompt = [PromptMessage(one["role"], one["content"]) for one in rests_on.pop("prompt", ())]
    recalled = rests_on.pop("recalled", "")
    happened = []
    for line in turn.happened:
        if isinstance(line, Notice):
            who, text = line.event_type, line.content
        else:
            who, text = line.agent_name, str(line.action_args.get("content", ""))
        happened.append(SightLine(who, text, f"round {line.round}", False, {}))
    return TurnView(
        world=turn.world,
        round=turn.round,
        time=turn.time,
        absence=None,
        before=None,
        after=None,
        saw=view_sight(turn.saw),
        happened=happened,
        rests_on=rests_on,
        prompt=prompt,
        recalled=recalled if isinstance(recalled, str) else "",
        reply=_view_reply(turn),
        failure=turn.decision.reason or turn.decision.failure,
        actions=[TurnAction(one.action_type, one.action_args, one.success, one.result) for one in turn.events],
    )


def _view_reply(turn: Explanation) -> ModelReply | None:
    if (found := turn.reply) is None:
        return None
    told: Mapping[str, Any] = found.reply if isinstance(found.reply, Mapping) else {"text": found.reply or ""}
    # A person's answer is the actions themselves.
    text = msgspec.json.encode(told["actions"]).decode() if "actions" in told else str(told.get("text", ""))
    usage = found.usage or {}
    return ModelReply(
        key=found.key,
        text=text,
        model=str(told.get("model", "")),
        outcome=found.outcome,
        reason=found.reason,
        ms=found.ms,
        input_tokens=usage.get("input"),
        output_tokens=usage.get("output"),
        matches=found.matches,
        inherited_from=found.inherited_from,
    )
