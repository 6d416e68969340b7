"""Drafts a scenario without a language model: what the rules of reading found, and people sampled around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import log

from shoal.preparation.draft import Draft, DraftGroup, DraftPerson, DraftPost
from shoal.preparation.reading.documents import ENGLISH, SourceDocument
from shoal.preparation.reading.entities import find_entities
from shoal.preparation.reading.findings import DocumentEntity, DraftClaim, EntityRelation, Findings
from shoal.preparation.reading.names import find_mentions
from shoal.preparation.reading.sentences import list_sentences
from shoal.preparation.reading.statements import attach_statements, find_claims, find_relations, inherit_stances
from shoal.preparation.reading.topics import choose_topic
from shoal.scenario import choose_article, word_opinion
from shoal.text import clip, format_count
from shoal.worlds import StatementReader, read_attitude

MAX_POSTS = 8
MAX_POST_CHARS = 280
#: The share of the sampled people who belong to groups that the documents name; the others are the public.
_NAMED_GROUPS_SHARE = 0.6
PUBLIC = "public"
REQUIREMENT = "the requirement"
_EVIDENCE_SENTENCES, _EVIDENCE_CHARS = 3, 700
_SPREAD = 0.3
_PRONOUNS = {"female": ("She", "her"), "male": ("He", "his")}
#: Mean and deviation of the age in groups that have a typical one.
_AGES = {
    "students": (20, 2), "pupils": (14, 2), "teenagers": (16, 1.5), "youngsters": (17, 2), "parents": (40, 8),
    "pensioners": (73, 6), "workers": (40, 11), "commuters": (40, 12), "gamers": (25, 8),
}  # fmt: skip
#: Groups whose noun says nothing about a profession.
_NO_PROFESSION = frozenset(
    "residents parents customers users critics supporters opponents neighbours neighbors tourists visitors voters "
    "families locals villagers townspeople protesters protestors campaigners patients fans passengers subscribers "
    "taxpayers staff employees workers clients teenagers youngsters pedestrians cyclists commuters businesses "
    "shoppers homeowners volunteers".split()
)


def read_by_rules(requirement: str, documents: Sequence[SourceDocument], topic: str | None) -> tuple[str, Findings]:
    """Read all that rules can find in English documents; say what they cannot read."""
    asked = SourceDocument.of_pages(REQUIREMENT, [requirement], unit="paragraph")
    readable = [document for document in documents if document.is_english]
    notes = [
        f"{document.name} is in {document.language or f'a language other than {ENGLISH}'}, of which nothing was read: "
        "offline, only English is; with --model any language"
        for document in documents
        if document.paragraphs and not document.is_english
    ]
    sentences = list_sentences([*readable, *([asked] if asked.is_english else [])])
    topic = topic or choose_topic(requirement, sentences)
    index = find_entities(sentences, find_mentions(sentences))
    attach_statements(index, sentences, topic)
    relations = find_relations(index, sentences)
    inherit_stances(index, relations)
    return topic, Findings(index.entities, relations, find_claims(sentences, topic), notes)


def draft_by_rules(topic: str, findings: Findings, requirement: str) -> Draft:
    """Draft a scenario of what was found: a person for each entity, groups, and posts in their own words."""
    people = [draft_person(entity, topic, findings.relations) for entity in findings.entities]
    posts = draft_posts(findings.entities, findings.claims)
    if not posts:
        # The requirement if it is a statement, else a question.
        first = re.split(r"(?<=[.!])\s", requirement.strip())[0]
        is_statement = first.endswith((".", "!")) and len(first) <= MAX_POST_CHARS
        posts = [DraftPost(first if is_statement else f"What do you think about {topic}?")]
    return Draft(topic, people, draft_groups(findings.entities), findings.claims, posts)


def draft_person(entity: DocumentEntity, topic: str, relations: Sequence[EntityRelation]) -> DraftPerson:
    """Make a person of an entity, grounded in the sentences that speak of it."""
    words = [quote for quote in entity.quotes if quote]
    lean = sum((read_attitude(quote).lean or 0.0) for quote in words) / len(words) if words else 0.0
    tied = [
        relation.target if relation.source == entity.name else relation.source
        for relation in relations
        if entity.name in (relation.source, relation.target)
    ]
    standing = {"person": 0.0, "organisation": 1.0, "group": 0.5}[entity.kind] + (0.5 if entity.role else 0.0)
    if entity.kind == "group":
        bio = f"For {entity.name[:1].lower() + entity.name[1:]}"
    else:
        role = entity.role.removeprefix("who ")
        bio = f"{role[:1].upper()}{role[1:]}" if role else f"{entity.name}, {entity.kind}"
    profession = ""
    if entity.kind == "person" and not entity.role.startswith("who "):
        profession = re.split(r"\s+(?:of|for|at|and|with|from)\b", entity.role)[0].strip()
    return DraftPerson(
        name=entity.name,
        persona=write_persona(entity, topic, relations),
        bio=clip(bio, 150),
        kind=entity.kind,
        age=entity.age,
        gender=entity.gender,
        profession=profession or None,
        stance=entity.stance,
        activity=round(min(0.9, 0.35 + 0.12 * len(words) + 0.05 * min(entity.mentions, 4)), 2),
        influence=round(min(10.0, 1.0 + standing + 1.5 * log(max(1, entity.mentions))), 1),
        sentiment=round(max(-1.0, min(1.0, 0.6 * lean)), 2),
        follows=list(dict.fromkeys(tied)),
    )


def write_persona(entity: DocumentEntity, topic: str, relations: Sequence[EntityRelation]) -> str:
    """Write a persona from what the text says and nothing else."""
    pronoun, possessive = _PRONOUNS.get(entity.gender or "", ("They", "their"))
    sentences = [_introduce(entity)]
    if entity.about:
        sentences.append(entity.about)
    for relation in [each for each in relations if each.source == entity.name and entity.kind != "group"][:3]:
        if relation.kind.removesuffix(" of") not in entity.role:
            kind = (
                f"is {choose_article(relation.kind)} {relation.kind}"
                if relation.kind.endswith(" of")
                else relation.kind
            )
            sentences.append(f"{entity.name} {kind} {relation.target}.")
    if entity.stance is not None:
        verb = "is" if pronoun != "They" else "are"
        sentences.append(f"{pronoun} {verb} {word_opinion(entity.stance)} {topic}.")
    texts = [each.text for each in entity.evidence if each.document != REQUIREMENT][:_EVIDENCE_SENTENCES]
    # A heading gets the point that a sentence has.
    told = [text if text.endswith((".", "!", "?", "”", '"', "…")) else f"{text}." for text in texts]
    if told:
        sentences.append(f"What is known: {clip(' '.join(told), _EVIDENCE_CHARS)}")
    if entity.quotes and entity.quotes[0][:40] not in sentences[-1]:
        sentences.append(f"In {possessive} own words: “{entity.quotes[0]}”")
    return " ".join(sentences)


def draft_groups(entities: Sequence[DocumentEntity]) -> list[DraftGroup]:
    """Make groups to sample people from: those that the documents name, by how often they do, and the public."""
    named = [entity for entity in entities if entity.kind == "group"]
    total = sum(entity.mentions for entity in named)
    groups = []
    for entity in named:
        noun = entity.name.split()[-1].lower()
        singular = re.sub("men$", "man", re.sub("ies$", "y", noun)).removesuffix("s")
        profession = [] if noun in _NO_PROFESSION else [singular]
        stance = None if entity.stance is None else (entity.stance, _SPREAD)
        share = _NAMED_GROUPS_SHARE * entity.mentions / total
        groups.append(DraftGroup(entity.name.lower(), round(share, 3), stance, _AGES.get(noun), profession))
    return [*groups, DraftGroup(PUBLIC, round(1.0 - sum(group.share for group in groups), 3))]


def draft_posts(entities: Sequence[DocumentEntity], claims: Sequence[DraftClaim]) -> list[DraftPost]:
    """Let people say at the start what they are quoted with."""
    readers = [(claim.id, StatementReader(claim.text)) for claim in claims]
    posts: list[DraftPost] = []
    for entity in entities:
        quotes = [quote for quote in entity.quotes if len(quote) <= MAX_POST_CHARS]
        if quotes and len(posts) < MAX_POSTS:
            text = max(quotes, key=len)
            read = ((claim, reader.read(text)) for claim, reader in readers)
            leans = ((claim, meaning.lean) for claim, meaning in read if meaning is not None and meaning.lean)
            claim, lean = next(leans, (None, 0.0))
            posts.append(
                DraftPost(text, entity.name, claim, "supports" if lean > 0 else "denies" if lean < 0 else "none")
            )
    return posts


def _introduce(entity: DocumentEntity) -> str:
    age = f", {entity.age}," if entity.age is not None else ""
    if entity.kind == "group":
        return f"This account speaks for {entity.name[:1].lower() + entity.name[1:]}."
    if entity.role.startswith("who "):
        return f"{entity.name}{age} {entity.role[4:]}."
    role = entity.role or ("organisation" if entity.kind == "organisation" else "")
    if not role:
        return f"{entity.name} is {entity.age} years old." if age else f"This is {entity.name}."
    account = " This is its account." if entity.kind == "organisation" else ""
    return f"{entity.name}{age} is {choose_article(role)} {role}.{account}"


def describe_reading(findings: Findings) -> str:
    """Say in one line what was found."""
    counts = [
        format_count(sum(entity.kind == kind for entity in findings.entities), kind, plural)
        for kind, plural in (("person", "people"), ("organisation", "organisations"), ("group", "groups"))
    ]
    return f"{', '.join(counts)}, {format_count(len(findings.relations), 'relation')}"
