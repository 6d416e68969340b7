"""The commands for writing scenarios: init, validate."""

from __future__ import annotations

from pathlib import Path

import click

from shoal.cli.errors import complain
from shoal.cli.options import PATH, describe_scenario, json_option, read_scenario, scenario_argument, set_option
from shoal.cli.views.output import echo, echo_json
from shoal.errors import RunRefused, ScenarioInvalid, StorageFailed
from shoal.scenario import (
    check_classes,
    describe_notes,
    import_mirofish,
    is_mirofish,
    override,
    read_starter,
)
from shoal.text import quote_path


@click.command("init")
@click.argument("file", type=PATH, default=Path("scenario.yaml"))
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@json_option
def init_(file: Path, force: bool, as_json: bool) -> None:
    """Write a commented scenario to start from.

    \b
    Examples:
      shoal init
      shoal init studies/bridge.yaml
    """
    write_scenario(file, read_starter(), force)
    if as_json:
        echo_json({"written": str(file)})
    else:
        echo(f"wrote {file}; run it with: shoal run {quote_path(file)}")


def write_scenario(file: Path, text: str, force: bool, option: str = "") -> None:
    """Write a new file, or with `force` also over one that is there. `option` is how the user names another."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w" if force else "x", encoding="utf-8") as written:
            written.write(text)
    except FileExistsError:
        raise RunRefused(f"{file} is there already; choose another name{option}, or --force to write over it") from None
    except OSError as error:
        raise StorageFailed(f"cannot write {file}: {error.strerror}") from error


@click.command("validate")
@scenario_argument
@set_option
@json_option
def validate_(scenario: Path, sets: tuple[str, ...], as_json: bool) -> None:
    """Check a scenario and report every mistake.

    \b
    Examples:
      shoal validate scenario.yaml
      shoal validate scenario.yaml --set rounds=100
      shoal validate scenario.yaml --json | jq -r .problems[]
    """
    try:
        checked = override(read_scenario(scenario), sets)
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
    echo(f"ok: {describe_scenario(checked)}")
