"""Runs that commands name by a directory, or by the address at which a server offers them."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

import click

from shoal.runs import RunDirectory
from shoal.server import Client

run_or_address_argument = click.argument("run", metavar="RUN")


def is_address(run: str) -> bool:
    return run.startswith(("http://", "https://"))


def open_client(address: str) -> tuple[Client, str]:
    """Return a client of the server at `http://HOST:PORT/ID`, and the id."""
    parts = urlsplit(address)
    identity = parts.path.strip("/").rpartition("/")[2]
    if not identity:
        raise click.BadParameter(f"{address} names no run; it looks like http://127.0.0.1:5001/sim_0123456789ab")
    return Client(f"{parts.scheme}://{parts.netloc}", os.environ.get("SHOAL_TOKEN") or None), identity


def open_directory(run: str) -> RunDirectory:
    return RunDirectory.open(Path(run))
