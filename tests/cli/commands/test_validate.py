"""What is wrong with a scenario."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.terminal import call, last_object


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


def test_validate_checks_the_experiment_in_a_scenario_too(folder: Path) -> None:
    text = (folder / "small.yaml").read_text()
    study = "experiment: {seeds: 3, tiers: [{name: size, sweep: {population.0.count: [3, %s]}}]}"
    (folder / "study.yaml").write_text(f"{text}\n{study % 9}\n")
    assert call("validate", "study.yaml").stdout.endswith("; an experiment of 9 simulations\n")
    (folder / "study.yaml").write_text(f"{text}\n{study % 'many'}\n")
    result = call("validate", "study.yaml", "--json")
    assert result.exit_code == 2
    assert "expected a whole number, found 'many'" in last_object(result.stdout)["problems"][0]


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
