"""The command that shows how many at once, and who waits for what: limits."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import click
import msgspec
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from shoal.cli.report import Output
from shoal.slots.glance import look_at, resize_at
from shoal.slots.place import Place
from shoal.slots.remembered import Entry, Remembered, forget
from shoal.slots.snapshot import BackoffView, PoolView, Snapshot

#: The pool of `--parallel N`.
AGENTS = "agents"
EVERY_SECONDS = 1.0
BACKOFFS_SHOWN = 8
#: More than so many questions that wait to be asked again, for each one that is being asked, are a storm.
STORM = 3
_MODES = {
    "rising": "looking for the limit",
    "holding": "at the limit",
    "doubting": "refused below the limit",
    "fallen": "the limit came down",
    "outage": "nobody answers",
}


@click.command("limits")
@click.option("--once", is_flag=True, help="Print once, also on a terminal, where it is live otherwise.")
@click.option("--parallel", type=click.IntRange(min=1), metavar="N", help="From now on, N agents act at once at most.")
@click.option("--forget", "pool", metavar="NAME", help="Forget what was learned about this model; `all`: everything.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def limits_(once: bool, parallel: int | None, pool: str | None, as_json: bool) -> None:
    """Show what providers allow, who holds how many calls, and who waits for what until when.

    Runs share their limits: calls in flight, requests and tokens per minute of each model on each server, learned while
    they run and remembered between runs. On a terminal this is live; Ctrl-C ends it.

    --parallel changes how many agents act at once over all runs that were started with --parallel, while they run.

    \b
    Examples:
      shoal limits
      shoal limits --once
      shoal limits --parallel 12
      shoal limits --forget 'gpt-4.1-mini at api.openai.com'
      shoal limits --json | jq '.now.pools[] | {name, held, waiting}'
    """
    place = Place.of_user(os.environ)
    if pool is not None:
        _forget(place, pool)
    elif parallel is not None:
        _resize(place, parallel)
    elif as_json:
        click.echo(msgspec.json.encode({"now": look_at(place), "remembered": _remembered(place)}))
    else:
        _show(place, live=not once and Output().is_terminal)


def _forget(place: Place, pool: str) -> None:
    if look_at(place) is not None:
        raise click.UsageError(
            "runs are using it now; what they learn would be written down again. Wait until they end."
        )
    gone = forget(place.memory, None if pool == "all" else pool)
    if not gone:
        known = ", ".join(map(repr, _remembered(place))) or "nothing"
        raise click.BadParameter(f"nothing was learned about {pool!r}; known is {known}", param_hint="--forget")
    click.echo(f"forgot {', '.join(gone)}")


def _resize(place: Place, size: int) -> None:
    if resize_at(place, AGENTS, size) is None:
        raise click.UsageError("no run is using slots now; start runs with `shoal run --parallel N`")
    click.echo(f"{size} agents act at once at most, from now on")


def _show(place: Place, *, live: bool) -> None:
    output = Output()
    if not live:
        output.print(_view(look_at(place), _remembered(place)))
        return
    with Live(console=output, auto_refresh=False, transient=True) as screen:
        try:
            while True:
                screen.update(_view(look_at(place), _remembered(place)), refresh=True)
                time.sleep(EVERY_SECONDS)
        except KeyboardInterrupt:
            pass
    output.print(_view(look_at(place), _remembered(place)))


def _remembered(place: Place) -> dict[str, Entry]:
    return Remembered(place.memory, time.time()).entries


# in words


def _view(seen: Snapshot | None, remembered: dict[str, Entry]) -> RenderableType:
    now = [_nobody()] if seen is None or not seen.pools else list(_now(seen))
    asleep = {name: entry for name, entry in remembered.items() if seen is None or name not in _names(seen)}
    return Group(*now, *_earlier(asleep))


def _names(seen: Snapshot) -> set[str]:
    return {pool.name for pool in seen.pools}


def _nobody() -> Text:
    return Text("No run is asking models now.\n")


def _now(seen: Snapshot) -> Iterator[RenderableType]:
    for pool in seen.pools:
        yield Text.assemble((pool.name, "bold"), "  ", (_mode(pool), "dim"))
        yield _figures(pool)
        yield _holders(pool)
    yield from _backoffs(seen)


def _mode(pool: PoolView) -> str:
    if pool.control["kind"] == "fixed":
        return "a fixed number"
    return _MODES.get(pool.control["mode"], "")


def _figures(pool: PoolView) -> Text:
    control = pool.control
    parts = [f"{pool.held} of {control['size']} in flight", f"{pool.waiting:,} waiting"]
    parts += [
        f"{rate:,.0f} {what} a minute" for what in ("requests", "tokens") if (rate := control.get(f"{what}_per_minute"))
    ]
    if seconds := control.get("answer_seconds"):
        parts.append(f"answers take {seconds:.2g} s")
    if ends := control.get("ends"):
        parts.append(_ends(ends))
    if paused := control.get("paused_seconds"):
        parts.append(f"paused for {paused:.1f} s")
    return Text("  " + " · ".join(parts))


def _ends(ends: dict[str, int]) -> str:
    refused = sum(ends.get(kind, 0) for kind in ("concurrency", "requests", "tokens", "limited"))
    failed = ends.get("failed", 0) + ends.get("overload", 0)
    return f"{ends.get('ok', 0):,} answered, {refused:,} refused, {failed:,} failed"


def _holders(pool: PoolView) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for holder in pool.holders:
        waits = f"{holder.waiting:,} waiting, since {holder.oldest_wait_seconds:.1f} s" if holder.waiting else ""
        share = "" if holder.weight == 1 else f"weight {holder.weight:g}"
        table.add_row(
            "   ", holder.name, Text(f"process {holder.pid}", "dim"), f"{holder.held:,} in flight", waits, share
        )
    return table


def _backoffs(seen: Snapshot) -> Iterator[RenderableType]:
    if not seen.backoffs_total:
        return
    held = sum(pool.held for pool in seen.pools)
    is_storm = seen.backoffs_total > STORM * max(held, 1)
    yield Text(f"\n{seen.backoffs_total:,} failed and wait to be asked again", "bold red" if is_storm else "bold")
    table = Table.grid(padding=(0, 2, 0, 0))
    for each in seen.backoffs[:BACKOFFS_SHOWN]:
        table.add_row("   ", *_backoff(each))
    if seen.backoffs_total > BACKOFFS_SHOWN:
        table.add_row("   ", f"and {seen.backoffs_total - BACKOFFS_SHOWN:,} more")
    yield table


def _backoff(each: BackoffView) -> tuple[str, ...]:
    return each.holder, each.label, each.kind, f"attempt {each.attempt} failed", f"again in {each.seconds_left:.1f} s"


def _earlier(remembered: dict[str, Entry]) -> Iterator[RenderableType]:
    if not remembered:
        return
    yield Text("\nRemembered from earlier runs", "bold")
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, entry in sorted(remembered.items()):
        table.add_row("  ", name, _learned(entry.learned), Text(_age(time.time() - entry.at), "dim"))
    yield table


def _learned(learned: Any) -> str:
    known = "at most" if learned.get("is_wall") else "at least"
    parts = [f"{known} {learned.get('in_flight')} in flight"]
    parts += [
        f"{learned[what]['per_minute']:,.0f} {what} a minute" for what in ("requests", "tokens") if learned.get(what)
    ]
    return ", ".join(parts)


def _age(seconds: float) -> str:
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now"
