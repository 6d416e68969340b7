"""Prepares a scenario in its folder, from the request to the last file. Interrupted work goes on where it was.

Whatever a model answers is journaled before it is used, under the digest of its question. Everything else follows from
the request and these answers, so that doing it again gives the same and pays for nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from shoal.errors import ScenarioInvalid, ShoalError
from shoal.models import Spent
from shoal.preparation.asking.drafting import draft_with_model
from shoal.preparation.draft import Draft, DraftPerson
from shoal.preparation.folder import PreparationFolder, PreparationState, PreparationStatus, Stage
from shoal.preparation.reading.findings import Findings
from shoal.preparation.request import PreparationRequest
from shoal.preparation.rules import describe_reading, draft_by_rules, read_by_rules
from shoal.preparation.writing import PEOPLE, build_scenario, write_scenario_files
from shoal.runs import RunResources
from shoal.scenario import PersonEntry, count_people, load, validate
from shoal.text import format_count, join_words

#: Called with the state after every step.
Watch = Callable[[PreparationState], object]
#: Entities that become people where the request does not say how many.
USUAL_ENTITIES = 60


@dataclass(frozen=True, slots=True)
class Prepared:
    """A scenario that was prepared."""

    folder: Path
    scenario: Path
    topic: str
    people: int
    #: How many of the people are spoken of in the documents.
    profiles: int
    notes: tuple[str, ...]


class Progress:
    """Writes down every step of the work."""

    def __init__(self, folder: PreparationFolder, watch: Watch) -> None:
        self._folder = folder
        self._watch = watch
        self.state = folder.read_state()
        self.state.status, self.state.error = PreparationStatus.PREPARING, None
        self._people: list[DraftPerson] = []

    def enter(self, stage: Stage, total: int, item: str = "") -> None:
        self.state.stage, self.state.done, self.state.total, self.state.item = stage, 0, total, item
        self.write()

    def advance(self, item: str) -> None:
        self.state.done += 1
        self.state.item = item
        self.write()

    def note_spending(self, entities: int | None, spent: Spent) -> None:
        """Note what the model took so far, and how many entities are known."""
        if entities is not None:
            self.state.entities = entities
        self.state.spent = {"calls": spent.calls, "input": spent.input, "output": spent.output, "cost": spent.cost}

    def show_person(self, person: DraftPerson) -> None:
        """Note a person who is made, for clients that watch."""
        self._people.append(person)
        self.state.profiles = len(self._people)
        self._folder.write_profiles(self._people)

    def end(self, status: PreparationStatus, error: str | None = None) -> None:
        self.state.status, self.state.error = status, error
        self.write()

    def write(self) -> None:
        self._folder.write_state(self.state)
        self._watch(self.state)


async def prepare(
    folder: PreparationFolder,
    resources: RunResources,
    watch: Watch = lambda state: None,
    finish: Callable[[Prepared], object] = lambda prepared: None,
) -> Prepared:
    """Do what is left to do in a folder; where its scenario is written, only `finish` with the result."""
    request = folder.read_request()
    with folder.lock():
        if not folder.is_ready:
            progress = Progress(folder, watch)
            try:
                check_tables(request)
                if request.model is None:
                    draft, findings = _draft_offline(request, progress)
                else:
                    draft, findings = await draft_with_model(
                        folder.journal, request, resources, progress, choose_entities
                    )
                for document in request.documents:
                    draft.notes += document.notes
                progress.enter(Stage.WRITING, 1, "the scenario")
                draft.people = draft.people[: request.people]
                _check_draft(request, draft)
                write_scenario_files(folder.path, request, draft, findings)
                progress.advance("the scenario")
            except ShoalError as error:
                progress.end(PreparationStatus.FAILED, str(error).partition("\n")[0])
                raise
            progress.end(PreparationStatus.READY)
        prepared = read_prepared(folder)
        finish(prepared)
    return prepared


def read_prepared(folder: PreparationFolder) -> Prepared:
    """Read the result of a preparation, as it is now."""
    scenario = load(folder.scenario)
    notes = msgspec.json.decode((folder.path / "evidence.json").read_bytes())["notes"]
    return Prepared(
        folder.path,
        folder.scenario,
        scenario.topic or "",
        count_people(scenario.population),
        len(folder.read_profiles()),
        tuple(notes),
    )


def check_tables(request: PreparationRequest) -> None:
    """Raise ScenarioInvalid where the demographic tables of a request are wrong, before anything is paid for."""
    if not request.tables:
        return
    with TemporaryDirectory() as folder:
        for name, text in request.tables:
            Path(folder, name).write_text(text, encoding="utf-8")
        names = [name for name, _ in request.tables]
        validate({"population": {"marginals": names, "count": 1}}, folder=Path(folder))


def _draft_offline(request: PreparationRequest, progress: Progress) -> tuple[Draft, Findings]:
    progress.enter(Stage.READING, len(request.documents) or 1)
    topic, findings = read_by_rules(request.requirement, request.documents, request.topic)
    progress.state.entities = len(findings.entities)
    progress.advance(describe_reading(findings))
    findings.notes += choose_entities(findings, request)
    progress.enter(Stage.PROFILES, len(findings.entities))
    draft = draft_by_rules(topic, findings, request.requirement)
    for person in draft.people:
        progress.show_person(person)
    progress.enter(Stage.CONFIG, 1)
    draft.notes += findings.notes
    progress.advance(topic)
    return draft, findings


def choose_entities(findings: Findings, request: PreparationRequest) -> list[str]:
    """Keep the entities that become people, and say how many are left out. Those named most come first."""
    notes = []
    most = min(request.max_entities or USUAL_ENTITIES, request.people)
    kept, left = findings.entities[:most], findings.entities[most:]
    if left:
        names = join_words([entity.name for entity in left], 5)
        count = format_count(len(left), "more is named and has", "more are named and have")
        notes.append(f"{count} no account of their own: {names}; --entities takes more")
    names_kept = {entity.name for entity in kept}
    findings.entities = kept
    findings.relations = [each for each in findings.relations if {each.source, each.target} <= names_kept]
    silent = [entity.name for entity in kept if entity.stance is None]
    if silent and request.model is None:
        notes.append(f"the texts do not say how they stand: {join_words(silent, 6)}; they begin without an opinion")
    return notes


def _check_draft(request: PreparationRequest, draft: Draft) -> None:
    """Raise ScenarioInvalid where the scenario would not be valid, before a file of it is written."""
    content = build_scenario(request, draft, [name for name, _ in request.tables])
    people = [person.to_record() for person in draft.people]
    fields = set(PersonEntry.model_fields)
    strange = [name for record in people for name in record if name not in fields]
    if strange:
        raise ScenarioInvalid([f"{PEOPLE}: there is no field {strange[0]!r}"])
    with TemporaryDirectory() as folder:
        for name, text in request.tables:
            Path(folder, name).write_text(text, encoding="utf-8")
        Path(folder, PEOPLE).write_bytes(msgspec.json.encode(people))
        validate(content, folder=Path(folder))
