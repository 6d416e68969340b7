"""The command validate: what is wrong with a scenario, and with the experiment in it."""

from __future__ import annotations

from pathlib import Path

import click

from shoal.cli.errors import complain
from shoal.cli.options import describe_scenario, json_option, read_scenario, scenario_argument, set_option
from shoal.cli.views.output import echo, echo_json
from shoal.errors import ScenarioInvalid
from shoal.experiments import declares_experiment, load_experiment
from shoal.scenario import check_classes, describe_notes, import_mirofish, is_mirofish, override
from shoal.text import format_count


@click.command("validate")
@scenario_argument
@set_option
@json_option
def validate_(scenario: Path, sets: tuple[str, ...], as_json: bool) -> None:
    """Check a scenario, and the experiment that is declared in it, and report every mistake.

    \b
    Examples:
      shoal validate scenario.yaml
      shoal validate scenario.yaml --set rounds=100
      shoal validate scenario.yaml --json | jq -r .problems[]
    """
    try:
        experiment = load_experiment(scenario) if declares_experiment(scenario) else None
        checked = override(read_scenario(scenario) if experiment is None else experiment.base, sets)
        check_classes(checked)
    except ScenarioInvalid as error:
        if as_json:
            echo_json({"valid": False, "problems": error.problems, "notes": []})
        raise
    notes = [*(import_mirofish(scenario).notes if is_mirofish(scenario) else ()), *describe_notes(checked)]
    if as_json:
        echo_json({"valid": True, "problems": [], "notes": notes})
        return
    for note in notes:
        complain(f"note: {note}")
    runs = "" if experiment is None else f"; an experiment of {format_count(experiment.runs, 'simulation')}"
    echo(f"ok: {describe_scenario(checked)}{runs}")
