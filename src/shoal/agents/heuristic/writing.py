"""Texts of the heuristic minds, built from phrase tables: the families, and those that edition 1 and dialogues have.

A family of texts takes one phrase from each of its lists. Each agent walks through a family with its own stride, which
shares no divisor with the family's size, so that an agent repeats no text before it has used all of them.

In the tables `{about}` stands for what a text is about: a noun phrase such as `the campus curfew`. No sentence begins
with it, and no verb has to agree with it. `{name}` stands for an address such as `, Mira`, or for nothing, and
`{quote}` for a text that is quoted. A list with a number is for a leaning (-2: firmly against, 2: firmly for) or for a
tone (1: agrees with the other, -1: disagrees). Only phrases of a leaning contain words that `TextReader` takes for
cues.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from math import prod
from typing import TypeAlias

import msgspec

from shoal.seeds import derive, extend
from shoal.worlds import is_cue

Phrases: TypeAlias = tuple[str, ...]
#: The name of a list, or the name and the leaning or tone.
PhraseKey: TypeAlias = str | tuple[str, int]
#: The kind of text, the tone of a reply, and the leaning.
FamilyKey: TypeAlias = tuple[str | int, ...]

#: How strongly texts lean, from firmly against to firmly for.
LEANINGS = (-2, -1, 0, 1, 2)
TONES = (1, 0, -1)
#: How a text ends, by leaning: mild texts for and against end alike.
_ENDINGS = {-2: -2, -1: 1, 0: 0, 1: 1, 2: 2}

_MASK = (1 << 64) - 1
_SPREAD = 0x9E3779B97F4A7C15
#: Primes above the length of any list of phrases, so that none divides the size of a family.
_STRIDES = (
    7919, 10007, 12503, 15013, 17509, 20011, 22501, 25013, 27509, 30011, 32503, 35023, 37501, 40009, 42509, 45007,
)  # fmt: skip
#: A longer subject, or one with such a word, is quoted: it would not fit into a sentence.
_MAX_LABEL_WORDS = 6
_MAX_QUOTED_CHARS = 80
_SENTENCE_WORDS = frozenset(
    "is are was were will would should can could has have had does did says say must may".split()
)
#: Authors with such a word in their name are not addressed by a first name.
_INSTITUTIONS = frozenset(
    """academy agency association bank board bureau centre center channel church city college committee company council
    court daily department foundation gazette government group hospital institute journal market media ministry museum
    network news office official organisation organization park party police post press project radio report school
    service society state station store student students team the times tribune tv union university weekly""".split()
)


@cache
def load_phrases(name: str) -> Mapping[PhraseKey, Phrases]:
    """Read a table of phrases once: `social`, `room` or `dialogue`."""
    text = resources.files(__package__).joinpath("data", f"{name}.json").read_bytes()
    table: dict[PhraseKey, Phrases] = {}
    for key, found in msgspec.json.decode(text, type=dict[str, Phrases | dict[int, Phrases]]).items():
        if isinstance(found, dict):
            table |= {(key, number): phrases for number, phrases in found.items()}
        else:
            table[key] = found
    return table


class Family:
    """All texts that take one phrase from each of its lists."""

    __slots__ = ("_joint", "_lists", "_wraps", "size")

    def __init__(self, *lists: Phrases, joint: str = " ", wraps: bool = False) -> None:
        self._joint = joint
        self._wraps = wraps
        self._lists = tuple((phrases, len(phrases)) for phrases in lists)
        self.size = prod(map(len, lists))

    def write(self, index: int) -> str:
        """Build the text with this number. Beyond the last one they begin again, and say so unless the family wraps."""
        rest = index
        parts = []
        for phrases, length in self._lists:
            rest, place = divmod(rest, length)
            parts.append(phrases[place])
        if rest and not self._wraps:
            parts.append("(I have said this once before.)" if rest == 1 else f"(I have said this {rest} times before.)")
        text = self._joint.join(parts)
        return text[:1].upper() + text[1:]


@cache
def build_social_families() -> Mapping[FamilyKey, Family]:
    """Build the families of what people write on a platform."""
    found = load_phrases("social")
    closers = found["post_closers"]
    families: dict[FamilyKey, Family] = {
        ("hobby",): Family(found["post_openers"], found["hobby_middles"], found["hobby_reasons"], closers)
    }
    for lean in LEANINGS:
        post = found["post_middles", sign(lean)], found["post_reasons", _ENDINGS[lean]], closers
        reply = found["reply_middles", sign(lean)], found["reply_closers", _ENDINGS[lean]]
        families["post", lean] = Family(found["post_openers"], *post)
        families["news", lean] = Family(found["news_openers"], *post)
        families["quote", lean] = Family(found["quote_openers"], *reply, closers)
        families["message", lean] = Family(found["message_openers"], *reply, closers)
        for tone in TONES:
            families["comment", tone, lean] = Family(found["reply_openers", tone], *reply)
    return families


@cache
def build_room_families() -> Mapping[FamilyKey, Family]:
    """Build the families of what people say and think in a room."""
    found, social = load_phrases("room"), load_phrases("social")
    chat = found["chat_middles"], social["hobby_reasons"]
    families: dict[FamilyKey, Family] = {
        ("chat",): Family(found["openers"], *chat),
        ("chime",): Family(found["reply_openers", 0], *chat),
    }
    for lean in LEANINGS:
        say = social["post_middles", sign(lean)] if lean else found["open_middles"]
        reply = social["reply_middles", sign(lean)] if lean else found["open_middles"]
        reasons = social["post_reasons", lean] if abs(lean) == 2 else found["mild_reasons" if lean else "open_reasons"]
        families["remark", lean] = Family(found["openers"], say, reasons)
        families["reaction", lean] = Family(found["news_openers"], say, reasons)
        families["thought", lean] = Family(found["thought_openers"], say, reasons)
        for tone in TONES:
            families["answer", tone, lean] = Family(found["reply_openers", tone], reply, reasons)
    return families


class Voice:
    """Writes in the name of agents."""

    def __init__(self, seed: int, world: str, families: Mapping[FamilyKey, Family]) -> None:
        self._key = derive(seed, world, "voice")
        self._families = families

    def write(self, kind: FamilyKey, agent: int, nth: int, about: str, name: str = "") -> str:
        """Write a text of this family; `nth` is the number of texts that the agent wrote before."""
        family = self._families[kind]
        own = (self._key + agent * _SPREAD) & _MASK
        own ^= own >> 29
        return family.write(walk(own, nth, family.size)).replace("{name}", name).replace("{about}", about)


class DialogueVoice:
    """Chooses phrases of a dialogue, so that no agent repeats one before it has used all."""

    def __init__(self, seed: int, world: str) -> None:
        self._key = derive(seed, world, "talk")
        self._families: dict[tuple[PhraseKey, ...], Family] = {}
        social, own = load_phrases("social"), load_phrases("dialogue")
        self.phrases: dict[PhraseKey, Phrases] = {
            **own,
            **{("points", way): social["reply_middles", way] for way in (1, -1)},
            **{("closers", lean): social["reply_closers", end] for lean, end in _ENDINGS.items()},
            ("points", 0): own["open_points"],
            ("closers", 0): own["open_closers"],
            "chat_reasons": social["hobby_reasons"],
        }

    def choose(self, lists: tuple[PhraseKey, ...], agent: int, nth: int) -> str:
        """Choose one phrase of each list; `nth` is the number of lines that the agent said before."""
        family = self._families.get(lists)
        if family is None:
            family = self._families[lists] = Family(*(self.phrases[key] for key in lists))
        return family.write(walk(extend(self._key, agent), nth, family.size) % family.size)


def walk(own: int, nth: int, size: int) -> int:
    """Return the index of an agent's n-th text in a family of this size: a new one until all are used up."""
    turn, place = divmod(nth, size)
    return turn * size + (own + place * _STRIDES[own & 15]) % size


def sign(number: float) -> int:
    """Return 1, 0 or -1."""
    return (number > 0) - (number < 0)


def label(subject: str) -> str:
    """Turn the subject of a scenario into a noun phrase that fits into a sentence."""
    words = subject.replace("_", " ").split()
    text = " ".join(words)
    if text.endswith("?"):
        return f"the question “{shorten(text)}”"
    if len(words) > _MAX_LABEL_WORDS or not _SENTENCE_WORDS.isdisjoint(text.lower().split()):
        return f"the claim “{shorten(text.rstrip('.!'))}”"
    return text


def shorten(text: str) -> str:
    """Cut a text at a word, so that it can be quoted in a sentence."""
    if len(text) <= _MAX_QUOTED_CHARS:
        return text
    return text[:_MAX_QUOTED_CHARS].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def address(author: str) -> str:
    """Return how to address an author, such as `, Mira`, or nothing if the name shows no first name."""
    words = author.split()
    if not 1 <= len(words) <= 3 or not all(word.isalpha() and word[0].isupper() for word in words):
        return ""
    if is_cue(words[0]) or not _INSTITUTIONS.isdisjoint(author.lower().split()):
        return ""
    return f", {words[0]}"
