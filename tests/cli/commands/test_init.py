"""Writing scenarios."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.terminal import SMALL, call


def test_what_init_writes_is_valid(folder: Path) -> None:
    result = call("init")
    assert result.exit_code == 0
    assert "shoal run scenario.yaml" in result.stdout
    assert call("validate", "scenario.yaml").exit_code == 0


def test_init_makes_the_folder_it_is_given(folder: Path) -> None:
    assert call("init", "studies/bridge.yaml").exit_code == 0
    assert (folder / "studies" / "bridge.yaml").exists()


def test_init_does_not_write_over_a_file(folder: Path) -> None:
    result = call("init", "small.yaml")
    assert result.exit_code == 3
    assert "--force" in result.stderr
    assert (folder / "small.yaml").read_text() == SMALL


def test_init_writes_over_a_file_with_force(folder: Path) -> None:
    assert call("init", "small.yaml", "--force").exit_code == 0
    assert (folder / "small.yaml").read_text() != SMALL


def test_validate_says_what_a_scenario_is(folder: Path) -> None:
    result = call("validate", "small.yaml", "--set", "population.count=1000", "--set", "time.minutes_per_round=1")
    assert result.stdout == "ok: 1,000 people, 2 worlds (twitter, reddit), 5 rounds of 1 minute\n"


def test_validate_and_plan_say_of_whom_a_limit_cuts_something(folder: Path) -> None:
    mind = "mind: {kind: language, model: openai/gpt-4.1-mini, prompt: {persona_tokens: 40}}"
    person = f"{{name: Ada, persona: {'so it is ' * 90}}}"
    (folder / "cut.yaml").write_text(f"population: [{person}, {{name: Bo}}]\nrounds: 1\nworlds: [room]\n{mind}\n")
    said = "of Ada, 40 of 209 tokens are told to the model"
    assert f"note: {said}" in call("validate", "cut.yaml").stderr
    assert said in call("plan", "cut.yaml").stdout


def test_validate_says_everything_that_is_wrong(folder: Path) -> None:
    result = call("validate", "small.yaml", "--set", "rounds=0", "--set", "worlds=[twiter]")
    assert result.exit_code == 2
    assert "--set rounds=0" in result.stderr
    assert "did you mean 'twitter'?" in result.stderr


def test_a_file_that_is_not_there_is_answered_with_the_nearest(folder: Path) -> None:
    result = call("validate", "smal.yaml")
    assert result.exit_code == 2
    assert "small.yaml" in result.stderr


def test_the_scenario_in_the_readme_is_valid(folder: Path) -> None:
    readme = Path(__file__).parents[3] / "README.md"
    [text] = re.findall(r"```yaml\n(.*?)```", readme.read_text(), re.DOTALL)
    (folder / "readme.yaml").write_text(text)
    assert call("validate", "readme.yaml").stdout.startswith("ok: 101 people")
