"""Drafts a scenario with a language model: reads passages side by side, then makes each person, then the beginning.

Where a question gets no answer that can be used, even after a second try, rules take its place, and a note says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from shoal.agents import AnswerForm, Approach, Unanswered, ask_survey
from shoal.agents.language import fill
from shoal.journal import Journal, JournalKey
from shoal.models import Answer, ModelFailed, Question, Spent, Stack, Usage
from shoal.preparation.asking import prompts
from shoal.preparation.asking.forms import (
    PassageForm,
    PassageReading,
    PersonForm,
    PlanForm,
    Staging,
    StagingForm,
    TopicPlan,
)
from shoal.preparation.asking.merging import merge_readings, read_passage_by_rules
from shoal.preparation.draft import Draft, DraftPerson
from shoal.preparation.folder import Stage
from shoal.preparation.reading.documents import Passage, SourceDocument, split_passages
from shoal.preparation.reading.findings import DocumentEntity, DraftClaim, Findings
from shoal.preparation.reading.sentences import list_sentences
from shoal.preparation.reading.statements import make_slug
from shoal.preparation.reading.topics import choose_topic
from shoal.preparation.request import PreparationRequest
from shoal.preparation.rules import draft_by_rules, draft_groups, draft_person, draft_posts
from shoal.runs import RunResources, check_models, open_models
from shoal.scenario import validate
from shoal.text import clip, format_count, quote

T = TypeVar("T")

PASSAGE_CHARS = 6_000
_EXCERPT_CHARS, _MAX_LISTED = 4_000, 80
_MAX_EVIDENCE_CHARS = 400
_MAX_TOKENS = {PassageForm: 3_000, PlanForm: 800, PersonForm: 1_200, StagingForm: 2_500}
_MARKS = str.maketrans("«»", "“”")
_PURPOSE = "prepare"


class Steps(Protocol):
    """Notes every step."""

    def enter(self, stage: Stage, total: int, item: str = "") -> None: ...

    def advance(self, item: str) -> None: ...

    def show_person(self, person: DraftPerson) -> None: ...

    def note_spending(self, entities: int | None, spent: Spent) -> None: ...


#: Keeps the entities that become people, and returns notes about the others.
ChooseEntities = Callable[[Findings, PreparationRequest], list[str]]


class DigestKeyed:
    """Asks under the digest of each question, so that the same one is paid for once, and counts what answers took."""

    def __init__(self, inner: Stack) -> None:
        self._inner = inner
        self.spent = Spent()

    async def answer(self, question: Question) -> Answer:
        key = JournalKey(_PURPOSE, 0, question.digest, "ask")
        answer = await self._inner.answer(msgspec.structs.replace(question, key=key))
        if answer.usage != Usage():
            price = self._inner.spending.price(question.model)
            self.spent.add(answer.usage, None if price is None else price.of(answer.usage))
        return answer


async def draft_with_model(
    journal: Path, request: PreparationRequest, resources: RunResources, steps: Steps, choose: ChooseEntities
) -> tuple[Draft, Findings]:
    """Draft a scenario; whatever the journal holds is not asked again. `choose` says who gets an account."""
    async with _open_model(journal, request, resources) as model:
        drafting = ModelDrafting(request, model, steps)
        plan, findings = await drafting.read()
        notes = choose(findings, request)
        people = await drafting.portray(plan.topic, findings)
        draft = await drafting.stage(plan, findings, people)
        draft.notes = [*findings.notes, *notes, *draft.notes, *drafting.notes]
        return draft, findings


class ModelDrafting:
    """The questions of one preparation."""

    def __init__(self, request: PreparationRequest, model: DigestKeyed, steps: Steps) -> None:
        assert request.model is not None
        self._request = request
        self._model = model
        self._steps = steps
        self._requirement = _quote(request.requirement)
        self.notes: list[str] = []

    async def read(self) -> tuple[TopicPlan, Findings]:
        """Read all passages side by side, and decide what it is about."""
        passages = [each for document in self._request.documents for each in split_passages(document, PASSAGE_CHARS)]
        sentences = list_sentences(self._request.documents)
        self._steps.enter(Stage.READING, len(passages) + 1)
        readings = await _gather([self._read_passage(passage) for passage in passages])
        if unread := sum(reading is None for reading in readings):
            count = f"{format_count(unread, 'passage')} of {len(passages):,}"
            self.notes.append(f"{count} could not be read at all: rules only know English")
        findings = merge_readings(passages, readings, sentences)
        plan = await self._plan(findings)
        if self._request.topic is not None:
            plan = plan._replace(topic=self._request.topic)
        findings.claims = [DraftClaim(make_slug(text), text) for text in plan.claims]
        findings.claims = [*{claim.id: claim for claim in findings.claims}.values()]
        self._advance(plan.topic, len(findings.entities))
        return plan, findings

    async def portray(self, topic: str, findings: Findings) -> list[DraftPerson]:
        """Make all people, side by side."""
        self._steps.enter(Stage.PROFILES, len(findings.entities))
        return await _gather([self._portray(entity, topic, findings) for entity in findings.entities])

    async def stage(self, plan: TopicPlan, findings: Findings, people: list[DraftPerson]) -> Draft:
        """Decide how it begins and who else is there."""
        self._steps.enter(Stage.CONFIG, 1)
        texts = {
            "requirement": self._requirement,
            "topic": plan.topic,
            "claims": "\n".join(f"{number}. {claim.text}" for number, claim in enumerate(findings.claims, 1)),
            "accounts": "\n".join(f"- {person.name}: {quote(person.bio, 160)}" for person in people[:_MAX_LISTED]),
        }
        staging: Staging | None = await self._ask(
            StagingForm(), prompts.STAGER, fill(prompts.STAGE, texts), "the beginning"
        )
        if staging is None:
            draft = draft_by_rules(plan.topic, findings, self._request.requirement)
            draft.people, draft.claims, draft.context = people, findings.claims, plan.context
            draft.posts = draft_posts(findings.entities, findings.claims) or draft.posts
        else:
            draft = self._build_draft(plan, findings, people, staging)
        self._advance(plan.topic, len(findings.entities))
        return draft

    async def _read_passage(self, passage: Passage) -> PassageReading | None:
        texts = {"requirement": self._requirement, "document": passage.document, "passage": _quote(passage.text)}
        title = f"{passage.document}, part {passage.number + 1}"
        reading: PassageReading | None
        reading = await self._ask(PassageForm(), prompts.READER, fill(prompts.READ, texts), title)
        if reading is None and SourceDocument.of_pages(passage.document, [passage.text]).is_english:
            reading = read_passage_by_rules(passage, self._request.topic or self._request.requirement)
        self._advance(title)
        return reading

    async def _plan(self, findings: Findings) -> TopicPlan:
        listed = (f"- {each.name}, {each.kind}, {quote(each.role, 80)}" for each in findings.entities[:_MAX_LISTED])
        excerpt = " ".join(each.text for document in self._request.documents for each in document.paragraphs[:40])
        texts = {
            "requirement": self._requirement,
            "entities": "\n".join(listed),
            "excerpt": _quote(clip(excerpt, _EXCERPT_CHARS)),
        }
        plan: TopicPlan | None = await self._ask(PlanForm(), prompts.PLANNER, fill(prompts.PLAN, texts), "the topic")
        if plan is not None:
            return plan
        return TopicPlan(choose_topic(self._request.requirement, list_sentences(self._request.documents)), "", [])

    async def _portray(self, entity: DocumentEntity, topic: str, findings: Findings) -> DraftPerson:
        mine = [each for each in findings.relations if entity.name in (each.source, each.target)]
        evidence = [quote(each.text, _MAX_EVIDENCE_CHARS) for each in entity.evidence]
        texts = {
            "requirement": self._requirement,
            "topic": topic,
            "name": entity.name,
            "kind": entity.kind,
            "role": entity.role,
            "evidence": "\n".join([*([quote(entity.about, 800)] if entity.about else []), *evidence]),
            "relations": "\n".join(f"- {each.source} {quote(each.kind, 60)} {each.target}" for each in mine[:12]),
        }
        values = await self._ask(PersonForm(), prompts.PORTRAYER, fill(prompts.PORTRAY, texts), entity.name)
        person = draft_person(entity, topic, findings.relations)
        if values is not None:
            person = msgspec.structs.replace(person, **values)
            if entity.kind != "person":
                person = msgspec.structs.replace(person, age=None, gender=None)
        if entity.stance is None:
            entity.stance = person.stance
        self._steps.show_person(person)
        self._advance(entity.name)
        return person

    def _build_draft(self, plan: TopicPlan, findings: Findings, people: list[DraftPerson], staging: Staging) -> Draft:
        names = {person.name.casefold(): person.name for person in people}
        posts = []
        for post, number in zip(staging.posts, staging.claims, strict=True):
            claim = findings.claims[number - 1].id if 0 < number <= len(findings.claims) else None
            author = None if post.author is None else names.get(post.author.casefold())
            posts.append(msgspec.structs.replace(post, author=author, claim=claim))
        return Draft(
            topic=plan.topic,
            people=people,
            groups=staging.groups if any(group.share for group in staging.groups) else draft_groups(findings.entities),
            claims=findings.claims,
            posts=posts,
            context=plan.context,
            rounds=max(1, staging.hours * 60 // staging.minutes_per_round),
            minutes_per_round=staging.minutes_per_round,
        )

    async def _ask(self, form: Any, card: str, text: str, title: str) -> Any:
        """Ask, and once more where the reply cannot be used; None, with a note, where rules have to do."""
        assert self._request.model is not None
        approach = Approach(self._request.model, None, _MAX_TOKENS[type(form)])
        question = approach.build_question(JournalKey(_PURPOSE, 0, None, "ask"), card, text, form.schema)
        asked: AnswerForm[Any] = form
        try:
            return await ask_survey(self._model, question, asked)
        except (Unanswered, ModelFailed) as failure:
            why = clip(str(failure).partition("\n")[0], 160)
            self.notes.append(f"{title}: the model gave no reply that can be used, rules took its place ({why})")
            return None

    def _advance(self, item: str, entities: int | None = None) -> None:
        self._steps.note_spending(entities, self._model.spent)
        self._steps.advance(item)


@asynccontextmanager
async def _open_model(
    journal: Path, request: PreparationRequest, resources: RunResources
) -> AsyncIterator[DigestKeyed]:
    address = {} if request.base_url is None else {"base_url": request.base_url}
    mind = {"kind": "language", "model": request.model, **address}
    scenario = validate({"name": "prepare", "seed": request.seed, "population": {"count": 1}, "mind": mind})
    check_models(scenario, resources)
    async with Journal.open(journal) as kept, open_models(scenario, kept, resources) as session:
        yield DigestKeyed(session.model)


async def _gather(work: Sequence[Awaitable[T]]) -> list[T]:
    """Do all of it side by side; where one fails, the others end with it."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return [*await asyncio.gather(*tasks)]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _quote(text: str) -> str:
    return text.translate(_MARKS)
