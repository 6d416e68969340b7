"""Decides which mentions are of the same person, organisation or group, and what kind of entity each is."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from shoal.preparation.reading.english import WORDS
from shoal.preparation.reading.findings import DocumentEntity, Kind
from shoal.preparation.reading.names import NameMention
from shoal.preparation.reading.sentences import Sentence
from shoal.scenario import FEMALE_NAMES, MALE_NAMES

#: A place in a text: sentence, start and end.
Span = tuple[int, int, int]
#: Fewest mentions that make an entity of a generic organisation or a group.
_FEWEST_GENERIC = 2
_GROUP = re.compile(rf"\b({'|'.join(sorted(WORDS.groups, key=len, reverse=True))})\b", re.IGNORECASE)
_GENERIC = re.compile(rf"\b[Tt]he ({'|'.join(sorted(WORDS.generic_organisations))})\b(?![’'-]?\w)")
_HE, _SHE = re.compile(r"\b(?:he|his|him)\b", re.IGNORECASE), re.compile(r"\b(?:she|her|hers)\b", re.IGNORECASE)


class EntityIndex:
    """The entities of some sentences, and in which sentences each is named."""

    def __init__(self) -> None:
        self.entities: list[DocumentEntity] = []
        #: Name -> the sentences that name it, in order.
        self.places: dict[str, list[int]] = {}
        #: Sentence -> the names in it, each with where it stands.
        self.named: defaultdict[int, list[tuple[int, int, str]]] = defaultdict(list)

    def add(self, entity: DocumentEntity, spans: Iterable[Span], sentences: Sequence[Sentence]) -> None:
        """Add an entity with its places: sentence, start and end."""
        listed = sorted(spans)
        self.entities.append(entity)
        self.places[entity.name] = sorted({number for number, _, _ in listed})
        for number, start, end in listed:
            self.named[number].append((start, end, entity.name))
        entity.mentions = len(listed)
        entity.add_evidence(sentences[number] for number in self.places[entity.name])

    def sort(self) -> None:
        """Put first who is named most; of equals, who is named first."""
        self.entities.sort(key=lambda entity: (-entity.mentions, self.places[entity.name][0]))
        for spans in self.named.values():
            spans.sort()


def find_entities(sentences: Sequence[Sentence], mentions: Sequence[NameMention]) -> EntityIndex:
    """Find all people, organisations and groups in the sentences."""
    by_name: defaultdict[str, list[NameMention]] = defaultdict(list)
    for mention in mentions:
        by_name[mention.name].append(mention)
    kinds: dict[str, Kind] = {}
    for name, found in by_name.items():
        *first, last = _split_name(name) or ("",)
        # What a text says of Walsh, it says of Kevin Walsh.
        told = [*found, *(by_name.get(last, ()) if first else ())]
        if (kind := _judge_kind(name, told)) is not None:
            kinds[name] = kind
    for place in _find_places(kinds):
        del kinds[place]
    owners = _find_owners(by_name, kinds)
    index = EntityIndex()
    grouped: defaultdict[str, list[NameMention]] = defaultdict(list)
    for name, owner in owners.items():
        grouped[owner] += by_name[name]
    for owner, found in grouped.items():
        aliases = sorted({m.name for m in found if m.name != owner} | {m.acronym for m in found if m.acronym})
        ages = (mention.age for mention in found if mention.age is not None)
        entity = DocumentEntity(owner, kinds[owner], aliases, _choose_role(found), age=next(ages, None))
        index.add(entity, ((mention.sentence, mention.start, mention.end) for mention in found), sentences)
        entity.gender = _find_gender(entity, found, index, sentences) if entity.kind == "person" else None
    _add_generic(index, sentences)
    _add_groups(index, sentences)
    index.sort()
    return index


def _judge_kind(name: str, found: Sequence[NameMention]) -> Kind | None:
    """Say from a name and its surroundings what it names; None for a place, a thing, or what cannot be told."""
    words = _split_name(name)
    if any(mention.title for mention in found):
        return "person"
    if words[-1] in WORDS.organisation_suffixes or any(mention.acronym for mention in found):
        return "organisation"
    if name in WORDS.countries or words[-1] in WORDS.place_words:
        return None
    if words[-1] in WORDS.organisation_words or words[0] in WORDS.organisation_words:
        return "organisation" if len(words) > 1 else None
    if len(words) > 1 and words[-1].lower() in WORDS.groups:
        return "group"
    articles, places = (sum(getattr(mention, field) for mention in found) for field in ("has_article", "is_place"))
    speaks, acts = sum(mention.speaks for mention in found), sum(mention.speaks or mention.acts for mention in found)
    looks_like_person = 2 <= len(words) <= 4 and not articles and all(word[:1].isupper() for word in words)
    if words[0] in FEMALE_NAMES or words[0] in MALE_NAMES:
        return "person" if looks_like_person or speaks else None
    if any(set(mention.role.lower().split()[:4]) & WORDS.organisation_nouns for mention in found):
        return "organisation"
    if any(mention.role or mention.age for mention in found) and not articles:
        return "person"
    if 2 * places > len(found):
        return None
    if looks_like_person and (speaks or len(found) > 1) and not any(word.isupper() for word in words):
        return "person"
    if articles and not name.isupper():
        return None
    return "organisation" if acts and (acts > 1 or len(found) > 1 or name.isupper()) else None


def _find_places(kinds: Mapping[str, Kind]) -> set[str]:
    """Return single words by which organisations are named after where they are, as in Eastport Hospital."""
    institutions = WORDS.organisation_words - _BUSINESS
    firsts = {
        words[0].casefold() for name in kinds if len(words := _split_name(name)) > 1 and set(words[1:]) & institutions
    }
    return {name for name in kinds if len(_split_name(name)) == 1 and name.casefold() in firsts}


def _find_owners(by_name: Mapping[str, Sequence[NameMention]], kinds: Mapping[str, Kind]) -> dict[str, str]:
    """Return, for every name of an entity, the fullest name of the same one."""
    owners: dict[str, str] = {}
    full = sorted(kinds, key=lambda name: (-len(name.split()), -len(by_name[name]), name))
    acronyms = {mention.acronym: name for name in kinds for mention in by_name[name] if mention.acronym}
    for name in by_name:
        if name in acronyms:
            owners[name] = acronyms[name]
            continue
        fuller = {other for other in full if other != name and _is_short_for(name, other, kinds)}
        # A name that is short for two fuller ones is ambiguous and dropped; with one, it is theirs.
        longest = {other for other in fuller if not any(_is_short_for(other, each, kinds) for each in fuller)}
        if len(longest) == 1:
            owners[name] = longest.pop()
        elif name in kinds and not longest:
            owners[name] = name
    for name in list(owners):
        while owners[name] != owners.get(owners[name], owners[name]):
            owners[name] = owners[owners[name]]
    return {name: owner for name, owner in owners.items() if owner in kinds}


@lru_cache(maxsize=100_000)
def _split_name(name: str) -> tuple[str, ...]:
    return tuple(re.sub(r"[.,]", "", name).split())


def _is_short_for(name: str, other: str, kinds: Mapping[str, Kind]) -> bool:
    """Return whether a name is a shorter form of another one: Berg for Ada Berg, Acme for Acme Ltd."""
    short, whole = _split_name(name), _split_name(other)
    if len(short) >= len(whole):
        return False
    if kinds[other] == "person":
        # One word that acts may be taken for an organisation, and be the last name of a person.
        if kinds.get(name, "person") != "person" and (len(short) > 1 or name.isupper()):
            return False
        return short == whole[-len(short) :] or short == whole[: len(short)]
    if kinds.get(name) != kinds[other]:
        return False
    if len(short) > 1 and short == whole[-len(short) :]:
        return True
    rest = set(whole[len(short) :])
    return short == whole[: len(short)] and rest <= WORDS.organisation_suffixes | _BUSINESS


def _choose_role(found: Sequence[NameMention]) -> str:
    """Return the most telling role that is stated: one from around the name, else the title."""
    stated = [mention.role for mention in found if mention.role]
    if stated:
        return max(stated, key=lambda role: (not role.startswith("who "), len(role)))
    titles = Counter(mention.title for mention in found if mention.title and mention.title.lower() not in _POLITE)
    return titles.most_common(1)[0][0].lower() if titles else ""


#: What a company is called after its first mention.
_COMMERCIAL = frozenset({"company", "startup", "manufacturer"})
#: Words that a business may be called with or without. What stands before others is rather a place: Eastport Hospital.
_BUSINESS = frozenset("Group Company Corporation Holdings Industries Technologies Systems Labs Media Motors".split())
_POLITE = frozenset({"mr", "mrs", "ms", "miss", "dr", "sir", "dame", "lord", "lady"})


def _find_gender(
    entity: DocumentEntity, found: Sequence[NameMention], index: EntityIndex, sentences: Sequence[Sentence]
) -> str | None:
    titles = {mention.title for mention in found}
    role = set(re.findall(r"[\w-]+", entity.role.lower()))
    first = entity.name.split()[0]
    if titles & WORDS.female_titles or role & WORDS.female_roles or first in FEMALE_NAMES:
        return "female"
    if titles & WORDS.male_titles or role & WORDS.male_roles or first in MALE_NAMES:
        return "male"
    # Pronouns count in sentences that have no other name.
    texts = [
        sentences[number].text[spans[0][1] :]
        for number in index.places[entity.name]
        if len(spans := index.named[number]) == 1
    ]
    he, she = (sum(len(pronoun.findall(text)) for text in texts) for pronoun in (_HE, _SHE))
    return None if he == she else "male" if he > she else "female"


def _add_generic(index: EntityIndex, sentences: Sequence[Sentence]) -> None:
    """Add organisations that are only called what they are, such as the council, or count them for the named one."""
    spans: defaultdict[str, list[Span]] = defaultdict(list)
    for number, sentence in enumerate(sentences):
        for found in _GENERIC.finditer(sentence.text):
            spans[found[1].lower()].append((number, found.start(), found.end()))
    for noun, where in spans.items():
        named = [each for each in index.entities if each.kind == "organisation" and noun in each.name.lower().split()]
        if noun in _COMMERCIAL:
            named = named or [
                each for each in index.entities if set(each.role.lower().split()) & WORDS.organisation_nouns
            ]
        if len(named) == 1:
            entity = named[0]
            entity.aliases.append(f"the {noun}")
            index.places[entity.name] = sorted({*index.places[entity.name], *(number for number, _, _ in where)})
            for number, start, end in where:
                index.named[number].append((start, end, entity.name))
            entity.mentions += len(where)
            entity.add_evidence(sentences[number] for number, _, _ in where)
        elif not named and len(where) >= _FEWEST_GENERIC:
            index.add(DocumentEntity(f"The {noun}", "organisation"), where, sentences)


def _add_groups(index: EntityIndex, sentences: Sequence[Sentence]) -> None:
    """Add groups of people that are spoken of, such as residents, outside of names."""
    spans: defaultdict[str, list[Span]] = defaultdict(list)
    for number, sentence in enumerate(sentences):
        taken = index.named.get(number, ())
        for found in _GROUP.finditer(sentence.text):
            if not any(start <= found.start() < end for start, end, _ in taken):
                spans[found[1].lower()].append((number, found.start(), found.end()))
    for noun, where in spans.items():
        # A sentence is about the group that stands among its first words.
        leads = any(len(sentences[number].text[:start].split()) <= 2 for number, start, _ in where)
        if leads or len(where) >= _FEWEST_GENERIC:
            index.add(DocumentEntity(noun.capitalize(), "group"), where, sentences)


def list_neighbours(index: EntityIndex, number: int) -> list[tuple[tuple[int, int, str], tuple[int, int, str]]]:
    """Return the pairs of names that stand next to one another in a sentence."""
    spans = sorted(index.named.get(number, ()))
    return [(one, other) for one, other in pairwise(spans) if one[2] != other[2]]
