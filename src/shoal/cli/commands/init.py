"""The command init: a scenario to start from."""

from __future__ import annotations

from pathlib import Path

import click

from shoal.cli.options import PATH, json_option
from shoal.cli.views.output import echo, echo_json
from shoal.errors import RunRefused, StorageFailed
from shoal.scenario import read_starter
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
