"""Puts together what a model read in many passages: the same person under several names is one entity."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean

from shoal.preparation.asking.forms import PassageReading, ReadEntity
from shoal.preparation.reading.documents import Passage
from shoal.preparation.reading.entities import find_entities
from shoal.preparation.reading.findings import MAX_EVIDENCE, DocumentEntity, EntityRelation, Findings
from shoal.preparation.reading.names import find_mentions
from shoal.preparation.reading.sentences import Sentence, split_sentences
from shoal.preparation.reading.statements import attach_statements, find_relations
from shoal.text import clip, format_count

_MAX_ABOUT_CHARS = 800
_FEWEST_LETTERS = 3
_WORD = re.compile(r"[^\W_]+")


def merge_readings(
    passages: Sequence[Passage], readings: Sequence[PassageReading | None], sentences: Sequence[Sentence]
) -> Findings:
    """Merge what was read in passages. Entities that the passage itself does not name are left out."""
    read: defaultdict[str, list[ReadEntity]] = defaultdict(list)
    relations: list[tuple[str, str, str]] = []
    invented = 0
    for passage, reading in zip(passages, readings, strict=True):
        if reading is None:
            continue
        text = _fold(passage.text)
        for entity in reading.entities:
            if is_named(entity.name, text):
                read[_fold(entity.name)].append(entity)
            else:
                invented += 1
        relations += reading.relations
    owners = _find_owners(read)
    findings = Findings(_build_entities(read, owners, sentences))
    findings.relations = _build_relations(relations, owners, findings.entities)
    if invented:
        count = format_count(invented, "name that the model gave is", "names that the model gave are")
        findings.notes.append(f"{count} not in the passages that it read, and left out")
    return findings


def read_passage_by_rules(passage: Passage, topic: str) -> PassageReading:
    """Read an English passage where the model gave no reply that can be used."""
    sentences = [sentence for paragraph in passage.paragraphs for sentence in split_sentences(paragraph)]
    index = find_entities(sentences, find_mentions(sentences))
    attach_statements(index, sentences, topic)
    relations = [(each.source, each.target, each.kind) for each in find_relations(index, sentences)]
    entities = [ReadEntity(each.name, each.kind, each.role, "", each.stance or 0.0) for each in index.entities]
    return PassageReading(entities, relations)


def is_named(name: str, text: str) -> bool:
    """Return whether a folded text has a name, whole or its last word."""
    folded = _fold(name)
    if folded in text:
        return True
    words = _WORD.findall(folded)
    return (
        bool(words)
        and len(words[-1]) >= _FEWEST_LETTERS
        and re.search(rf"\b{re.escape(words[-1])}\b", text) is not None
    )


def _fold(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").split())


def _find_owners(read: dict[str, list[ReadEntity]]) -> dict[str, str]:
    """Return for each name the fullest name of the same person, where only one can be meant."""
    owners = {name: name for name in read}
    words = {name: tuple(_WORD.findall(name)) for name in read}
    by_last: defaultdict[str, list[str]] = defaultdict(list)
    for name, parts in words.items():
        if len(parts) > 1 and read[name][0].kind == "person":
            for part in {parts[0], parts[-1]}:
                by_last[part].append(name)
    for name, parts in words.items():
        if len(parts) == 1 and read[name][0].kind == "person" and len(by_last[parts[0]]) == 1:
            owners[name] = by_last[parts[0]][0]
    return owners


def _build_entities(
    read: dict[str, list[ReadEntity]], owners: dict[str, str], sentences: Sequence[Sentence]
) -> list[DocumentEntity]:
    grouped: defaultdict[str, list[ReadEntity]] = defaultdict(list)
    for name, found in read.items():
        grouped[owners[name]] += found
    folded = [_fold(sentence.text) for sentence in sentences]
    last_names = Counter(_WORD.findall(owner)[-1] for owner in grouped)
    entities = []
    for owner, found in grouped.items():
        spellings = Counter(each.name for each in found if _fold(each.name) == owner)
        name = spellings.most_common(1)[0][0]
        aliases = sorted({each.name for each in found} - {name})
        told = [each.stance for each in found if each.stance]
        entity = DocumentEntity(
            name,
            Counter(each.kind for each in found).most_common(1)[0][0],
            aliases,
            max((each.role for each in found), key=len),
            stance=round(fmean(told), 2) if told else None,
            about=clip(" ".join(dict.fromkeys(each.about for each in found if each.about)), _MAX_ABOUT_CHARS),
        )
        called = [_fold(each) for each in (name, *aliases)]
        last = _WORD.findall(owner)[-1]
        if entity.kind == "person" and last_names[last] == 1 and len(last) >= _FEWEST_LETTERS:
            # After their first mention, people are called by their last names.
            called.append(last)
        places = [place for place, text in enumerate(folded) if any(each in text for each in called)]
        entity.mentions = max(len(places), len(found))
        entity.add_evidence(sentences[place] for place in places[:MAX_EVIDENCE])
        entities.append(entity)
    return sorted(entities, key=lambda entity: -entity.mentions)


def _build_relations(
    relations: Sequence[tuple[str, str, str]], owners: dict[str, str], entities: Sequence[DocumentEntity]
) -> list[EntityRelation]:
    """Keep relations between two who are known, each pair once, with a sentence that names both where there is one."""
    by_fold = {_fold(entity.name): entity for entity in entities}
    kept: dict[tuple[str, str], EntityRelation] = {}
    for source, target, kind in relations:
        one, other = (by_fold.get(owners.get(_fold(name), "")) for name in (source, target))
        if one is None or other is None or one is other or (one.name, other.name) in kept:
            continue
        both = next((sentence for sentence in one.evidence if sentence in other.evidence), None)
        evidence = both or (one.evidence[0] if one.evidence else Sentence("", "", ""))
        kept[one.name, other.name] = EntityRelation(one.name, other.name, kind, evidence)
    return [*kept.values()]
