"""Simulated answers beside those of people."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.errors import RunRefused
from shoal.experiments.report import compare_with_people, write_report
from shoal.experiments.statistics import bootstrap_mean
from shoal.runs.reports import open_database
from tests.experiments.report.harness import Elements, make_result, make_study, read_json, write_results
from tests.runs.harness import start

SCENARIO = {"name": "town", "population": [{"count": 6}], "rounds": 2, "worlds": ["twitter"], "topic": "pools"}

PEOPLE = "person,region,go,go.retest,anger\n"
PEOPLE += "Ada,north,yes,yes,2\nBen,north,no,yes,8\nCyd,south,yes,yes,6\nDee,south,no,no,4\n"
ANSWERS = (
    "agent,name,iteration,model,go,anger,error\n1,Ada,0,m,yes,5,\n2,Ben,0,m,yes,5,\n3,Cyd,0,m,yes,6,\n4,Dee,0,m,no,5,\n"
)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    people, answers = tmp_path / "people.csv", tmp_path / "answers.csv"
    people.write_text(PEOPLE)
    answers.write_text(ANSWERS)
    return people, answers


def test_agreement_is_divided_by_that_of_people_with_themselves(files: tuple[Path, Path]) -> None:
    found = compare_with_people(files[0], answers=files[1])
    go = next(row for row in found.rows if row.outcome == "go")
    assert not go.is_numeric
    assert go.shares == {"yes": (0.5, 0.75), "no": (0.5, 0.25)}
    assert go.total_variation == pytest.approx(0.25)
    # scipy.spatial.distance.jensenshannon([0.5, 0.5], [0.75, 0.25], base=2)
    assert go.jensen_shannon == pytest.approx(0.2209, abs=1e-4)
    assert go.agreement is not None
    assert (go.agreement.simulated, go.agreement.retest) == (0.75, 0.75)
    assert go.agreement.normalised is not None
    assert go.agreement.normalised.value == 1.0


def test_numbers_have_means_a_variance_ratio_and_a_distance(files: tuple[Path, Path]) -> None:
    found = compare_with_people(files[0], answers=files[1])
    anger = next(row for row in found.rows if row.outcome == "anger")
    assert anger.human_mean is not None
    assert anger.simulated_mean is not None
    assert (anger.human_mean.value, anger.simulated_mean.value) == (5.0, 5.25)
    assert anger.variance_ratio is not None
    assert anger.variance_ratio.value == pytest.approx(0.25 / (20 / 3))
    # scipy.stats.wasserstein_distance([5, 5, 6, 5], [2, 8, 6, 4])
    assert anger.wasserstein == pytest.approx(1.75)
    assert anger.agreement is not None
    # Differences of 3, 3, 0 and 1 in a range of 6.
    assert anger.agreement.simulated == pytest.approx(1 - 7 / 24)


def test_groups_are_compared_by_themselves_through_the_names_of_people(files: tuple[Path, Path]) -> None:
    rows = compare_with_people(files[0], answers=files[1], by=["region"]).rows
    north = next(row for row in rows if (row.outcome, row.group) == ("go", "region = north"))
    assert (north.people, north.simulated, north.shares["yes"]) == (2, 2, (0.5, 1.0))


def test_outcomes_of_runs_stand_beside_those_of_people_in_the_report(tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    people.write_text("village,mean(closing)\nA,0.2\nB,0.5\nC,0.4\n")
    folder = make_study(tmp_path / "study")
    found = compare_with_people(people, folder)
    assert [(row.arm, row.people, row.simulated) for row in found.rows] == [
        ("answer/nothing", 3, 8),
        ("answer/fact-check", 3, 8),
    ]
    written = write_report(folder, found)
    assert "Beside people" in Elements(written.page.read_text()).text
    assert "## Beside people" in written.markdown.read_text()
    assert len(read_json(written.figures)["people"]["rows"]) == 2


def test_people_of_one_run_are_one_observation(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        start({**SCENARIO, "seed": seed}, tmp_path / "study" / "main" / "a" / str(seed))
    write_results(tmp_path / "study", [make_result("main", "a", seed) for seed in (1, 2, 3)])
    people = tmp_path / "people.csv"
    people.write_text("person,opinion(topic)\nAda,0.2\nBen,-0.4\nCyd,0.9\n")
    (row,) = compare_with_people(people, tmp_path / "study").rows
    # Six people in each of three runs: eighteen answers, and an interval as wide as three means leave it.
    assert (row.simulated, row.agreement) == (18, None)
    assert row.simulated_mean is not None
    ends = []
    for seed in (1, 2, 3):
        with open_database(tmp_path / "study" / "main" / "a" / str(seed) / "twitter_simulation.db") as database:
            assert database is not None
            query = "SELECT value FROM figure WHERE name = 'mean' AND about = 'topic' ORDER BY round DESC LIMIT 1"
            ends.append(database.execute(query).fetchone()[0])
    expected = bootstrap_mean(ends)
    found = row.simulated_mean
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))


@pytest.mark.parametrize(
    ("content", "by", "problem"),
    [
        ("person,colour\nAda,red\n", [], "no outcome in common"),
        ("person,go\nAda,yes\n", ["region"], "no column 'region'"),
    ],
)
def test_files_that_do_not_fit_are_refused(files: tuple[Path, Path], content: str, by: list[str], problem: str) -> None:
    files[0].write_text(content)
    with pytest.raises(RunRefused, match=problem):
        compare_with_people(files[0], answers=files[1], by=by)
