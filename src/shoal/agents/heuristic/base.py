"""What the heuristic minds have in common: behaviour that a scenario sets, opinions, interests and draws."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import numpy as np

from shoal.agents.heuristic.opinion import believe, classify_stance
from shoal.agents.heuristic.perception import TextReadings
from shoal.agents.heuristic.reactions import CHANCES, FIRST_CHANCES
from shoal.agents.heuristic.writing import FamilyKey, Voice
from shoal.agents.settings import HeuristicSettings
from shoal.seeds import Draws, derive, extend
from shoal.types import Action, Decision, Mention, Mind, Observation, Population, Versioned
from shoal.worlds import TextReader

O_co = TypeVar("O_co", bound=Observation, covariant=True)

#: Chance per turn to write an original post.
ORIGINAL_CHANCE = 0.12
#: Actions after which an agent has written one more text.
TEXTS = frozenset({"CREATE_POST", "CREATE_COMMENT", "QUOTE_POST", "SEND_TO_GROUP"})
#: How much of an agent's heat, its interest in the subject, is left a turn later.
LINGERING = 0.75
#: With this number of contested texts in a turn, the subject fills an agent's mind.
ENGROSSED = 3
#: How many texts of people an announcement counts for.
AUTHORITY = 3.0
#: How much of what is said about the subject is about a claim, once people have heard of one.
HEARSAY = 0.6
#: What people without interests talk about where there is no subject.
ANYTHING = "everyday life"
NOTHING = Decision((Action("DO_NOTHING"),))


class Behaviour:
    """The parameters of agents: what the scenario sets, and what the world offers (None: everything)."""

    def __init__(
        self,
        settings: HeuristicSettings,
        actions: Collection[str] | None = None,
        minutes_per_round: int = 60,
        edition: int = 2,
    ) -> None:
        self.settings = settings
        self.edition = edition
        self._allowed = None if actions is None else frozenset(actions)
        usual = FIRST_CHANCES if edition == 1 else CHANCES
        #: Attitude towards a post -> chances of the reactions that the platform offers.
        self.chances = {
            attitude: {
                kind: chance * (settings.talkativeness if kind in TEXTS else 1.0)
                for kind, chance in chances.items()
                if self.may(kind)
            }
            for attitude, chances in usual.items()
        }
        #: The same for agents that comment at a rate of their own.
        self.other_chances = {
            attitude: {kind: chance for kind, chance in chances.items() if kind != "CREATE_COMMENT"}
            for attitude, chances in self.chances.items()
        }
        #: Turns a rate per hour into a rate per turn.
        self.hours_per_turn = minutes_per_round / 60 * settings.talkativeness
        self.original_chance = min(ORIGINAL_CHANCE * settings.talkativeness, 0.9) if self.may("CREATE_POST") else 0.0

    def may(self, kind: str) -> bool:
        return self._allowed is None or kind in self._allowed


@dataclass(slots=True)
class Turn(Generic[O_co]):
    """One agent's turn in the making: what it sees, what is on its mind, and how it speaks."""

    seen: O_co
    draws: Draws
    voice: Voice
    stance: float
    heat: float
    written: int

    @property
    def lean(self) -> int:
        return classify_stance(self.stance)

    def write(self, kind: FamilyKey, about: str, name: str = "") -> str:
        return self.voice.write(kind, self.seen.agent, self.written, about, name)


class OpinionMind(Mind):
    """A mind whose agents have interests and one opinion: their stance on the scenario's subject.

    `decide` only reads. What agents remember changes in `absorb` and `change`, and nowhere else.
    """

    def __init__(
        self, population: Population, behaviours: Versioned[Behaviour], seed: int, world: str, reader: TextReader
    ) -> None:
        super().__init__()
        self._population = population
        self._behaviours = behaviours
        self._seed = seed
        self._world = world
        self._round = -1
        self._enter(0)
        self._readings = TextReadings(reader)
        self._edition = reader.edition
        self._claims = reader.claims
        self._subject = self._readings.subject
        # What agents remember, one list each: their stance, their heat, and the number of texts they wrote or said.
        self._stances: list[float] = np.clip(population.stances, -1.0, 1.0).tolist()
        self._beliefs = {
            claim.id: [min(max(claim.belief + claim.bearing * stance, -1.0), 1.0) for stance in self._stances]
            for claim in reader.claims.values()
        }
        #: Agent -> the claims that it has heard of, in that order.
        self._heard: dict[int, list[str]] = {}
        self._heats = [0.0] * len(population)
        self._written = [0] * len(population)

    def opinions(self) -> Sequence[float]:
        return self._stances

    def beliefs(self) -> Mapping[str, Sequence[float]]:
        return self._beliefs

    def _beliefs_after(self, agent: int, heard: Sequence[tuple[Mention, float]]) -> dict[str, float]:
        """Return what the agent thinks of claims after what it read or heard, each with how much it counts."""
        settings = self._behaviour.settings
        after: dict[str, float] = {}
        for mention, weight in heard[-settings.attention :]:
            before = after.get(mention.claim, self._beliefs[mention.claim][agent])
            after[mention.claim] = believe(before, mention.lean, settings.persuasion * weight)
        return after

    def _take_beliefs(self, agent: int, beliefs: Mapping[str, float]) -> None:
        """Take over beliefs, and remember which claims the agent has heard of."""
        for claim, belief in beliefs.items():
            self._beliefs[claim][agent] = belief
            heard = self._heard.setdefault(agent, [])
            if claim not in heard:
                heard.append(claim)

    def _own_beliefs(self, agent: int) -> dict[str, float]:
        return {claim: beliefs[agent] for claim, beliefs in self._beliefs.items()}

    def absorb(self, observation: Observation, decision: Decision) -> None:
        """Remember a turn, unless it failed."""
        if decision.failure is None:
            self._enter(observation.round)
            self.remember_turn(observation, decision)

    def remember_turn(self, observation: Observation, decision: Decision) -> None:
        """Take over what the agent saw and did. Called by `absorb`."""
        raise NotImplementedError

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        """Set what is a number and known to the mind: here the stance."""
        stance = read_numbers(traits).get("stance", self._stances[agent])
        self._stances[agent] = min(max(stance, -1.0), 1.0)

    def _enter(self, round: int) -> None:
        """Look up what all decisions of a round share: the behaviour, and the first part of the draws' path."""
        if round != self._round:
            self._round = round
            self._behaviour = self._behaviours.at(round)
            self._key = derive(self._seed, self._world, round)

    def _draws(self, agent: int) -> Draws:
        return Draws(extend(self._key, agent, "decide"))

    def _may(self, kind: str) -> bool:
        return self._behaviour.may(kind)

    def _heat_after(self, agent: int, contested: int) -> float:
        """Return the agent's heat after a turn with this number of contested texts."""
        return LINGERING * self._heats[agent] + (1 - LINGERING) * min(contested / ENGROSSED, 1.0)

    def interests_of(self, agent: int) -> list[int]:
        """Return the topics that the agent is interested in."""
        return [topic for topic in cast("list[int]", self._population.interests[agent].tolist()) if topic >= 0]

    def _own_topic(self, agent: int, draws: Draws) -> str | None:
        """Draw one of the agent's interests; None if it has none."""
        topics = self.interests_of(agent)
        return self._readings.labels[draws.choice(topics)] if topics else None


def read_numbers(traits: Mapping[str, Any]) -> dict[str, float]:
    """Return the traits that are numbers."""
    return {
        name: float(value)
        for name, value in traits.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
