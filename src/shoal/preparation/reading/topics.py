"""Chooses from a requirement what people are to talk about, without a language model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import sqrt

from shoal.preparation.reading.english import WORDS
from shoal.preparation.reading.sentences import Sentence

MAX_TOPIC_CHARS = 80
_NAME_WEIGHT, _QUESTION_WEIGHT = 0.5, 2.0
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"[\w’'-]+")
#: Words at which a phrase of a requirement ends.
_BREAKS = frozenset(
    "how what who whom whose why when where will would could can should do does did if whether react reacts respond "
    "think thinks feel feels talk discuss about is are was were be been has have had that which to in on of at by for "
    "from with after before and or but than as it they people residents public opinion opinions reaction reactions "
    "simulate simulation predict study examine see show find out spread develop evolve change changes online social "
    "media week weeks month months days year among between during over next".split()
)
#: Words inside of a phrase: the closure of the bridge, a tax on sugar.
_JOINING = frozenset({"of", "on", "against"})
_TRAILING = re.compile(r"(?:\s+(?:of|on|against))+$")
_ARTICLES = frozenset({"the", "a", "an", "this", "these", "their", "its", "our", "his", "her"})
_QUOTED = re.compile(r"[“\"«]([^”\"»]{3,80})[”\"»]")


def choose_topic(requirement: str, sentences: Sequence[Sentence]) -> str:
    """Return the phrase of the requirement that the documents speak of most; a longer one counts more.

    In a paragraph the question says what it is about. The rest is what is known, and quotations.
    """
    parts = _SENTENCE_END.split(requirement.strip())
    questions = " ".join(part for part in parts if part.endswith(("?", "？")))
    if quoted := _QUOTED.search(questions or parts[0]):
        return quoted[1].strip()
    phrases = list(_list_phrases(requirement))
    if not phrases:
        return _clip_words(requirement)
    texts = [f" {' '.join(_WORD.findall(sentence.text.lower()))} " for sentence in sentences]

    def weigh(phrase: str) -> tuple[float, int]:
        words = [
            word for word in _WORD.findall(phrase) if word.lower() not in _ARTICLES and word.lower() not in _JOINING
        ]
        seen = sum(f" {word.lower()} " in text for text in texts for word in words)
        weight = (seen + len(words)) / sqrt(len(words))
        # Of a question, only what stands with an article is surely a thing that is asked about.
        is_asked = phrase in questions and phrase.split(maxsplit=1)[0].lower() in _ARTICLES
        weight *= _QUESTION_WEIGHT if is_asked else 1.0
        # A name alone is rather where something happens, or who does it.
        return weight * (_NAME_WEIGHT if all(word[:1].isupper() for word in words) else 1.0), len(phrase)

    return _clip_words(max(phrases, key=weigh))


def _list_phrases(requirement: str) -> list[str]:
    """Return the runs of words between small words and verbs, with an article that stands before them."""
    phrases, current = list[str](), list[str]()
    for token in re.findall(r"[\w’'-]+|[.,;:!?()]", requirement):
        word = token.lower()
        joins = word in _JOINING and current and current[-1].lower() not in _ARTICLES
        if joins or (word in _ARTICLES and (not current or current[-1].lower() in _JOINING)):
            current.append(token)
        elif word in _BREAKS or word in WORDS.openers or not _WORD.match(token) or word in _ARTICLES:
            phrases.append(" ".join(current))
            current = [token] if word in _ARTICLES else []
        else:
            current.append(token)
    phrases.append(" ".join(current))
    return [
        phrase
        for phrase in (_TRAILING.sub("", phrase) for phrase in phrases)
        if (words := [word for word in phrase.split() if word.lower() not in _ARTICLES])
        and not all(word.lower() in WORDS.groups or word.isdigit() for word in words)
    ]


def _clip_words(text: str) -> str:
    text = " ".join(text.split()).strip(" .?!,")
    if len(text) <= MAX_TOPIC_CHARS:
        return text
    return text[:MAX_TOPIC_CHARS].rsplit(" ", 1)[0]
