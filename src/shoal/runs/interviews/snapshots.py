"""Copies agents as they were at the end of a round: who they are, what they remember and what they last saw.

The run is run again from its journal up to that round. Nothing is written, and no model is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from shoal.agents import LanguageSettings, MemorySettings, PromptSettings, Respondent, unwrap
from shoal.agents.language import LanguageMind, PersonaTexts, PromptBook, summarise_turn
from shoal.agents.memory import Memory
from shoal.models import CHARACTERS_PER_TOKEN
from shoal.runs.directory import RunDirectory
from shoal.runs.interviews.selection import AgentSelection
from shoal.runs.rerun.rerun import Rerun, TurnObserver, check_round, open_rerun
from shoal.scenario import People
from shoal.text import format_age
from shoal.types import Decision, Event, Observation
from shoal.worlds import Clock, renderer_for

#: The length of an observation for minds that do not limit it.
_OBSERVATION_TOKENS = 550
_MINUTES_PER_HOUR = 60


@dataclass(frozen=True, slots=True)
class Copies:
    """Some agents of a run, at the end of a round."""

    round: int
    respondents: tuple[Respondent, ...]
    #: Agent -> its turns in all worlds, one line each.
    records: Mapping[int, Sequence[str]]


class RecollectionSource(Protocol):
    """Remembers for agents: a language mind, or the log of turns that stands in for one."""

    async def recollection(self, agent: int, round: int, cue: str) -> tuple[str, str]:
        """Return who the agent is, and what a cue reminds it of."""
        ...


class _TurnLog(TurnObserver):
    """Records the turns of some agents in one world, and remembers them for minds without a memory in text."""

    def __init__(self, run: Rerun, world: str, agents: Iterable[int], topic: str | None) -> None:
        people = run.simulation.people
        self._agents = frozenset(agents)
        self._names = people.names
        self._personas = PersonaTexts(people, topic)
        self._book = PromptBook(PromptSettings(), world, topic)
        self._memory = Memory(MemorySettings(consolidate_every=0), people, run.simulation.seed, world, None)
        #: Agent -> its last observation.
        self.seen: dict[int, Observation] = {}
        #: Agent and round -> a turn whose results are not known yet.
        self._open: dict[tuple[int, int], tuple[Observation, Decision]] = {}
        #: Agent -> rounds and summaries of its turns.
        self.turns: dict[int, list[tuple[int, str]]] = {}

    def after(self, observation: Observation, decision: Decision) -> None:
        agent, round = observation.agent, observation.round
        if agent not in self._agents:
            return
        self.seen[agent] = observation
        if decision.failure is None:
            self._open[agent, round] = observation, decision

    def results(self, round: int, agent: int, events: Sequence[Event]) -> None:
        """Remember a turn as the agent would, now that its results are known."""
        observation, decision = self._open.pop((agent, round), (None, None))
        if observation is not None and decision is not None:
            episode, importance = summarise_turn(observation, decision, "", self._names, events)
            self._memory.absorb(agent, round, observation.time, episode, importance)
            self.turns.setdefault(agent, []).append((round, episode))

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        self._personas.change(agent, traits)

    async def recollection(self, agent: int, round: int, cue: str) -> tuple[str, str]:
        """Return who the agent is and what it remembers in view of a cue, as language minds do."""
        return self._personas.persona(agent, self._book), self._memory.recall(agent, round, cue)


class AgentCopier:
    """Makes copies of agents: who they are, what they remember and what they last saw, as texts."""

    def __init__(self, people: People, mind: object, clock: Clock) -> None:
        self._people = people
        self._clock = clock
        tokens = mind.observation_tokens if isinstance(mind, LanguageSettings) else _OBSERVATION_TOKENS
        self._observation_chars = tokens * CHARACTERS_PER_TOKEN

    async def copy(
        self, agent: int, sources: Mapping[str, tuple[RecollectionSource, Observation | None]], cue: str
    ) -> Respondent:
        """Copy an agent, from what remembers for it in each world and from what it last saw there."""
        persona, memories, sights = "", [], []
        for world, (source, seen) in sources.items():
            persona, memory = await source.recollection(agent, seen.round if seen else 0, cue)
            sight = ""
            if seen is not None:
                render = renderer_for(seen).render_prompt
                sight = render(seen, self._observation_chars, self._format_ago, is_past=True)
            # Only agents of several worlds need to know which one it was.
            heading = f"In {world}:\n" if len(sources) > 1 else ""
            memories += [f"{heading}{memory}".rstrip()] if memory else []
            sights += [f"{heading}{sight}".rstrip()] if sight else []
        group = self._people[agent].traits.get("group")
        texts = persona, "\n".join(memories), "\n".join(sights)
        return Respondent(agent, self._people.names[agent], *texts, group and str(group))

    def _format_ago(self, round: int, rounds: int) -> str:
        gone = self._clock.hours_gone(round) - self._clock.hours_gone(round - rounds)
        return format_age(int(gone * _MINUTES_PER_HOUR + 0.5))


async def snapshot_agents(directory: RunDirectory, selection: AgentSelection, round: int | None, cue: str) -> Copies:
    """Copy the selected agents at the end of a round, or of the run. The cue says what they are reminded by."""
    run, scenario, clock = open_rerun(directory), directory.scenario, directory.clock
    people, minds = run.simulation.people, run.simulation.minds
    last = check_round(run.rounds, round)
    agents = selection.numbers(people, run.simulation.seed)
    logs = {world: _TurnLog(run, world, agents, scenario.topic) for world in run.rounds}

    copier = AgentCopier(people, scenario.mind, clock)

    async def copy_agent(agent: int) -> Respondent:
        """Copy an agent: a language mind has its own memory, for any other the log remembers."""
        sources: dict[str, tuple[RecollectionSource, Observation | None]] = {}
        for world, log in logs.items():
            own = unwrap(minds[world], agent)
            sources[world] = own if isinstance(own, LanguageMind) else log, log.seen.get(agent)
        return await copier.copy(agent, sources, cue)

    try:
        for world, log in logs.items():
            await run.observe(world, log, min(last, run.rounds[world]))
        respondents = tuple([await copy_agent(agent) for agent in agents])
    finally:
        for mind_of_world in minds.values():
            await mind_of_world.close()
    until = max(min(last, there) for there in run.rounds.values())
    records: dict[int, list[str]] = {}
    for agent in agents:
        turns = [
            (round, f"Round {round}{f' in {world}' if len(logs) > 1 else ''}: {episode}")
            for world, log in logs.items()
            for round, episode in log.turns.get(agent, ())
        ]
        records[agent] = [line for _, line in sorted(turns, key=lambda turn: turn[0])]
    return Copies(until, respondents, records)
