"""Usernames, bios and personas, written from the facts about a person."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_PRONOUNS = {"female": ("She", "is"), "male": ("He", "is")}
_OPINIONS = (
    (0.6, "strongly in favour of"),
    (0.2, "rather in favour of"),
    (-0.2, "undecided about"),
    (-0.6, "rather against"),
    (-2.0, "strongly against"),
)
_NOT_WORD = re.compile(r"[^a-z0-9]+")
_OFTEN, _SELDOM = 0.6, 0.2


@dataclass(frozen=True, slots=True)
class PersonFacts:
    """The facts about one person; None where one is not known."""

    name: str
    age: int | None
    gender: str | None
    country: str | None
    profession: str | None
    interests: tuple[str, ...]
    stance: float
    activity: float
    topic: str | None


def make_username(name: str, number: int) -> str:
    """Make an account name such as `zofia_mueller`; people whose name has no Latin letters get their number."""
    plain = unicodedata.normalize("NFKD", name.lower()).encode("ascii", "ignore").decode()
    return _NOT_WORD.sub("_", plain).strip("_") or f"user_{number}"


def write_bio(facts: PersonFacts) -> str:
    """Write one line, as people write about themselves."""
    parts = []
    if facts.profession:
        parts.append(_capitalise(facts.profession) + (f" from {facts.country}" if facts.country else ""))
    elif facts.country:
        parts.append(f"From {facts.country}")
    if facts.interests:
        parts.append(_capitalise(_join_words(facts.interests)))
    return ". ".join(parts) + "." if parts else f"{facts.name}."


def write_persona(facts: PersonFacts) -> str:
    """Write a few sentences that say to a reader, or to a model, who this is."""
    pronoun, verb = _PRONOUNS.get(facts.gender or "", ("They", "are"))
    if facts.age is None and facts.profession is None and facts.country is None:
        pronoun, verb, sentences = facts.name, "is", []
    else:
        noun = facts.profession or "person"
        if facts.age is not None:
            noun = f"{facts.age}-year-old {noun}"
        origin = f" from {facts.country}" if facts.country else ""
        sentences = [f"{facts.name} is {_choose_article(noun)} {noun}{origin}."]
    s = "s" if verb == "is" else ""
    if facts.interests:
        sentences.append(f"{pronoun} care{s} about {_join_words(facts.interests)}.")
    if facts.topic:
        opinion = next(words for bound, words in _OPINIONS if facts.stance >= bound)
        sentences.append(f"{pronoun} {verb} {opinion} {facts.topic}.")
    if facts.activity >= _OFTEN:
        sentences.append(f"{pronoun} write{s} online often.")
    elif facts.activity < _SELDOM:
        sentences.append(f"{pronoun} mostly read{s} and seldom write{s}.")
    return " ".join(sentences)


def _choose_article(noun: str) -> str:
    number = noun.partition("-")[0]
    if number.isdecimal():
        return "an" if number.startswith("8") or number in ("11", "18") else "a"
    return "an" if noun[:1].lower() in tuple("aeiou") else "a"


def _join_words(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]
