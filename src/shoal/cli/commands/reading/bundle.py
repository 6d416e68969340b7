"""The command bundle: a run or an experiment as files that anybody can open."""

from __future__ import annotations

from pathlib import Path

import click

from shoal.cli.errors import complain
from shoal.cli.options import PATH, json_option
from shoal.cli.views.output import echo, echo_json
from shoal.server.api import bundle_folder
from shoal.text import format_count


@click.command("bundle")
@click.argument("source", metavar="RUN|EXPERIMENT", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--out", type=PATH, metavar="FOLDER", help="Where to write it; default: NAME-bundle.")
@json_option
def bundle_(source: Path, out: Path | None, as_json: bool) -> None:
    """Write a run or an experiment as a folder of static files, which any browser opens without Shoal.

    It has the pages of the run: timeline, feeds, conversations, people, network, prompts and replies; of an experiment
    also its report, and the runs. Open index.html, put the folder on any web server, or send it to somebody.

    \b
    Examples:
      shoal bundle runs/rumour-1
      shoal bundle runs/rumour-1 --out shared/rumour
      shoal bundle results/answers
    """
    note = bundle_folder(source, out or Path(f"{source.resolve().name}-bundle"))
    if as_json:
        echo_json(note)
        return
    for what in note.left_out:
        complain(f"left out: {what}")
    megabytes = note.bytes / 1e6
    echo(f"{note.folder / 'index.html'}: {format_count(note.runs, 'run')}, {megabytes:.1f} MB")
