"""The command `serve`, which offers the runs of a folder over HTTP."""

from __future__ import annotations

import os
from pathlib import Path

import click

from shoal.cli.commands.rehearse import parse_duration
from shoal.cli.errors import complain
from shoal.cli.options import PATH
from shoal.cli.views.output import echo
from shoal.experiments import RESULTS_FOLDER
from shoal.runs import RUNS
from shoal.server.api import DEFAULT_PORT, ServerSettings, serve


@click.command("serve")
@click.option("--runs", type=PATH, default=RUNS, show_default=True, metavar="DIR", help="The folder of the runs.")
@click.option(
    "--results", type=PATH, default=RESULTS_FOLDER, show_default=True, metavar="DIR", help="The folder of experiments."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others need a token.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port to listen on; 0: one that is free.",
)
@click.option("--allow-host", multiple=True, metavar="NAME", help="Another name of this server; may be repeated.")
@click.option(
    "--allow-origin", multiple=True, metavar="URL", help="Pages that may call it, as http://localhost:3000; may repeat."
)
@click.option(
    "--model",
    metavar="NAME",
    help="Language model of simulations that MiroFish prepared, and of interviews where a run has none.",
)
@click.option(
    "--key-variable", multiple=True, metavar="NAME", help="Variable that scenarios may name as a key; may be repeated."
)
@click.option(
    "--max-simulations",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    help="Simulations at once, at most.",
)
@click.option(
    "--for", "lasting", type=parse_duration, metavar="TIME", help="End after this time; default: with Ctrl-C."
)
def serve_(  # noqa: PLR0913  # a command has as many options as it has
    runs: Path,
    results: Path,
    host: str,
    port: int,
    model: str | None,
    max_simulations: int,
    lasting: float | None,
    **named: tuple[str, ...],
) -> None:
    """Serve the runs of a folder as pages in a browser, and over HTTP: start, follow, question, fork and compare them.

    Every run works in a separate process, which goes on when the server ends; another server finds it again. The
    routes are those of MiroFish's back end, so that its pages work with this server. /api/openapi.json describes them.

    On any address but the loopback one, a token is needed: set SHOAL_TOKEN. The pages ask for it; other clients send it
    as "Authorization: Bearer ...".

    \b
    Examples:
      shoal serve
      shoal serve --runs uploads/simulations --allow-origin http://localhost:3000
      shoal serve --runs uploads/simulations --model openai/gpt-4.1-mini
      SHOAL_TOKEN=... shoal serve --host 0.0.0.0 --allow-host shoal.example.org
    """
    settings = ServerSettings(
        runs=runs,
        results=results,
        host=host,
        port=port,
        token=os.environ.get("SHOAL_TOKEN") or None,
        hosts=frozenset(name.lower() for name in named["allow_host"]),
        origins=frozenset(origin.rstrip("/") for origin in named["allow_origin"]),
        model=model,
        key_variables=frozenset(named["key_variable"]),
        max_workers=max_simulations,
        environ={name: value for name, value in os.environ.items() if name != "SHOAL_TOKEN"},
    )
    settings.check()

    def announce(url: str) -> None:
        echo(f"serving {runs} at {url}")
        if not (settings.pages / "index.html").is_file():
            complain("its pages were not built: install Shoal without SKIP_FRONTEND to have them")
        complain("Ctrl-C ends the server; runs go on without it")

    serve(settings, announce, lasting)
