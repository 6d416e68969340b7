"""The scenarios that ship with Shoal are valid, short and explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.scenario.declared.population import count_people
from shoal.scenario.loading import load, parse, read_starter
from shoal.scenario.sampling.follow_graph import draw_follow_graph
from shoal.scenario.sampling.sampler import sample

STARTER = read_starter()
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))


def find_working_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]


def test_the_starter_is_valid_and_fits_on_a_screen() -> None:
    scenario = parse(STARTER, "scenario.yaml")
    assert list(scenario.worlds) == ["twitter", "reddit"]
    assert len(find_working_lines(STARTER)) <= 12
    assert all(len(line) <= 120 for line in STARTER.splitlines())


def test_the_starter_explains_itself() -> None:
    assert sum("#" in line for line in STARTER.splitlines()) >= 8


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_load_and_give_people(path: Path) -> None:
    scenario = load(path)
    people = sample(scenario)
    own_names = [name for number, name in enumerate(people.names) if number not in people.assistants]
    assert len(set(own_names)) == len(own_names)
    assert len(people) == count_people(scenario.population)


@pytest.mark.parametrize("name", ["rumour", "debate"])
def test_on_platforms_people_follow_one_another(name: str) -> None:
    scenario = load(next(path for path in EXAMPLES if path.stem == name))
    people = sample(scenario)
    assert draw_follow_graph(scenario, people).edges > len(people) >= 100


def test_the_rumour_is_two_hundred_people_for_a_day() -> None:
    scenario = load(next(path for path in EXAMPLES if path.stem == "rumour"))
    assert (len(sample(scenario)), scenario.rounds, scenario.time.minutes_per_round) == (200, 48, 30)
    assert scenario.time.start.hour == 8


def test_the_debate_has_two_camps_and_a_middle() -> None:
    people = sample(load(next(path for path in EXAMPLES if path.stem == "debate")))
    means = {
        camp: float(people.stances[[label == camp for label in people.groups]].mean())
        for camp in ("for", "middle", "against")
    }
    assert means["for"] > 0.4
    assert abs(means["middle"]) < 0.1
    assert means["against"] < -0.4
