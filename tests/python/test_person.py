"""People in a script: who they are, and what they do alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import RunRefused, ScenarioInvalid
from shoal.python.person import Person
from shoal.python.world import World

LISA = {
    "type": "TinyPerson",
    "persona": {
        "name": "Lisa Carter",
        "age": 28,
        "residence": "Canada",
        "occupation": {"title": "Data Scientist", "organization": "Shop"},
        "preferences": {"interests": ["Cooking", "Piano"]},
        "beliefs": ["Data tells stories."],
    },
}
TRAVEL = {
    "type": "Fragment",
    "persona": {"preferences": {"interests": ["Piano", "Travel"]}, "beliefs": ["Maps are art."]},
}


def written(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    path.write_text(json.dumps(content))
    return path


def test_what_is_said_about_a_person_can_be_read_again() -> None:
    ada = Person("Ada", persona="An engineer.", age=36, interests=["bridges"], traits={"humour": "dry"})
    assert (ada.name, ada["persona"], ada["age"], ada["humour"]) == ("Ada", "An engineer.", 36, "dry")


def test_a_definition_sets_a_field_or_else_a_trait() -> None:
    ada = Person("Ada").define("age", 36).define("humour", "dry")
    ada["country"] = "Portugal"
    assert ada.to_scenario() == {"name": "Ada", "age": 36, "traits": {"humour": "dry"}, "country": "Portugal"}


def test_nothing_is_said_about_what_was_never_defined() -> None:
    with pytest.raises(KeyError, match="nothing is said about 'ago' of Ada; did you mean 'age'"):
        Person("Ada", age=36)["ago"]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"intrests": ["x"]}, "Person('Ada'): intrests: unknown field 'intrests'; did you mean 'interests'?"),
        (
            {"hobby": 1},
            "Person('Ada'): hobby: unknown field 'hobby'; anything else about a person goes into traits={...}",
        ),
        ({"age": 300}, "Person('Ada'): age: must be at most 120, found 300"),
        ({"age": "old"}, "Person('Ada'): age: expected a whole number, found 'old'"),
    ],
)
def test_a_wrong_field_is_refused_at_once(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        Person("Ada", **fields)
    assert caught.value.problems == [problem]


@pytest.mark.parametrize("name", ["", 5, " Ada", "random", None])
def test_a_person_needs_a_proper_name(name: Any) -> None:
    with pytest.raises(ScenarioInvalid, match="name"):
        Person(name)


def test_several_wrong_fields_are_reported_together() -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        Person("Ada", age=300, stance=2)
    assert len(caught.value.problems) == 2


def test_a_wrong_definition_leaves_the_person_as_it_was() -> None:
    ada = Person("Ada", age=36)
    with pytest.raises(ScenarioInvalid):
        ada.define("age", -1)
    assert ada["age"] == 36


def test_a_person_may_follow_somebody_who_is_not_there_yet() -> None:
    assert Person("Ada", follows=["Ben"])["follows"] == ["Ben"]


# files of TinyTroupe


def test_a_specification_becomes_a_person(folder: Path) -> None:
    lisa = Person.load(written(folder, "Lisa.agent.json", LISA))
    assert (lisa.name, lisa["age"], lisa["country"], lisa["profession"]) == (
        "Lisa Carter",
        28,
        "Canada",
        "Data Scientist",
    )
    assert lisa["interests"] == ["Cooking", "Piano"]
    assert lisa["occupation"]["organization"] == "Shop"
    assert "Data tells stories." in lisa["persona"]


def test_a_fragment_is_merged_into_a_loaded_person(folder: Path) -> None:
    lisa = Person.load(written(folder, "Lisa.agent.json", LISA)).define("age", 29)
    lisa.import_fragment(written(folder, "travel.agent.fragment.json", TRAVEL))
    assert lisa["interests"] == ["Cooking", "Piano", "Travel"]
    assert "Data tells stories." in lisa["persona"]
    assert "Maps are art." in lisa["persona"]
    assert (lisa.name, lisa["age"]) == ("Lisa Carter", 29)


def test_a_definition_changes_what_a_loaded_person_is_said_to_be(folder: Path) -> None:
    lisa = Person.load(written(folder, "Lisa.agent.json", LISA))
    lisa.define("age", 61).define("profession", "Baker").define("country", "Chile").define("interests", ["Rye"])
    lisa.define("humour", "dry")
    persona = lisa["persona"]
    for fact in ("age: 61", "Title: Baker", "residence: Chile", "- Rye", "Humour: dry", "Organization: Shop"):
        assert fact in persona
    for fact in ("28", "Data Scientist", "Canada", "Piano"):
        assert fact not in persona
    assert (lisa["age"], lisa["profession"], lisa["interests"]) == (61, "Baker", ["Rye"])


def test_a_fragment_is_merged_into_a_person_made_by_hand(folder: Path) -> None:
    ada = Person("Ada", persona="An engineer.").import_fragment(written(folder, "travel.fragment.json", TRAVEL))
    assert ada["interests"] == ["Piano", "Travel"]
    assert ada["persona"].startswith("An engineer.\n")
    assert "Maps are art." in ada["persona"]


def test_what_is_not_a_fragment_is_refused(folder: Path) -> None:
    with pytest.raises(ScenarioInvalid, match="expected an object with a `persona`"):
        Person("Ada").import_fragment(written(folder, "list.json", []))
    with pytest.raises(ScenarioInvalid, match="no such file"):
        Person("Ada").import_fragment("nowhere.json")


def test_everybody_in_a_folder_is_loaded(folder: Path) -> None:
    written(folder, "a.agent.json", LISA)
    written(folder, "b.agent.json", {**LISA, "persona": {"name": "Oscar"}})
    assert [person.name for person in Person.load_all(folder)] == ["Lisa Carter", "Oscar"]
    with pytest.raises(ScenarioInvalid, match=r"2 people; Person\.load_all gives them all"):
        Person.load(folder)


def test_a_table_of_people_is_loaded(folder: Path) -> None:
    (folder / "people.csv").write_text("name,age,shoe\nAda,36,39\nBen,41,44\n")
    ada, ben = Person.load_all("people.csv")
    assert (ada.name, ben["age"], str(ben["shoe"])) == ("Ada", 41, "44")


# alone


def test_a_person_alone_answers_what_it_hears() -> None:
    ada = Person("Ada")
    actions = ada.listen_and_act("What do you think of the bridge?")
    assert {action.agent_name for action in actions} == {"Ada"}
    assert [action.action_type for action in actions] == ["TALK"]
    assert ada.waiting == []


def test_a_person_alone_goes_on_from_where_it_was(folder: Path) -> None:
    ada = Person("Ada")
    first, second = ada.listen_and_act("Hello!"), ada.think("What was that?").act()
    assert (first[0].round, second[0].round) == (1, 2)
    assert [path.name for path in (folder / "runs").iterdir()] == ["ada-1"]


def test_a_person_in_a_world_does_not_act_outside_it() -> None:
    ada = Person("Ada")
    World("Town", [ada])
    with pytest.raises(RunRefused, match=r"Ada is in 'Town' and acts there: let Ada listen, and then world\.run\(\)"):
        ada.listen_and_act("Hello!")
    assert ada.waiting == []


@pytest.mark.parametrize("text", ["", "  ", None, 3])
def test_hearing_nothing_is_refused(text: Any) -> None:
    with pytest.raises(ScenarioInvalid, match="Ada: expected some text"):
        Person("Ada").listen(text)


def test_a_notebook_shows_a_person_without_trusting_it() -> None:
    shown = Person("<b>Ada", persona="<script>")._repr_html_()
    assert "&lt;b&gt;Ada" in shown
    assert "<script>" not in shown
    assert repr(Person("Ada")) == "Person('Ada')"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"persona": "A baker.", "age": 30, "country": "Chile", "profession": "baker", "stance": 0.25},
        {"interests": ["bread", "rivers"], "active_hours": [8, 9], "traits": {"humour": "dry", "shoe size": 44}},
    ],
)
def test_what_is_saved_is_loaded_again(fields: dict[str, Any], folder: Path) -> None:
    person = Person("Ada", **fields)
    again = Person.load(person.save(folder / "Ada.agent.json"))
    assert again.to_scenario() == person.to_scenario()


def test_a_specification_that_was_changed_is_saved_and_loaded_again(folder: Path) -> None:
    spec = {"type": "TinyPerson", "persona": {"name": "Lisa", "age": 28, "occupation": {"title": "analyst"}}}
    (folder / "lisa.agent.json").write_text(json.dumps(spec))
    lisa = Person.load(folder / "lisa.agent.json").define("stance", 0.5).define("humour", "dry")
    lisa.save(folder / "again.agent.json")
    assert Person.load(folder / "again.agent.json").to_scenario() == lisa.to_scenario()
    saved = json.loads((folder / "again.agent.json").read_text())
    assert saved["persona"] == {"name": "Lisa", "age": 28, "occupation": {"title": "analyst"}, "humour": "dry"}


def test_what_somebody_wrote_into_a_saved_file_counts(folder: Path) -> None:
    path = Person("Ada", persona="A baker.", stance=0.5).save(folder / "ada.json")
    saved = json.loads(path.read_text())
    saved["persona"]["fears"] = "heights"
    path.write_text(json.dumps(saved))
    ada = Person.load(path)
    assert (ada["stance"], ada["fears"]) == (0.5, "heights")


def test_people_are_saved_to_files_with_a_name_that_is_read_again(folder: Path) -> None:
    with pytest.raises(ScenarioInvalid, match=r"expected a name that ends in \.json, such as Ada\.agent\.json"):
        Person("Ada").save(folder / "ada.txt")
