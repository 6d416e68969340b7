"""What other systems have: profiles of OASIS, specifications and fragments of TinyTroupe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shoal.scenario.build import build
from shoal.scenario.importers.tinytroupe import merge_fragments
from shoal.scenario.loading import validate
from shoal.scenario.sampling.follow_graph import draw_follow_graph
from shoal.scenario.sampling.sampler import sample
from shoal.types import Versioned
from shoal.worlds.room.observations import RoomObservation
from tests.scenario.importers.people_files import find_problems, notes, people, scenario, write_file

REDDIT = [
    {
        "user_id": 7,
        "username": "ada_l",
        "name": "Ada",
        "bio": "Counts.",
        "persona": "Ada counts bridges.",
        "karma": 1000,
        "created_at": "2025-01-01",
        "age": 30,
        "gender": "female",
        "mbti": "ISTJ",
        "country": "UK",
        "profession": "engineer",
        "interested_topics": ["bridges", "maths"],
    },
    {"realname": "unused", "username": "ben", "bio": "b", "persona": "p", "mbti": "INTP", "name": "Ben", "user_id": 1},
]
TWITTER = """user_id,name,username,following_agentid_list,user_char,description
0,Ada,ada_l,"[1, 2]",Ada counts bridges.,Counts.
1,Ben,ben,[],Ben fishes.,Fishes.
2,Cem,cem,[0],Cem cooks.,Cooks.
"""
OSCAR: dict[str, Any] = {
    "type": "TinyPerson",
    "persona": {
        "name": "Oscar",
        "age": 30,
        "gender": "Male",
        "nationality": "German",
        "residence": "Berlin",
        "education": "Technical University. " * 10,
        "occupation": {"title": "Architect", "organization": "Awesome Inc.", "description": "Designs houses."},
        "personality": {"traits": ["Calm."], "big_five": {"openness": "High."}},
        "preferences": {"interests": ["Houses", "Beer"], "likes": ["Clean lines."]},
        "skills": ["Drawing", "Excel"],
        "relationships": [{"Name": "Ann", "Description": "his sister"}, {"name": "Bo", "description": "boss"}],
        "height_cm": 180,
    },
    "mental_state": {"goals": ["sleep"], "emotions": "calm"},
    "episodic_memory": [],
    "favourite": {"colour": "blue"},
}
SHY = {
    "type": "Fragment",
    "persona": {
        "preferences": {"interests": ["Beer", "Silence"]},
        "skills": ["Hiding"],
        "age": 31,
        "other_facts": ["X"],
    },
}


def agent(folder: Path, stem: str, **changes: Any) -> Path:
    spec = {**OSCAR, "persona": {**OSCAR["persona"], **changes}}
    return write_file(folder, f"{stem}.agent.json", json.dumps(spec))


def test_reddit_profiles_are_people_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = write_file(tmp_path, "reddit_profiles.json", json.dumps(REDDIT))
    found = people(path)
    ada = found[0]
    assert (ada.name, ada.username, ada.bio, ada.persona) == ("Ada", "ada_l", "Counts.", "Ada counts bridges.")
    assert ada.interests == ("bridges", "maths")
    assert ada.traits["mbti"] == "ISTJ"
    assert (ada.traits["karma"], ada.traits["user_id"], found[1].traits["user_id"]) == (1000, 7, 1)
    assert found[1].traits["realname"] == "unused"
    assert "numbered by their place in the file" in notes(path)[0]


def test_twitter_profiles_are_people_who_follow_one_another(tmp_path: Path) -> None:
    path = write_file(tmp_path, "twitter_profiles.csv", TWITTER)
    made = validate({"population": [{"count": 2}, {"file": str(path)}]})
    found = sample(made)
    assert (found[2].persona, found[2].bio, found[2].username) == ("Ada counts bridges.", "Counts.", "ada_l")
    graph = draw_follow_graph(made, found)
    assert [graph.targets[graph.starts[n] : graph.starts[n + 1]].tolist() for n in range(5)] == [
        [],
        [],
        [3, 4],
        [],
        [2],
    ]
    assert notes(path) == ()


@pytest.mark.parametrize(
    ("name", "content", "format", "column"),
    [("p.csv", "name\nA\n", "oasis-twitter", "username"), ("p.json", '[{"username": "a"}]', "oasis-reddit", "bio")],
)
def test_other_tables_are_not_taken_for_profiles(
    tmp_path: Path, name: str, content: str, format: str, column: str
) -> None:
    path = write_file(tmp_path, name, content)
    assert find_problems(path, format=format) == [f"{name}: no column '{column}', which every {format} profile has"]


# TinyTroupe


def test_a_specification_becomes_a_person(tmp_path: Path) -> None:
    [oscar] = [people(agent(tmp_path, "Oscar"))[0]]
    assert oscar.name == "Oscar"
    assert oscar.interests == ("Houses", "Beer")
    assert oscar.traits == {
        "age": 30,
        "gender": "male",
        "country": "Berlin",
        "profession": "Architect",
        "nationality": "German",
        "height_cm": 180,
        "big_five": {"openness": "High."},
        "relationships": [["Ann", "his sister"], ["Bo", "boss"]],
        "favourite": {"colour": "blue"},
    }


def test_the_persona_says_everything_that_the_specification_says(tmp_path: Path) -> None:
    text = people(agent(tmp_path, "Oscar"))[0].persona

    def leaves(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [leaf for below in value.values() for leaf in leaves(below)]
        return [leaf for item in value for leaf in leaves(item)] if isinstance(value, list) else [str(value).strip()]

    assert [leaf for leaf in leaves(OSCAR["persona"]) if leaf not in text] == []
    assert "big_five" not in text
    assert "  Big five:\n    Openness: High." in text


def test_relationships_come_in_as_the_person_states_them(tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()
    stated = [
        {"name": "Bo", "relation": "Father", "details": "Gives advice."},
        {"names": ["Cy", "Di"], "role": "Friends"},
        "a cat",
    ]
    agent(folder, "A", name="Ann", relationships=stated)
    agent(folder, "B", name="Bo", relationships=[])
    made = validate({"population": [{"file": str(folder)}], "worlds": ["room"]})
    found = sample(made)
    assert found[0].traits["relationships"] == [
        ["Bo", "Father: Gives advice."],
        ["names: Cy, Di; role: Friends", "Friends"],
        ["a cat", None],
    ]
    ann, bo = build(Versioned(made)).worlds["room"].observe(1, [0, 1])
    assert isinstance(ann, RoomObservation)
    assert isinstance(bo, RoomObservation)
    assert [(one.agent, one.relation) for one in ann.relations] == [("Bo", "Father: Gives advice.")]
    assert bo.relations == ()


def test_a_folder_of_specifications_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        agent(tmp_path, name, name=name.upper())
    write_file(tmp_path, "shy.agent.fragment.json", json.dumps(SHY))
    assert list(people(tmp_path).names) == ["A", "B", "C"]
    assert list(people(tmp_path, limit=2).names) == ["A", "B"]


def test_a_list_of_specifications_is_recognised(tmp_path: Path) -> None:
    path = write_file(tmp_path, "all.json", json.dumps([OSCAR, {"persona": {"name": "Lisa"}}]))
    assert list(people(path).names) == ["Oscar", "Lisa"]


def test_fragments_are_merged_into_every_person(tmp_path: Path) -> None:
    fragment = write_file(tmp_path, "shy.agent.fragment.json", json.dumps(SHY))
    agent(tmp_path, "a", name="A")
    agent(tmp_path, "b", name="B")
    found = people(tmp_path, fragments=[str(fragment)])
    for n in range(2):
        assert found[n].interests == ("Houses", "Beer", "Silence")
        assert found[n].traits["age"] == 31
        assert "  - Hiding" in found[n].persona


def test_merging_changes_neither_side() -> None:
    base, more = {"a": {"b": [1]}, "c": 1}, {"a": {"b": [1, 2], "d": 3}, "c": [4]}
    assert merge_fragments(base, more) == {"a": {"b": [1, 2], "d": 3}, "c": [4]}
    assert (base, more) == ({"a": {"b": [1]}, "c": 1}, {"a": {"b": [1, 2], "d": 3}, "c": [4]})


def test_json_that_is_not_a_specification_is_refused(tmp_path: Path) -> None:
    write_file(tmp_path, "a.agent.json", '{"name": "A"}')
    write_file(tmp_path, "b.agent.json", json.dumps(SHY))
    assert find_problems(tmp_path) == [
        "a.agent.json: expected an object with a `persona`, found a mapping",
        "b.agent.json: a fragment; name it under `fragments`",
    ]


def test_a_specification_that_says_little_is_enough(tmp_path: Path) -> None:
    path = write_file(tmp_path, "x.agent.json", '{"persona": {"occupation": "Cook", "stance": "upright"}}')
    [somebody] = [people(path)[0]]
    assert somebody.traits == {"profession": "Cook", "stance": "upright"}
    assert "Occupation: Cook" in somebody.persona


def test_a_wrong_value_of_a_specification_is_answered(tmp_path: Path) -> None:
    agent(tmp_path, "a", age="old")
    [problem] = find_problems(tmp_path)
    assert problem.endswith("person 1: column 'age': expected a whole number, found 'old'")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"name": ["Oscar"]}, "column 'name': expected text, found a list"),
        ({"preferences": {"interests": [{"a": 1}]}}, "column 'interests': expected text, found a mapping"),
    ],
)
def test_a_value_of_another_type_is_reported(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    assert find_problems(agent(tmp_path, "a", **changes)) == [f"a.agent.json: person 1: {problem}"]


def test_the_same_content_is_parsed_once(tmp_path: Path) -> None:
    first, second = (scenario(agent(tmp_path, name)).population[0] for name in ("one", "two"))
    assert first.roster is second.roster  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("stated", "gender"),
    [
        ("Male", "male"),
        ("Cisgender woman (identifies with female assigned at birth)", "female"),
        ("Female (assigned at birth)", "female"),
        ("Non-binary (assigned male at birth)", "other"),
        ("Two-spirit", "other"),
        ("unknown", None),
    ],
)
def test_the_gender_of_a_specification_may_be_said_in_words(tmp_path: Path, stated: str, gender: str | None) -> None:
    person = people(agent(tmp_path, "Oscar", gender=stated))[0]
    assert person.traits.get("gender") == gender
    assert stated in person.persona
