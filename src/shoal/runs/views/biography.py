"""One person of a run: persona, traits, mind, and opinions over the rounds in each world."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from shoal.agents import LanguageSettings, PromptSettings
from shoal.agents.language import PersonaTexts, PromptBook
from shoal.errors import AgentMissing
from shoal.runs.directory import RunDirectory
from shoal.runs.reports import open_world
from shoal.runs.views.activity import WorldActivity
from shoal.scenario import People

_CHANGES = "SELECT about, round, value FROM opinion_change WHERE agent_id = ? ORDER BY round"


@dataclass(frozen=True, slots=True)
class AgentWorld:
    """The person in one world: followers and actions as of a round, opinions over all of them."""

    world: str
    followers: int | None
    following: int | None
    #: Kind of action, in lower case -> count.
    actions: dict[str, int]
    #: `topic` or a claim -> rounds and values of its changes.
    opinions: dict[str, list[tuple[int, float]]]


@dataclass(frozen=True, slots=True)
class AgentBiography:
    """One person of a run."""

    agent_id: int
    name: str
    username: str
    bio: str
    #: The text that a language model reads about the person at the start.
    persona: str
    traits: dict[str, Any]
    interests: list[str]
    stance: float | None
    activity: float
    #: The kind of mind, and its language model if it has one.
    mind: str
    model: str | None
    #: Whether a person at a keyboard plays the agent.
    is_played: bool
    last_round: int
    #: Followers and actions are those after this round.
    round: int
    worlds: list[AgentWorld]


def read_biography(run: RunDirectory, people: People, agent: int, round: int | None = None) -> AgentBiography:
    """Read what is known of a person after a round; AgentMissing where no person has this number."""
    if not 0 <= agent < len(people):
        raise AgentMissing(f"there is no agent {agent}; there are agents 0 to {len(people) - 1}")
    scenario, who = run.scenario, people[agent]
    mind, last = scenario.mind, max(run.read_last_rounds().values())
    texts = PersonaTexts(people, scenario.topic)
    book = PromptBook(PromptSettings(), run.worlds[0], scenario.topic)
    group = who.traits.get("group")
    return AgentBiography(
        agent_id=agent,
        name=who.name,
        username=who.username,
        bio=who.bio,
        persona=texts.persona(agent, book),
        traits={name: value for name, value in who.traits.items() if isinstance(value, str | int | float | bool)},
        interests=list(who.interests),
        stance=who.stance,
        activity=who.activity,
        mind=mind.kind,
        model=mind.model_of(who.name, group and str(group)) if isinstance(mind, LanguageSettings) else None,
        is_played=any(one in (agent, str(agent), who.name) for one in scenario.play),
        last_round=last,
        round=last if round is None else min(round, last),
        worlds=[_read_world(run, world, agent, round) for world in run.worlds],
    )


def _read_world(run: RunDirectory, world: str, agent: int, round: int | None) -> AgentWorld:
    opinions: dict[str, list[tuple[int, float]]] = defaultdict(list)
    with open_world(run, world) as database:
        if database is None:
            return AgentWorld(world, None, None, {}, {})
        for about, at, value in database.execute(_CHANGES, (agent,)):
            opinions[about].append((at, value))
        activity = WorldActivity(run, database, round)
        followers, following = None, None
        if activity.is_platform:
            followers, following = activity.count_followers([agent])[agent], activity.count_following(agent)
        return AgentWorld(world, followers, following, activity.list_kinds(agent), dict(opinions))
