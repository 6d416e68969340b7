"""The command `prepare`, which makes a scenario from a requirement in plain words and documents."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import msgspec

from shoal.cli import errors
from shoal.cli.options import PATH, count_option, json_option, resource_options
from shoal.cli.views.output import echo, echo_json
from shoal.cli.views.preparation import show_preparation
from shoal.errors import BudgetReached, ProviderRefused, ProviderUnavailable
from shoal.event_loop import run_async
from shoal.preparation import (
    PreparationFolder,
    PreparationRequest,
    Prepared,
    check_tables,
    prepare,
    read_documents,
    read_tables,
)
from shoal.runs import RunResources
from shoal.text import format_count, quote_path


@click.command("prepare")
@click.argument("requirement", default="")
@click.argument("documents", nargs=-1, type=PATH)
@click.option("--out", type=PATH, metavar="DIR", help="Folder of the scenario; default: named after the requirement.")
@count_option("--people", help="How many people in all; default 100.")
@count_option("--rounds", help="How many rounds; default 24, or what the model suggests.")
@click.option("--worlds", metavar="NAMES", help="Where people meet: twitter, reddit, room; separated by commas.")
@click.option("--topic", metavar="TEXT", help="What people talk about; default: chosen from the requirement.")
@click.option("--model", metavar="NAME", help="Let a language model read, such as openai/gpt-4.1-mini.")
@click.option("--base-url", metavar="URL", help="Address of the model's server, where it is not the usual one.")
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="The seed of everything that is drawn at random.")
@click.option(
    "--marginals",
    multiple=True,
    type=PATH,
    metavar="TABLE",
    help="Draw people to fit this demographic table; repeatable.",
)
@count_option("--entities", help="Entities of the documents that become people, at most; default 60.")
@resource_options
@json_option
def prepare_(
    requirement: str,
    documents: tuple[Path, ...],
    out: Path | None,
    resources: RunResources,
    as_json: bool,
    **settings: Any,
) -> None:
    """Make a scenario from a requirement in plain words, and from documents.

    DOCUMENTS are text, Markdown or PDF. People, organisations and groups in them become people of the scenario,
    grounded in what the text says; further people are drawn around them. Without --model this works offline, for
    English texts. The same command goes on with work that was interrupted, and pays for nothing twice.

    \b
    Examples:
      shoal prepare "How will the town react to the closing of the old bridge?" story.md report.pdf
      shoal prepare "Our speaker listens all the time. What will people say?" --people 500 --out launch
      shoal prepare "A vote on the stadium" --marginals census.csv --people 10000
      shoal prepare "The merger" memo.pdf --model openai/gpt-4.1-mini --max-cost 1
    """
    # Path.is_file raises where a text is too long to be a name.
    if requirement and not documents and os.path.isfile(requirement):  # noqa: PTH113
        requirement, documents = "", (Path(requirement),)
    folder = _begin(requirement, documents, out, settings)
    resources = replace(resources, name=f"prepare {folder.path.name}")
    try:
        with show_preparation(quiet=as_json) as watch:
            prepared = run_async(prepare(folder, resources, watch))
    except (ProviderRefused, ProviderUnavailable, BudgetReached) as error:
        mapped = errors.map_error(error)
        again = f"Everything that was paid for is kept. Go on with: shoal prepare --out {quote_path(folder.path)}"
        raise type(mapped)(f"{str(error).partition(chr(10))[0]}\n{again}") from error
    if as_json:
        echo_json({**msgspec.to_builtins(prepared, enc_hook=str), "spent": folder.read_state().spent})
    else:
        _print_prepared(prepared)


def _begin(
    requirement: str, documents: tuple[Path, ...], out: Path | None, settings: dict[str, Any]
) -> PreparationFolder:
    """Freeze what is asked for in its folder, or take up what is frozen there already."""
    if not requirement and not documents and out is not None and PreparationFolder(out).is_begun:
        return PreparationFolder(out)
    worlds, tables = settings.pop("worlds"), settings.pop("marginals")
    request = PreparationRequest.of(
        requirement,
        read_documents(documents),
        worlds=tuple(name.strip() for name in worlds.split(",")) if worlds else None,
        tables=read_tables(tables),
        max_entities=settings.pop("entities"),
        **settings,
    )
    check_tables(request)
    folder = PreparationFolder(out or Path(request.name))
    folder.begin(request)
    return folder


def _print_prepared(prepared: Prepared) -> None:
    echo(f"topic: {prepared.topic}")
    drawn = prepared.people - prepared.profiles
    echo(f"{format_count(prepared.profiles, 'person', 'people')} from the texts, {drawn:,} drawn around them")
    for note in prepared.notes:
        errors.complain(f"note: {note}")
    echo(f"wrote {prepared.scenario}; run it with: shoal run {quote_path(prepared.scenario)}")
