"""The command tune: measures how many calls or simulations at once are best."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Coroutine
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.live import Live
from rich.text import Text

from shoal.agents import LanguageSettings
from shoal.cli import errors
from shoal.cli.commands.plan import is_confirmed
from shoal.cli.options import PATH, POSITIVE, Changes, count_option, load_scenario, output_options, set_option
from shoal.cli.runner import OutputMode
from shoal.cli.views.output import Output, echo, echo_json
from shoal.cli.views.tuning import TuningView, describe_failure, describe_level, render_result
from shoal.errors import RunRefused
from shoal.event_loop import run_async
from shoal.models import Usage, estimate
from shoal.models.http import Proxies
from shoal.models.openai import resolve_endpoint
from shoal.runs import claim_directory, find_endpoints, serve_local_models, storage_errors
from shoal.runs.tuning import (
    CALLS,
    FEWEST_PROMPT_TOKENS,
    PROMPT_TOKENS,
    REPLY_TOKENS,
    SIMULATIONS,
    STOPPED,
    Gauge,
    TuneBounds,
    TuneResult,
    TuneTarget,
    count_cores,
    count_most_calls,
    make_scenario_probes,
    make_synthetic_probes,
    measure_calls,
    measure_simulations,
    save_result,
)
from shoal.scenario import Scenario, set_number_in_file
from shoal.slots import BrokerLocation
from shoal.text import quote_path

#: What may be spent unless an option says otherwise.
USUAL_CALLS = 500
USUAL_DOLLARS = 0.50

_FRAMES_PER_SECOND = 8
_UNNAMED = re.compile(r"[^A-Za-z0-9.]+")

number = partial(click.option, metavar="N", show_default=True)


@click.command("tune")
@click.argument("scenario", type=PATH, required=False)
@click.option("--model", metavar="NAME", help="The language model to measure, such as openai/gpt-4.1-mini.")
@set_option
@click.option("--out", type=PATH, metavar="DIR", help="Where the results go; must be new or empty.")
@click.option("--write", is_flag=True, help="Put the setting into the scenario file, and leave the rest as it is.")
@count_option("--up-to", default=256, show_default=True, help="At most N at once.")
@number("--seconds", type=click.FloatRange(min=1), default=180.0, help="For all of it, at most.")
@click.option("--max-cost", type=POSITIVE, metavar="DOLLARS", help="Stop before it.")
@count_option("--max-tokens", help="Tokens sent and received, at most.")
@count_option("--max-calls", help="Calls, at most, also those refused.")
@number(
    "--prompt-tokens",
    type=click.IntRange(min=FEWEST_PROMPT_TOKENS),
    default=PROMPT_TOKENS,
    help="Length of prompts, without a SCENARIO.",
)
@number(
    "--reply-tokens", type=click.IntRange(min=16), default=REPLY_TOKENS, help="Longest replies, without a SCENARIO."
)
@number("--seed", type=click.IntRange(min=0), help="Of the prompts; default: others each time.")
@click.option("--yes", is_flag=True, help="Do not ask whether what it may cost is wanted.")
@output_options
def tune_(scenario: Path | None, model: str | None, out: Path | None, mode: OutputMode, **options: Any) -> None:
    """Measure how many calls at once a model's server takes, or how many simulations this machine takes.

    More and more calls are made at once, until that brings no more or too many are refused. What is found is shown as
    a table, and kept in tune-NAME-N with a picture and the line for a scenario. With a SCENARIO its agents' own
    prompts are sent, with --model alone prompts of a chosen length. A scenario that asks no model is run whole,
    several times at once.

    Unless something else is said, it takes at most 500 calls and 50 cents. Ctrl-C ends it with what was measured.

    \b
    Examples:
      shoal tune --model openai/gpt-4.1-mini
      shoal tune scenario.yaml --model openai/gpt-4.1-mini --max-cost 1 --write
      shoal tune --model vllm/our-own --prompt-tokens 3000 --up-to 1024 --max-calls 8000
      shoal tune examples/rumour.yaml               how many simulations at once
    """
    sets, write = options.pop("sets"), options.pop("write")
    wanted = None if scenario is None else load_scenario(scenario, model, Changes.of_sets(sets))
    if wanted is None and model is None:
        raise click.UsageError("Give a SCENARIO, or the --model to measure, such as --model openai/gpt-4.1-mini.")
    if wanted is None and (sets or write):
        raise click.UsageError(f"{'--write' if write else '--set'} is about a SCENARIO, and none is given.")
    if write and wanted is not None and not isinstance(wanted.mind, LanguageSettings):
        raise click.UsageError("--write is about calls of a language model, and this scenario asks none.")
    name = wanted.name if wanted is not None else _UNNAMED.sub("-", str(model)).strip("-.")
    with claim_directory(out, Path(), f"tune-{name}") as folder:
        # Refuse a folder in use before anything is spent.
        with storage_errors(folder):
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise RunRefused(f"{folder} is there already, and not empty; choose another --out")
            folder.mkdir(parents=True, exist_ok=True)
        if wanted is None or isinstance(wanted.mind, LanguageSettings):
            found, interrupted = _tune_calls(wanted, str(model), mode, options)
        else:
            gauge = Gauge()
            measurement = measure_simulations(wanted, folder, gauge, options["up_to"], options["seconds"])
            found, interrupted = _measure(
                measurement, gauge, mode, SIMULATIONS, wanted.name, f"{count_cores():g} cores"
            )
        if not found.levels:
            errors.complain(f"nothing was measured: {found.ended}")
            raise click.exceptions.Exit(errors.INTERRUPTED if interrupted else errors.Refused.exit_code)
        written = found.write(folder)
    where = _place_setting(scenario, found, write and not interrupted)
    if mode.json:
        echo_json({**found.as_dict(), "written": [str(path) for path in written]})
    elif mode.quiet:
        echo(written[0].parent)
    else:
        console = Output()
        for part in render_result(found, written, where):
            console.print(part, soft_wrap=isinstance(part, Text))
    if found.knee is None:
        raise RunRefused(describe_failure(found))
    if interrupted:
        raise click.exceptions.Exit(errors.INTERRUPTED)


def _tune_calls(
    scenario: Scenario | None, model: str, mode: OutputMode, options: dict[str, Any]
) -> tuple[TuneResult, bool]:
    seed = time.time_ns() if options["seed"] is None else options["seed"]
    if scenario is None:
        endpoint = resolve_endpoint(model, base_url=None, key_variable=None, environ=os.environ)
        probes = make_synthetic_probes(model, seed, options["prompt_tokens"], options["reply_tokens"])
    else:
        assert isinstance(scenario.mind, LanguageSettings)
        model = scenario.mind.model
        # A missing key is reported before the scenario is played through.
        endpoint = find_endpoints(scenario.mind, os.environ)[model]
        probes = run_async(make_scenario_probes(scenario, seed))
    target = TuneTarget(model, endpoint, probes, Proxies.of(os.environ))
    limits = {name: options[name] for name in ("up_to", "seconds", "max_cost", "max_tokens", "max_calls")}
    if not any(options[name] for name in ("max_cost", "max_tokens", "max_calls")):
        limits |= {"max_calls": USUAL_CALLS, "max_cost": None if target.price is None else USUAL_DOLLARS}
    bounds = TuneBounds(**limits | {"max_calls": limits["max_calls"] or sys.maxsize})
    if not options["yes"]:
        calls, question = min(bounds.max_calls, count_most_calls(bounds.up_to)), probes(0)
        usage = Usage(sum(estimate(message.content) for message in question.messages), question.max_tokens or 0)
        cost = None if target.price is None else min(target.price.of(usage) * calls, bounds.max_cost or inf)
        at_price = "at a price that is not known" if cost is None else f"for up to ${cost:,.2f}" if cost else "for free"
        if not is_confirmed(calls, cost, f"This may take up to {calls:,} calls {at_price}."):
            raise RunRefused("not confirmed, so nothing was measured and nothing was spent")
    gauge = Gauge()
    where = endpoint.base_url or "this machine"
    found, interrupted = _measure(_measure_served(target, bounds, gauge), gauge, mode, CALLS, model, where)
    if found.knee is not None and not interrupted:
        save_result(endpoint, found, BrokerLocation.of_user(os.environ).memory)
    return msgspec.structs.replace(found, seed=seed), interrupted


async def _measure_served(target: TuneTarget, bounds: TuneBounds, gauge: Gauge) -> str:
    async with serve_local_models({target.model: target.endpoint}, os.environ) as served:
        return await measure_calls(replace(target, endpoint=served[target.model]), bounds, gauge)


def _measure(
    measurement: Coroutine[Any, Any, str], gauge: Gauge, mode: OutputMode, kind: str, name: str, where: str
) -> tuple[TuneResult, bool]:
    """Measure and show it; return what was measured, also if Ctrl-C ended it, and whether it did."""
    console = Output(stderr=True)
    shown: AbstractContextManager[object] = nullcontext()
    if not mode.quiet and console.file.isatty() and not console.is_dumb_terminal:
        # A table that grows, for a person who watches; otherwise a line for each level.
        shown = Live(TuningView(gauge, kind), console=console, refresh_per_second=_FRAMES_PER_SECOND, transient=True)
    elif not mode.quiet:
        gauge.tell = lambda level: errors.complain(describe_level(level, kind))
    interrupted = False
    with shown:
        try:
            ended = run_async(measurement)
        except KeyboardInterrupt:
            ended, interrupted = STOPPED, True
    spent = msgspec.to_builtins(gauge.spending.total) if gauge.spending is not None else {}
    levels = tuple(gauge.levels)
    return TuneResult(kind=kind, name=name, where=where, levels=levels, ended=ended, spent=spent), interrupted


def _place_setting(scenario: Path | None, found: TuneResult, write: bool) -> str:
    """Write the setting into the scenario's file if that is wanted, and say what was done."""
    if scenario is None:
        return "for a scenario"
    if not write or found.knee is None:
        return f"for {quote_path(scenario)}; --write puts it there"
    if scenario.is_file() and set_number_in_file(scenario, "max_workers", found.knee.at_once):
        return f"written into {quote_path(scenario)}"
    return f"could not be put safely into {quote_path(scenario)}; please write it there"
