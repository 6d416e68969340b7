"""What a shell proposes after Tab, beside commands and options: runs, and the people in them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from shoal.errors import ShoalError
from shoal.runs import RUNS, RunDirectory, list_runs
from shoal.scenario import sample

#: The variable in which a shell says that it wants proposals, and in which form.
_SHELL = "_SHOAL_COMPLETE"
_UNQUOTED = re.compile(r"([^\w./@%+=:-])")
_MAX_PEOPLE = 200


def complete_runs(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Propose the runs in ./runs and those beside what was typed; elsewhere, files."""
    folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    found = [str(run.path) for each in dict.fromkeys((RUNS, folder)) for run in list_runs(each)]
    runs = [path for path in dict.fromkeys(found) if path.startswith(incomplete)]
    return [CompletionItem(_quote(path)) for path in runs] or [CompletionItem(incomplete, type="file")]


def complete_people(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Propose the people of the run that was named before; after a comma, the next one."""
    # Before the value of an option is complete, arguments are not assigned yet.
    run = context.params.get("run") or next(map(Path, context.args), None)
    if run is None:
        return []
    before, comma, start = incomplete.rpartition(",")
    try:
        names = sample(RunDirectory.open(run).scenario).names
    except ShoalError:
        return []
    wanted = start.lstrip().casefold()
    found = (
        name for name in names if any(part.startswith(wanted) for part in (name.casefold(), *name.casefold().split()))
    )
    return [
        CompletionItem(_quote(f"{before}{comma}{name}")) for name, _ in zip(found, range(_MAX_PEOPLE), strict=False)
    ]


def _quote(text: str) -> str:
    """Quote for bash, which inserts a proposal as it is. Other shells quote by themselves."""
    return _UNQUOTED.sub(r"\\\1", text) if os.environ.get(_SHELL, "").startswith("bash") else text
