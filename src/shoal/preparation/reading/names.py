"""Finds names in English sentences, by their capital letters and what stands around them.

What is found are mentions: where a name stands, and what its surroundings say about who is called so. `entities.py`
decides which mentions are of the same person, organisation or group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from shoal.preparation.reading.english import WORDS
from shoal.preparation.reading.sentences import Sentence

_CAPITAL = r"[A-ZÀ-ÖØ-Þ][\w’'&-]*"
_PARTICLE = "|".join(sorted(WORDS.particles))
_TITLE = "|".join(sorted(map(re.escape, WORDS.titles), key=len, reverse=True))
_RUN = re.compile(
    rf"(?:(?P<title>\b(?:{_TITLE}))\.?\s+)?"
    rf"(?P<name>\b{_CAPITAL}(?:\.(?=\s[A-Z]))?(?:\s+(?:(?:{_PARTICLE})\s+)?{_CAPITAL}(?:\.(?=\s[A-Z]))?)*)"
)
_TITLE_WITHIN = re.compile(rf"\b(?P<title>{_TITLE})\.?\s+(?=[A-Z])")
#: A longer name of an organisation: Ministry of Public Works, Friends of the Old Bridge.
_EXTENSION = re.compile(rf"\s+(?:of|for|and)\s+(?:the\s+)?(?P<rest>{_CAPITAL}(?:\s+{_CAPITAL})*)")
_ACRONYM = re.compile(r"\s*\((?P<acronym>[A-Z]{2,7})\)")
_AGE = re.compile(r"^,?\s*(?:\(|aged\s+)?(?P<age>\d{1,2})(?:\)|,|\s*[-–]?\s*year)")
_WHO = re.compile(r"^,?\s*(?:\d{1,2},\s*)?who\s+(?P<clause>[^,.;:“\"]{3,80})")
_APPOSITION = re.compile(r"^,\s*(?:\d{1,2},\s*)?(?:an?|the)\s+(?P<role>[^,.;:“\"]{3,80})")
_ROLE_OF = re.compile(r"^,\s*(?:\d{1,2},\s*)?(?P<role>[a-z][\w-]*(?:\s[\w’'-]+){0,7}?)(?=[,.;:“\"]|$)")
#: A role of any words, where a name has just been said to speak: said Ada Berg, a ward sister with a long memory.
_SAID_TO_BE = re.compile(r"^,\s*(?:\d{1,2},\s*)?an?\s+(?P<role>[a-z][^,.;:“\"]{3,80})")
_RANKS = "Officer|Executive|Director|Manager|President|Secretary|Editor|Chair|Head|Minister|Mayor|Professor|Founder"
#: Ada Berg, Chief Financial Officer
_RANK = re.compile(rf"^,\s*(?P<role>(?:[A-Z][\w&-]*\s+){{0,3}}(?:{_RANKS}|CEO)\b)")
_ENDS_IN_RANK = re.compile(rf"(?:^|\s)(?:{_RANKS})$")
#: What says no more about a role: a sister who chairs the union.
_ROLE_TAIL = re.compile(r"\s+(?:with|who|whose|that|which)\b.*$")
_BEFORE_COMMA = re.compile(r"(?P<words>(?:[\w’'-]+\s+){0,4}[\w-]+),\s*$")
_BEFORE = re.compile(r"(?P<words>(?:\b[a-z][\w-]*\s+){1,4})$")
_BRACKETS = re.compile(r"\s*\([^)]*\)?")
_WORD = re.compile(r"[\w’'-]+")
_SAID_BEFORE = re.compile(rf"\b(?:{'|'.join(WORDS.speech)})\s+(?:the\s+)?(?:{_CAPITAL}\s+)*{_CAPITAL}['’]s\s+$")
#: Words after a name among which a verb of speech is its own: Lucy Tran from the works council said.
_SPEECH_REACH = 6
#: Ages of people who are spoken of in public.
_LEAST_AGE, _MOST_AGE = 5, 105


class NameMention(msgspec.Struct, frozen=True):
    """A name at one place."""

    name: str
    sentence: int
    start: int
    end: int
    title: str = ""
    #: Short for the name, as it is stated in brackets.
    acronym: str = ""
    role: str = ""
    age: int | None = None
    #: Whether `the` stands before it.
    has_article: bool = False
    #: Whether its owner speaks or acts here.
    speaks: bool = False
    acts: bool = False
    is_place: bool = False


def find_mentions(sentences: Sequence[Sentence]) -> list[NameMention]:
    """Find all names in the sentences, in order."""
    lower = {word for sentence in sentences for word in _WORD.findall(sentence.text) if word[:1].islower()}
    return [mention for number, sentence in enumerate(sentences) for mention in _find_in(sentence.text, number, lower)]


def _find_in(text: str, number: int, lower: set[str]) -> Iterator[NameMention]:
    end = 0
    for run in _RUN.finditer(text):
        if run.start() < end:
            continue
        trimmed = _trim(run, text, lower)
        if trimmed is None:
            continue
        name, start, end = trimmed
        title = run["title"] or ""
        if not title and (inner := _TITLE_WITHIN.search(name)):
            # A word that is no title stands before it: Pediatrician Dr Park.
            title, start = inner["title"], start + inner.end()
            name = text[start:end]
        if name.split()[-1] in WORDS.organisation_words or name.split()[0] in WORDS.organisation_words:
            extension = _EXTENSION.match(text, end)
            if extension and not title:
                end = extension.end()
                name = text[start:end]
        acronym = _ACRONYM.match(text, end)
        yield _describe(text, number, (start, end), name, title, acronym["acronym"] if acronym else "")


def _trim(run: re.Match[str], text: str, lower: set[str]) -> tuple[str, int, int] | None:
    """Cut words from a run that are no part of a name; None where nothing is left."""
    words = [*re.finditer(r"\S+", run["name"])]
    offset = run.start("name")
    opens = not text[: run.start()].strip(" “\"'‘(")
    while words and _is_no_name(words[0][0], opens and not run["title"], len(words), lower):
        words.pop(0)
        opens = False
    while words and (words[-1][0].rstrip("’'s") in WORDS.calendar or words[-1][0] in WORDS.particles):
        words.pop()
    owners = [place for place, word in enumerate(words[:-1]) if word[0].endswith(("'s", "’s"))]
    if owners and words[-1][0] not in WORDS.organisation_words | WORDS.place_words:
        # Whose they are is no part of their name: the Green Party's Ada Berg.
        words = words[owners[-1] + 1 :]
    if not words:
        return None
    name = text[offset + words[0].start() : offset + words[-1].end()]
    bare = re.sub(r"[’']s?$", "", name)
    end = offset + words[0].start() + len(bare)
    if (
        len(bare) < 2
        or bare in WORDS.demonyms
        or _ENDS_IN_RANK.search(bare)
        or all(word in WORDS.calendar for word in bare.split())
    ):
        return None
    return re.sub(r"\s+", " ", bare), offset + words[0].start(), end


def _is_no_name(word: str, opens: bool, words: int, lower: set[str]) -> bool:
    plain = re.sub(r"[’'](s|re|ve|ll|d|m|t)?$", "", word).lower()
    if plain in WORDS.openers or word in WORDS.calendar or plain == "i":
        return True
    # At its start a sentence has a capital letter anyway: a word that is also written small is no name.
    if opens and words > 1:
        return plain in WORDS.role_nouns or plain in lower
    return opens and (plain in lower or plain in WORDS.groups)


def _describe(text: str, number: int, span: tuple[int, int], name: str, title: str, acronym: str) -> NameMention:
    before, after = text[: span[0]], text[span[1] :]
    if title:
        before = before[: before.rfind(title)]
    before = before[:1].lower() + before[1:]
    words_before = _WORD.findall(before)[-2:]
    words_after = _WORD.findall(after.split(",")[0])[: _SPEECH_REACH if " " in name else 2]
    found_age = _AGE.match(after)
    age = int(found_age["age"]) if found_age else None
    last = words_before[-1].lower() if words_before else ""
    # Whose they are may stand between: said the Green Party's Ada Berg.
    is_spoken_of = last in WORDS.speech or _SAID_BEFORE.search(before) is not None
    return NameMention(
        name,
        number,
        *span,
        title=title,
        acronym=acronym,
        role=_find_role(before, after, is_spoken_of),
        age=age if age is not None and _LEAST_AGE <= age <= _MOST_AGE else None,
        has_article=last == "the",
        speaks=is_spoken_of or any(word.lower() in WORDS.speech for word in words_after),
        acts=any(word.lower() in WORDS.acts | WORDS.supports | WORDS.opposes for word in words_after[:2]),
        is_place=last in WORDS.place_prepositions
        or (last == "the" and len(words_before) > 1 and words_before[0].lower() in WORDS.place_prepositions),
    )


def _find_role(before: str, after: str, speaks: bool) -> str:
    """Return what the words around a name say its owner is: `shop owner Ada Berg`, `Ada Berg, a teacher,`."""
    apposition = _APPOSITION.match(after)
    if apposition and _names_role(" ".join(apposition["role"].split()[:5])):
        return _ROLE_TAIL.sub("", _BRACKETS.sub("", apposition["role"])).strip()
    if speaks and (said := _SAID_TO_BE.match(after)):
        return _ROLE_TAIL.sub("", said["role"]).strip()
    if rank := _RANK.match(after):
        return rank["role"]
    if (role := _ROLE_OF.match(after)) and _names_role(" ".join(role["role"].split()[:3])):
        return _BRACKETS.sub("", role["role"]).strip()
    if ahead := _BEFORE.search(before) or _BEFORE_COMMA.search(before):
        words = ahead["words"].split()
        last = max((n for n, word in enumerate(words) if word.lower() in WORDS.openers | WORDS.speech), default=-1)
        words = words[last + 1 :]
        if words and words[-1].lower() in WORDS.role_nouns | WORDS.organisation_nouns:
            owner = re.fullmatch(r"([\w-]+)['’]s", words[0])
            return f"{' '.join(words[1:])} of the {owner[1]}" if owner and words[1:] else " ".join(words)
    who = _WHO.match(after)
    return f"who {who['clause'].strip()}" if who else ""


def _names_role(text: str) -> bool:
    return any(word.lower() in WORDS.role_nouns | WORDS.organisation_nouns for word in re.findall(r"[\w-]+", text))
