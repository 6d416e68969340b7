"""The command limits: shows and changes the limits that runs share."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from shoal.cli.options import count_option, json_option
from shoal.cli.views.output import Output, echo, echo_json
from shoal.event_loop import run_async
from shoal.slots import AGENTS, BrokerLocation, HolderView, PoolView, Snapshot, fetch_snapshot, resize_pool
from shoal.slots.adaptive import Learned, LimitStore, forget_limits
from shoal.text import format_count, nearest

EVERYTHING = "all"
REFRESH_SECONDS = 1.0
BACKOFFS_SHOWN = 8
#: More waiting retries than this for each call in flight are a retry storm.
STORM = 3
#: Fewer calls in flight are counted as this many, so that a few retries are no storm.
FEW = 8
#: Terminals with fewer columns show less.
NARROW_COLUMNS = 72
_MODES = {
    "rising": "looking for the limit",
    "holding": "at the limit",
    "full": "the server is full",
    "outage": "nobody answers",
}


@click.command("limits")
@click.option("--once", is_flag=True, help="Print once, also on a terminal, where it is live otherwise.")
@count_option(
    "--parallel", help="From now on at most N agents act at once, over all runs that were started with --parallel."
)
@click.option("--forget", "pool", metavar="NAME", help="Forget what was learned about NAME; `all`: about everything.")
@json_option
def limits_(once: bool, parallel: int | None, pool: str | None, as_json: bool) -> None:
    """Show what providers allow, which run holds how many calls, and what waits until when.

    Runs share their limits: calls in flight, requests and tokens per minute of each model on each server, learned while
    they run and remembered for the next ones. On a terminal this is live; Ctrl-C ends it.

    \b
    Examples:
      shoal limits
      shoal limits --once
      shoal limits --parallel 12
      shoal limits --forget 'gpt-4.1-mini at api.openai.com #1f3a9c'
      shoal limits --json | jq '.now.pools[] | {name, held, waiting}'
    """
    if sum([parallel is not None, pool is not None, as_json]) > 1:
        raise click.UsageError("--parallel, --forget and --json are different things to do: give one of them")
    place = BrokerLocation.of_user(os.environ)
    if pool is not None:
        _forget(place, pool)
    elif parallel is not None:
        _resize(place, parallel)
    elif as_json:
        echo_json({"now": fetch_snapshot(place), "remembered": LimitStore(place.memory, time.time()).entries})
    else:
        output = Output()
        # With FORCE_COLOR the console takes a pipe for a terminal, so standard output is asked itself.
        ended = run_async(_follow(place, output)) if not once and sys.stdout.isatty() else None
        output.print(_render(place, output.width))
        if ended == signal.SIGTERM:
            raise click.exceptions.Exit(128 + ended)


def _forget(place: BrokerLocation, pool: str) -> None:
    if fetch_snapshot(place) is not None:
        raise click.UsageError(
            "runs are using what was learned, or were a moment ago: "
            f"try again {place.idle_seconds:.0f} seconds after the last one has ended"
        )
    gone = forget_limits(place.memory, None if pool == EVERYTHING else pool)
    if not gone and pool != EVERYTHING:
        known = list(LimitStore(place.memory, time.time()).entries)
        near = next((name for name in known if pool in name), None) or nearest(pool, known)
        more = f". Did you mean {near!r}?" if near else f"; known: {', '.join(map(repr, known)) or 'nothing'}"
        raise click.BadParameter(f"nothing was learned about {pool!r}{more}", param_hint="--forget")
    echo("\n".join(f"forgot {name}" for name in gone) or "nothing was learned yet")


def _resize(place: BrokerLocation, size: int) -> None:
    snapshot = fetch_snapshot(place)
    if snapshot is None or not any(pool.name == AGENTS for pool in snapshot.pools):
        raise click.UsageError(
            "no run that was started with --parallel is going on: start one with `shoal run --parallel N`"
        )
    resize_pool(place, AGENTS, size)
    echo(f"from now on at most {format_count(size, 'agent acts', 'agents act')} at once")


async def _follow(place: BrokerLocation, output: Output) -> int:
    """Draw every second until a signal comes, and return it. It ends between two pictures, so none is half drawn."""
    received: asyncio.Queue[int] = asyncio.Queue()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, received.put_nowait, number)
    with Live(console=output, auto_refresh=False, transient=True) as screen:
        while True:
            screen.update(_render(place, output.width), refresh=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(REFRESH_SECONDS):
                    return await received.get()


# the picture


def _render(place: BrokerLocation, width: int) -> RenderableType:
    snapshot, stored = fetch_snapshot(place), LimitStore(place.memory, time.time())
    if snapshot is None or not snapshot.pools:
        now: list[RenderableType] = [Text("No run is asking models now.")]
    else:
        now = [*_render_pools(snapshot, width), *_render_backoffs(snapshot, width)]
    return Group(*now, *_render_stored(stored, snapshot))


def _render_pools(snapshot: Snapshot, width: int) -> Iterator[RenderableType]:
    for pool in sorted(snapshot.pools, key=lambda pool: not pool.holders):
        if pool.control["kind"] == "fixed":
            mode = "of runs with --parallel" if pool.name == AGENTS else "a fixed number"
        else:
            mode = _MODES.get(pool.control["mode"], "")
        yield Text.assemble((pool.name, "bold"), "  ", (mode, "dim"))
        parts = list(_describe_pool(pool))
        lines = [f"  {parts[0]}"]
        for part in parts[1:]:
            longer = f"{lines[-1]} · {part}"
            if len(longer) <= width:
                lines[-1] = longer
            else:
                lines.append(f"  {part}")
        yield Text("\n".join(lines))
        if pool.holders:
            yield _align((_describe_holder(holder, wide=width >= NARROW_COLUMNS) for holder in pool.holders), names=1)


def _describe_pool(pool: PoolView) -> Iterator[str]:
    control = pool.control
    yield f"{pool.held:,} of {control['size']:,} in flight"
    yield f"{pool.waiting:,} waiting"
    for what in ("requests", "tokens"):
        if rate := control.get(f"{what}_per_minute"):
            yield f"{rate:,.0f} {what} a minute"
    if seconds := control.get("answer_seconds"):
        yield f"answers take {seconds:.2g} s"
    if ends := control.get("ends"):
        yield f"{ends.get('ok', 0):,} answered"
        yield f"{sum(ends.get(kind, 0) for kind in ('concurrency', 'requests', 'tokens', 'limited')):,} refused"
        yield f"{ends.get('failed', 0) + ends.get('overload', 0):,} failed"
    if paused := control.get("paused_seconds"):
        yield f"paused for {paused:.1f} s"


def _align(rows: Iterable[tuple[str, ...]], names: int) -> Table:
    """Align rows without ever breaking one; without room, the ends of names are cut, which are the first columns."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=3)
    for row in rows:
        while len(table.columns) <= len(row):
            table.add_column(no_wrap=len(table.columns) > names)
        table.add_row("", *(Text(cell, no_wrap=True, overflow="ellipsis") for cell in row))
    return table


