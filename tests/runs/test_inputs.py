"""Files that a scenario speaks of belong to the run: nothing that happens to them later changes it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import RunRefused, ScenarioInvalid
from shoal.runs.directory import CONFIG, JOURNAL, RunDirectory
from shoal.runs.operations import create_run, extend_run
from shoal.scenario.loading import override, validate
from shoal.scenario.sampling.sampler import sample
from tests.runs.harness import branch, go_on, repeat, start

PEOPLE = "name,stance\n" + "".join(f"P{n},{(n % 5 - 2) / 2}\n" for n in range(12))
EDGES = "".join(f"{n},{(n * 5 + 1) % 12}\n" for n in range(12))


@pytest.fixture
def scenario(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "edges.csv").write_text(EDGES)
    return {
        "topic": "tea",
        "rounds": 4,
        "population": [{"count": 3}, {"file": str(tmp_path / "people.csv")}],
        "follows": {"file": str(tmp_path / "edges.csv")},
        "time": {"daily_rhythm": False},
    }


def list_stored(run: Path) -> list[str]:
    config = json.loads((run / CONFIG).read_text())["scenario"]
    return [config["population"][1]["file"], config["follows"]["file"]]


def spoil(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name\nnobody\n")
    (tmp_path / "edges.csv").unlink()


def test_a_run_keeps_copies_and_speaks_of_them_from_its_own_directory(scenario: dict[str, Any], tmp_path: Path) -> None:
    start(scenario, tmp_path / "run")
    names = list_stored(tmp_path / "run")
    assert all(name.startswith("inputs/") for name in names)
    assert [(tmp_path / "run" / name).read_text() for name in names] == [PEOPLE, EDGES]
    assert sorted(file.name for file in (tmp_path / "run" / "inputs").iterdir()) == sorted(
        name.removeprefix("inputs/") for name in names
    )


def test_a_run_is_the_same_after_its_files_have_changed_and_it_has_moved(
    scenario: dict[str, Any], tmp_path: Path
) -> None:
    digest = start(scenario, tmp_path / "run").digest
    spoil(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "run").rename(tmp_path / "elsewhere" / "run")
    assert repeat(RunDirectory(moved)).digest == digest


def test_a_run_that_was_only_made_begins_with_what_its_files_held(scenario: dict[str, Any], tmp_path: Path) -> None:
    digest = start(scenario, tmp_path / "whole").digest
    directory = create_run(validate(scenario), tmp_path / "made")
    spoil(tmp_path)
    assert go_on(directory).digest == digest


def test_a_fork_has_copies_of_its_own(scenario: dict[str, Any], tmp_path: Path) -> None:
    digest = start(scenario, tmp_path / "run").digest
    spoil(tmp_path)
    forked = branch(tmp_path / "run", tmp_path / "fork", 2)
    assert forked.digest == digest
    assert list_stored(tmp_path / "fork") == list_stored(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    assert repeat(RunDirectory(tmp_path / "fork")).digest == digest


def test_a_fork_from_the_start_may_have_other_people(scenario: dict[str, Any], tmp_path: Path) -> None:
    start(scenario, tmp_path / "run")
    (tmp_path / "more.csv").write_text(PEOPLE + "Somebody else,1\n")
    branch(tmp_path / "run", tmp_path / "fork", 0, [f"population.1.file={tmp_path / 'more.csv'}"])
    people, edges = list_stored(tmp_path / "fork")
    assert people.endswith("-more.csv")
    assert edges == list_stored(tmp_path / "run")[1]


def test_a_run_that_goes_on_still_speaks_of_its_own_files(scenario: dict[str, Any], tmp_path: Path) -> None:
    start(scenario, tmp_path / "run")
    directory = RunDirectory(tmp_path / "run")
    extend_run(directory, override(directory.scenario_versions.first, ["rounds=6"]))
    digest = go_on(directory).digest
    moved = RunDirectory((tmp_path / "run").rename(tmp_path / "moved"))
    assert repeat(moved).digest == digest


def test_folders_and_fragments_are_kept_too(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    for name in ("Ada", "Ben"):
        (tmp_path / "agents" / f"{name}.agent.json").write_text(json.dumps({"persona": {"name": name}}))
    (tmp_path / "notes.txt").write_text("not a person")
    (tmp_path / "shy.json").write_text('{"type": "Fragment", "persona": {"age": 5}}')
    entry = {"file": str(tmp_path / "agents"), "fragments": [str(tmp_path / "shy.json")]}
    directory = create_run(validate({"population": [entry], "rounds": 1}), tmp_path / "run")
    shutil.rmtree(tmp_path / "agents")
    (tmp_path / "shy.json").unlink()
    [file] = directory.scenario_versions.first.population
    assert file.roster.column("name") == ["Ada", "Ben"]  # type: ignore[union-attr]
    assert file.roster.column("age") == [5, 5]  # type: ignore[union-attr]


def test_two_files_of_the_same_name_do_not_get_into_each_others_way(tmp_path: Path) -> None:
    entries = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "people.csv").write_text(f"name\n{name}\n")
        entries.append({"file": str(tmp_path / name / "people.csv")})
    directory = create_run(validate({"population": entries, "rounds": 1}), tmp_path / "run")
    assert [file.roster.column("name") for file in directory.scenario_versions.first.population] == [["a"], ["b"]]  # type: ignore[union-attr]


# a process that is killed while it makes the directory


def make_half(tmp_path: Path, scenario: dict[str, Any]) -> Path:
    """What is there if the process is killed before the config is in place."""
    create_run(validate(scenario), tmp_path / "run")
    (tmp_path / "run" / CONFIG).unlink()
    return tmp_path / "run"


def test_a_half_made_directory_can_be_used_again(scenario: dict[str, Any], tmp_path: Path) -> None:
    run = make_half(tmp_path, scenario)
    first = run / find_copy(run, "people.csv")
    first.rename(first.with_name(f".{first.name}.{os.getpid() + 1}"))
    digest = start(scenario, run).digest
    assert digest == start(scenario, tmp_path / "other").digest


def find_copy(run: Path, name: str) -> Path:
    [path] = (run / "inputs").glob(f"*-{name}")
    return path


def test_a_folder_of_somebody_else_is_left_alone(scenario: dict[str, Any], tmp_path: Path) -> None:
    run = make_half(tmp_path, scenario)
    (run / "inputs" / "thesis.csv").write_text("years of work")
    with pytest.raises(RunRefused, match="is not empty"):
        create_run(validate(scenario), run)
    assert (run / "inputs" / "thesis.csv").read_text() == "years of work"
    assert (run / JOURNAL).exists()


def test_a_run_without_files_has_no_folder_for_them(tmp_path: Path) -> None:
    create_run(validate({"population": {"count": 2}}), tmp_path / "run")
    assert not (tmp_path / "run" / "inputs").exists()


def test_a_file_that_is_gone_by_the_time_a_run_is_made_is_an_error_in_words(
    scenario: dict[str, Any], tmp_path: Path
) -> None:
    made = validate(scenario)
    (tmp_path / "people.csv").unlink()
    with pytest.raises(ScenarioInvalid, match=r"people\.csv: no such file"):
        create_run(made, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_tables_that_people_are_grown_from_are_copied_into_the_run(tmp_path: Path) -> None:
    table = tmp_path / "age.csv"
    table.write_text("age,region,count\n18-34,north,1\n35-64,south,3\n")
    scenario = validate({"population": {"marginals": str(table), "count": 20}, "rounds": 1})
    run = create_run(scenario, tmp_path / "run")
    before = sample(run.scenario).ages.tolist()
    table.unlink()
    again = RunDirectory.open(tmp_path / "run").scenario
    assert sample(again).ages.tolist() == before
