"""What people write and say since edition 2: a sentence or two, put together from clauses in `data/sentences.json`.

A sentence names what it is about, and every combination of clauses is another sentence, so that nobody says the same
thing twice. In the table `{about}` stands for a noun phrase, in `beliefs` and `asks` for a claim as a clause.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from shoal.agents.heuristic.writing import LEANINGS, TONES, Family, FamilyKey, load_phrases, sign

#: The first part of the key of a sentence that names a claim.
CLAIM = "claim"
_FULL_STOP = (".",)
#: Kinds of text that one person starts -> the list of their first words.
_STARTS = {
    "post": "leads",
    "news": "news",
    "quote": "quotes",
    "message": "messages",
    "remark": "leads",
    "reaction": "news",
    "thought": "thoughts",
}
#: Kinds of text that answer another person.
_REPLIES = ("comment", "answer")
#: Words with which a sentence may begin, and which are not capitalised within one.
_SMALL_WORDS = frozenset(
    """a all an any at both each every for from he her his how if in it its many more most my no nobody none nothing of
    on one our people she some somebody that the their there these they this those to two we when your""".split()
)
_NUMBER = re.compile(r"[$€£]?\d[\d.,]*\d|\d+")
_UNIT = re.compile(r"\s?%|\s[a-z]{3,}")


@cache
def build_sentences() -> Mapping[FamilyKey, Family]:
    """Build the families of all texts on platforms and in rooms."""
    found = load_phrases("sentences")
    families: dict[FamilyKey, Family] = {}
    hobby = found["hobbies"], found["hobby_reasons"], _FULL_STOP
    for kind in ("hobby", "chat"):
        families[kind,] = Family(found["hobby_leads"], *hobby, joint="", wraps=True)
    families["chime",] = Family(found["replies", 0], *hobby, joint="", wraps=True)
    families[CLAIM, "ask"] = Family(found["ask_leads"], found["asks"], joint="", wraps=True)
    for lean in LEANINGS:
        for prefix, what in (((), "view"), ((CLAIM,), "belief")):
            reasons = found[f"{what}_reasons", sign(lean)], _FULL_STOP
            rest = found[f"{what}s", lean], *reasons
            # What an answer speaks of has been named.
            reply = (found["reply_beliefs", lean], *reasons) if prefix else rest
            for kind, start in _STARTS.items():
                # Thoughts ask nobody and convince nobody.
                ends = (found[f"{what}s", lean], found["thought_ends"], _FULL_STOP) if kind == "thought" else rest
                families[*prefix, kind, lean] = Family(found[start], *ends, joint="", wraps=True)
            for kind in _REPLIES:
                for tone in TONES:
                    families[*prefix, kind, tone, lean] = Family(found["replies", tone], *reply, joint="", wraps=True)
                families[*prefix, kind, "asked", lean] = Family(found["answers"], *reply, joint="", wraps=True)
    for way in (-1, 0, 1):
        families["number", way] = Family(found["number_subjects"], found["number_verdicts", way], wraps=True)
    return families


def state_claim(text: str) -> str:
    """Turn the sentence of a claim into a clause: `The bridge is closed.` becomes `the bridge is closed`."""
    first, _, rest = text.strip().rstrip(".!?").partition(" ")
    return f"{first.lower() if first.lower() in _SMALL_WORDS else first} {rest}".strip()


def find_number(text: str) -> str | None:
    """Return the first number of a text with its unit, such as `40 percent`, to quote it."""
    match = _NUMBER.search(text)
    if match is None:
        return None
    unit = _UNIT.match(text, match.end())
    return match[0] + (unit[0] if unit else "")


def is_question(text: str) -> bool:
    return text.rstrip(" \"”'").endswith("?")