def _describe_holder(holder: HolderView, *, wide: bool) -> tuple[str, ...]:
    waits = f"{holder.waiting:,} waiting" if holder.waiting else ""
    if not wide:
        return holder.name, f"{holder.held:,} in flight", waits
    if waits:
        waits += f", up to {holder.oldest_wait_seconds:.1f} s"
    weight = f"weight {holder.weight:g}" if holder.weight != 1 else ""
    return holder.name, f"{holder.held:,} in flight", waits, f"pid {holder.pid}", weight


def _render_backoffs(snapshot: Snapshot, width: int) -> Iterator[RenderableType]:
    total, held = snapshot.backoffs_total, sum(pool.held for pool in snapshot.pools if pool.name != AGENTS)
    if not total:
        return
    is_storm = total > STORM * max(held, FEW)
    words = f"{format_count(total, 'call')} failed and {'waits' if total == 1 else 'wait'} to be asked again"
    yield Text(f"\n{words}{': a retry storm' if is_storm else ''}", "bold red" if is_storm else "bold")
    rows = []
    for each in snapshot.backoffs[:BACKOFFS_SHOWN]:
        why = [f"attempt {each.attempt}: {each.kind.replace('_', ' ')}"] if width >= NARROW_COLUMNS else []
        rows.append((each.holder, each.label, *why, f"again in {each.seconds_left:.1f} s"))
    yield _align(rows, names=2)
    if total > BACKOFFS_SHOWN:
        yield Text(f"     and {total - BACKOFFS_SHOWN:,} more")


def _render_stored(stored: LimitStore, snapshot: Snapshot | None) -> Iterator[RenderableType]:
    """Show what is known about pools that no run uses now."""
    busy = set() if snapshot is None else {pool.name for pool in snapshot.pools}
    entries = {name: entry for name, entry in sorted(stored.entries.items()) if name not in busy}
    if not entries:
        return
    yield Text("\nRemembered from earlier runs", "bold")
    for name, entry in entries.items():
        learned, words = stored.of(name, Learned), "cannot be read"
        if learned is not None:
            rates = {"requests": learned.requests, "tokens": learned.tokens}
            parts = [f"{'at most' if learned.is_wall else 'at least'} {learned.in_flight:,} in flight"]
            parts += [f"{rate.per_minute:,.0f} {what} a minute" for what, rate in rates.items() if rate is not None]
            words = ", ".join(parts)
        yield Text.assemble("  ", name, "\n    ", words, "  ", (_describe_age(time.time() - entry.at), "dim"))


def _describe_age(seconds: float) -> str:
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return f"{format_count(int(seconds // length), unit)} ago"
    return "just now"
