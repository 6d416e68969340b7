"""Preparations: what is asked for, who was found, and on which sentences."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shoal.server.messages.base import WHOLE, AnswerModel, RequestModel


class UploadedText(RequestModel):
    """A document or a table, as text."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    text: str


class PreparationBody(RequestModel):
    """A requirement in plain words, with documents as text, of which a simulation is to be prepared."""

    requirement: Annotated[str, Field(max_length=20_000)]
    documents: Annotated[list[UploadedText], Field(max_length=500)] = []
    #: Demographic tables, as CSV.
    marginals: Annotated[list[UploadedText], Field(max_length=50)] = []
    people: Annotated[int, Field(strict=False, ge=1, le=1_000_000), WHOLE] | None = None
    rounds: Annotated[int, Field(strict=False, ge=1, le=1_000_000), WHOLE] | None = None
    worlds: list[str] | None = None
    seed: Annotated[int, Field(strict=False, ge=0), WHOLE] | None = None
    topic: Annotated[str, Field(max_length=200)] | None = None
    #: The language model that reads; default: that of the server, or rules.
    model: Annotated[str, Field(max_length=200)] | None = None
    max_entities: Annotated[int, Field(strict=False, ge=1, le=100_000), WHOLE] | None = None


class PreparationInfo(AnswerModel):
    """What was asked of a preparation, and where it stands.

    Its status is `not_started`, `pending`, `processing`, `failed` or `ready`.
    """

    simulation_id: str
    status: str
    progress: int
    error: str | None
    created_at: str
    requirement: str
    documents: list[str]
    people: int
    rounds: int | None
    worlds: list[str]
    model: str | None


class EvidenceSentence(AnswerModel):
    """A sentence of a document, and where it stands."""

    text: str
    document: str
    place: str


class FoundEntity(AnswerModel):
    """A person, an organisation or a group that the documents speak of. A `stance` is null where they do not say it."""

    name: str
    kind: str
    role: str
    stance: float | None
    mentions: int
    persona: str
    sentences: list[EvidenceSentence]


class PreparationResult(AnswerModel):
    """What came of a preparation. `text` is the scenario, and null where it needs files."""

    topic: str
    people: int
    drawn: int
    entities: list[FoundEntity]
    notes: list[str]
    text: str | None
