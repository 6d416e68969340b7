"""Takes a short English text apart into clauses of words that the rules of `reading.py` know something about.

Every word is looked up once: what is known of it is remembered, so that a text costs one pass over its words.
`data/reading.json` holds the words of the rules.
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
#: What follows a "but" counts more than what comes before it.
AFTER_BUT = 3.0
#: Words remembered before the memory is emptied, and texts that several readers in a row take apart once.
_MEMORY_WORDS, _MEMORY_TEXTS = 50_000, 256

_WORDS = re.compile(r"[^\W_]+(?:'[^\W_]+)?|“|”|\"")
#: Where a clause ends: with its sentence, at a word like "but", and where what follows has a subject of its own.
_BREAKS = re.compile(
    r"(?P<end>[.!?;\n]+)"
    r"|(?P<but>\b(?:but|however|although|though|yet|which is|nevertheless|in truth|in fact)\b)"
    r"|,\s+(?=[^\s.!?;]+\s+[^\s.!?;])|:\s"
    r"|\s+(?:and|so|because)\s+(?=(?:nobody|not|i|we|they|he|she|it|you|there|that)\b)"
)
_SCARE_QUOTES = re.compile(r"[“\"](\w+)[”\"]")
#: Praise that stands before what it is about: "Great idea, ...". News may be good.
_PRAISED_FIRST = re.compile(r"(?:oh |wow,? )?(\w+)(?: (?!news|to\b)\w+)?[,!] ")
_PRAISED_BETWEEN = re.compile(r", (?:sure|right|yeah|great|lovely|wonderful|brilliant|fantastic),")
_ENDINGS = ("ingly", "ings", "ing", "edly", "ied", "ies", "ed", "es", "ly", "s", "e")
#: Endings of verbs that end in y: cry, cries, cried.
_Y_ENDINGS = ("ied", "ies")

Unread = Literal["language", "sarcasm"]


class _Rules(msgspec.Struct):
    """The words of the rules."""

    phrases: list[tuple[str, str]]
    irregular: dict[str, str]
    sarcasm: list[str]
    sarcastic_starts: tuple[str, ...]
    true: list[str]
    false: list[str]
    reports: list[str]
    negators: frozenset[str]
    doubts: frozenset[str]
    poles: list[tuple[list[str], list[str]]]
    good: list[str]
    bad: list[str]
    turners: list[str]
    removals: list[str]
    orders: frozenset[str]
    modals: frozenset[str]
    english: frozenset[str]
    foreign: frozenset[str]


RULES = msgspec.json.decode(resources.files(__package__).joinpath("data", "reading.json").read_bytes(), type=_Rules)


def stem(word: str) -> str:
    """Cut the ending of a word, so that its forms are alike: close, closes, closed, closing."""
    word = RULES.irregular.get(word := word.removesuffix("'s"), word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= (2 if ending in _Y_ENDINGS and len(word) > 4 else 3):
            if not word.endswith("ss"):
                word = word.removesuffix(ending) + ("y" if ending in _Y_ENDINGS else "")
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls" else word


def stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(stem, words))


_TRUE, _FALSE, _REPORTS = stems(RULES.true), stems(RULES.false), stems(RULES.reports)
_GOOD, _BAD, _TURNERS = stems(RULES.good), stems(RULES.bad), stems(RULES.turners)
#: Stem -> the pairs of opposites it belongs to, each with its side.
POLES: dict[str, dict[int, int]] = {}
for _pair, _sides in enumerate(RULES.poles):
    for _side, _members in zip((1, -1), _sides, strict=True):
        for _member in _members:
            POLES.setdefault(stem(_member), {})[_pair] = _side


class Word(NamedTuple):
    """A word, and what the rules know about it."""

    text: str
    root: str
    is_negator: bool
    #: Whether it calls something true (1) or false (-1).
    truth: int
    #: Whether it praises (1) or blames (-1).
    value: int
    #: Whether what follows has its value from this word: `prevents crime`, `undermines trust`.
    turns: bool
    #: Whether it begins a clause that is asked or supposed and not said.
    doubts: bool


class _Vocabulary(dict[str, Word]):
    """All words that were met, each looked up once."""

    def __missing__(self, written: str) -> Word:
        if len(self) >= _MEMORY_WORDS:
            self.clear()
        text = written.replace("n't", "nt") if written.endswith("n't") else written
        if text.replace("'", "") in RULES.negators:
            text = text.replace("'", "")
        root = stem(text)
        word = self[written] = Word(
            text,
            root,
            text in RULES.negators,
            (root in _TRUE) or -(root in _FALSE),
            (root in _GOOD) - (root in _BAD),
            root in _TURNERS,
            text in RULES.doubts,
        )
        return word


_VOCABULARY = _Vocabulary()


class Clause(NamedTuple):
    """A part of a text: its words in order, and how much it counts."""

    words: list[Word]
    roots: frozenset[str]
    weight: float
    is_question: bool
    #: Whether its first word answers, as in "No, it stays open", and negates nothing.
    answers: bool
    #: Whether it is said to be unknown, or said by somebody else.
    doubts: bool
    reports: bool
    #: Whether it says what should be.
    demands: bool


def _compile_phrases(phrases: Iterable[str]) -> re.Pattern[str]:
    """Group phrases by their first word: to try them all at every word would take most of the time."""
    groups: dict[str, list[str]] = {}
    for phrase in phrases:
        first, space, rest = phrase.partition(" ")
        groups.setdefault(first, []).append(re.escape(space + rest))
    return re.compile(r"\b(?:" + "|".join(f"{re.escape(first)}(?:{'|'.join(groups[first])})" for first in groups) + ")")


_PHRASE_WORDS = dict(RULES.phrases)
_PHRASES = _compile_phrases(_PHRASE_WORDS)


def _lower(text: str) -> str:
    return text.lower().replace("’", "'")


def is_english(text: str) -> bool:
    """Return whether a text may be English; a short one may be anything."""
    if not text.isascii():
        letters = [letter for letter in text if letter.isalpha()]
        if sum(letter.isascii() for letter in letters) < 0.7 * len(letters):
            return False
    words = [word.strip(".,!?;:\"'“”") for word in _lower(text).split()]
    known = len([word for word in words if word in RULES.english])
    return known >= len([word for word in words if word in RULES.foreign]) and (known > 0 or len(words) < _MIN_WORDS)


def sounds_sarcastic(text: str) -> bool:
    """Return whether a text has a mark of sarcasm: a set phrase, or praise in quotation marks."""
    lower = _lower(text)
    for mark in RULES.sarcasm:
        if mark in lower:
            return True
    if lower.startswith(RULES.sarcastic_starts) or _PRAISED_BETWEEN.search(lower):
        return True
    opening = _PRAISED_FIRST.match(lower)
    praise = [*_SCARE_QUOTES.findall(lower), *(opening.groups() if opening else ())]
    return any(_VOCABULARY[word].value > 0 for word in praise)


def split_clauses(text: str) -> list[Clause]:
    """Split a text at the ends of its sentences, at words like "but", and where a comma or "and" begins a clause."""
    lower = _PHRASES.sub(lambda match: _PHRASE_WORDS[match[0]], _lower(text))
    clauses: list[Clause] = []
    #: What of a sentence lies before its end, which says whether it asks; and how much it counts.
    parts: list[tuple[str, float]] = []
    start, weight = 0, 1.0
    for match in _BREAKS.finditer(lower):
        parts.append((lower[start : match.start()], weight))
        start = match.end()
        if match.lastgroup == "but":
            weight = AFTER_BUT
        elif match.lastgroup == "end":
            clauses += _list_clauses(parts, match["end"].rstrip().endswith("?"))
            parts, weight = [], 1.0
    return clauses + _list_clauses([*parts, (lower[start:], weight)], is_question=False)


def _list_clauses(parts: Iterable[tuple[str, float]], is_question: bool) -> list[Clause]:
    clauses = []
    for part, weight in parts:
        if words := [_VOCABULARY[word] for word in _WORDS.findall(part)]:
            answers = part.lstrip().startswith(("no, ", "never, "))
            roots = frozenset([word.root for word in words])
            doubts, reports = True in [word.doubts for word in words], not _REPORTS.isdisjoint(roots)
            demands = not RULES.modals.isdisjoint([word.text for word in words])
            clauses.append(Clause(words, roots, weight, is_question, answers, doubts, reports, demands))
    return clauses


class TextParts(NamedTuple):
    """The clauses of a text, and why it cannot be read."""

    clauses: list[Clause]
    unread: Unread | None


@lru_cache(_MEMORY_TEXTS)
def take_apart(text: str) -> TextParts:
    """Split a text unless it is in another language. The last texts are remembered: several readers read each."""
    if not is_english(text):
        return TextParts([], "language")
    return TextParts(split_clauses(text), "sarcasm" if sounds_sarcastic(text) else None)
