"""Copies of agents, as they were at the end of a round: who they are, what they remember and what they last saw.

The run is run again from its journal up to that round and listened in on. Nothing is written, and nobody is asked
anything on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

from shoal.agents.interview import Respondent
from shoal.agents.language.episodes import summarise_turn
from shoal.agents.language.mind import LanguageMind
from shoal.agents.language.prompt import PersonaTexts
from shoal.agents.memory.memory import Memory
from shoal.agents.memory.settings import MemorySettings
from shoal.agents.settings import LanguageSettings
from shoal.agents.wrappers import unwrap
from shoal.errors import QueryFailed
from shoal.models.tokens import CHARACTERS_PER_TOKEN
from shoal.runs.directory import RunDirectory
from shoal.runs.interviews.selection import AgentSelection
from shoal.runs.rerun.rerun import Rerun, TurnObserver, open_rerun
from shoal.scenario.scenario import Scenario
from shoal.text import format_moment, quote
from shoal.types import Decision, Observation
from shoal.worlds.clock import Clock
from shoal.worlds.kinds import renderer_for

_MAX_WORDS_CHARS = 400
#: Of somebody whose mind is none that says how much it can read.
_SIGHT_TOKENS = 550


class Recollection(Protocol):
    """Whoever knows what agents remember."""

    async def recollection(self, agent: int, round: int, cue: str) -> tuple[str, str]:
        """Who an agent has become, in words, and what it remembers in view of a cue. Changes nothing."""
        ...


class Chronicle:
    """What agents lived through, kept for those whose own mind does not keep it in words."""

    def __init__(self, run: Rerun, world: str, topic: str | None) -> None:
        people = run.simulation.people
        self._people = PersonaTexts(people, topic)
        settings = MemorySettings(consolidate_every=0)
        self._memory = Memory(settings, people, run.simulation.seed, world, None)

    def absorb(self, observation: Observation, episode: str, importance: float) -> None:
        self._memory.absorb(observation.agent, observation.round, observation.time, episode, importance)

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        self._people.change(agent, traits)

    async def recollection(self, agent: int, round: int, cue: str) -> tuple[str, str]:
        return self._people.persona(agent), self._memory.recall(agent, round, cue)


@dataclass(slots=True)
class _TranscriptMemory(TurnObserver):
    """Listens for the turns of some agents in one world."""

    agents: frozenset[int]
    chronicle: Chronicle
    names: Sequence[str]
    seen: dict[int, Observation] = field(default_factory=dict)
    #: Agent -> round and what happened in it, turn by turn.
    turns: dict[int, list[tuple[int, str]]] = field(default_factory=dict)

    def after(self, observation: Observation, decision: Decision) -> None:
        agent = observation.agent
        if agent not in self.agents:
            return
        self.seen[agent] = observation
        if decision.failure is None:
            episode, importance = summarise_turn(observation, decision, "", self.names)
            self.chronicle.absorb(observation, episode, importance)
            self.turns.setdefault(agent, []).append((observation.round, episode))

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        self.chronicle.change(agent, traits)


@dataclass(frozen=True, slots=True)
class Copies:
    """Some agents of a run, at the end of a round."""

    round: int
    respondents: tuple[Respondent, ...]
    #: Agent -> what it lived through, turn by turn, over all worlds.
    records: Mapping[int, Sequence[str]]


async def snapshot_agents(directory: RunDirectory, whom: AgentSelection, round: int | None, cue: str) -> Copies:
    """Copies of the agents that are meant, at the end of a round or of the run, reminded by a cue."""
    run, scenario = open_rerun(directory), directory.scenario
    until = {world: min(last_round(run.rounds, round), there) for world, there in run.rounds.items()}
    agents = whom.numbers(run.simulation.people, run.simulation.seed)
    try:
        lives = {world: await _lived(run, world, last, agents, scenario.topic) for world, last in until.items()}
        copies = _Copying(run, lives, directory.clock, _sight_chars(scenario))
        respondents = [await copies.respondent(agent, cue) for agent in agents]
    finally:
        for mind in run.simulation.minds.values():
            await mind.close()
    return Copies(max(until.values()), tuple(respondents), {agent: _record(lives, agent) for agent in agents})


def last_round(rounds: Mapping[str, int], wanted: int | None) -> int:
    """The round that is meant; QueryFailed where the run has not come so far."""
    last = max(rounds.values())
    if wanted is not None and wanted > last:
        raise QueryFailed(f"round {wanted} has not been committed; there are rounds 0 to {last}")
    return last if wanted is None else wanted


async def _lived(run: Rerun, world: str, last: int, agents: Sequence[int], topic: str | None) -> _TranscriptMemory:
    life = _TranscriptMemory(frozenset(agents), Chronicle(run, world, topic), run.simulation.people.names)
    await run.observe(world, life, last)
    return life


def _sight_chars(scenario: Scenario) -> int:
    mind = scenario.mind
    tokens = mind.observation_tokens if isinstance(mind, LanguageSettings) else _SIGHT_TOKENS
    return tokens * CHARACTERS_PER_TOKEN


@dataclass(frozen=True, slots=True)
class _Copying:
    """Puts together what an agent is in all its worlds."""

    run: Rerun
    lives: Mapping[str, _TranscriptMemory]
    clock: Clock
    sight_chars: int

    async def respondent(self, agent: int, cue: str) -> Respondent:
        persona, memories, sights_seen = "", [], []
        for world, life in self.lives.items():
            mind = unwrap(self.run.simulation.minds[world], agent)
            keeper: Recollection = mind if isinstance(mind, LanguageMind) else life.chronicle
            seen = life.seen.get(agent)
            persona, memory = await keeper.recollection(agent, seen.round if seen else 0, cue)
            memories.append(self._headed(world, memory))
            sights_seen.append(self._headed(world, self._sight(seen)))
        people = self.run.simulation.people
        group = people[agent].traits.get("group")
        seen_last, remembered = _joined(sights_seen), _joined(memories)
        return Respondent(agent, people.names[agent], persona, remembered, seen_last, group and str(group))

    def _headed(self, world: str, text: str) -> str:
        """Only where there are several worlds do people have to be told which one it was."""
        return f"In {world}:\n{text}" if text and len(self.lives) > 1 else text

    def _sight(self, seen: Observation | None) -> str:
        if seen is None:
            return ""
        return renderer_for(seen).render_prompt(seen, self.sight_chars, self.clock.format_age, is_past=True)


def _joined(parts: Sequence[str]) -> str:
    return "\n".join(part.rstrip() for part in parts if part)


def _record(lives: Mapping[str, _TranscriptMemory], agent: int) -> list[str]:
    """Turn by turn, in the order of rounds."""
    several = len(lives) > 1
    turns = [
        (round, f"Round {round}{f' in {world}' if several else ''}: {episode}")
        for world, life in lives.items()
        for round, episode in life.turns.get(agent, ())
    ]
    return [line for _, line in sorted(turns, key=lambda turn: turn[0])]


# What happened in a whole world


class _Line(msgspec.Struct):
    """A line of a stream: somebody did something, or something was made to happen."""

    round: int = 0
    agent_name: str = ""
    action_type: str = ""
    action_args: dict[str, Any] = {}
    success: bool = True
    result: str | None = None
    event_type: str = ""
    content: str = ""
    timestamp: str = ""


_MARKS = frozenset({"simulation_start", "round_start", "round_end", "simulation_end"})


def transcript_lines(stream: Path, until: int) -> Iterator[str]:
    """What a world's stream says up to a round, in words; looking on is not worth a line."""
    if not stream.exists():
        return
    decode = msgspec.json.Decoder(_Line).decode
    with stream.open("rb") as lines:
        for text in lines:
            if not text.endswith(b"\n"):
                return
            line = decode(text)
            if line.round > until:
                return
            if line.event_type not in _MARKS and line.action_type != "DO_NOTHING":
                yield _told(line)


def _told(line: _Line) -> str:
    when = f"Round {line.round}, {format_moment(line.timestamp)}" if line.timestamp else f"Round {line.round}"
    if line.event_type:
        return f"{when}: {line.event_type}: {quote(line.content, _MAX_WORDS_CHARS)}"
    args = "; ".join(f"{name.replace('_', ' ')} {_value(value)}" for name, value in line.action_args.items())
    done = f"{when}, {line.agent_name}: {line.action_type.replace('_', ' ').lower()}{f' ({args})' if args else ''}"
    return done if line.success else f"{done}, which came to nothing: {quote(line.result or '', _MAX_WORDS_CHARS)}"


def _value(value: object) -> str:
    return quote(value, _MAX_WORDS_CHARS) if isinstance(value, str) else str(value)
