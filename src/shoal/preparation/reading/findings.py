"""What is read out of documents: people, organisations and groups, what the text says of them, and their relations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

import msgspec

from shoal.preparation.reading.sentences import Sentence

Kind = Literal["person", "organisation", "group"]
KINDS: tuple[Kind, ...] = get_args(Kind)
#: Sentences that are kept as evidence of one entity.
MAX_EVIDENCE = 12


class DocumentEntity(msgspec.Struct):
    """A person, an organisation or a group, with all that the text says of them."""

    name: str
    kind: Kind
    aliases: list[str] = msgspec.field(default_factory=list)
    #: Such as `mayor of Eastport`; empty where the text does not say.
    role: str = ""
    gender: str | None = None
    age: int | None = None
    #: How often the text names them.
    mentions: int = 0
    #: From -1, against the topic, to 1; None where the text does not say.
    stance: float | None = None
    #: What a model has to say about them, from the text.
    about: str = ""
    evidence: list[Sentence] = msgspec.field(default_factory=list)
    #: What they are quoted with.
    quotes: list[str] = msgspec.field(default_factory=list)

    def add_evidence(self, sentences: Iterable[Sentence]) -> None:
        """Add sentences that speak of them, each once, up to a number."""
        for sentence in sentences:
            if len(self.evidence) < MAX_EVIDENCE and sentence not in self.evidence:
                self.evidence.append(sentence)


class EntityRelation(msgspec.Struct, frozen=True):
    """How one entity is related to another, and the sentence that says so."""

    source: str
    target: str
    kind: str
    evidence: Sentence


class DraftClaim(msgspec.Struct, frozen=True):
    """A statement that people may believe or not, and where it comes from."""

    id: str
    text: str
    evidence: Sentence | None = None


class Findings(msgspec.Struct):
    """All that was read out of the documents."""

    entities: list[DocumentEntity] = msgspec.field(default_factory=list)
    relations: list[EntityRelation] = msgspec.field(default_factory=list)
    claims: list[DraftClaim] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
