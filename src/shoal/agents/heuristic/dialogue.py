"""The offline mind of conversations: a seeded classical model of two people who talk, never a language model.

People have interests and one opinion, their stance on the scenario's subject. What the other says pulls the stance as
long as it is not too far away; the nearer the two are the friendlier they talk, and the better they think of it after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, cast

import numpy as np

from shoal.agents.heuristic import sayings
from shoal.agents.heuristic.actions import leaning
from shoal.agents.heuristic.opinion import persuade
from shoal.agents.heuristic.perception import TextReadings
from shoal.agents.heuristic.phrases import HOBBY_REASONS, Phrases
from shoal.agents.heuristic.writing import Family, address, label, shortened, walk
from shoal.agents.settings import HeuristicSettings
from shoal.seeds import Draws, derive, extend
from shoal.types import Action, Decision, Mind, Observation, Population, Versioned
from shoal.worlds.dialogue.observations import DialogueObservation, LineView
from shoal.worlds.dialogue.pair import half
from shoal.worlds.lexicon import TextReader

#: Opinions further apart than this may make somebody walk out.
UNBEARABLE = 1.5
WALKOUT_CHANCE = 0.03
QUESTION_CHANCE = 0.2
ASIDE_CHANCE = 0.12
THOUGHT_CHANCE = 0.05
#: Nobody walks out or digresses before this turn.
SETTLED_TURN = 5
#: Leaning from which on people put it strongly.
FIRM = 2
#: What somebody without interests talks about where there is no subject.
ANYTHING = "everyday life"
MAX_SCORE = 10

_NOTHING = Decision((Action("DO_NOTHING"),))


class DialogueMind(Mind):
    """Decides for everybody in one world. `decide` only reads; what an agent remembers changes in `absorb`."""

    def __init__(
        self, population: Population, settings: Versioned[HeuristicSettings], seed: int, world: str, reader: TextReader
    ) -> None:
        self._population = population
        self._settings = settings
        self._seed = seed
        self._world = world
        self._readings = TextReadings(reader)
        self._subject = self._readings.subject
        self._phrasing = Phrasing(derive(seed, world, "talk"))
        # The memory of the agents: their stance, and the lines they have said.
        self._stances: list[float] = np.clip(population.stances, -1.0, 1.0).tolist()
        self._said = [0] * len(population)

    def memory(self, agent: int) -> object:
        """What the agent remembers: all that its decisions depend on besides what it sees."""
        return (self._stances[agent], self._said[agent])

    def opinions(self) -> Sequence[float]:
        return tuple(self._stances)

    def change(self, agent: int, traits: Mapping[str, Any]) -> None:
        if "stance" in traits:
            self._stances[agent] = min(max(float(traits["stance"]), -1.0), 1.0)

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        seen = cast(DialogueObservation, observation)
        settings = self._settings.at(seen.round)
        return {
            "stance": self._stances[seen.agent],
            "lines_said": self._said[seen.agent],
            "partner_leans": self._partner_leans(seen),
            "tone": self._tone(seen),
            "confidence": settings.confidence,
            "persuasion": settings.persuasion,
        }

    def decide(self, observation: Observation) -> Decision:
        seen = cast(DialogueObservation, observation)
        draws = Draws(derive(self._seed, self._world, seen.round, seen.agent, "decide"))
        if seen.rating:
            return Decision((self._rate(seen, draws),))
        settings = self._settings.at(seen.round)
        if settings.talkativeness < 1 and draws.random() >= settings.talkativeness:
            return _NOTHING
        return Decision(tuple(self._speak(seen, settings, draws)))

    def absorb(self, observation: Observation, decision: Decision) -> None:
        if decision.failure is not None:
            return
        seen = cast(DialogueObservation, observation)
        agent = seen.agent
        settings = self._settings.at(seen.round)
        heard = [line.slant for line in self._unanswered(seen) if self._is_opinion(line)]
        if heard:
            self._stances[agent] = persuade(self._stances[agent], heard[-settings.attention :], settings)
        self._said[agent] += sum(action.kind == "SAY" for action in decision.actions)

    # What is heard

    @staticmethod
    def _unanswered(seen: DialogueObservation) -> list[LineView]:
        """What the other said since the agent spoke last."""
        agent = seen.agent
        lines = list(takewhile(lambda line: line.speaker_id != agent, reversed(seen.lines)))
        return lines[::-1]

    def _is_opinion(self, line: LineView) -> bool:
        """Whether it leans, and is about what people have their stance on."""
        return line.slant != 0 and self._subject is not None and self._is_to_the_point(line)

    def _is_to_the_point(self, line: LineView) -> bool:
        """In a conversation that is all that is not about something else."""
        return not line.topics or self._readings.theme(line.topics).contested

    def _partner_leans(self, seen: DialogueObservation) -> float | None:
        for line in reversed(seen.lines):
            if line.speaker_id == seen.partner_id and self._is_opinion(line):
                return line.slant
        return None

    def _tone(self, seen: DialogueObservation) -> int:
        """1 where the two lean the same way and are close, -1 where they are far apart, 0 in between."""
        leans = self._partner_leans(seen)
        if leans is None:
            return 0
        stance = self._stances[seen.agent]
        if abs(leans - stance) > self._settings.at(seen.round).confidence:
            return -1
        return 1 if leaning(stance) * leaning(leans) > 0 else 0

    # What is said

    def _speak(self, seen: DialogueObservation, settings: HeuristicSettings, draws: Draws) -> list[Action]:
        tone = self._tone(seen)
        actions = []
        if draws.chance(THOUGHT_CHANCE):
            actions.append(Action("THINK", {"content": draws.choice(sayings.THOUGHTS[tone])}))
        if self._walks_out(seen, draws):
            return [*actions, self._say(seen, self._phrase(seen, sayings.WALKOUTS), voiced=False), Action("LEAVE")]
        words, voiced = self._words(seen, settings, draws, tone)
        return [*actions, self._say(seen, words, voiced)]

    def _walks_out(self, seen: DialogueObservation, draws: Draws) -> bool:
        leans = self._partner_leans(seen)
        if leans is None or seen.turn < SETTLED_TURN:
            return False
        return abs(leans - self._stances[seen.agent]) > UNBEARABLE and draws.chance(WALKOUT_CHANCE)

    def _say(self, seen: DialogueObservation, words: str, voiced: bool) -> Action:
        if self._subject is None or not voiced:
            return Action("SAY", {"content": words})
        return Action("SAY", {"content": words, "opinion": round(self._stances[seen.agent], 3)})

    def _words(
        self, seen: DialogueObservation, settings: HeuristicSettings, draws: Draws, tone: int
    ) -> tuple[str, bool]:
        """What to say, and whether it says what the agent thinks of the topic."""
        opening = self._opening(seen)
        if seen.turn >= seen.turns - 1 and seen.turns > 2:
            words = [
                self._phrase(seen, sayings.GOODBYES),
                self._point(seen),
                self._phrase(seen, sayings.PARTINGS[tone]),
            ]
            return " ".join([*opening, *words]), True
        unanswered = self._unanswered(seen)
        asked = bool(unanswered) and unanswered[-1].content.rstrip().endswith("?")
        if not opening:
            opening = [self._reply_opener(seen, unanswered, asked, tone)]
        aside = self._aside(seen, settings, draws, asked)
        if aside is not None:
            return " ".join([*opening, aside]), False
        if seen.lines and draws.chance(QUESTION_CHANCE):
            return " ".join([*opening, self._point(seen), self._phrase(seen, sayings.QUESTIONS)]), True
        return " ".join([*opening, self._point(seen, closing=True)]), True

    def _opening(self, seen: DialogueObservation) -> list[str]:
        """What must be said first: a greeting, and something about what has just happened."""
        opening = []
        if seen.turn <= 2:
            opening.append(self._phrase(seen, sayings.GREETINGS))
            if seen.setting and seen.turn == 1:
                opening.append(self._quoting(seen, sayings.SETTINGS, seen.setting))
        if seen.turning_point and seen.turn <= half(seen.turns) + 2:
            opening.append(self._quoting(seen, sayings.TURNING_POINTS, seen.turning_point))
        if seen.announcements:
            opening.append(self._quoting(seen, sayings.NEWS, seen.announcements[-1]))
        return opening

    def _reply_opener(self, seen: DialogueObservation, unanswered: Sequence[LineView], asked: bool, tone: int) -> str:
        if asked:
            return self._phrase(seen, sayings.ANSWERS)
        if unanswered and not self._is_to_the_point(unanswered[-1]):
            return self._phrase(seen, sayings.RETURNS)
        return self._phrase(seen, sayings.OPENERS[tone])

    def _aside(self, seen: DialogueObservation, settings: HeuristicSettings, draws: Draws, asked: bool) -> str | None:
        """A word about an interest of one's own, now and then."""
        if settings.outspoken or asked or seen.turn < SETTLED_TURN or not draws.chance(ASIDE_CHANCE):
            return None
        topic = self._interest(seen, draws)
        return None if topic is None else self._phrase(seen, sayings.ASIDES, about=topic)

    def _interest(self, seen: DialogueObservation, draws: Draws) -> str | None:
        labels = self._readings.labels
        own = [labels[topic] for topic in self._population.interests[seen.agent].tolist() if topic >= 0]
        own = [topic for topic in own if topic != self._subject]
        return draws.choice(own) if own else None

    def _point(self, seen: DialogueObservation, closing: bool = False) -> str:
        """What the agent thinks of the topic, or something about an interest where there is none."""
        if self._subject is None:
            return self._phrase(seen, sayings.CHAT, *([HOBBY_REASONS] if closing else []))
        lean = leaning(self._stances[seen.agent])
        sign = (lean > 0) - (lean < 0)
        lists = (
            (sayings.POINTS[sign], sayings.CLOSERS[lean]) if closing or abs(lean) == FIRM else (sayings.POINTS[sign],)
        )
        return self._phrase(seen, *lists)

    def _quoting(self, seen: DialogueObservation, texts: Phrases, quote: str) -> str:
        return self._phrase(seen, texts).replace("{quote}", shortened(" ".join(quote.split())).rstrip(" .!;,"))

    def _phrase(self, seen: DialogueObservation, *lists: Phrases, about: str | None = None) -> str:
        text = self._phrasing.text(lists, seen.agent, self._said[seen.agent])
        if "{about}" in text:
            text = text.replace("{about}", about or self._subject or self._some_topic(seen))
        return text.replace("{name}", address(seen.partner))

    def _some_topic(self, seen: DialogueObservation) -> str:
        """Where there is no subject people stay with what the scene is about, or with an interest."""
        for line in reversed(seen.lines):
            if line.topics:
                return label(line.topics[0])
        own = [topic for topic in self._population.interests[seen.agent].tolist() if topic >= 0]
        return self._readings.labels[own[0]] if own else ANYTHING

    # What is thought of it afterwards

    def _rate(self, seen: DialogueObservation, draws: Draws) -> Action:
        theirs = [line for line in seen.lines if line.speaker_id == seen.partner_id]
        if not theirs:
            return Action("RATE", {"score": draws.below(3), "reason": sayings.SILENT_VERDICT})
        stance = self._stances[seen.agent]
        leans = self._partner_leans(seen)
        closeness = 0.6 if leans is None else 1 - abs(leans - stance) / 2
        side = 1.0 if self._subject is None else stance
        warmth = sum(line.slant * side >= 0 for line in theirs) / len(theirs)
        score = round(MAX_SCORE * (0.65 * closeness + 0.25 * warmth + 0.1 * draws.random()))
        verdicts = sayings.VERDICTS[min(score // 3, len(sayings.VERDICTS) - 1)]
        return Action("RATE", {"score": score, "reason": draws.choice(verdicts)})


class Phrasing:
    """Chooses among phrases so that nobody says the same thing twice until everything has been said."""

    def __init__(self, key: int) -> None:
        self._key = key
        self._families: dict[tuple[Phrases, ...], Family] = {}

    def text(self, lists: tuple[Phrases, ...], agent: int, nth: int) -> str:
        family = self._families.get(lists)
        if family is None:
            family = self._families[lists] = Family(*lists)
        return family.text(walk(extend(self._key, agent), nth, family.size) % family.size)
