"""The commands about a run that another process works on: watch it, and stop it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from shoal.agents import write_transcript
from shoal.cli.commands.live.addresses import is_address, open_client, open_directory, run_or_address_argument
from shoal.cli.errors import complain
from shoal.cli.options import json_option
from shoal.cli.views.output import echo
from shoal.event_loop import run_async
from shoal.runs import RunDirectory, format_state
from shoal.runs.launchers import stop_run
from shoal.runs.reports import format_line
from shoal.types import Event, Notice

_LOOK_SECONDS = 0.1
_NOTICES = frozenset(Notice.__struct_fields__)


@click.command("watch")
@run_or_address_argument
@click.option("--since", type=click.IntRange(min=0), metavar="ROUND", help="Begin with this round; default: with now.")
@json_option
def watch_(run: str, since: int | None, as_json: bool) -> None:
    """Follow a run that another process works on, and print what happens.

    RUN is a directory, or an address such as http://127.0.0.1:5001/sim_0123456789ab with the token in SHOAL_TOKEN. The
    command ends when the run has ended or stopped; Ctrl-C ends the command, never the run.

    \b
    Examples:
      shoal watch runs/rumour-1
      shoal watch runs/rumour-1 --since 0 --json | jq -r .action_type
      shoal watch http://127.0.0.1:5001/sim_0123456789ab
    """
    shown = ""
    for kind, data in _follow_address(run, since) if is_address(run) else _follow_directory(open_directory(run), since):
        if kind == "state":
            status = f"{data['runner_status']}, round {data['current_round']} of {data['total_rounds']}"
            if data["error"] and not as_json:
                status += f": {data['error']}"
            if status != shown and not as_json:
                complain(status)
            shown = status
        elif as_json:
            echo(msgspec.json.encode(data).decode())
        elif (line := _parse(kind, data)) is not None:
            for text in write_transcript([line]):
                echo(f"{data.get('platform') or data.get('world')}: {text}")


def _parse(kind: str, data: dict[str, Any]) -> Event | Notice | None:
    """Turn an event of a stream into the line that it was; None for the marks of rounds."""
    if kind == "action":
        return msgspec.convert({**data, "round": data["round_num"]}, Event)
    return msgspec.convert(data, Notice) if data.keys() >= _NOTICES else None


def _follow_address(address: str, since: int | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of a run that a server offers: from now on, or from a round."""
    client, identity = open_client(address)
    with client:
        begin = client.status(identity).current_round + 1 if since is None else since
        for event in client.events(identity, since=begin):
            yield event.kind, event.data


def _follow_directory(run: RunDirectory, since: int | None) -> Iterator[tuple[str, dict[str, Any]]]:
    rounds = run.read_last_rounds()
    streams = {
        world: run.open_stream(world, rounds[world] + 1 if since is None and rounds[world] else since or 0)
        for world in run.worlds
    }
    while True:
        # Read first: the next look shows what is written after it.
        state = run.observe_state()
        for world, stream in streams.items():
            for text in stream.read_texts():
                kind = "action" if text.startswith(b'{"round":') else "marker"
                yield kind, msgspec.json.decode(format_line(text.rstrip(), world))
        yield "state", format_state(state)
        if not state.runner_status.is_live:
            return
        time.sleep(_LOOK_SECONDS)


@click.command("stop")
@run_or_address_argument
def stop_(run: str) -> None:
    """Stop a run that another process works on; `shoal resume` continues it.

    RUN is a directory, or an address as for `shoal watch`. The worker finishes what is under way and leaves; after ten
    seconds it is ended, with every process that it started.

    \b
    Examples:
      shoal stop runs/rumour-1
      shoal stop http://127.0.0.1:5001/sim_0123456789ab
    """
    if is_address(run):
        client, identity = open_client(run)
        with client:
            status = client.stop(identity)
        echo(f"{run}: {status.runner_status} at round {status.current_round} of {status.total_rounds}")
    else:
        directory = open_directory(run)
        outcome = run_async(stop_run(directory))
        echo(f"{run}: {outcome.status} at round {outcome.rounds} of {directory.scenario.rounds}")
