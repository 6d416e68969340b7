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
from shoal.runs.store import has_table
from shoal.scenario import People

_CHANGES = "SELECT about, round, value FROM opinion_change WHERE agent_id = ? ORDER BY round"
_ACTIONS = """SELECT action, count(*) FROM trace WHERE user_id = ? AND action NOT IN ('sign_up', 'interview')
GROUP BY action ORDER BY count(*) DESC"""
_FOLLOWERS = "SELECT num_followers, num_followings FROM user WHERE user_id = ?"


@dataclass(frozen=True, slots=True)
class AgentWorld:
    """The person in one world."""

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
    worlds: list[AgentWorld]


def read_biography(run: RunDirectory, people: People, agent: int) -> AgentBiography:
    """Read what is known of a person; AgentMissing for a number that nobody has."""
    if not 0 <= agent < len(people):
        raise AgentMissing(f"there is no agent {agent}; there are agents 0 to {len(people) - 1}")
    scenario, who = run.scenario, people[agent]
    mind = scenario.mind
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
        last_round=max(run.read_last_rounds().values()),
        worlds=[_read_world(run, world, agent) for world in run.worlds],
    )


def _read_world(run: RunDirectory, world: str, agent: int) -> AgentWorld:
    opinions: dict[str, list[tuple[int, float]]] = defaultdict(list)
    followers: tuple[int | None, int | None] = None, None
    actions: dict[str, int] = {}
    with open_world(run, world) as database:
        if database is not None:
            for about, round, value in database.execute(_CHANGES, (agent,)):
                opinions[about].append((round, value))
            actions = dict(database.execute(_ACTIONS, (agent,)).fetchall())
            if has_table(database, "follow"):
                followers = database.execute(_FOLLOWERS, (agent,)).fetchone() or followers
    return AgentWorld(world, *followers, actions, dict(opinions))
