"""A small population, and observations for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.agents.heuristic.base import Behaviour
from shoal.agents.heuristic.social import SocialMind
from shoal.agents.settings import HeuristicSettings
from shoal.seeds import Draws, derive
from shoal.types import Action, Decision, Habits, Persona, Versioned
from shoal.worlds.lexicon import TextReader
from shoal.worlds.social.observations import CommentView, GroupView, PostView, SocialObservation

TOPICS = ("gardening", "machine learning", "football", "city politics", "cooking", "travel")
SUBJECT = "the campus curfew"
FOR = "I believe what they say about the campus curfew. I trust it, it is true."
AGAINST = "I doubt what they say about the campus curfew. It is a hoax, it is wrong."


@dataclass
class People:
    """`Population` for tests: all agents have the stances and interests given."""

    stances: NDArray[np.float32]
    interests: NDArray[np.int16]
    topics: Sequence[str] = TOPICS
    habits: Habits = field(default_factory=Habits)
    assistants: frozenset[int] = frozenset()
    names: Sequence[str] = field(init=False)
    activity: NDArray[np.float32] = field(init=False)
    active_hours: NDArray[np.uint32] = field(init=False)

    def __post_init__(self) -> None:
        first = ("Mira", "Bo", "Anna", "Luis", "Chen", "Omar", "Ida")
        self.names = [f"{first[i % 7]} Berg" for i in range(len(self.stances))]
        self.activity = np.ones(len(self.stances), dtype=np.float32)
        self.active_hours = np.full(len(self.stances), (1 << 24) - 1, dtype=np.uint32)

    def __len__(self) -> int:
        return len(self.stances)

    def __getitem__(self, agent: int) -> Persona:
        raise NotImplementedError


def people(*stances: float, interests: Sequence[int] = (0, 2)) -> People:
    rows = np.tile(np.array(interests, dtype=np.int16), (len(stances), 1))
    return People(np.array(stances, dtype=np.float32), rows)


def crowd(count: int) -> People:
    """Build people with evenly spread stances and varied interests."""
    rows = np.array([[i % 6, (i // 6) % 7 - 1] for i in range(count)], dtype=np.int16)
    return People(np.linspace(-1, 1, count, dtype=np.float32), rows)


READER = TextReader(TOPICS, SUBJECT)


def mind_of(population: People, topic: str | None = SUBJECT, seed: int = 1, **settings: Any) -> SocialMind:
    return SocialMind(
        population,
        Versioned(Behaviour(HeuristicSettings(**settings))),
        seed,
        "twitter",
        TextReader(population.topics, topic),
    )


def post(post_id: int, content: str, author_id: int = 1000, **fields: Any) -> PostView:
    words = fields.get("quote") or content
    defaults: dict[str, Any] = {
        "author": "Noor Li",
        "quote": None,
        "original_author": None,
        "age": 1,
        "likes": 3,
        "dislikes": 0,
        "shares": 1,
        "comments": 1,
        "flagged": False,
        "topics": tuple(READER.vocabulary[topic] for topic in READER.topics(content)),
        "slant": READER.slant(words),
        "replies": (),
    }
    return PostView(post_id=post_id, author_id=author_id, content=content, **(defaults | fields))


def look(agent: int = 0, round: int = 1, posts: Sequence[PostView] = (), **fields: Any) -> SocialObservation:
    return SocialObservation(
        world="twitter",
        round=round,
        agent=agent,
        name="Mira Berg",
        time="2026-01-01T08:00:00+00:00",
        followed=tuple(posts),
        recommended=fields.pop("recommended", ()),
        **fields,
    )


class Feed:
    """Invents what agents see, from a seed, with posts of all kinds."""

    def __init__(self, seed: int = 1) -> None:
        self._seed = seed
        self._next_post = 0

    def look(self, agent: int, round: int) -> SocialObservation:
        draws = Draws(derive(self._seed, round, agent))
        posts = [self._post(draws) for _ in range(5 + draws.below(4))]
        split = len(posts) - 3
        strangers = tuple(post.author_id for post in posts[split:] if draws.chance(0.7))
        reacted = tuple(post.post_id for post in posts if draws.chance(0.1))
        return look(
            agent,
            round,
            posts[:split],
            recommended=tuple(posts[split:]),
            strangers=strangers,
            reacted=reacted,
            groups=self._groups(draws),
            products=(("tea", 3),) if draws.chance(0.1) else (),
        )

    def _post(self, draws: Draws) -> PostView:
        self._next_post += 1
        hobby = f"I love a long evening of {draws.choice(TOPICS)} in week {draws.below(50)}."
        content = draws.choice((FOR, AGAINST, hobby, hobby, "Nothing much going on over here."))
        number = self._next_post
        replies = (CommentView(number, 2001, "Omar Diaz", "Same here.", 0, 0),) if draws.chance(0.3) else ()
        quote = "I reject the talk about it." if draws.chance(0.1) else None
        return post(number, content, 1000 + draws.below(500), quote=quote, age=draws.below(6), replies=replies)

    @staticmethod
    def _groups(draws: Draws) -> tuple[GroupView, ...]:
        if not draws.chance(0.1):
            return ()
        return tuple(GroupView(number, f"Group {number}", 3, draws.chance(0.5), ()) for number in (1, 2))


def take_turns(mind: SocialMind, agents: int, rounds: int, feed: Feed) -> list[tuple[SocialObservation, Decision]]:
    """Let every agent take a turn in every round."""
    history = []
    for round in range(1, rounds + 1):
        for agent in range(agents):
            seen = feed.look(agent, round)
            decision = mind.decide(seen)
            mind.absorb(seen, decision)
            history.append((seen, decision))
    return history


def text_of(action: Action) -> str | None:
    for argument in ("content", "quote_content", "message"):
        if argument in action.args:
            return str(action.args[argument])
    return None
