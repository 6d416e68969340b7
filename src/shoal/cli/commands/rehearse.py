"""The command `rehearse`, which serves a rehearsal of a model provider."""

from __future__ import annotations

import asyncio
import re
import resource
import signal
import sys
from contextlib import suppress
from typing import Any, get_args

import click

from shoal.errors import ShoalError
from shoal.event_loop import run_async
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


class Duration(click.ParamType[float]):
    """`200ms`, `1.5s`, `2m`, or seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(\d+\.?\d*|\.\d+) ?(ms|s|m|min|h|)", value.strip())
        if found is None:
            self.fail(f"{value!r} is not a duration such as 200ms, 1.5s or 2m", param, ctx)
        return float(found[1]) * _UNITS[found[2]]


class ShareType(click.ParamType[float]):
    """`5%` or `0.05`."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            share = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            self.fail(f"{value!r} is not a share such as 5% or 0.05", param, ctx)
        return share


class OutageTime(click.ParamType[PlannedOutage]):
    """`20s@60s`: for 20 s, from 60 s after the first request."""

    name = "outage"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> PlannedOutage:
        lasting, at, after = value.partition("@")
        if not at:
            self.fail(f"{value!r} is not an outage such as 20s@60s: how long, and how long after the start", param, ctx)
        return PlannedOutage(_DURATION.convert(after, param, ctx), _DURATION.convert(lasting, param, ctx))


class ChangeTime(click.ParamType[SettingChange]):
    """`cap=24@60s` or `cap=24@800answers`: another value, and when it comes."""

    name = "change"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> SettingChange:
        found = re.fullmatch(r"(\w+)=([\d.]+ ?[a-z]*)@(?:(\d+) ?answers?|(.+))", value.strip())
        if not found or found[1] not in _CHANGEABLE:
            known = ", ".join(_CHANGEABLE)
            self.fail(f"{value!r} is not a change of {known} such as cap=24@60s or cap=24@800answers", param, ctx)
        word, to, answers, after = found.groups()
        seconds = 0.0 if after is None else _DURATION.convert(after, param, ctx)
        try:
            amount = (_DURATION if word == "latency" else click.FLOAT)(to, param, ctx)
            return SettingChange(_CHANGEABLE[word], amount, seconds, int(answers or 0))
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


_DURATION, _SHARE = Duration(), ShareType()
_COUNT, _SOME = click.IntRange(min=1), click.FloatRange(min=0, min_open=True)


@click.command("rehearse")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; default: one that is free.")
@click.option("--for", "lasting", type=_DURATION, metavar="TIME", help="End after this time; default: with Ctrl-C.")
@click.option("--seed", type=click.IntRange(min=0), default=0, metavar="N", help="Other answers, latencies and faults.")
@click.option("--latency", "latency_seconds", type=_DURATION, default=0.0, metavar="TIME", help="Median, as in 800ms.")
@click.option("--sigma", "latency_sigma", type=click.FloatRange(min=0), default=0.0, help="Spread; 0: always the same.")
@click.option("--knee", type=_COUNT, metavar="N", help="With more than N in work, answers take longer.")
@click.option("--cap", type=_COUNT, metavar="N", help="Requests at once; more are refused with 429.")
@click.option("--queue", is_flag=True, help="Requests above the cap wait, as at a local server.")
@click.option("--rpm", "requests_per_minute", type=_SOME, metavar="N", help="Requests per minute.")
@click.option("--tpm", "tokens_per_minute", type=_SOME, metavar="N", help="Tokens per minute.")
@click.option(
    "--burst", "burst_seconds", type=_DURATION, default=60.0, metavar="TIME", help="Allowance usable at once."
)
@click.option("--empty", "starts_empty", is_flag=True, help="Allowances are empty at first; default: full.")
@click.option(
    "--window", "window_seconds", type=_DURATION, metavar="TIME", help="Allowances for windows of this length."
)
@click.option(
    "--change",
    "changes",
    type=ChangeTime(),
    multiple=True,
    metavar="WHAT=N@WHEN",
    help="As in cap=24@60s, rpm=60@9answers.",
)
@click.option("--quota", type=_COUNT, metavar="N", help="Answers until the credit is used up.")
@click.option("--context", "context_tokens", type=_COUNT, metavar="N", help="Longest prompt, in tokens.")
@click.option("--headers", type=click.Choice(get_args(Headers)), default="openai", help="Rate headers.")
@click.option("--unlabelled", is_flag=True, help="A 429 does not say which limit it is about.")
@click.option(
    "--retry-after", "retry_after_seconds", type=_DURATION, default=1.0, metavar="TIME", help="Asked for above the cap."
)
@click.option(
    "--refusal", "refusal_seconds", type=_DURATION, default=0.0, metavar="TIME", help="Time that a refusal takes."
)
@click.option("--errors", type=_SHARE, default=0.0, metavar="SHARE", help="Attempts that end in a 500, as in 5%.")
@click.option("--limits", type=_SHARE, default=0.0, metavar="SHARE", help="Attempts that end in a 429.")
@click.option("--hangs", type=_SHARE, default=0.0, metavar="SHARE", help="Attempts that are never answered.")
@click.option("--dropped", type=_SHARE, default=0.0, metavar="SHARE", help="Attempts cut off within the answer.")
@click.option("--malformed", type=_SHARE, default=0.0, metavar="SHARE", help="Answers that are broken JSON.")
@click.option("--truncated", type=_SHARE, default=0.0, metavar="SHARE", help="Answers that end too early.")
@click.option("--refused", type=_SHARE, default=0.0, metavar="SHARE", help="Answers that the model declines to give.")
@click.option("--outage", "outages", type=OutageTime(), multiple=True, metavar="TIME@TIME", help="503s, as in 20s@60s.")
@click.option("--without", "unsupported", type=click.Choice(REFUSABLE), multiple=True, help="What to answer with 400.")
@click.option("--reply-tokens", type=_COUNT, default=24, metavar="N", help="About how long texts are.")
def rehearse_(host: str, port: int, lasting: float | None, **chosen: Any) -> None:
    """Serve a free stand-in for a model provider, with chosen limits and faults.

    An OpenAI-compatible server that invents valid answers to any JSON schema and any tools, and costs nothing: to try
    how long an experiment takes and how it stands a bad day, before it is paid for. The same request has the same
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
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
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
