"""The command `rehearse`, which serves a rehearsal of a model provider."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from contextlib import suppress
from functools import partial
from typing import Any, get_args

import click

from shoal.cli.options import POSITIVE, count_option
from shoal.errors import ShoalError
from shoal.event_loop import run_async
from shoal.models.http import raise_file_limit
from shoal.rehearsal import REFUSABLE, Headers, PlannedOutage, RehearsalSettings, SettingChange, Stats, start
from shoal.text import format_count

KEY = "rehearsal"
_LINE_SECONDS = 0.5
_CLEAR_LINE = "\r\x1b[2K"
_CHANGEABLE = {
    "cap": "cap",
    "rpm": "requests_per_minute",
    "tpm": "tokens_per_minute",
    "latency": "latency_seconds",
}
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}


def parse_duration(text: str) -> float:
    """Parse `200ms`, `1.5s`, `2m`, or seconds."""
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+) ?(ms|s|m|min|h|)", text.strip())
    if found is None:
        raise click.BadParameter(f"{text!r} is not a duration such as 200ms, 1.5s or 2m")
    return float(found[1]) * _UNITS[found[2]]


def parse_share(text: str) -> float:
    """Parse `5%` or `0.05`."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise click.BadParameter(f"{text!r} is not a share such as 5% or 0.05")
    return share


def parse_outage(text: str) -> PlannedOutage:
    """Parse `20s@60s`: for 20 s, from 60 s after the first request."""
    lasting, at, after = text.partition("@")
    if not at:
        raise click.BadParameter(f"{text!r} is not an outage such as 20s@60s: how long, and how long after the start")
    return PlannedOutage(parse_duration(after), parse_duration(lasting))


def parse_change(text: str) -> SettingChange:
    """Parse `cap=24@60s` or `cap=24@800answers`: another value, and when it comes."""
    found = re.fullmatch(r"(\w+)=([\d.]+ ?[a-z]*)@(?:(\d+) ?answers?|(.+))", text.strip())
    if not found or found[1] not in _CHANGEABLE:
        known = ", ".join(_CHANGEABLE)
        raise click.BadParameter(f"{text!r} is not a change of {known} such as cap=24@60s or cap=24@800answers")
    word, to, answers, after = found.groups()
    amount = parse_duration(to) if word == "latency" else click.FLOAT(to)
    seconds = 0.0 if after is None else parse_duration(after)
    try:
        return SettingChange(_CHANGEABLE[word], amount, seconds, int(answers or 0))
    except ValueError as error:
        raise click.BadParameter(f"{text!r}: {error}") from error


time_option = partial(click.option, type=parse_duration, metavar="TIME")
share_option = partial(click.option, type=parse_share, default="0", metavar="SHARE")


