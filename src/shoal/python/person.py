"""People, as a script makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from shoal.errors import RunRefused, ScenarioInvalid
from shoal.formats.tables import decode_json, decode_text
from shoal.python import display
from shoal.python.run import Session, finish_run, slug
from shoal.scenario import loading
from shoal.scenario.declared.population import PersonEntry as Entry
from shoal.scenario.importers import people_file, tinytroupe
from shoal.scenario.importers.people_file import PeopleTable, build_people_table
from shoal.scenario.scenario import Scenario
from shoal.scenario.validation import report
from shoal.scenario.validation.problems import Problem
from shoal.text import hint
from shoal.types import Event

#: Somebody who is visited has something to say nearly every time.
_TALKATIVENESS = 10


class Person:
    """One person: a name, who they are in free text, and whatever fields of a scenario's person are known.

    What reaches a person (`listen`, `see`, `think`, `goal`, `move_to`) waits for the next round of its world.
    """

    def __init__(self, name: str, persona: str = "", **fields: Any) -> None:
        said = {"persona": persona or None, **fields}
        #: What was said about the person here; it goes before what a file says.
        self._given: dict[str, Any] = {"name": name} | {key: value for key, value in said.items() if value is not None}
        #: The persona of a TinyTroupe specification, with the fragments merged into it.
        self._spec: dict[str, Any] = {}
        self._fields = self._checked()
        #: What will reach the person in the next round, for example `{"hear": "Good morning!"}`.
        self.waiting: list[dict[str, str]] = []
        #: What the person's world is called, if it is in one.
        self.world: str | None = None
        self._alone: Session | None = None

    @classmethod
    def load(cls, path: str | Path) -> Person:
        """The person in a file: a TinyTroupe specification (*.agent.json), or a table with one row."""
        people = cls.load_all(path)
        if len(people) > 1:
            raise ScenarioInvalid([f"{path}: {len(people)} people; Person.load_all gives them all"])
        return people[0]

    @classmethod
    def load_all(cls, path: str | Path) -> list[Person]:
        """Everybody in a file, or in a folder of TinyTroupe specifications."""
        roster = people_file.read_people(people_file.Source(Path(path)), Entry)
        specs = [spec[tinytroupe.PERSONA] for spec in _specs(Path(path))] or [{}] * roster.count
        return [cls._from(roster, row, spec) for row, spec in enumerate(specs)]

    @classmethod
    def _from(cls, roster: PeopleTable, row: int, spec: Mapping[str, Any]) -> Person:
        fields = _row(roster, row)
        if "name" not in fields:
            raise ScenarioInvalid([f"{roster.table.name}: a person without a name"])
        person = cls(**fields)
        if spec:
            person._given, person._spec = {"name": person.name}, dict(spec)
            person._fields = person._checked()
        return person

    # Who it is

    @property
    def name(self) -> str:
        return str(self._fields["name"])

    def define(self, key: str, value: Any) -> Person:
        """Say something about the person: a field such as `age`, or anything else, which becomes a trait."""
        before = dict(self._given)
        if key in Entry.model_fields:
            self._given[key] = value
        else:
            self._given["traits"] = {**self._given.get("traits", {}), key: value}
        try:
            self._fields = self._checked()
        except ScenarioInvalid:
            self._given = before
            raise
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
        """Merge a TinyTroupe fragment (*.fragment.json) into what is known of the person."""
        fragment = _json(Path(path))
        if not tinytroupe.is_spec(fragment):
            raise ScenarioInvalid([f"{path}: expected an object with a `persona`"])
        before, self._spec = self._spec, tinytroupe.merge_fragments(self._spec, fragment[tinytroupe.PERSONA])
        try:
            self._fields = self._checked()
        except ScenarioInvalid:
            self._spec = before
            raise
        return self

    def declared(self) -> dict[str, Any]:
        """The person as a scenario has it."""
        return deepcopy(self._fields)

    def _checked(self) -> dict[str, Any]:
        fields = _joined(_from_spec(self._spec), self._given) if self._spec else dict(self._given)
        problems = [
            _describe_problem(problem) for problem in report.check({"population": [fields]})[1] if _is_own(problem)
        ]
        if problems:
            raise ScenarioInvalid([f"Person({self._given.get('name')!r}): {problem}" for problem in problems])
        return fields

    # What reaches it

    def listen(self, text: str, source: Person | str | None = None) -> Person:
        """Hear something in the next round, from somebody in the same world or from nobody in particular."""
        speaker = source.name if isinstance(source, Person) else source
        return self._reached("hear", text, **({} if speaker is None else {"by": speaker}))

    def see(self, text: str) -> Person:
        return self._reached("see", text)

    def think(self, text: str) -> Person:
        return self._reached("think", text)

    def goal(self, text: str) -> Person:
        return self._reached("goal", text)

    internalize_goal = goal

    def move_to(self, location: str) -> Person:
        return self._reached("location", location)

    def _reached(self, kind: str, text: str, **more: str) -> Person:
        if not _is_text(text):
            raise ScenarioInvalid([f"{self.name}: expected some text, found {text!r}"])
        self.waiting.append({kind: text, **more})
        return self

    # Acting alone

    def listen_and_act(self, text: str, *, quiet: bool = True) -> list[Event]:
        """Hear something and answer it, with nobody else there; the next call goes on from here."""
        self._must_be_alone()
        return self.listen(text).act(quiet=quiet)

    def act(self, *, quiet: bool = True) -> list[Event]:
        """One round with whatever is waiting, before a visitor who keeps silent; gives what the person did."""
        self._must_be_alone()
        session = self._alone or Session()
        round = session.rounds + 1
        session.declare(self._visited(round))
        self._alone = session
        self.waiting.clear()
        results = finish_run(session, self.name, quiet, "another call")
        return [event for event in results.actions if event.round == round]

    def _visited(self, round: int) -> Scenario:
        visitor = "Visitor" if self.name != "Visitor" else "Another visitor"
        heard = [{**stimulus, "to": [self.name], "round": round} for stimulus in self.waiting]
        return loading.validate(
            {
                "name": slug(self.name),
                "rounds": round,
                "population": [self.declared(), {"name": visitor}],
                "worlds": {"room": {"kind": "room"}},
                "mind": {"talkativeness": _TALKATIVENESS},
                "events": [{"mute": [visitor], "round": round}, *heard],
            },
            f"Person({self.name!r})",
        )

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
        return display.heading(self.name) + (display.preformatted(persona) if persona else "") + display.table(rest)


#: Somebody, as other calls take them: a person, a name or a number.
Who: TypeAlias = Person | str | int


def name_of(who: Who) -> str | int:
    """A person as scenarios speak of them."""
    return who.name if isinstance(who, Person) else who


def names_of(people: Who | Iterable[Who]) -> list[str | int]:
    """One or several."""
    return [name_of(people)] if isinstance(people, Person | str | int) else [name_of(who) for who in people]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_own(problem: Problem) -> bool:
    """Whom a person follows is only known once everybody is there."""
    return problem.path[:2] == ("population", 0) and problem.path[2:3] != ("follows",)


def _describe_problem(problem: Problem) -> str:
    """Write a problem with its path in the person; a field that is unknown and near no other may be a trait."""
    path = problem.path[2:]
    is_field = problem.at_key and len(path) == 1
    advice = "anything else about a person goes into traits={...}" if is_field else problem.advice
    return str(replace(problem, path=path, advice=advice))


def _json(path: Path) -> Any:
    return decode_json(decode_text(people_file.read_content(path), path.name), path.name)


def _specs(path: Path) -> list[Mapping[str, Any]]:
    """TinyTroupe's specifications, if that is what the file or folder holds."""
    files = [file for file in people_file.list_files(path) if file.suffix.lower() == ".json"]
    found = [spec for file in files for spec in _listed(_json(file))]
    return found if all(map(tinytroupe.is_spec, found)) else []


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _from_spec(persona: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a person that a specification, or a part of one, speaks of."""
    name = str(persona.get("name", "fragment"))
    table = tinytroupe.build_spec_table([(name, {tinytroupe.PERSONA: persona})], [], name)
    return _row(build_people_table(table, Entry, (), ""), 0)


def _joined(read: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What was read and what was said; of the text and the traits, both."""
    texts = (given.get("persona"), read.get("persona"))
    traits = {**read.get("traits", {}), **given.get("traits", {})}
    return {**read, **given, "persona": "\n".join(text for text in texts if text), "traits": traits}


def _row(roster: PeopleTable, row: int) -> dict[str, Any]:
    fields = {name: _plain(cells[row]) for name, cells in roster.fields.items() if cells[row] is not None}
    traits = {name: cells[row] for name, cells in roster.traits.items() if cells[row] is not None}
    return {**fields, "traits": traits} if traits else fields


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
