"""The commands for writing scenarios: init, validate."""

from __future__ import annotations

from pathlib import Path

import click

from shoal.cli.errors import complain
from shoal.cli.options import PATH, describe_scenario, scenario_argument, set_option
from shoal.cli.views.output import echo
from shoal.errors import RunRefused, StorageFailed
from shoal.scenario import (
    check_classes,
    describe_shortened_personas,
    import_mirofish,
    is_mirofish,
    load,
    override,
    read_starter,
)
from shoal.text import quote_path


@click.command("init")
@click.argument("file", type=PATH, default=Path("scenario.yaml"))
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def init_(file: Path, force: bool) -> None:
    """Write a commented scenario to start from.

    \b
    Examples:
      shoal init
      shoal init studies/bridge.yaml
    """
    write_scenario(file, read_starter(), force)
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
def validate_(scenario: Path, sets: tuple[str, ...]) -> None:
    """Check a scenario and report every mistake.

    \b
    Examples:
      shoal validate scenario.yaml
      shoal validate scenario.yaml --set rounds=100
    """
    checked = override(load(scenario), sets)
    check_classes(checked)
    for note in import_mirofish(scenario).notes if is_mirofish(scenario) else ():
        complain(f"note: {note}")
    for note in describe_shortened_personas(checked):
        complain(f"note: {note}")
    echo(f"ok: {describe_scenario(checked)}")
