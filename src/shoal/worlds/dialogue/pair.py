"""One conversation: the next speaker, the last lines, and the end of a scene."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from functools import cache
from typing import Any

import numpy as np

from shoal.seeds import derive, hashes
from shoal.types import Population
from shoal.worlds.dialogue.observations import LineView
from shoal.worlds.dialogue.settings import DialogueSettings, SceneSettings, StopSettings
from shoal.worlds.names import NameIndex

#: Lines of a scene that the two see, so that a turn costs the same however long they talk.
LINES_IN_MIND = 20


class Phase(Enum):
    TALKING = "talking"
    RATING = "rating"
    OVER = "over"


class Pair:
    """Two agents, and how far their conversation has come."""

    __slots__ = ("agents", "assistants", "heard", "left", "lines", "number", "phase", "rated", "scene", "silence",
                 "slants", "taken", "turned", "words")  # fmt: skip

    def __init__(self, number: int, first: int, second: int, assistants: frozenset[int] = frozenset()) -> None:
        self.number = number
        self.agents = (first, second)
        #: Those of the two that are assistants under test. People begin, and only people rate.
        self.assistants = assistants
        self.phase = Phase.TALKING
        self.begin(1)

    def begin(self, scene: int) -> None:
        """Start a scene, counted from 1, with nothing said."""
        self.scene = scene
        self.phase = Phase.TALKING
        self.taken = 0
        self.silence = 0
        self.lines: tuple[LineView, ...] = ()
        #: Which way each of the two last leaned.
        self.slants: list[float | None] = [None, None]
        #: What has happened in the middle of the scene.
        self.turned: str | None = None
        #: The agents that were asked for a score, and those that gave one.
        self.rated: set[int] = set()
        self.heard: set[int] = set()
        #: What was said in the turn under way, and whether the speaker has left.
        self.words: list[str] = []
        self.left = False

    @property
    def speaker(self) -> int:
        """The agent whose turn it is. The two alternate, and two people also in beginning a scene."""
        first = 0 if self.assistants else self.scene - 1
        return self.agents[(first + self.taken) % 2]

    def partner(self, agent: int) -> int:
        first, second = self.agents
        return second if agent == first else first

    def acting(self) -> Sequence[int]:
        """Return the agents that act next."""
        if self.phase is Phase.TALKING:
            return (self.speaker,)
        if self.phase is Phase.RATING:
            return [agent for agent in self.agents if agent not in self.rated and agent not in self.assistants]
        return ()

    def say(self, line: LineView, is_opinion: bool) -> None:
        """Add a line. `is_opinion` says whether its slant is the speaker's stated opinion."""
        # An assistant is sent the whole chat, as it remembers nothing by itself.
        self.lines = (*(self.lines if self.assistants else self.lines[1 - LINES_IN_MIND :]), line)
        self.words.append(line.content)
        # Small talk does not take back an opinion.
        if is_opinion or line.slant:
            self.slants[self.agents.index(line.speaker_id)] = line.slant

    def agreement(self) -> float | None:
        """Return 1 where both lean alike, 0 where they lean as far apart as possible, None until both have leaned."""
        one, other = self.slants
        return None if one is None or other is None else 1 - abs(one - other) / 2


@cache
def _compile_said(said: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return a pattern that finds one of these words in a text."""
    words = [r"\s+".join(map(re.escape, each.split())) for each in said if each.strip()]
    return re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", re.IGNORECASE) if words else None


def find_end(stop: StopSettings, pair: Pair, turns: int) -> str | None:
    """Return why the scene is over after the turn under way, or None where it goes on."""
    if pair.left:
        return "left"
    said = _compile_said(stop.said)
    if said is not None and any(map(said.search, pair.words)):
        return "said"
    one, other = (slant or 0.0 for slant in pair.slants)
    if pair.words and stop.agreement is not None and one * other > 0 and abs(one - other) <= stop.agreement:
        return "agreement"
    if stop.silence is not None and not pair.words and pair.silence + 1 >= stop.silence:
        return "silence"
    return "turns" if pair.taken + 1 >= turns else None


def half(turns: int) -> int:
    """Return the turns after which the turning point comes."""
    return (turns + 1) // 2


def scene_at(settings: DialogueSettings, scene: int) -> SceneSettings:
    """Return the settings of a scene. A scene that a fork took away goes on as the last one that is left."""
    return settings.scenes[min(scene, len(settings.scenes)) - 1]


def make_pairs(settings: DialogueSettings, population: Population, seed: int, world: str) -> list[Pair]:
    """Pair the people who talk to one another. Who is left over stays alone."""
    if isinstance(settings.pairs, dict):
        groups: dict[Any, list[int]] = {}
        for agent in range(len(population)):
            groups.setdefault(population[agent].traits.get("group"), []).append(agent)
        numbers = [
            pair
            for first, second in settings.pairs.items()
            for pair in zip(groups.get(first, ()), groups.get(second, ()), strict=False)
        ]
    elif isinstance(settings.pairs, tuple):
        index = NameIndex(population.names)
        numbers = [(index[first], index[second]) for first, second in settings.pairs]
    else:
        order = list(range(len(population)))
        if settings.pairs == "random":
            order.sort(key=hashes(derive(seed, world, "pairs"), np.arange(len(order))).tolist().__getitem__)
        numbers = list(zip(order[::2], order[1::2], strict=False))
    pairs = []
    for number, (first, second) in enumerate(numbers):
        assistants = population.assistants & {first, second}
        ends = (second, first) if first in assistants else (first, second)
        pairs.append(Pair(number, *ends, assistants))
    return pairs
