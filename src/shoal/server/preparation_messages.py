"""What the server answers about preparations: what was asked for, who was found, and on which sentences."""

from __future__ import annotations

from shoal.server.messages import AnswerModel


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
