"""Reads what an English text says of a claim, and how it values the topic, where its author does not state it.

The rules know negation, reported speech, words that call something true or false, and words with an opposite. What
sounds sarcastic is unknown and not guessed at, and so is a text in another language. A claim is recognised by its
words; `data/reading.json` holds the words of the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources
from typing import Literal, NamedTuple

import msgspec

#: Words from which on a text is long enough to have an English one among them, if it is English.
_MIN_WORDS = 6
#: How many words a negation reaches.
_REACH = 3
#: What is passed on counts less than what an author says, and a question leans a little against the claim.
_REPORTED, _QUESTIONED = 0.5, -0.25
#: What follows a "but" counts more than what comes before it.
_AFTER_BUT = 3.0
#: How much a text leans that says one thing plainly.
_PLAIN = 0.8
#: One word of praise gives 1 / (1 + this) of the full lean.
_DAMPING = 1.0
#: Words whose stems are remembered, and texts whose clauses are: a text is read once for each claim, and for the topic.
_MEMORY_WORDS, _MEMORY_TEXTS = 65_536, 256

_SENTENCES = re.compile(r"[^.!?;\n]+[.!?;\n]*")
_WORDS = re.compile(r"[^\W_]+(?:'[^\W_]+)?|“|”|\"")
_BUT = re.compile(r"\b(?:but|however|although|though|yet|which is|nevertheless|in truth|in fact)\b")
_AND = re.compile(
    r",\s+(?=(?:\S+\s+){1}\S)|:\s|\s+(?:and|so|because)\s+(?=(?:nobody|not|i|we|they|he|she|it|you|there|that)\b)"
)
_FIGURE = re.compile(r"\d+$|percent|per$|million|thousand")
_SCARE_QUOTES = re.compile(r"[“\"](\w+)[”\"]")
#: Praise that stands before what it is about: "Great idea, ...". News may be good.
_PRAISED_FIRST = re.compile(r"(?:oh |wow,? )?(\w+)(?: (?!news|to\b)\w+)?[,!] ")
_PRAISED_BETWEEN = re.compile(r", (?:sure|right|yeah|great|lovely|wonderful|brilliant|fantastic),")
_ENDINGS = ("ingly", "ings", "ing", "edly", "ied", "ies", "ed", "es", "ly", "s", "e")
#: Endings of verbs that end in y: cry, cries, cried.
_Y_ENDINGS = ("ied", "ies")

Unread = Literal["language", "sarcasm"]


class TextMeaning(NamedTuple):
    """What a text says: -1 denies or is against, 1 supports or is for; 0 says neither. None: it cannot be read."""

    lean: float | None
    unread: Unread | None = None


class _Words(msgspec.Struct):
    """The words of the rules."""

    phrases: list[tuple[str, str]]
    irregular: dict[str, str]
    sarcasm: list[str]
    sarcastic_starts: list[str]
    true: list[str]
    false: list[str]
    reports: list[str]
    negators: frozenset[str]
    doubts: frozenset[str]
    poles: list[tuple[list[str], list[str]]]
    good: list[str]
    bad: list[str]
    english: frozenset[str]
    foreign: frozenset[str]


_RULES = msgspec.json.decode(resources.files(__package__).joinpath("data", "reading.json").read_bytes(), type=_Words)


@lru_cache(_MEMORY_WORDS)
def stem(word: str) -> str:
    """Cut the ending of a word, so that its forms are alike: close, closes, closed, closing."""
    word = _RULES.irregular.get(word := word.removesuffix("'s"), word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= (2 if ending in _Y_ENDINGS and len(word) > 4 else 3):
            if not word.endswith("ss"):
                word = word.removesuffix(ending) + ("y" if ending in _Y_ENDINGS else "")
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls" else word


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(stem, words))


_TRUE, _FALSE, _REPORTS = _stems(_RULES.true), _stems(_RULES.false), _stems(_RULES.reports)
#: Words that call something true without naming it.
_PLAINLY_TRUE = _stems(["true", "confirm", "correct", "truth", "certain"])
_GOOD, _BAD = _stems(_RULES.good), _stems(_RULES.bad)
#: Stem -> the pairs of opposites it belongs to, each with its side.
_POLES: dict[str, dict[int, int]] = {}
for _pair, _sides in enumerate(_RULES.poles):
    for _side, _members in zip((1, -1), _sides, strict=True):
        for _member in _members:
            _POLES.setdefault(stem(_member), {})[_pair] = _side
_PHRASES = re.compile(rf"\b(?:{'|'.join(re.escape(phrase) for phrase, _ in _RULES.phrases)})")
_PHRASE_WORDS = dict(_RULES.phrases)
#: Words that say nothing about the matter of a claim.
_SMALL = (_RULES.english | {"next", "year", "ever", "really", "make", "get", "go", "goe", "become"}) - {
    "good",
    "bad",
    "true",
    "like",
    "know",
    "think",
    "say",
}


@lru_cache(_MEMORY_TEXTS)
def is_english(text: str) -> bool:
    """Return whether a text may be English; a short one may be anything."""
    if not text.isascii():
        letters = [letter for letter in text if letter.isalpha()]
        if letters and sum(map(str.isascii, letters)) < 0.7 * len(letters):
            return False
    words = [word.strip(".,!?;:\"'“”") for word in text.lower().replace("’", "'").split()]
    known, foreign = (sum(map(words_of.__contains__, words)) for words_of in (_RULES.english, _RULES.foreign))
    return known >= foreign and (known > 0 or len(words) < _MIN_WORDS)


@lru_cache(_MEMORY_TEXTS)
def sounds_sarcastic(text: str) -> bool:
    """Return whether a text has a mark of sarcasm: a set phrase, or praise in quotation marks."""
    lower = text.lower().replace("’", "'")
    marked = any(mark in lower for mark in _RULES.sarcasm) or lower.startswith(tuple(_RULES.sarcastic_starts))
    if marked or _PRAISED_BETWEEN.search(lower):
        return True
    opening = _PRAISED_FIRST.match(lower)
    praise = [*_SCARE_QUOTES.findall(lower), *(opening.groups() if opening else ())]
    return any(stem(word) in _GOOD for word in praise)


class _Clause(NamedTuple):
    """A part of a text: its words in order, and how much it counts."""

    stems: list[str]
    words: list[str]
    weight: float
    is_question: bool
    #: Whether its first word answers, as in "No, it stays open", and negates nothing.
    answers: bool


@lru_cache(_MEMORY_TEXTS)
def _split(text: str) -> tuple[_Clause, ...]:
    lower = text.lower().replace("’", "'")
    lower = _PHRASES.sub(lambda match: _PHRASE_WORDS[match[0]], lower)
    clauses = []
    for sentence in _SENTENCES.findall(lower):
        parts = [
            (part, _AFTER_BUT if place else 1.0)
            for place, side in enumerate(_BUT.split(sentence))
            for part in _AND.split(side)
        ]
        for part, weight in parts:
            words = [word.replace("n't", "nt") if word.endswith("n't") else word for word in _WORDS.findall(part)]
            words = [word.replace("'", "") if word.replace("'", "") in _RULES.negators else word for word in words]
            asks = sentence.rstrip().endswith("?")
            if words:
                answers = part.lstrip().startswith(("no, ", "never, ", "no: "))
                clauses.append(_Clause([*map(stem, words)], words, weight, asks, answers))
    return tuple(clauses)


class StatementReader:
    """Reads what texts say of one claim."""

    def __init__(self, statement: str) -> None:
        words = [word for clause in _split(statement) for word in clause.words]
        self._content = {stem(word) for word in words if word not in _SMALL and word not in _RULES.negators}
        self._poles = {pair: side for word in self._content for pair, side in _POLES.get(word, {}).items()}
        self._is_negative = sum(word in _RULES.negators for word in words) % 2 == 1
        #: What names the matter; what is said of it is a pole, or the rest.
        self._matter = {
            word for word in self._content if word not in _POLES and not _FIGURE.match(word)
        } or self._content

    def read(self, text: str) -> TextMeaning | None:
        """Return what the text says of the claim; None where it does not speak of it."""
        if not is_english(text):
            return TextMeaning(None, "language")
        clauses = _split(text)
        spoken = {word for clause in clauses for word in clause.stems}
        named = len(self._matter & spoken)
        if named < min(2, len(self._matter)) or named < 0.4 * len(self._matter):
            return None
        if sounds_sarcastic(text):
            return TextMeaning(None, "sarcasm")
        total = 0.0
        for place, clause in enumerate(clauses):
            takes_back = place > 0 and _takes_back(clause, clauses[place - 1])
            total += -_AFTER_BUT * total if takes_back else clause.weight * self._judge(clause)
        if not total:
            asks = any(clause.is_question or not _RULES.doubts.isdisjoint(clause.words) for clause in clauses)
            return TextMeaning(_QUESTIONED) if asks else None
        return TextMeaning(max(-_PLAIN, min(_PLAIN, _PLAIN * total)))

    def _judge(self, clause: _Clause) -> float:
        """Return 1 where a clause asserts the claim, -1 where it contradicts it, 0 where it does neither."""
        stems = set(clause.stems)
        if not _RULES.doubts.isdisjoint(clause.words) or clause.is_question:
            return 0.0
        poles = [pole for word in stems for pole in _POLES.get(word, {}).items()]
        sides = [side * self._poles[pair] for pair, side in poles if pair in self._poles]
        verdict, negations = _weigh_truth(clause)
        states = bool(sides) if self._poles else len(self._content & stems) >= 0.6 * len(self._content)
        if not states and (verdict is None or not self._is_verdict(clause, verdict)):
            return 0.0
        sign = verdict or 1.0
        if states:
            sign *= -1.0 if negations % 2 else 1.0
            sign *= -1.0 if self._is_negative else 1.0
            sign *= -1.0 if sides and max(sides) < 0 else 1.0
        return sign * (_REPORTED if stems & _REPORTS and verdict is None else 1.0)

    def _is_verdict(self, clause: _Clause, verdict: float) -> bool:
        """Return whether a clause that does not state the claim can be a verdict on it: `That is not true`."""
        if verdict > 0 and _PLAINLY_TRUE.isdisjoint(clause.stems):
            return False
        _, that, rest = " ".join(clause.words).partition(" that ")
        return not that or _stems(rest.split()) <= self._content | _stems(_SMALL)


def _takes_back(clause: _Clause, before: _Clause) -> bool:
    """Return whether a clause only denies what the one before it reports: `They say that it closes. It does not.`"""
    negators = sum(word in _RULES.negators for word in clause.words)
    is_denial = negators == 1 and all(word in _RULES.negators or word in _RULES.english for word in clause.words)
    return is_denial and not _REPORTS.isdisjoint(before.stems) and _weigh_truth(before)[0] is None


def _weigh_truth(clause: _Clause) -> tuple[float | None, int]:
    """Return how a clause calls something true (1) or false (-1), and how many negations it has besides.

    A negation right before such a word belongs to it: `not true`, `no evidence`, `nobody doubts`.
    """
    verdict: float | None = None
    free = 0
    pending = 0
    for place, (word, root) in enumerate(zip(clause.words, clause.stems, strict=True)):
        if word in _RULES.negators:
            if place == 0 and clause.answers:
                continue
            free += pending > 0
            pending = _REACH + 1
        elif root in _TRUE or root in _FALSE:
            value = (1.0 if root in _TRUE else -1.0) * (-1.0 if pending > 0 else 1.0)
            # "Dismisses unfounded reports" says one thing twice.
            if not (value < 0 and place and clause.stems[place - 1] in _FALSE):
                verdict = value if verdict is None else verdict * value
            pending = 0
        elif pending > 0:
            pending -= 1
            if not pending:
                free += 1
    return verdict, free + (pending > 0)


def read_attitude(text: str) -> TextMeaning:
    """Return how a text values what it is about."""
    if not is_english(text):
        return TextMeaning(None, "language")
    if sounds_sarcastic(text):
        return TextMeaning(None, "sarcasm")
    total = sum(clause.weight * _value(clause) for clause in _split(text) if not clause.is_question)
    return TextMeaning(total / (abs(total) + _DAMPING))


def _value(clause: _Clause) -> float:
    """Return the sum of what is good and bad in a clause. "It is a lie that X is dangerous" speaks for X."""
    total, flips = 0.0, 1.0
    pending, falsity = 0, False
    for place, (word, root) in enumerate(zip(clause.words, clause.stems, strict=True)):
        if falsity and word in ("that", "to"):
            total, flips, falsity = 0.0, -flips, False
            continue
        sign = (root in _GOOD) - (root in _BAD)
        if pending > 0 and root in _TRUE and not sign:
            pending, falsity = 0, True
        elif word in _RULES.negators and word != "without":
            pending = 0 if place == 0 and clause.answers else _REACH + 1
        elif sign:
            value = flips * sign * (-1.0 if pending > 0 else 1.0)
            total += value
            pending = 0
            falsity = root in _FALSE
        else:
            pending = max(pending - 1, 0)
            falsity = root in _FALSE or (falsity and word in ("is", "it", "a"))
    return total * (_REPORTED if _REPORTS & set(clause.stems) else 1.0)
