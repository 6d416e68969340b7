"""People, follow graphs and contexts for worlds in tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shoal.types import FollowGraph, Habits, Persona, Versioned
from shoal.worlds.base import WorldContext
from shoal.worlds.clock import Clock, TimeSettings
from shoal.worlds.lexicon import TextReader

TOPICS = ("gardening", "football", "cooking", "travel")
SUBJECT = "the campus curfew"
NAMES = ("Mira Berg", "Bo Li", "Anna Diaz", "Luis Berg", "Chen Wu", "Omar Haas", "Ida Noor", "Sam Roy")
ALL_HOURS = (1 << 24) - 1


@dataclass
class Crowd:
    """`Population` for tests."""

    interests: NDArray[np.int16]
    topics: Sequence[str] = TOPICS
    habits: Habits = field(default_factory=Habits)
    assistants: frozenset[int] = frozenset()
    names: Sequence[str] = field(init=False)
    stances: NDArray[np.float32] = field(init=False)
    activity: NDArray[np.float32] = field(init=False)
    active_hours: NDArray[np.uint32] = field(init=False)

    def __post_init__(self) -> None:
        people = len(self.interests)
        self.names = [NAMES[i] if i < len(NAMES) else f"Person {i}" for i in range(people)]
        self.stances = np.zeros(people, np.float32)
        self.activity = np.ones(people, np.float32)
        self.active_hours = np.full(people, ALL_HOURS, np.uint32)

    def __len__(self) -> int:
        return len(self.interests)

    def __getitem__(self, agent: int) -> Persona:
        return Persona(self.names[agent], f"user{agent}", f"bio of {agent}", "", (), 0.0, 1.0)


def crowd(people: int = 6, interests: Sequence[int] = (0, 1)) -> Crowd:
    """Make people who are awake at all hours and have the same interests."""
    return Crowd(np.tile(np.array(interests, np.int16), (people, 1)))


def graph(people: int, edges: Iterable[tuple[int, int]]) -> FollowGraph:
    """Make a follow graph from pairs of follower and followed."""
    keys = np.array(sorted({follower * people + followed for follower, followed in edges}), np.int64)
    counts = np.bincount(keys // people, minlength=people)
    return FollowGraph(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), (keys % people).astype(np.int32))


def make_context(
    people: int | Crowd,
    follows: Iterable[tuple[int, int]] = (),
    *,
    time: TimeSettings | None = None,
    skips: Iterable[tuple[int, int]] = (),
    seed: int = 7,
) -> WorldContext:
    who = crowd(people) if isinstance(people, int) else people
    time = time or TimeSettings(daily_rhythm=False)
    reader = TextReader(who.topics, SUBJECT)
    return WorldContext(who, graph(len(who), follows), Versioned(time), Clock(time, skips), seed, reader)
