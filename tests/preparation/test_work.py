"""Preparing in a folder, offline: what is written, that it is an ordinary scenario, and that nothing is overwritten."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from shoal.errors import ArgumentInvalid, RunLocked, RunMissing, RunRefused, ScenarioInvalid
from shoal.preparation import (
    PreparationFolder,
    PreparationRequest,
    PreparationState,
    PreparationStatus,
    Prepared,
    parse_document,
    prepare,
)
from shoal.runs import RunResources
from shoal.runs.operations import create_run
from shoal.scenario import count_people, load, sample
from tests.preparation.texts import ASKED_TOWN, TOWN, make_pdf
from tests.runs.harness import go_on

STORY = parse_document("story.md", TOWN.encode())


def begin(path: Path, requirement: str = ASKED_TOWN, **settings: Any) -> PreparationFolder:
    folder = PreparationFolder(path)
    folder.begin(PreparationRequest.of(requirement, settings.pop("documents", [STORY]), **settings))
    return folder


def work(folder: PreparationFolder) -> Prepared:
    return asyncio.run(prepare(folder, RunResources()))


def test_the_result_is_an_ordinary_scenario_that_runs(tmp_path: Path) -> None:
    prepared = work(begin(tmp_path / "town", people=60, rounds=3, worlds=("twitter", "reddit"), seed=7))
    assert prepared.topic == "the closure of the old bridge"
    assert (prepared.people, prepared.profiles) == (60, 14)
    scenario = load(prepared.scenario)
    assert (count_people(scenario.population), scenario.rounds, scenario.seed) == (60, 3, 7)
    assert list(scenario.worlds) == ["twitter", "reddit"]
    people = sample(scenario)
    assert "Tom Brennan" in list(people.names)
    assert "bakery" in people[list(people.names).index("Tom Brennan")].persona
    assert go_on(create_run(scenario, tmp_path / "run")).status == "completed"


def test_every_person_can_be_edited_and_has_the_sentences_it_rests_on(tmp_path: Path) -> None:
    folder = begin(tmp_path / "town")
    work(folder)
    people = json.loads((folder.path / "people.json").read_text())
    evidence = {one["name"]: one for one in json.loads((folder.path / "evidence.json").read_text())["entities"]}
    assert set(evidence) == {person["name"] for person in people}
    told = evidence["Tom Brennan"]["sentences"][0]
    assert told["document"] == "story.md"
    assert told["text"] in TOWN.replace("\n", " ")
    people[0]["stance"], people[0]["persona"] = 0.11, "Somebody else."
    (folder.path / "people.json").write_text(json.dumps(people))
    changed = sample(load(folder.scenario))
    assert changed[0].persona == "Somebody else."


def test_the_scenario_has_comments(tmp_path: Path) -> None:
    folder = begin(tmp_path / "town")
    work(folder)
    text = folder.scenario.read_text()
    assert (
        "# What people talk about; opinions are for (1) or against (-1) it.\ntopic: the closure of the old bridge"
        in text
    )
    assert [*yaml.safe_load(text)][:3] == ["name", "topic", "seed"]


def test_preparing_again_changes_nothing(tmp_path: Path) -> None:
    folder = begin(tmp_path / "town")
    first = work(folder)
    folder.scenario.write_text(folder.scenario.read_text().replace("rounds: 24", "rounds: 5"))
    begin(tmp_path / "town")
    again = work(folder)
    assert load(again.scenario).rounds == 5
    assert first.people == again.people


def test_another_request_for_the_same_folder_is_refused_with_the_difference(tmp_path: Path) -> None:
    work(begin(tmp_path / "town"))
    with pytest.raises(RunRefused, match="people: '100' there, '50' now"):
        begin(tmp_path / "town", people=50)
    with pytest.raises(RunRefused, match="other documents"):
        begin(tmp_path / "town", documents=[])


def test_files_of_the_user_are_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text("mine")
    with pytest.raises(RunRefused, match=r"scenario\.yaml is there already; choose another folder with --out"):
        begin(tmp_path)
    assert (tmp_path / "scenario.yaml").read_text() == "mine"
    folder = begin(tmp_path / "town")
    (folder.path / "people.json").write_text("[]")
    with pytest.raises(RunRefused, match=r"people\.json is there already and is not what would be written"):
        work(folder)
    assert (folder.path / "people.json").read_text() == "[]"
    assert folder.read_state().status is PreparationStatus.FAILED


def test_work_that_was_interrupted_between_two_files_goes_on(tmp_path: Path) -> None:
    whole = begin(tmp_path / "whole")
    work(whole)
    folder = begin(tmp_path / "town")
    for name in ("people.json", "evidence.json"):
        (folder.path / name).write_bytes((whole.path / name).read_bytes())
    assert work(folder).profiles == 14
    assert folder.scenario.read_text() == whole.scenario.read_text()


def test_two_processes_never_work_on_one_folder(tmp_path: Path) -> None:
    folder = begin(tmp_path / "town")
    with folder.lock(), pytest.raises(RunLocked, match="another process prepares"):
        work(folder)


def test_progress_goes_through_all_stages_and_never_back(tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []

    def watch(state: PreparationState) -> None:
        seen.append((state.stage, state.progress))

    folder = begin(tmp_path / "town")
    asyncio.run(prepare(folder, RunResources(), watch))
    assert list(dict.fromkeys(stage for stage, _ in seen)) == [
        "reading",
        "generating_profiles",
        "generating_config",
        "copying_scripts",
    ]
    assert [progress for _, progress in seen] == sorted(progress for _, progress in seen)
    assert seen[-1][1] == folder.read_state().progress == 100


def test_people_are_drawn_from_demographic_tables(tmp_path: Path) -> None:
    table = "age,gender,count\n18-34,female,3\n18-34,male,2\n35-64,female,4\n35-64,male,1\n"
    prepared = work(begin(tmp_path / "town", tables=(("census.csv", table),), people=1_014))
    people = sample(load(prepared.scenario))
    drawn = people.ages[14:]
    assert ((drawn >= 18) & (drawn <= 34)).mean() == pytest.approx(0.5, abs=0.001)
    with pytest.raises(ScenarioInvalid, match="census"):
        work(begin(tmp_path / "other", tables=(("census.csv", "age,count\nyoung,3\n"),)))


def test_documents_of_every_kind_are_read_together(tmp_path: Path) -> None:
    pdf = parse_document("report.pdf", make_pdf([["Mayor Helen Marsh praised the closure of the old bridge."]]))
    empty = parse_document("empty.txt", b"")
    prepared = work(begin(tmp_path / "town", documents=[pdf, empty]))
    assert "empty.txt: nothing in it" in prepared.notes
    evidence = json.loads((tmp_path / "town" / "evidence.json").read_text())
    assert evidence["entities"][0]["sentences"][0]["place"] == "page 1"


def test_a_requirement_alone_is_enough(tmp_path: Path) -> None:
    prepared = work(begin(tmp_path / "x", "The city bans cars from its centre.", documents=[], people=30))
    assert prepared.people == 30
    assert count_people(load(prepared.scenario).population) == 30


def test_a_population_of_one_is_the_one_who_is_named_most(tmp_path: Path) -> None:
    prepared = work(begin(tmp_path / "town", people=1))
    assert (prepared.people, prepared.profiles) == (1, 1)
    assert "13 more are named and have no account of their own" in prepared.notes[0]


def test_wrong_requests_are_answered_with_the_argument() -> None:
    for settings, argument in (
        ({"people": 0}, "people"),
        ({"rounds": -1}, "rounds"),
        ({"worlds": ("mars",)}, "worlds"),
        ({"worlds": ()}, "worlds"),
    ):
        with pytest.raises(ArgumentInvalid) as caught:
            PreparationRequest.of("Something", **settings)
        assert caught.value.argument == argument
    with pytest.raises(ArgumentInvalid, match="say in plain words"):
        PreparationRequest.of(" ")
    with pytest.raises(ArgumentInvalid, match="the rest in documents"):
        PreparationRequest.of("x" * 20_001)


def test_a_folder_without_a_preparation_says_so(tmp_path: Path) -> None:
    with pytest.raises(RunMissing, match="there is no preparation in"):
        PreparationFolder(tmp_path).read_request()