@click.command("rehearse")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; default: one that is free.")
@time_option("--for", "lasting", help="End after this time; default: with Ctrl-C.")
@click.option("--seed", type=click.IntRange(min=0), default=0, metavar="N", help="Other answers, latencies and faults.")
@time_option("--latency", "latency_seconds", default="0", help="Median, as in 800ms.")
@click.option("--sigma", "latency_sigma", type=click.FloatRange(min=0), default=0.0, help="Spread; 0: always the same.")
@count_option("--knee", help="With more than N in work, answers take longer.")
@count_option("--cap", help="Requests at once; more are refused with 429.")
@click.option("--queue", is_flag=True, help="Requests above the cap wait, as at a local server.")
@click.option("--rpm", "requests_per_minute", type=POSITIVE, metavar="N", help="Requests per minute.")
@click.option("--tpm", "tokens_per_minute", type=POSITIVE, metavar="N", help="Tokens per minute.")
@time_option("--burst", "burst_seconds", default="60", help="Allowance usable at once.")
@click.option("--empty", "starts_empty", is_flag=True, help="Allowances are empty at first; default: full.")
@time_option("--window", "window_seconds", help="Allowances for windows of this length.")
@click.option(
    "--change",
    "changes",
    type=parse_change,
    multiple=True,
    metavar="WHAT=N@WHEN",
    help="As in cap=24@60s, rpm=60@9answers.",
)
@count_option("--quota", help="Answers until the credit is used up.")
@count_option("--context", "context_tokens", help="Longest prompt, in tokens.")
@click.option("--headers", type=click.Choice(get_args(Headers)), default="openai", help="Rate headers.")
@click.option("--unlabelled", is_flag=True, help="A 429 does not say which limit it is about.")
@time_option("--retry-after", "retry_after_seconds", default="1", help="Asked for above the cap.")
@time_option("--refusal", "refusal_seconds", default="0", help="Time that a refusal takes.")
@share_option("--errors", help="Attempts that end in a 500, as in 5%.")
@share_option("--limits", help="Attempts that end in a 429.")
@share_option("--hangs", help="Attempts that are never answered.")
@share_option("--dropped", help="Attempts cut off within the answer.")
@share_option("--malformed", help="Answers that are broken JSON.")
@share_option("--truncated", help="Answers that end too early.")
@share_option("--refused", help="Answers that the model declines to give.")
@click.option("--outage", "outages", type=parse_outage, multiple=True, metavar="TIME@TIME", help="503s, as in 20s@60s.")
@click.option("--without", "unsupported", type=click.Choice(REFUSABLE), multiple=True, help="What to answer with 400.")
@count_option("--reply-tokens", default=24, help="About how long texts are.")
def rehearse_(host: str, port: int, lasting: float | None, **chosen: Any) -> None:
    """Serve a free stand-in for a model provider, with chosen limits and faults.

    An OpenAI-compatible server that invents answers that fit JSON schemas and tools, and costs nothing: to try how
    long an experiment takes and how it stands a bad day, before it is paid for. The same request has the same
    answer. GET /rehearsal/stats tells what was asked, POST /rehearsal/reset starts counting again.

    \b
    Examples:
      shoal rehearse --latency 1s --sigma 0.5 --cap 64
      shoal rehearse --port 8080 --rpm 600 --tpm 200000 --headers anthropic
      shoal rehearse --latency 2s --cap 96 --unlabelled --change cap=24@800answers --change cap=96@2m
      shoal rehearse --errors 5% --limits 5% --hangs 2% --malformed 2% --truncated 1% --outage 20s@60s --seed 7
    """
    chosen["labelled"] = not chosen.pop("unlabelled")
    chosen["unsupported"] = frozenset(chosen["unsupported"])
    try:
        settings = RehearsalSettings(**chosen)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    # Each request in flight is an open file.
    raise_file_limit()
    run_async(_serve(settings, host, port, lasting))


async def _serve(settings: RehearsalSettings, host: str, port: int, lasting: float | None) -> None:
    """Serve until a signal or the end of the time, then print the counts. On a terminal, print them all the time."""
    ended, loop, live = asyncio.Event(), asyncio.get_running_loop(), sys.stderr.isatty()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    if lasting is not None:
        loop.call_later(lasting, ended.set)
    try:
        async with start(settings, host, port) as server:
            click.echo(f"# rehearsing at {server.base_url}; Ctrl-C ends it")
            click.echo(f"export OPENAI_BASE_URL={server.base_url}\nexport OPENAI_API_KEY={settings.key or KEY}")
            sys.stdout.flush()
            while not ended.is_set():
                if live:
                    click.echo(f"{_CLEAR_LINE}{describe_stats(server.stats)}", nl=False, err=True)
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), _LINE_SECONDS if live else None)
            click.echo(f"{_CLEAR_LINE if live else ''}{describe_stats(server.stats)}", err=True)
    except OSError as error:
        raise ShoalError(
            f"cannot listen on {host}:{port}: {error.strerror}\nChoose another --port, or none."
        ) from error


def describe_stats(stats: Stats) -> str:
    """Describe the counts in one line."""
    answered = stats.by_status[200]
    parts = [f"{format_count(stats.requests, 'request')}, {answered:,} answered"]
    parts += [f"{count:,} x {status}" for status, count in sorted(stats.by_status.items()) if status != 200]
    parts += [f"{stats.faults[name]:,} {name}" for name in ("hang", "dropped") if stats.faults[name]]
    waiting = f", {stats.waiting:,} waiting" if stats.waiting else ""
    parts.append(f"{stats.in_flight:,} in flight{waiting} (most {stats.in_flight_peak:,})")
    cached = f" ({stats.cached_tokens / stats.input_tokens:.0%} cached)" if stats.cached_tokens else ""
    parts.append(f"tokens {stats.input_tokens:,} in{cached}, {stats.output_tokens:,} out")
    return " · ".join(parts)
