"""Reads what an English text says of a claim, and how it values the topic, where its author does not state it.

The rules know negation, reported speech, words that call something true or false, and words with an opposite. What
sounds sarcastic is unknown and not guessed at, and so is a text in another language. A claim is recognised by its
words; `data/reading.json` holds the words of the rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from shoal.worlds.clauses import AFTER_BUT, POLES, RULES, Clause, Unread, Word, split_clauses, stems, take_apart

#: How many words a negation reaches.
_REACH = 3
#: How many words a verb like "prevent" reaches.
_TURNED = 7
#: What is passed on counts less than what an author says, and a question leans a little against the claim.
_REPORTED, _QUESTIONED = 0.5, -0.25
#: How much a text leans that says one thing plainly.
_PLAIN = 0.8
#: One word of praise gives 1 / (1 + this) of the full lean.
_DAMPING = 1.0

_REMOVALS = stems(RULES.removals)
_COPULAS = frozenset(["is", "are", "was", "were", "be"])
_FIGURE = re.compile(r"\d+$|percent|per$|million|thousand")
#: Words that call something true without naming it.
_PLAINLY_TRUE = stems(["true", "confirm", "correct", "truth", "certain"])
#: Words that say nothing about the matter of a claim.
_SMALL = (RULES.english | {"next", "year", "ever", "really", "make", "get", "go", "goe", "become"}) - {
    "good",
    "bad",
    "true",
    "like",
    "know",
    "think",
    "say",
}
_SMALL_ROOTS = stems(_SMALL)


class TextMeaning(NamedTuple):
    """What a text says: -1 denies or is against, 1 supports or is for; 0 says neither. None: it cannot be read."""

    lean: float | None
    unread: Unread | None = None


class StatementReader:
    """Reads what texts say of one claim."""

    def __init__(self, statement: str) -> None:
        words = [word for clause in split_clauses(statement) for word in clause.words]
        self._content = frozenset(word.root for word in words if word.text not in _SMALL and not word.is_negator)
        self._poles = {pair: side for root in self._content for pair, side in POLES.get(root, {}).items()}
        self._is_negative = sum(word.is_negator for word in words) % 2 == 1
        #: What names the matter; what is said of it is a pole, or the rest.
        matter = frozenset(root for root in self._content if root not in POLES and not _FIGURE.match(root))
        self._matter = matter or self._content
        #: Words that name what the claim judges or demands, and how: -1 to be gone or bad, 0 where it states a fact.
        self._judged, self._demand = _find_demand(words) if words else (frozenset(), 0)
        #: How many of its words a text has that speaks of it.
        self._named_from = max(min(2, len(self._matter)), 0.4 * len(self._matter))

    def read(self, text: str) -> TextMeaning | None:
        """Return what the text says of the claim; None where it does not speak of it."""
        clauses, unread = take_apart(text)
        if unread == "language":
            return TextMeaning(None, unread)
        spoken = {root for clause in clauses for root in clause.roots}
        if len(self._matter & spoken) < self._named_from:
            return None
        if unread:
            return TextMeaning(None, unread)
        total = 0.0
        for place, clause in enumerate(clauses):
            takes_back = place > 0 and _takes_back(clause, clauses[place - 1])
            total += -AFTER_BUT * total if takes_back else clause.weight * self._judge(clause)
        if not total:
            asks = any(clause.is_question or clause.doubts for clause in clauses)
            return TextMeaning(_QUESTIONED) if asks else None
        return TextMeaning(max(-_PLAIN, min(_PLAIN, _PLAIN * total)))

    def _judge(self, clause: Clause) -> float:
        """Return 1 where a clause asserts the claim, -1 where it contradicts it, 0 where it does neither."""
        if clause.doubts or clause.is_question:
            return 0.0
        poles = [pole for root in clause.roots & POLES.keys() for pole in POLES[root].items()]
        sides = [side * self._poles[pair] for pair, side in poles if pair in self._poles]
        verdict, negations = _weigh_truth(clause)
        states = bool(sides) if self._poles else len(self._content & clause.roots) >= 0.6 * len(self._content)
        if self._demand and verdict is None and not (states and clause.demands):
            return self._weigh_demand(clause)
        if not states and (verdict is None or not self._is_verdict(clause, verdict)):
            return 0.0
        sign = verdict or 1.0
        if states:
            sign *= -1.0 if negations % 2 else 1.0
            sign *= -1.0 if self._is_negative else 1.0
            sign *= -1.0 if sides and max(sides) < 0 else 1.0
        return sign * (_REPORTED if clause.reports and verdict is None else 1.0)

    def _weigh_demand(self, clause: Clause) -> float:
        """Return what a clause says for or against what the claim demands, by how it values the matter.

        Who praises the matter is against its removal, unless it is the removal that they praise.
        """
        value = _value(clause, self._judged)
        sign = (value > 0) - (value < 0)
        return sign * self._demand * (1.0 if _REMOVALS.isdisjoint(clause.roots) else -1.0)

    def _is_verdict(self, clause: Clause, verdict: float) -> bool:
        """Return whether a clause that does not state the claim can be a verdict on it: `That is not true`."""
        if verdict > 0 and _PLAINLY_TRUE.isdisjoint(clause.roots):
            return False
        texts = [word.text for word in clause.words]
        told = clause.words[texts.index("that", 1) + 1 :] if "that" in texts[1:] else []
        return all(word.root in self._content or word.root in _SMALL_ROOTS for word in told)


def _find_demand(words: Sequence[Word]) -> tuple[frozenset[str], int]:
    """Return the words of a claim that name what it judges or demands, and which way; 0 where it states a fact."""
    roots = frozenset(word.root for word in words)
    sign = -1 if any(word.is_negator for word in words) else 1
    if any(word.text in RULES.modals for word in words) or words[0].root in _REMOVALS or words[0].text in RULES.orders:
        return roots, sign if _REMOVALS.isdisjoint(roots) else -sign
    said = next((place for place, word in enumerate(words) if word.text in _COPULAS), len(words))
    value = sum(word.value for word in words[said:])
    return roots.difference(word.root for word in words[said:]), sign * ((value > 0) - (value < 0))


def _takes_back(clause: Clause, before: Clause) -> bool:
    """Return whether a clause only denies what the one before it reports: `They say that it closes. It does not.`"""
    negators = sum(word.is_negator for word in clause.words)
    is_denial = negators == 1 and all(word.is_negator or word.text in RULES.english for word in clause.words)
    return is_denial and before.reports and _weigh_truth(before)[0] is None


def _weigh_truth(clause: Clause) -> tuple[float | None, int]:
    """Return how a clause calls something true (1) or false (-1), and how many negations it has besides.

    A negation right before such a word belongs to it: `not true`, `no evidence`, `nobody doubts`.
    """
    verdict: float | None = None
    free = 0
    pending = 0
    for place, word in enumerate(clause.words):
        if word.is_negator:
            if place == 0 and clause.answers:
                continue
            free += pending > 0
            pending = _REACH + 1
        elif word.truth:
            value = -word.truth if pending > 0 else word.truth
            # "Dismisses unfounded reports" says one thing twice.
            if not (value < 0 and place and clause.words[place - 1].truth < 0):
                verdict = value if verdict is None else verdict * value
            pending = 0
        elif pending > 0:
            pending -= 1
            if not pending:
                free += 1
    return verdict, free + (pending > 0)


def read_attitude(text: str) -> TextMeaning:
    """Return how a text values what it is about."""
    clauses, unread = take_apart(text)
    if unread:
        return TextMeaning(None, unread)
    total = sum(clause.weight * _value(clause) for clause in clauses if not clause.is_question)
    return TextMeaning(total / (abs(total) + _DAMPING))


def _value(clause: Clause, matter: frozenset[str] = frozenset()) -> float:
    """Return the sum of what is good and bad in a clause, words that name its matter aside.

    "It is a lie that X is dangerous" speaks for X, and so does "X prevents crime".
    """
    total, flips = 0.0, 1.0
    pending, falsity = 0, False
    #: The word that gives those after it their value, and how many more words it reaches.
    turner, reach = 0, 0
    for place, word in enumerate(clause.words):
        reach -= 1
        value = 0 if word.root in matter else word.value
        if falsity and word.text in ("that", "to"):
            total, flips, falsity, pending = 0.0, -flips, False, 0
            continue
        if pending > 0 and word.truth > 0 and not value:
            # "I do not think that it helps" and "I do not think it helps" say the same.
            pending, falsity = pending - 1, word.text != "really"
        elif word.is_negator and word.text != "without":
            pending = 0 if place == 0 and clause.answers else _REACH + 1
        elif value:
            if reach > 0 and not word.turns:
                value = -value if turner == 0 else 0 if turner == -value else value
            total += flips * value * (-1.0 if pending > 0 else 1.0)
            pending = 0
            falsity = word.truth < 0
        else:
            pending = max(pending - 1, 0)
            falsity = word.truth < 0 or (falsity and word.text in ("is", "it", "a"))
        if word.turns and word.root not in matter:
            turner, reach = value, _TURNED + 1
    return total * (_REPORTED if clause.reports else 1.0)
