"""Bringing what one has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.terminal import call
from tests.scenario.importers import mirofish_directory as directory

PEOPLE = "full_name,age,hobbies,pay\nAda,36,tea;rain,10\nBen,,,\nAda,41,rain,20\n"


@pytest.fixture
def people(folder: Path) -> Path:
    path = folder / "people.csv"
    path.write_text(PEOPLE)
    return path


def test_import_shows_what_was_understood_and_writes_a_scenario_that_runs(people: Path) -> None:
    result = call("import", "people.csv")
    assert result.exit_code == 0
    assert result.stdout.startswith("CSV of people: 3 people\n")
    table = [line.split() for line in result.stdout.splitlines()[2:7]]
    assert table == [
        ["field", "found", "use", "becomes"],
        ["full_name", "3", "used", "name"],
        ["age", "2", "used", "age"],
        ["hobbies", "2", "used", "interests"],
        ["pay", "2", "kept", "trait,", "for", "example", "10"],
    ]
    assert "note: names that somebody else has already: 1; they became 'Ada 2'" in result.stdout
    assert result.stdout.endswith("wrote scenario.yaml; run it with: shoal run scenario.yaml\n")
    assert call("validate", "scenario.yaml").stdout.startswith("ok: 3 people")
    assert call("run", "scenario.yaml", "--rounds", "2", "--quiet").exit_code == 0


def test_paths_in_the_scenario_are_relative_to_its_folder(people: Path, folder: Path) -> None:
    assert call("import", "people.csv", "--out", "studies/tea.yaml").exit_code == 0
    assert "file: ../people.csv" in (folder / "studies" / "tea.yaml").read_text()
    assert call("validate", "studies/tea.yaml").exit_code == 0


def test_import_replaces_a_scenario_only_with_force(people: Path, folder: Path) -> None:
    (folder / "scenario.yaml").write_text("mine")
    refused = call("import", "people.csv")
    assert refused.exit_code == 3
    assert "--force" in refused.stderr
    assert (folder / "scenario.yaml").read_text() == "mine"
    assert call("import", "people.csv", "--force").exit_code == 0
    assert "people.csv" in (folder / "scenario.yaml").read_text()


def test_a_dry_run_writes_nothing(people: Path, folder: Path) -> None:
    result = call("import", "people.csv", "--dry-run")
    assert "wrote" not in result.stdout
    assert not (folder / "scenario.yaml").exists()


def test_columns_can_be_mapped(people: Path, folder: Path) -> None:
    assert call("import", "people.csv", "--map", "profession=hobbies", "--map", "name=full_name").exit_code == 0
    assert "profession: hobbies" in (folder / "scenario.yaml").read_text()


def test_a_column_is_kept_out_of_its_field_from_the_command_line(people: Path, folder: Path) -> None:
    assert "trait, for example" in call("import", "people.csv", "--map", "interests=").stdout
    assert "interests: null" in (folder / "scenario.yaml").read_text()


@pytest.mark.parametrize(
    ("map", "problem"),
    [
        ("profession", "expected FIELD=COLUMN"),
        ("nmae=full_name", "did you mean 'name'?"),
        ("name=fullname", "did you mean 'full_name'?"),
    ],
)
def test_a_wrong_mapping_is_answered_and_nothing_written(people: Path, folder: Path, map: str, problem: str) -> None:
    result = call("import", "people.csv", "--map", map)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert not (folder / "scenario.yaml").exists()


def test_a_follow_graph_is_imported(people: Path, folder: Path) -> None:
    (folder / "edges.csv").write_text("from,to,since\nAda,Ben,1\nAda,Ben,2\n")
    result = call("import", "people.csv", "--follows", "edges.csv")
    assert "who follows whom: 1 edge" in result.stdout
    assert "edges that stand twice: 1, left out (edges.csv:3)" in result.stdout
    assert "since" in result.stdout
    assert "file: edges.csv" in (folder / "scenario.yaml").read_text()


def test_import_answers_in_json_for_scripts(people: Path) -> None:
    answer = json.loads(call("import", "people.csv", "--json").stdout)
    assert (answer["kind"], answer["people"], answer["written"]) == ("CSV of people", 3, "scenario.yaml")
    assert [field["field"] for field in answer["fields"]] == ["full_name", "age", "hobbies", "pay"]
    assert answer["scenario"]["population"][0]["file"].endswith("people.csv")
    assert len(answer["notes"]) == 2


def test_specifications_and_fragments_are_imported(folder: Path) -> None:
    (folder / "agents").mkdir()
    (folder / "agents" / "Ada.agent.json").write_text('{"type": "TinyPerson", "persona": {"name": "Ada"}}')
    (folder / "shy.json").write_text('{"type": "Fragment", "persona": {"style": "Shy."}}')
    result = call("import", "agents", "--fragment", "shy.json")
    assert result.exit_code == 0
    assert "persona.style" in result.stdout
    assert call("validate", "scenario.yaml").stdout.startswith("ok: 1 person")


def test_a_prepared_mirofish_directory_becomes_a_scenario(folder: Path) -> None:
    directory.write_directory(folder / "sim")
    result = call("import", "sim", "--out", "bridge.yaml")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("MiroFish")
    assert call("validate", "bridge.yaml").stdout.startswith(f"ok: {len(directory.PEOPLE)} people")


def test_bad_cells_are_reported_and_nothing_is_written(folder: Path) -> None:
    (folder / "bad.csv").write_text("name,age\nA,x\nB,y\n")
    result = call("import", "bad.csv")
    assert result.exit_code == 2
    assert "bad.csv:3: column 'age': expected a whole number, found 'y'" in result.stderr
    assert not (folder / "scenario.yaml").exists()


def test_a_missing_path_is_answered_with_the_nearest(people: Path) -> None:
    result = call("import", "peple.csv")
    assert result.exit_code == 2
    assert "did you mean 'people.csv'?" in result.stderr


def test_the_report_fits_a_terminal_without_breaking_words(folder: Path) -> None:
    path = "a_rather_long_name_of_a_field.that_stands_in.another_field_with_a_long_name"
    spec = {"persona": {"name": "Ada", path.partition(".")[0]: {"that_stands_in": {path.rpartition(".")[2]: "x"}}}}
    (folder / "ada.agent.json").write_text(json.dumps(spec))
    (folder / "shy.agent.fragment.json").write_text(json.dumps({"type": "Fragment", **spec}))
    lines = call("import", "ada.agent.json", "--fragment", "shy.agent.fragment.json").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "shy.agent.fragment.json" in lines
    first = [line.split("  ")[0].strip() for line in lines]
    assert "".join(first).count(f"persona.{path}") == 2
    assert all(part == "" or part.endswith(("_", ".", "name")) for part in first if part.startswith("persona.a"))


def test_hundreds_of_fields_are_shown_by_the_place_they_stand_in(folder: Path) -> None:
    health = {f"condition_{n}": "none" for n in range(70)}
    spec = {"persona": {"name": "Ada", "health": health, "style": {"tone": "dry", "pace": "slow"}}}
    (folder / "ada.agent.json").write_text(json.dumps(spec))
    shown = call("import", "ada.agent.json", "--dry-run").stdout
    assert "persona.health.* (70 fields)" in shown
    assert "persona.style.tone" in shown
    assert len(shown.splitlines()) < 20
    assert len(json.loads(call("import", "ada.agent.json", "--dry-run", "--json").stdout)["fields"]) > 70


def test_numbers_and_words_of_a_report_are_not_broken(folder: Path) -> None:
    (folder / "long.csv").write_text("name,a_column_with_a_rather_long_name\nAda,5141062738521743400.25\n")
    shown = call("import", "long.csv", "--dry-run").stdout
    assert " 5141062738521743400.25" in shown or " 5.141062738521743e+18" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
