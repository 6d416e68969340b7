"""People in words: usernames, bios and personas made from what is known about somebody."""

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
    """What is known about one person; None where nothing is."""

    name: str
    age: int | None
    gender: str | None
    country: str | None
    profession: str | None
    interests: tuple[str, ...]
    stance: float
    activity: float
    topic: str | None


def username(name: str, number: int) -> str:
    """An account name such as `zofia_mueller`; people whose name has no Latin letters get their number."""
    plain = unicodedata.normalize("NFKD", name.lower()).encode("ascii", "ignore").decode()
    return _NOT_WORD.sub("_", plain).strip("_") or f"user_{number}"


def bio(facts: PersonFacts) -> str:
    """One line, as people write about themselves."""
    parts = []
    if facts.profession:
        parts.append(_capital(facts.profession) + (f" from {facts.country}" if facts.country else ""))
    elif facts.country:
        parts.append(f"From {facts.country}")
    if facts.interests:
        parts.append(_capital(_joined(facts.interests)))
    return ". ".join(parts) + "." if parts else f"{facts.name}."


def persona(facts: PersonFacts) -> str:
    """A few sentences that tell a reader, or a model, who this is."""
    pronoun, verb = _PRONOUNS.get(facts.gender or "", ("They", "are"))
    sentences = [f"{facts.name} is {_who(facts)}."]
    if facts.age is None and facts.profession is None and facts.country is None:
        pronoun, verb, sentences = facts.name, "is", []
    if facts.interests:
        sentences.append(f"{pronoun} care{_ending(verb)} about {_joined(facts.interests)}.")
    if facts.topic:
        sentences.append(f"{pronoun} {verb} {opinion(facts.stance)} {facts.topic}.")
    if facts.activity >= _OFTEN:
        sentences.append(f"{pronoun} write{_ending(verb)} online often.")
    elif facts.activity < _SELDOM:
        sentences.append(f"{pronoun} mostly read{_ending(verb)} and seldom write{_ending(verb)}.")
    return " ".join(sentences)


def opinion(stance: float) -> str:
    """A stance in words that a topic can follow."""
    return next(words for bound, words in _OPINIONS if stance >= bound)


def _who(facts: PersonFacts) -> str:
    noun = facts.profession or "person"
    if facts.age is not None:
        noun = f"{facts.age}-year-old {noun}"
    return f"{_article(noun)} {noun}" + (f" from {facts.country}" if facts.country else "")


def _article(noun: str) -> str:
    number = noun.partition("-")[0]
    if number.isdecimal():
        return "an" if number.startswith("8") or number in ("11", "18") else "a"
    return "an" if noun[:1].lower() in tuple("aeiou") else "a"


def _ending(verb: str) -> str:
    return "s" if verb == "is" else ""


def _joined(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
