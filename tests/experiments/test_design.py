"""Experiments as declared: what is wrong is said with its place before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.errors import ScenarioInvalid
from shoal.experiments import load_experiment
from tests.experiments.harness import write_study

BASE = "name: town\npopulation: [{count: 8}]\nrounds: 3\nseed: 4\nworlds: [twitter]\n"


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("{tier: []}", "unknown field 'tier'; did you mean 'tiers'?"),
        ("{tiers: [{name: a}]}", "no arms in it"),
        ("{tiers: [{name: a, arms: {x: {}}, contrl: x}]}", "unknown field 'contrl'; did you mean 'control'?"),
        ("{tiers: [{name: a, arms: {x: {}}, control: y}]}", "unknown arm 'y'"),
        ("{tiers: [{name: a, arms: {x: {rouns: 3}}}]}", "did you mean 'rounds'?"),
        ("{tiers: [{name: a, arms: {x: {}}, inherits: {tier: b, highest: activity}}]}", "unknown earlier tier 'b'"),
        ("{tiers: [{name: a, sweep: {topic: [a b, a-b]}}]}", "two arms of it have the same name; name them under arms"),
        ("{tiers: [{name: a, arms: {x: {}, X: {}}}]}", "two arms of it have the same name"),
        ("{seeds: 0, tiers: [{name: a, arms: {x: {}}}]}", "experiment.seeds: must be at least 1, found 0"),
        ("{tiers: [{name: a b, arms: {x: {}}}]}", "expected letters, digits, dots, hyphens and underscores"),
        ("{judges: {j: reach(leed) < 1}, tiers: [{name: a, arms: {x: {}}}]}", "judges.j: unknown claim 'leed'"),
        ("{seeds: [1, 2, 1], tiers: [{name: a, arms: {x: {}}}]}", "experiment.seeds: the seed 1 is there twice"),
        ("{tiers: [{name: a, arms: {x: {seed: 3}}}]}", "an arm changes the seed"),
        ("{budget: {max_cots: 3}, tiers: [{name: a, arms: {x: {}}}]}", "'max_cots'; did you mean 'max_cost'?"),
        ("{stop: {metric: reach}, tiers: [{name: a, arms: {x: {}}}]}", "nothing to stop for"),
        ("{stop: {metrc: reach, narrower: 1}, tiers: [{name: a, arms: {x: {}}}]}", "did you mean 'metric'?"),
        ("{stop: [{narrower: 0.1}], tiers: [{name: a, arms: {x: {}}}]}", "expected one of metric and judge"),
        ("{stop: {metric: activty, narrower: 0.1}, tiers: [{name: a, arms: {x: {}}}]}", "did you mean 'activity'?"),
        ("{stop: {judge: fare, narrower: 1}, judges: {far: reach > 1}, tiers: [{name: a, arms: {x: {}}}]}", "'far'?"),
        (
            "{tiers: [{name: a, arms: {x: {}}}, {name: b, inherits: {tier: a, lowest: activty}, arms: {y: {}}}]}",
            "experiment.tiers.1.inherits.lowest: unknown metric 'activty'; did you mean 'activity'?",
        ),
        (
            "{tiers: [{name: a, arms: {x: {}}}, {name: b, inherits: {tier: a, highest: pass_rate}, arms: {y: {}}}]}",
            "nothing judges runs, so there is no pass_rate: add judges",
        ),
        ("{tiers: [{name: a/b, arms: {x: {}}}]}", "experiment.tiers.0.name"),
    ],
)
def test_a_wrong_experiment_is_refused_with_its_place(tmp_path: Path, section: str, problem: str) -> None:
    path = write_study(tmp_path, f"{BASE}experiment: {section}\n")
    with pytest.raises(ScenarioInvalid) as caught:
        load_experiment(path)
    assert all(each.startswith(f"{path}:6:") for each in caught.value.problems)
    assert problem in str(caught.value)


def test_a_place_is_a_line_and_a_column(tmp_path: Path) -> None:
    text = BASE + "experiment:\n  tiers:\n    - name: a\n      arms:\n        x: {}\n        y: {rounds: many}\n"
    path = write_study(tmp_path, text)
    with pytest.raises(ScenarioInvalid) as caught:
        load_experiment(path)
    assert caught.value.problems == [
        f"{path}:11:12: tier a, arm y, rounds: rounds: expected a whole number, found 'many'"
    ]


def test_arms_are_checked_on_top_of_what_they_may_inherit(tmp_path: Path) -> None:
    text = BASE + (
        "experiment:\n  tiers:\n"
        "    - {name: a, arms: {one: {}, two: {population: [{name: Ada}]}}}\n"
        "    - {name: b, inherits: {tier: a, highest: activity}, arms: {x: {population.0.count: 3}}}\n"
    )
    path = write_study(tmp_path, text)
    with pytest.raises(ScenarioInvalid, match=r"tier b, arm x, population\.0\.count") as caught:
        load_experiment(path)
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].startswith(f"{path}:9:")


def test_a_scenario_without_an_experiment_says_what_to_add(tmp_path: Path) -> None:
    with pytest.raises(ScenarioInvalid, match="no section 'experiment' in it; add one such as"):
        load_experiment(write_study(tmp_path, BASE))


def test_grids_sweeps_and_named_arms_stand_side_by_side(tmp_path: Path) -> None:
    text = BASE + (
        "experiment:\n  seeds: [7, 3]\n  tiers:\n    - name: a\n      seeds: 2\n"
        "      arms: {quiet: {events: []}}\n"
        "      grid: {rounds: [2, 3], topic: [the bridge]}\n"
        "      sweep: {population.0.count: [9]}\n"
    )
    experiment = load_experiment(write_study(tmp_path, text))
    (tier,) = experiment.tiers
    assert experiment.arms["a"] == {
        "quiet": {"events": []},
        "rounds-2_topic-the-bridge": {"rounds": 2, "topic": "the bridge"},
        "rounds-3_topic-the-bridge": {"rounds": 3, "topic": "the bridge"},
        "base": {},
        "count-9": {"population.0.count": 9},
    }
    assert (experiment.seeds, experiment.list_seeds(tier), experiment.runs) == ((7, 3), (4, 5), 10)


def test_an_experiment_of_plain_values_needs_no_file() -> None:
    value = {"population": [{"count": 3}], "experiment": {"seeds": 1, "tiers": [{"name": "a", "arms": {"x": {}}}]}}
    assert load_experiment(value).runs == 1
    with pytest.raises(ScenarioInvalid, match="missing field 'tiers'"):
        load_experiment({**value, "experiment": {}})


def test_the_scenario_may_be_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(BASE)
    path = write_study(tmp_path, "experiment: {base: base.yaml, tiers: [{name: a, arms: {x: {}}}]}\n")
    experiment = load_experiment(path)
    assert (experiment.name, experiment.file) == ("town", tmp_path / "base.yaml")
