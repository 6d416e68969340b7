"""The offline mind of conversations: a seeded classical model of two people who talk, never a language model.

What the other says pulls the stance as long as it is not too far away. The nearer the two are the friendlier they talk,
and the better they think of the conversation afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any, cast

from shoal.agents.heuristic.bargaining import compare_prices, find_price, is_about_price, name_price, set_price
from shoal.agents.heuristic.base import ANYTHING, AUTHORITY, NOTHING, OpinionMind
from shoal.agents.heuristic.opinion import classify_stance, persuade
from shoal.agents.heuristic.sentences import CLAIM, build_sentences
from shoal.agents.heuristic.writing import DialogueVoice, PhraseKey, Voice, address, label, shorten, sign
from shoal.seeds import Draws
from shoal.types import Action, Decision, Observation
from shoal.worlds.dialogue import DialogueObservation, LineView, half

#: Opinions further apart than this may make an agent walk out.
UNBEARABLE = 1.5
WALKOUT_CHANCE = 0.03
QUESTION_CHANCE = 0.2
ASIDE_CHANCE = 0.12
THOUGHT_CHANCE = 0.05
#: The first turn in which people may walk out or digress.
SETTLED_TURN = 5
#: The leaning that people put strongly.
FIRM_LEAN = 2
MAX_SCORE = 10
#: Verdicts in the phrase table go from 0, bad, to 3, good.
BEST_VERDICT = 3


class DialogueMind(OpinionMind):
    """Decides for every agent in one world of conversations."""

    @cached_property
    def _voice(self) -> DialogueVoice:
        return DialogueVoice(self._seed, self._world)

    @cached_property
    def _claim_voice(self) -> Voice:
        return Voice(self._seed, self._world, build_sentences())

    def memory(self, agent: int) -> object:
        """Return all that the agent's decisions depend on besides what it sees."""
        own = (self._stances[agent], self._written[agent])
        return (*own, *self._own_beliefs(agent).items(), *self._heard.get(agent, ()))

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        seen = cast(DialogueObservation, observation)
        self._enter(seen.round)
        return {
            "stance": self._stances[seen.agent],
            "lines_said": self._written[seen.agent],
            "partner_leans": self._partner_leans(seen),
            "tone": self._tone(seen),
            "confidence": self._behaviour.settings.confidence,
            "persuasion": self._behaviour.settings.persuasion,
        }

    def decide(self, observation: Observation) -> Decision:
        seen = cast(DialogueObservation, observation)
        self._enter(seen.round)
        draws = self._draws(seen.agent)
        if seen.rating:
            return Decision((self._rate(seen, draws),))
        talkativeness = self._behaviour.settings.talkativeness
        if talkativeness < 1 and draws.random() >= talkativeness:
            return NOTHING
        tone = self._tone(seen)
        actions = []
        if draws.chance(THOUGHT_CHANCE):
            actions.append(Action("THINK", {"content": draws.choice(self._voice.phrases["thoughts", tone])}))
        leans = self._partner_leans(seen)
        is_unbearable = leans is not None and abs(leans - self._stances[seen.agent]) > UNBEARABLE
        if is_unbearable and seen.turn >= SETTLED_TURN and draws.chance(WALKOUT_CHANCE):
            return Decision((*actions, Action("SAY", {"content": self._phrase(seen, "walkouts")}), Action("LEAVE")))
        words, has_opinion = self._words(seen, draws, tone)
        if has_opinion and self._edition > 1:
            words = " ".join(f"{words} {self._add_point(seen)}".split())
        says: dict[str, Any] = {"content": words}
        if has_opinion and self._subject is not None:
            says["opinion"] = round(self._stances[seen.agent], 3)
        return Decision((*actions, Action("SAY", says)))

    def remember_turn(self, observation: Observation, decision: Decision) -> None:
        seen = cast(DialogueObservation, observation)
        agent, settings = seen.agent, self._behaviour.settings
        heard = [line.slant for line in _lines_to_answer(seen) if self._is_opinion(line)]
        if heard:
            self._stances[agent] = persuade(self._stances[agent], heard[-settings.attention :], settings)
        self._written[agent] += sum(action.kind == "SAY" for action in decision.actions)
        if self._beliefs:
            lines = [(self._readings.find_mention(line.content), 1.0) for line in _lines_to_answer(seen)]
            news = [(self._readings.find_mention(text), AUTHORITY) for text in seen.announcements]
            mentions = [(mention, weight) for mention, weight in (*lines, *news) if mention is not None]
            self._take_beliefs(agent, self._beliefs_after(agent, mentions))

    # What is heard

    def _is_opinion(self, line: LineView) -> bool:
        """Return whether a line leans, and is about the subject."""
        return line.slant != 0 and self._subject is not None and self._is_to_the_point(line)

    def _is_to_the_point(self, line: LineView) -> bool:
        """Return whether a line is about the subject: in a conversation, any that is not about something else."""
        return not line.topics or self._readings.theme(line.topics).contested

    def _partner_leans(self, seen: DialogueObservation) -> float | None:
        for line in reversed(seen.lines):
            if line.speaker_id == seen.partner_id and self._is_opinion(line):
                return line.slant
        return None

    def _tone(self, seen: DialogueObservation) -> int:
        """Return 1 if the two lean the same way and are close, -1 if they are far apart, 0 in between."""
        if self._edition > 1 and is_about_price(self._subject):
            own, theirs = self._recall_prices(seen)
            return 0 if theirs is None else compare_prices(own, theirs)
        leans = self._partner_leans(seen)
        if leans is None:
            return 0
        stance = self._stances[seen.agent]
        if abs(leans - stance) > self._behaviour.settings.confidence:
            return -1
        return 1 if classify_stance(stance) * classify_stance(leans) > 0 else 0

    # What is said

    def _words(self, seen: DialogueObservation, draws: Draws, tone: int) -> tuple[str, bool]:
        """Return what to say, and whether it says what the agent thinks of the subject."""
        opening = []
        if seen.turn <= 2:
            opening.append(self._phrase(seen, "greetings"))
            if seen.setting and seen.turn == 1:
                opening.append(self._quote(seen, "settings", seen.setting))
        if seen.turning_point and seen.turn <= half(seen.turns) + 2:
            opening.append(self._quote(seen, "turning_points", seen.turning_point))
        if seen.announcements:
            opening.append(self._quote(seen, "news", seen.announcements[-1]))
        if seen.turn >= seen.turns - 1 and seen.turns > 2:
            farewell = [self._phrase(seen, "goodbyes"), self._point(seen), self._phrase(seen, ("partings", tone))]
            return " ".join([*opening, *farewell]), True
        unanswered = _lines_to_answer(seen)
        asked = bool(unanswered) and unanswered[-1].content.rstrip().endswith("?")
        if not opening:
            digressed = bool(unanswered) and not self._is_to_the_point(unanswered[-1])
            opening = [self._phrase(seen, "answers" if asked else "returns" if digressed else ("openers", tone))]
        may_digress = not self._behaviour.settings.outspoken and not asked and seen.turn >= SETTLED_TURN
        if may_digress and draws.chance(ASIDE_CHANCE):
            labels = (self._readings.labels[topic] for topic in self.interests_of(seen.agent))
            interests = [topic for topic in labels if topic != self._subject]
            if interests:
                return " ".join([*opening, self._phrase(seen, "asides", about=draws.choice(interests))]), False
        if seen.lines and draws.chance(QUESTION_CHANCE):
            return " ".join([*opening, self._point(seen), self._phrase(seen, "questions")]), True
        return " ".join([*opening, self._point(seen, closing=True)]), True

    def _point(self, seen: DialogueObservation, closing: bool = False) -> str:
        """Say what the agent thinks of the subject, or something about an interest if there is no subject."""
        if self._subject is None:
            return self._phrase(seen, "chat", *(["chat_reasons"] if closing else []))
        if self._edition > 1 and is_about_price(self._subject):
            # What people think of a price shows in the price that they name.
            return ""
        lean = classify_stance(self._stances[seen.agent])
        if closing or abs(lean) == FIRM_LEAN:
            return self._phrase(seen, ("points", sign(lean)), ("closers", lean))
        return self._phrase(seen, ("points", sign(lean)))

    def _add_point(self, seen: DialogueObservation) -> str:
        """Name a price where one is negotiated, or say what the agent thinks of a claim that it has heard of."""
        agent, nth = seen.agent, self._written[seen.agent]
        if is_about_price(self._subject):
            return name_price(*self._recall_prices(seen), nth + agent)
        heard = self._heard.get(agent)
        if not heard:
            return ""
        claim = heard[nth % len(heard)]
        lean = classify_stance(self._beliefs[claim][agent])
        return self._claim_voice.write((CLAIM, "remark", lean), agent, nth, self._readings.claims[claim])

    def _recall_prices(self, seen: DialogueObservation) -> tuple[int, int | None]:
        """Return the agent's price, and the last one that the other named."""
        own = set_price(self._seed, self._world, seen.agent, seen.partner_id, self._stances[seen.agent])
        theirs = [find_price(line.content) for line in seen.lines if line.speaker_id == seen.partner_id]
        return own, theirs[-1] if theirs else None

    def _quote(self, seen: DialogueObservation, phrases: str, quote: str) -> str:
        return self._phrase(seen, phrases).replace("{quote}", shorten(" ".join(quote.split())).rstrip(" .!;,"))

    def _phrase(self, seen: DialogueObservation, *lists: PhraseKey, about: str | None = None) -> str:
        text = self._voice.choose(lists, seen.agent, self._written[seen.agent])
        if "{about}" in text:
            about = about or self._subject
            if not about:
                # Where there is no subject: the topic of the scene, or an interest.
                topics = next((line.topics for line in reversed(seen.lines) if line.topics), None)
                own = self.interests_of(seen.agent)
                about = label(topics[0]) if topics else self._readings.labels[own[0]] if own else ANYTHING
            text = text.replace("{about}", about)
        return text.replace("{name}", address(seen.partner))

    def _rate(self, seen: DialogueObservation, draws: Draws) -> Action:
        """Score the conversation by how close the two are and how often the other took the agent's side."""
        theirs = [line for line in seen.lines if line.speaker_id == seen.partner_id]
        if not theirs:
            return Action("RATE", {"score": draws.below(3), "reason": self._voice.phrases["silent_verdict"][0]})
        stance = self._stances[seen.agent]
        leans = self._partner_leans(seen)
        closeness = 0.6 if leans is None else 1 - abs(leans - stance) / 2
        side = 1.0 if self._subject is None else stance
        warmth = sum(line.slant * side >= 0 for line in theirs) / len(theirs)
        score = round(MAX_SCORE * (0.65 * closeness + 0.25 * warmth + 0.1 * draws.random()))
        verdicts = self._voice.phrases["verdicts", min(score // 3, BEST_VERDICT)]
        return Action("RATE", {"score": score, "reason": draws.choice(verdicts)})


def _lines_to_answer(seen: DialogueObservation) -> Sequence[LineView]:
    """Return what the other said since the agent spoke last."""
    lines = list(takewhile(lambda line: line.speaker_id != seen.agent, reversed(seen.lines)))
    return lines[::-1]
