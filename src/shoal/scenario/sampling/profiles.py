"""Names, usernames, bios and personas of sampled people. Names are an international mix, each used once."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from shoal.seeds import derive, hashes

_NAMES = json.loads((resources.files("shoal.scenario") / "data" / "names.json").read_text(encoding="utf-8"))
FEMALE, MALE, LAST = (tuple(_NAMES[words]) for words in ("female", "male", "last"))
#: Both lists of first names are used up to this length, so that a number means one name whatever the gender.
_FIRST_COUNT = min(len(FEMALE), len(MALE))
#: Names without initials.
_NAMES_PER_TIER = _FIRST_COUNT * len(LAST)
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
    stance: float | None
    activity: float
    topic: str | None


def draw_names(seed: int, genders: NDArray[np.int8]) -> list[str]:
    """Draw a name for each person; gender 0 is female, 1 male, others take from both lists.

    Number -> (first, last, initials) is one to one, and no two lists share a first name at different places. So the
    name of a person does not depend on how many people there are, and no name comes twice. The first tier has plain
    names; each later one has its own middle initials.
    """
    result: list[str] = []
    for tier, start in enumerate(range(0, len(genders), _NAMES_PER_TIER)):
        mine = genders[start : start + _NAMES_PER_TIER]
        key = derive(seed, "names", tier)
        shuffled = np.argsort(hashes(key, np.arange(_NAMES_PER_TIER)), kind="stable")[: len(mine)]
        either = (hashes(key, np.arange(len(mine)), 1) & np.uint64(1)).astype(np.int64)
        lists = np.where((mine < 0) | (mine > 1), either, mine).astype(np.int64)
        initials, rest = "", tier
        while rest:
            rest, letter = divmod(rest - 1, 26)
            initials = f"{chr(ord('A') + letter)}. {initials}"
        firsts = [f"{name} {initials}" for name in (*FEMALE[:_FIRST_COUNT], *MALE[:_FIRST_COUNT])]
        chosen = (lists * _FIRST_COUNT + shuffled // len(LAST)).tolist()
        lasts = (shuffled % len(LAST)).tolist()
        result += [firsts[first] + LAST[last] for first, last in zip(chosen, lasts, strict=True)]
    return result


def make_username(name: str, number: int) -> str:
    """Make an account name such as `zofia_mueller`; people whose name has no Latin letters get their number."""
    plain = unicodedata.normalize("NFKD", name.lower()).encode("ascii", "ignore").decode()
    return _NOT_WORD.sub("_", plain).strip("_") or f"user_{number}"


#: The variables of a group's persona and bio, besides its traits.
FACT_NAMES = ("name", "age", "gender", "country", "profession", "interests", "opinion", "topic", "group")


def list_facts(facts: PersonFacts) -> dict[str, str]:
    """Return the facts about a person as texts, under the names that templates call them by."""
    known = {name: getattr(facts, name, None) for name in FACT_NAMES}
    opinion = "" if facts.topic is None or facts.stance is None else f"{word_opinion(facts.stance)} {facts.topic}"
    interests = _join_words(facts.interests) if facts.interests else ""
    return {name: str(value) for name, value in known.items() if value is not None} | {
        "interests": interests,
        "opinion": opinion,
    }


def word_opinion(stance: float) -> str:
    return next(words for bound, words in _OPINIONS if stance >= bound)


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
        sentences = [f"{facts.name} is {choose_article(noun)} {noun}{origin}."]
    s = "s" if verb == "is" else ""
    if facts.interests:
        sentences.append(f"{pronoun} care{s} about {_join_words(facts.interests)}.")
    if facts.topic and facts.stance is not None:
        sentences.append(f"{pronoun} {verb} {word_opinion(facts.stance)} {facts.topic}.")
    if facts.activity >= _OFTEN:
        sentences.append(f"{pronoun} write{s} online often.")
    elif facts.activity < _SELDOM:
        sentences.append(f"{pronoun} mostly read{s} and seldom write{s}.")
    return " ".join(sentences)


def choose_article(noun: str) -> str:
    number = noun.partition("-")[0]
    if number.isdecimal():
        return "an" if number.startswith("8") or number in ("11", "18") else "a"
    return "an" if noun[:1].lower() in tuple("aeiou") else "a"


def _join_words(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]
