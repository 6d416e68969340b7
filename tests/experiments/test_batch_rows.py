"""Rows of a table as changes of a scenario, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ScenarioInvalid
from shoal.experiments.batch_rows import name_batch, read_rows
from shoal.scenario import Scenario, validate

TALK: dict[str, Any] = {
    "name": "talk",
    "topic": "the boat",
    "rounds": 4,
    "population": [{"name": "Ada", "persona": "A sailor."}, {"name": "Ben"}],
    "worlds": {"dialogue": {}},
}


@pytest.fixture
def talk() -> Scenario:
    return validate(TALK)


def write(folder: Path, text: str, name: str = "rows.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_columns_are_paths_of_values_as_for_set(talk: Scenario, tmp_path: Path) -> None:
    rows = read_rows(
        talk,
        write(
            tmp_path,
            "id,seed,population.0.name,population.0.persona,population.1.persona,population.1.interests\n"
            'one,7,Romeo,"Romeo: rash # in love","[sic] {quiet}","[""sailing""]"\n'
            "two,,,,,\n",
        ),
    )
    changed = rows[0].apply_to(talk).model_dump(mode="json")
    romeo, ben = changed["population"]
    assert (changed["seed"], romeo["name"], romeo["persona"]) == (7, "Romeo", "Romeo: rash # in love")
    assert (ben["name"], ben["persona"], list(ben["interests"])) == ("Ben", "[sic] {quiet}", ["sailing"])
    assert [row.id for row in rows] == ["one", "two"]
    assert rows[1].apply_to(talk) == talk


def test_a_number_is_text_where_the_scenario_has_a_text(talk: Scenario, tmp_path: Path) -> None:
    (row,) = read_rows(talk, write(tmp_path, "topic,population.0.name\n42,1984\n"))
    changed = row.apply_to(talk)
    assert (changed.topic, changed.population[0].model_dump()["name"]) == ("42", "1984")


def test_the_same_rows_as_csv_json_lines_and_mappings_are_the_same_simulations(talk: Scenario, tmp_path: Path) -> None:
    table = read_rows(talk, write(tmp_path, "seed,topic\n3,rain\n4,\n"))
    lines = read_rows(talk, write(tmp_path, '{"seed": 3, "topic": "rain"}\n{"seed": 4}\n', "rows.jsonl"))
    given = read_rows(talk, [{"seed": 3, "topic": "rain"}, {"seed": 4}])
    digests = [[(row.id, row.scenario_digest) for row in rows] for rows in (table, lines, given)]
    assert digests[0] == digests[1] == digests[2]
    assert len({digest for _, digest in digests[0]}) == 2


def test_the_same_rows_as_parquet_are_the_same_simulations(talk: Scenario, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    polars.DataFrame({"seed": [3, 4], "topic": ["rain", None]}).write_parquet(tmp_path / "rows.parquet")
    table = read_rows(talk, tmp_path / "rows.parquet")
    given: list[dict[str, Any]] = [{"seed": 3, "topic": "rain"}, {"seed": 4}]
    assert [row.scenario_digest for row in table] == [row.scenario_digest for row in read_rows(talk, given)]


def find_problems(talk: Scenario, source: Any) -> list[str]:
    with pytest.raises(ScenarioInvalid) as error:
        read_rows(talk, source)
    return error.value.problems


def test_every_bad_cell_is_reported_with_file_row_and_column(talk: Scenario, tmp_path: Path) -> None:
    path = write(tmp_path, "id,population.0.stance,rounds,population.0.nmae\na,7,3,x\nb,0.1,many,\n")
    assert find_problems(talk, path) == [
        f"{path}:2: column population.0.nmae: unknown field 'nmae'; did you mean 'name'?",
        f"{path}:2: column population.0.stance: must be at most 1, found 7",
        f"{path}:3: column rounds: expected a whole number, found 'many'",
    ]


def test_ids_name_folders_and_are_unique_in_any_case(talk: Scenario, tmp_path: Path) -> None:
    path = write(tmp_path, "id,seed\na,1\n../b,2\nA,3\n,4\n")
    problems = find_problems(talk, path)
    assert [problem.partition(": id:")[0] for problem in problems] == [f"{path}:{line}" for line in (3, 4, 5)]
    assert problems[1].endswith(f"'A' is the id of {path}:2 already")


def test_a_column_with_values_has_a_name(talk: Scenario, tmp_path: Path) -> None:
    path = write(tmp_path, "id,,seed,\na,7,1,\nb,,2,\n")
    assert find_problems(talk, path) == [f"{path}:1: column 2 has values and no name; name it as for --set"]


def test_a_wrong_column_of_a_long_table_is_not_reported_a_thousand_times(talk: Scenario) -> None:
    problems = find_problems(talk, [{"colour": number} for number in range(1, 1001)])
    assert len(problems) == 21
    assert problems[-1] == "rows: 980 more rows not looked at yet"


@pytest.mark.parametrize(("name", "text"), [("rows.csv", "seed\n"), ("rows.txt", "seed\n1\n"), ("rows.csv", "")])
def test_a_file_without_rows_is_refused(talk: Scenario, tmp_path: Path, name: str, text: str) -> None:
    (problem,) = find_problems(talk, write(tmp_path, text, name))
    assert problem.startswith(str(tmp_path / name))


def test_the_folder_of_a_batch_is_named_after_scenario_and_table(talk: Scenario) -> None:
    assert name_batch(talk, Path("data/my pairs.v2.csv")) == "talk-my-pairs.v2"
    assert name_batch(talk) == "talk-batch"
