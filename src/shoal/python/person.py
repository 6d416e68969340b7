"""The people of a script."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias
from weakref import ReferenceType, ref

from msgspec import json

from shoal.agents import ANSWER
from shoal.errors import QueryFailed, RunRefused, ScenarioInvalid
from shoal.formats import decode_json, decode_text
from shoal.python.results import render_heading, render_table, render_text
from shoal.python.run import Fields, Run
from shoal.python.session import Session, slug
from shoal.runs import replace_json
from shoal.scenario import (
    PERSONA,
    SAVED,
    PeopleTable,
    build_people_table,
    build_spec_table,
    check,
    is_spec,
    list_files,
    merge_fragments,
    read_content,
    read_people,
    redefine,
    validate,
)
from shoal.scenario import PersonEntry as Entry
from shoal.text import hint
from shoal.types import Event

#: Fields that say how a person acts, and texts that stand beside a specification.
_BESIDE_SPEC = frozenset(Entry.model_fields) - {"name", "age", "gender", "country", "profession", "interests"}
#: High enough that a visited person answers nearly every time.
_TALKATIVENESS = 10


class PersonWorld(Protocol):
    """What a person needs of the world that it is in."""

    name: str

    def check_stimulus(self, stimulus: Mapping[str, Any]) -> None: ...

    @property
    def results(self) -> Run: ...


class Person:
    """A person: a name, a persona in free text, and any field that a person of a scenario has.

    `listen`, `see`, `think`, `goal` and `move_to` take effect in the next round of the person's world.
    """

    def __init__(self, name: str, persona: str = "", **fields: Any) -> None:
        fields = {"name": name, "persona": persona or None, **fields}
        self._describe({key: value for key, value in fields.items() if value is not None or key == "name"}, {})
        #: Stimuli for the next round, for example `{"hear": "Good morning!"}`.
        self.waiting: list[dict[str, Any]] = []
        #: The name of the person's world, if it is in one.
        self.world: str | None = None
        self._world: ReferenceType[PersonWorld] | None = None
        self._alone: Session | None = None
        self._mind: dict[str, Any] = {"talkativeness": _TALKATIVENESS}

    @classmethod
    def load(cls, path: str | Path) -> Person:
        """Load the person in a file: a TinyTroupe specification (*.agent.json), or a table with one row."""
        people = cls.load_all(path)
        if len(people) > 1:
            raise ScenarioInvalid([f"{path}: {len(people)} people; Person.load_all gives them all"])
        return people[0]

    @classmethod
    def load_all(cls, path: str | Path) -> list[Person]:
        """Load all people in a file, or in a folder of TinyTroupe specifications."""
        table = read_people(Path(path), Entry)
        files = [file for file in list_files(Path(path)) if file.suffix.lower() == ".json"]
        contents = [_read_json(file) for file in files]
        specs = [spec for found in contents for spec in (found if isinstance(found, list) else [found])]
        if not specs or not all(map(is_spec, specs)):
            specs = [{PERSONA: {}}] * table.count
        people = []
        for row, spec in enumerate(specs):
            fields = _read_row(table, row)
            if "name" not in fields:
                raise ScenarioInvalid([f"{table.table.name}: a person without a name"])
            person, saved = cls(**fields), spec.get(SAVED)
            if isinstance(saved, Mapping) and _to_spec(saved) == spec[PERSONA]:
                person._describe(dict(saved), {})
            elif spec[PERSONA]:
                person._describe({"name": person.name, **(saved or {})}, dict(spec[PERSONA]))
            people.append(person)
        return people

    def save(self, path: str | Path) -> Path:
        """Write the person to a file, such as Ada.agent.json, that `load` and TinyTroupe read."""
        target = Path(path)
        if target.suffix.lower() != ".json":
            raise ScenarioInvalid([f"{target}: expected a name that ends in .json, such as {self.name}.agent.json"])
        # What TinyTroupe reads is the persona. What only Shoal knows stands beside it.
        replace_json(target, {"type": "TinyPerson", PERSONA: self._spec or _to_spec(self._given), SAVED: self._given})
        return target

    # Description

    @property
    def name(self) -> str:
        return str(self._fields["name"])

    def define(self, key: str, value: Any) -> Person:
        """Set a field such as `age`; any other key becomes a trait. What a specification says about it is replaced."""
        spec = redefine(self._spec, key, value) if self._spec and key not in _BESIDE_SPEC else self._spec
        if key not in Entry.model_fields:
            key, value = "traits", {**self._given.get("traits", {}), key: value}
        self._describe({**self._given, key: value}, spec)
        return self

    def __getitem__(self, key: str) -> Any:
        for known in (self._fields, self._fields.get("traits", {}), self._spec):
            if key in known:
                return known[key]
        words = [*self._fields, *self._fields.get("traits", {}), *self._spec]
        raise KeyError(f"nothing is said about {key!r} of {self.name}{hint(key, words)}")

    def __setitem__(self, key: str, value: Any) -> None:
        self.define(key, value)

    def import_fragment(self, path: str | Path) -> Person:
        """Merge a TinyTroupe fragment (*.fragment.json) into the description."""
        fragment = _read_json(Path(path))
        if not is_spec(fragment):
            raise ScenarioInvalid([f"{path}: expected an object with a `persona`"])
        self._describe(self._given, merge_fragments(self._spec, fragment[PERSONA]))
        return self

    def to_scenario(self) -> dict[str, Any]:
        """Return the person as an entry of a scenario's population."""
        return dict(self._fields)

    def _describe(self, given: dict[str, Any], spec: dict[str, Any]) -> None:
        """Take what the script says about the person, and what a TinyTroupe specification with its fragments says.

        The script overrides the specification. ScenarioInvalid names what is wrong; then nothing changes.
        """
        fields = deepcopy(given)
        if spec:
            name = str(spec.get("name", "fragment"))
            table = build_spec_table([(name, {PERSONA: spec})], [], name)
            read, traits = _read_row(build_people_table(table, Entry, {}, ""), 0), given.get("traits", {})
            texts = (given.get("persona"), read.get("persona"))
            fields = {**read, **fields, "persona": "\n".join(text for text in texts if text)}
            fields["traits"] = {**read.get("traits", {}), **traits}
        problems = []
        for problem in check({"population": [fields]})[1]:
            path = problem.path[2:]
            # Follows can only be checked when all people of the world are known.
            if problem.path[:2] != ("population", 0) or path[:1] == ("follows",):
                continue
            is_field = problem.at_key and len(path) == 1
            advice = "anything else about a person goes into traits={...}" if is_field else problem.advice
            problems.append(f"Person({given.get('name')!r}): {replace(problem, path=path, advice=advice)}")
        if problems:
            raise ScenarioInvalid(problems)
        self._given, self._spec, self._fields = given, spec, fields

    # Stimuli

    def listen(self, text: str, source: Person | str | None = None) -> Person:
        """Hear something in the next round, from a person in the same world or without a source."""
        speaker = source.name if isinstance(source, Person) else source
        return self._add_stimulus("hear", text, **({} if speaker is None else {"by": speaker}))

    def see(self, text: str) -> Person:
        return self._add_stimulus("see", text)

    def think(self, text: str) -> Person:
        return self._add_stimulus("think", text)

    def goal(self, text: str) -> Person:
        return self._add_stimulus("goal", text)

    internalize_goal = goal

    def move_to(self, location: str) -> Person:
        return self._add_stimulus("location", location)

    def change_context(self, context: str | Sequence[str]) -> Person:
        """Be in another situation from the next round on, which the person sees in every turn until it changes."""
        texts = [context] if isinstance(context, str) else list(context)
        self._check_stimulus({"context": texts})
        self.waiting.append({"context": texts})
        return self

    def _add_stimulus(self, kind: str, text: object, **more: str) -> Person:
        if not isinstance(text, str) or not text.strip():
            raise ScenarioInvalid([f"{self.name}: expected some text, found {text!r}"])
        stimulus = {kind: text, **more}
        self._check_stimulus(stimulus)
        self.waiting.append(stimulus)
        return self

    def _check_stimulus(self, stimulus: Mapping[str, Any]) -> None:
        if (world := self._find_world()) is not None:
            world.check_stimulus(stimulus)

    def enter(self, world: PersonWorld) -> None:
        """Join a world, which from now on checks what the person perceives."""
        self.world, self._world = world.name, ref(world)

    def exit(self) -> None:
        """Be in no world any more."""
        self.world = self._world = None

    def _find_world(self) -> PersonWorld | None:
        return None if self._world is None else self._world()

    # Acting alone

    def listen_and_act(self, text: str, *, mind: Mapping[str, Any] | None = None, quiet: bool = True) -> list[Event]:
        """Hear something and answer it, alone; the next call continues from here."""
        self._must_be_alone()
        return self.listen(text).act(mind=mind, quiet=quiet)

    def act(self, *, mind: Mapping[str, Any] | None = None, quiet: bool = True) -> list[Event]:
        """Run one round before a silent visitor, and return what the person did.

        `mind` is that of a scenario, such as `{"kind": "language", "model": ...}`; once given, it stays.
        """
        self._must_be_alone()
        return self._live_round(mind, quiet, is_mute=False)

    def interview(
        self, question: str, fields: Fields = (), *, model: str | None = None, round: int | None = None
    ) -> str | dict[str, Any]:
        """Ask the person, as it is now or was after a round, and return the answer: a text, or a value for each field.

        A copy is asked, so the person does not remember it. `model` answers in the name of a person without one.
        """
        if (world := self._find_world()) is not None:
            run = world.results
        else:
            self._must_be_alone()
            if self._alone is None:
                # A round in which nothing happens: who the person is can be asked before anything was lived through.
                self._live_round(None, True, is_mute=True)
            assert self._alone is not None
            run = Run(self._alone.directory)
        row = run.ask(question, fields=fields, who=(self.name,), model=model, round=round).rows[0]
        if row.error is not None:
            raise QueryFailed(f"{self.name} gave no answer: {row.error}")
        return dict(row.values) if fields else str(row.values[ANSWER])

    def _live_round(self, mind: Mapping[str, Any] | None, quiet: bool, is_mute: bool) -> list[Event]:
        session = self._alone or Session()
        round = session.rounds + 1
        self._mind = dict(mind) if mind is not None else self._mind
        visitor = "Visitor" if self.name != "Visitor" else "Another visitor"
        stimuli = [{**stimulus, "to": [self.name], "round": round} for stimulus in self.waiting]
        scenario = validate(
            {
                "name": slug(self.name),
                "rounds": round,
                "population": [self.to_scenario(), {"name": visitor}],
                "worlds": {"room": {"kind": "room"}},
                "mind": self._mind,
                "events": [{"mute": [visitor, self.name] if is_mute else [visitor], "round": round}, *stimuli],
            },
            f"Person({self.name!r})",
        )
        session.declare(scenario)
        self._alone = session
        self.waiting.clear()
        session.work(self.name, quiet, "another call")
        since_round = session.directory.open_stream("room", round)
        return [event for event in since_round.read_actions() if event.round == round]

    def _must_be_alone(self) -> None:
        if self.world is not None:
            raise RunRefused(
                f"{self.name} is in {self.world!r} and acts there: let {self.name} listen, and then world.run()"
            )

    def __repr__(self) -> str:
        return f"Person({self.name!r})"

    def _repr_html_(self) -> str:
        rest = [(field, value) for field, value in self._fields.items() if field not in ("name", "persona")]
        persona = self._fields.get("persona")
        return render_heading(self.name) + (render_text(persona) if persona else "") + render_table(rest)


