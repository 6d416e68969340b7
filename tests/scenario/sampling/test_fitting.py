"""Populations grown from demographic tables: how well they fit, and tables that nothing fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shoal.errors import ScenarioInvalid
from shoal.scenario.loading import validate
from shoal.scenario.prompts import describe_notes
from shoal.scenario.sampling.sampler import measure_group_fit, sample
from shoal.scenario.scenario import Scenario

#: Age by gender, gender by region, region by education, age by education: no table has all four.
_LOOP = {
    "age,gender": "18-34,female,14\n18-34,male,16\n35-64,female,25\n35-64,male,24\n65+,female,12\n65+,male,9",
    "gender,region": "female,north,21\nfemale,south,30\nmale,north,22\nmale,south,27",
    "region,education": "north,school,20\nnorth,college,23\nsouth,school,38\nsouth,college,19",
    "age,education": "18-34,school,14\n18-34,college,16\n35-64,school,28\n35-64,college,21\n"
    "65+,school,16\n65+,college,5",
}


def write_tables(folder: Path, tables: dict[str, str], measure: str = "count") -> list[str]:
    paths = []
    for number, (header, rows) in enumerate(tables.items()):
        path = folder / f"table{number}.csv"
        path.write_text(f"{header},{measure}\n{rows}\n")
        paths.append(str(path))
    return paths


def grow(folder: Path, tables: dict[str, str], count: int, **fields: Any) -> Scenario:
    entry = {"marginals": write_tables(folder, tables), "count": count, **fields}
    return validate({"topic": "the old bridge", "population": entry})


def test_10000_people_fit_joined_tables_within_a_hundredth_of_a_point_each(tmp_path: Path) -> None:
    scenario = grow(tmp_path, _LOOP, 10_000)
    people = sample(scenario)
    fits = measure_group_fit(scenario, 0)
    assert len(fits) == 4
    assert max(fit.largest for fit in fits) < 0.05
    # The figures are those of the people who are there, and not of a plan for them.
    females = people.genders == 0
    assert (females & (people.ages >= 65)).mean() == pytest.approx(0.12, abs=0.0005)
    school = np.array([region == "north" for region in people.traits["region"]])
    assert (school & females).mean() == pytest.approx(0.21, abs=0.0005)


def test_many_attributes_that_no_table_joins_are_independent(tmp_path: Path) -> None:
    tables = {f"trait{n}": "\n".join(f"v{k},{k + n + 1}" for k in range(12)) for n in range(12)}
    scenario = grow(tmp_path, tables, 5_000)
    assert max(fit.largest for fit in measure_group_fit(scenario, 0)) <= 0.02
    people = sample(scenario)
    first = np.array([value == "v11" for value in people.traits["trait0"]])
    other = np.array([value == "v11" for value in people.traits["trait1"]])
    assert (first & other).mean() == pytest.approx(first.mean() * other.mean(), abs=0.01)


def test_what_no_table_says_is_drawn_as_for_any_group(tmp_path: Path) -> None:
    tables = {"age": "70-79,1", "stance": "supportive,1\n-0.2,1", "profession": "nurse,1"}
    scenario = grow(tmp_path, tables, 400, group="elders", gender="female", persona="{name}, {age}, a {profession}.")
    people = sample(scenario)
    assert set(people.genders.tolist()) == {0}
    assert people.ages.min() == 70
    assert people.ages.max() == 79
    assert sorted({round(float(stance), 1) for stance in people.stances}) == [-0.2, 0.7]
    assert people[3].persona == f"{people[3].name}, {people.ages[3]}, a nurse."
    assert people.groups[3] == "elders"


def test_the_same_seed_grows_the_same_people_and_another_seed_others(tmp_path: Path) -> None:
    scenario = grow(tmp_path, _LOOP, 300)
    again = validate(scenario.model_dump(mode="json"))
    other = validate({**scenario.model_dump(mode="json"), "seed": 2})
    assert [sample(scenario)[n] for n in range(300)] == [sample(again)[n] for n in range(300)]
    assert sample(scenario).ages.tolist() != sample(other).ages.tolist()
    assert sorted(sample(scenario).genders.tolist()) == sorted(sample(other).genders.tolist())


def test_combinations_that_a_table_has_not_are_never_grown(tmp_path: Path) -> None:
    tables = {"age,job": "0-17,pupil,20\n18-64,worker,60\n65+,retired,20", "job,region": _jobs_by_region()}
    people = sample(grow(tmp_path, tables, 997))
    jobs = list(people.professions)
    assert all((age < 18) == (job == "pupil") for age, job in zip(people.ages.tolist(), jobs, strict=True))


def _jobs_by_region() -> str:
    return "\n".join(
        f"{job},{region},{n}" for job, n in (("pupil", 5), ("worker", 15), ("retired", 5)) for region in "abcd"
    )


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        (
            {"gender": "female,51\nmale,49", "gender,region": "female,north,60\nmale,north,40"},
            "the tables contradict each other about gender",
        ),
        (
            {"age": "18-34,50\n35+,50", "age,region": "18-64,north,50\n65+,north,50"},
            "has no age '18-34', which another table has; use the same values",
        ),
        (
            {"a,b": "x,x,50\ny,y,50", "b,c": "x,x,50\ny,y,50", "a,c": "x,y,50\ny,x,50"},
            "no population fits all tables at once",
        ),
        ({f"a,t{n}": "\n".join(f"x,v{k},1" for k in range(40)) for n in range(4)}, "combinations; at most 2,000,000"),
    ],
)
def test_tables_that_nothing_fits_are_refused_with_the_place(
    tmp_path: Path, tables: dict[str, str], problem: str
) -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        grow(tmp_path, tables, 100)
    assert problem in str(caught.value)
    assert "population.marginals" in str(caught.value)


def test_what_is_in_a_table_cannot_be_declared_as_well(tmp_path: Path) -> None:
    with pytest.raises(ScenarioInvalid, match=r"population\.age: age is in the tables already; leave it out here"):
        grow(tmp_path, _LOOP, 100, age=40)
    with pytest.raises(ScenarioInvalid, match="region is in the tables already"):
        grow(tmp_path, _LOOP, 100, traits={"region": ["a", "b"]})


def test_validating_says_how_well_people_fit(tmp_path: Path) -> None:
    notes = describe_notes(grow(tmp_path, _LOOP, 50))
    assert any(note.startswith("50 people fit 4 tables within ") for note in notes)
