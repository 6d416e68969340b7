"""What becomes of what people bring: recognised, and every field of it accounted for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars
import pytest

from shoal.errors import ScenarioInvalid
from shoal.scenario.importers.detect import ImportOptions, import_path
from shoal.scenario.importers.fields import ImportResult
from shoal.scenario.loading import validate
from shoal.scenario.sampling.follow_graph import draw_follow_graph
from shoal.scenario.sampling.sampler import sample
from tests.scenario.importers.people_files import write_file
from tests.scenario.importers.test_edges import GRAPHML
from tests.scenario.importers.test_profiles import OSCAR, REDDIT, SHY, TWITTER


def fields(found: ImportResult) -> set[str]:
    return {use.field for use in found.fields}


def keys(value: Any, before: str = "") -> Iterator[str]:
    """Every path at which a document holds something, found without the code under test."""
    if isinstance(value, dict) and value:
        for key, below in value.items():
            yield from keys(below, f"{before}.{key}" if before else key)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for item in value:
            yield from keys(item, f"{before}[]")
    else:
        yield before


@pytest.mark.parametrize(
    ("name", "content", "kind", "columns"),
    [
        ("p.csv", "name,age,x\nA,1,\n", "CSV of people", {"name", "age", "x"}),
        ("p.tsv", "name\tx\nA\t1\n", "TSV of people", {"name", "x"}),
        ("p.jsonl", '{"name": "A"}\n{"y": {"z": 1}}\n', "JSONL of people", {"name", "y"}),
        ("p.json", '[{"name": "A", "q": []}]', "JSON list of people", {"name", "q"}),
        ("p.json", '{"v": 1, "all": [{"name": "A"}]}', "JSON list of people", {"name", "v"}),
        ("r.json", json.dumps(REDDIT), "OASIS Reddit profiles", {key for row in REDDIT for key in row}),
        ("t.csv", TWITTER, "OASIS Twitter profiles", set(TWITTER.partition("\n")[0].split(","))),
        ("o.agent.json", json.dumps(OSCAR), "TinyTroupe specification", set(keys(OSCAR))),
        ("o.json", json.dumps([OSCAR, OSCAR]), "TinyTroupe specifications", set(keys(OSCAR))),
    ],
)
def test_no_field_of_a_file_is_dropped_silently(
    tmp_path: Path, name: str, content: str, kind: str, columns: set[str]
) -> None:
    found = import_path(write_file(tmp_path, name, content))
    assert found.kind == kind
    assert fields(found) == columns


def test_no_column_of_parquet_is_dropped_silently(tmp_path: Path) -> None:
    polars.DataFrame({"name": ["A"], "x": [None], "y": [[1]]}).write_parquet(tmp_path / "p.parquet")
    found = import_path(tmp_path / "p.parquet")
    assert found.kind == "Parquet of people"
    assert [(use.field, use.use, use.count) for use in found.fields] == [
        ("name", "used", 1),
        ("x", "unused", 0),
        ("y", "kept", 1),
    ]


def test_the_effect_of_a_field_is_reported(tmp_path: Path) -> None:
    found = import_path(write_file(tmp_path, "p.csv", "who,pay,empty\nA,1,\nB,,\n"), ImportOptions({"name": "who"}))
    assert [(use.field, use.use, use.becomes, use.count) for use in found.fields] == [
        ("who", "used", "name", 2),
        ("pay", "kept", "trait, for example 1", 1),
        ("empty", "unused", "empty in every record", 0),
    ]
    assert found.scenario["population"][0]["columns"] == {"name": "who"}


def test_memories_of_a_specification_are_unused_for_a_reason(tmp_path: Path) -> None:
    found = import_path(write_file(tmp_path, "o.agent.json", json.dumps(OSCAR)))
    uses = {use.field: use for use in found.fields}
    assert uses["mental_state.goals"].use == "unused"
    assert "a run has its own" in uses["mental_state.goals"].becomes
    assert uses["episodic_memory"].use == "unused"
    assert uses["persona.occupation.title"].becomes.startswith("profession")
    assert uses["persona.relationships[].Name"].use == "kept"
    assert uses["favourite.colour"].becomes == "trait 'favourite'"


def test_a_folder_of_specifications_accounts_for_fragments_too(tmp_path: Path) -> None:
    write_file(tmp_path, "a.agent.json", json.dumps(OSCAR))
    write_file(tmp_path, "b.agent.json", json.dumps(OSCAR))
    fragment = write_file(tmp_path, "shy.agent.fragment.json", json.dumps(SHY))
    assert "shy.agent.fragment.json is not used" in import_path(tmp_path).notes[1]
    found = import_path(tmp_path, ImportOptions(fragments=[fragment]))
    assert fields(found) == {*keys(OSCAR), *keys(SHY)}
    assert {use.source for use in found.fields} == {"2 files", "shy.agent.fragment.json"}
    assert not any("not used" in note for note in found.notes)


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("e.csv", "from,to,w\nAda,Ben,1\n", {"from", "to", "w"}),
        ("e.csv", "Ada,Ben,1\n", {"column 1", "column 2", "column 3"}),
        ("e.jsonl", '{"src": "Ada", "dst": "Ben", "since": 1}', {"src", "dst", "since"}),
        ("e.graphml", GRAPHML.format(default="directed", said="").replace('"4"', '"2"'), {"node", "edge", "edge.d1"}),
    ],
)
def test_fields_of_a_follow_graph_are_accounted_for(tmp_path: Path, name: str, content: str, columns: set[str]) -> None:
    people = write_file(tmp_path, "p.csv", "name\nAda\nBen\nCem\n")
    found = import_path(people, ImportOptions(follows=write_file(tmp_path, name, content)))
    assert {use.field for use in found.fields if use.source == name} == columns
    assert any(note.startswith("who follows whom: ") for note in found.notes)
    validate(found.scenario)


def test_numbers_that_people_have_elsewhere_are_pointed_out(tmp_path: Path) -> None:
    people = write_file(tmp_path, "p.csv", "name,user_id\nAda,1\nBen,0\n")
    edges = write_file(tmp_path, "e.csv", "0,1\n")
    assert any("--by user_id" in note for note in import_path(people, ImportOptions(follows=edges)).notes)
    found = import_path(people, ImportOptions(follows=edges, by="user_id"))
    assert found.scenario["follows"]["by"] == "user_id"
    assert not any("--by" in note for note in found.notes)
    assert not any("numbers" in note for note in import_path(people).notes)


def test_the_scenario_is_named_after_the_file(tmp_path: Path) -> None:
    found = import_path(write_file(tmp_path, "my people (2).csv", "name\nA\n"))
    assert found.scenario["name"] == "my-people-2"
    assert len(validate(found.scenario).population) == 1


def test_folders_that_hold_nothing_known_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioInvalid, match=r"neither \*.agent.json nor simulation_config.json"):
        import_path(tmp_path)
    write_file(tmp_path, "twitter_profiles.csv", TWITTER)
    with pytest.raises(ScenarioInvalid, match=r"shoal import .*twitter_profiles.csv"):
        import_path(tmp_path)


def test_a_run_of_ours_is_not_imported(tmp_path: Path) -> None:
    write_file(tmp_path, "simulation_config.json", '{"shoal_version": "1", "format": 1}')
    with pytest.raises(ScenarioInvalid, match="this is a run of Shoal"):
        import_path(tmp_path)


def test_a_mirofish_directory_takes_no_wishes(tmp_path: Path) -> None:
    write_file(tmp_path, "simulation_config.json", '{"simulation_id": "1"}')
    with pytest.raises(ScenarioInvalid, match="read as it is"):
        import_path(tmp_path, ImportOptions({"name": "x"}))


@pytest.mark.parametrize(
    ("name", "content", "world"),
    [
        ("r.json", json.dumps(REDDIT), "reddit"),
        ("t.csv", TWITTER, "twitter"),
        ("in_progress.csv", "user_id,username,name,bio,persona,friend_count\n0,ada,Ada,Counts.,Counts.,3\n", "twitter"),
        ("o.agent.json", json.dumps(OSCAR), "room"),
    ],
)
def test_people_of_other_systems_meet_where_they_met_there(tmp_path: Path, name: str, content: str, world: str) -> None:
    found = import_path(write_file(tmp_path, name, content))
    made = validate(found.scenario)
    assert list(made.worlds) == [world]
    edges = draw_follow_graph(made, sample(made)).edges
    assert edges == (3 if content == TWITTER else 0)
    assert any("nobody follows anybody" in note for note in found.notes) == (not edges and world != "room")


def test_only_what_is_there_is_counted(tmp_path: Path) -> None:
    found = import_path(write_file(tmp_path, "t.csv", TWITTER))
    assert {use.field: use.count for use in found.fields}["following_agentid_list"] == 2
    silent = {**OSCAR, "persona": {**OSCAR["persona"], "skills": [], "education": ""}}
    found = import_path(write_file(tmp_path, "o.json", json.dumps([OSCAR, silent, silent])))
    counts = {use.field: use.count for use in found.fields}
    assert (counts["persona.name"], counts["persona.skills"], counts["persona.education"]) == (3, 1, 1)
    [memory] = [use for use in found.fields if use.field == "episodic_memory"]
    assert (memory.count, memory.use, memory.becomes) == (0, "unused", "empty in every record")


def test_a_file_without_any_field_of_a_person_is_doubted(tmp_path: Path) -> None:
    topics = write_file(tmp_path, "topics.csv", "label,depth\nTrue,4\nFalse,2\n")
    assert any("are these people?" in note for note in import_path(topics).notes)
    people = write_file(tmp_path, "people.csv", "name,depth\nAda,4\n")
    assert not any("are these people?" in note for note in import_path(people).notes)


def test_a_note_says_how_many_texts_the_offline_mind_cannot_read(tmp_path: Path) -> None:
    rows = "".join(f"Person {n},{'关注校园事件' if n < 3 else 'Follows the campus affair'}\n" for n in range(10))
    notes = import_path(write_file(tmp_path, "mixed.csv", f"name,persona\n{rows}")).notes
    assert any(note.startswith("3 of 10 texts are not in English: ") for note in notes)


def test_whom_people_follow_is_found_by_another_number_where_that_is_said(tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    people.write_text('user_id,name,follows\n7,Ada,8\n8,Ben,"7;9"\n9,Cem,\n')
    with pytest.raises(
        ScenarioInvalid, match=r"unknown person 8; if it is a 'user_id', say `follows: \{by: user_id\}`"
    ):
        import_path(people, ImportOptions())
    found = import_path(people, ImportOptions(by="user_id"))
    assert "who follows whom: 3 edges" in found.notes
    scenario = validate(found.scenario)
    graph = draw_follow_graph(scenario, sample(scenario))
    assert (graph.starts.tolist(), graph.targets.tolist()) == ([0, 1, 3, 3], [1, 0, 2])