#: A reference to a person: the person, a name or a number.
Who: TypeAlias = Person | str | int


def name_of(who: Who) -> str | int:
    """Return the name or number by which a scenario refers to a person."""
    return who.name if isinstance(who, Person) else who


def names_of(people: Who | Iterable[Who]) -> list[str | int]:
    """Return the names or numbers of one person or of several."""
    return [name_of(people)] if isinstance(people, Person | str | int) else [name_of(who) for who in people]


def _to_spec(given: Mapping[str, Any]) -> dict[str, Any]:
    """Write a person who was described by fields the way TinyTroupe does."""
    named = {"country": "residence", "profession": "occupation", "persona": "description"}
    spec: dict[str, Any] = {named.get(field, field): value for field, value in given.items() if field != "traits"}
    if "occupation" in spec:
        spec["occupation"] = {"title": spec["occupation"]}
    if "interests" in spec:
        spec["preferences"] = {"interests": list(spec.pop("interests"))}
    return json.decode(json.encode({**spec, **given.get("traits", {})}), type=dict[str, Any])


def _read_json(path: Path) -> Any:
    return decode_json(decode_text(read_content(path), path.name), path.name)


def _read_row(table: PeopleTable, row: int) -> dict[str, Any]:
    cells = {name: column[row] for name, column in table.fields.items() if column[row] is not None}
    fields = {name: list(value) if isinstance(value, tuple) else value for name, value in cells.items()}
    traits = {name: column[row] for name, column in table.traits.items() if column[row] is not None}
    return {**fields, "traits": traits} if traits else fields
