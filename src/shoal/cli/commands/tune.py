"""The command tune: measures how many calls or simulations at once are best."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click
import msgspec
from rich.console import Console
from rich.live import Live
from rich.text import Text

from shoal.agents import LanguageSettings
from shoal.cli import errors
from shoal.cli.commands.plan import THRESHOLD_CALLS, THRESHOLD_DOLLARS
from shoal.cli.options import PATH, Changes, load_scenario, output_options, set_option
from shoal.cli.runner import OutputMode
from shoal.cli.views.output import Output, echo_json
from shoal.cli.views.tuning import TuningView, describe_failure, describe_level, render_result
from shoal.errors import RunRefused
from shoal.event_loop import run_async
from shoal.models import Usage, estimate
from shoal.models.http import Proxies
from shoal.models.openai import resolve_endpoint
from shoal.runs import claim_directory, find_endpoints, storage_errors
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

F = TypeVar("F", bound=Callable[..., Any])

#: What may be spent unless an option says otherwise.
USUAL_CALLS = 500
USUAL_DOLLARS = 0.50

_FRAMES_PER_SECOND = 8
_UNNAMED = re.compile(r"[^A-Za-z0-9.]+")


@dataclass(frozen=True, slots=True)
class _TuneOptions:
    """How to measure."""

    bounds: TuneBounds
    #: Whether no option says what may be spent.
    is_usual: bool
    prompt_tokens: int
    reply_tokens: int
    seed: int
    yes: bool


def _tune_options(command: F) -> F:
    """Pass all options about how to measure as one value."""

    number = partial(click.option, metavar="N", show_default=True)
    at_least_one = click.IntRange(min=1)

    @number("--up-to", type=at_least_one, default=256, help="At most N at once.")
    @number("--seconds", type=click.FloatRange(min=1), default=180.0, help="For all of it, at most.")
    @click.option("--max-cost", type=click.FloatRange(min=0, min_open=True), metavar="DOLLARS", help="Stop before it.")
    @number("--max-tokens", type=at_least_one, help="Tokens sent and received, at most.")
    @number("--max-calls", type=at_least_one, help="Calls, at most, also those refused.")
    @number(
        "--prompt-tokens",
        type=click.IntRange(min=FEWEST_PROMPT_TOKENS),
        default=PROMPT_TOKENS,
        help="Length of prompts, without a SCENARIO.",
    )
    @number(
        "--reply-tokens",
        type=click.IntRange(min=16),
        default=REPLY_TOKENS,
        help="Longest replies, without a SCENARIO.",
    )
    @number("--seed", type=click.IntRange(min=0), help="Of the prompts; default: others each time.")
    @click.option("--yes", is_flag=True, help="Do not ask whether what it may cost is wanted.")
    @wraps(command)
    def decorate(*args: Any, seed: int | None, **rest: Any) -> Any:
        bounds = {name: rest.pop(name) for name in ("up_to", "seconds", "max_cost", "max_tokens", "max_calls")}
        is_usual = not any(bounds[name] for name in ("max_cost", "max_tokens", "max_calls"))
        bounds["max_calls"] = bounds["max_calls"] or (USUAL_CALLS if is_usual else sys.maxsize)
        more = {name: rest.pop(name) for name in ("prompt_tokens", "reply_tokens", "yes")}
        seed = time.time_ns() if seed is None else seed
        return command(*args, options=_TuneOptions(TuneBounds(**bounds), is_usual, seed=seed, **more), **rest)

    return cast(F, decorate)


@click.command("tune")
@click.argument("scenario", type=PATH, required=False)
@click.option("--model", metavar="NAME", help="The language model to measure, such as openai/gpt-4.1-mini.")
@set_option
@click.option("--out", type=PATH, metavar="DIR", help="Where the results go; must be new or empty.")
@click.option("--write", is_flag=True, help="Put the setting into the scenario file, and leave the rest as it is.")
@_tune_options
@output_options
def tune_(  # noqa: PLR0913  # a command has as many options as it has
    scenario: Path | None,
    model: str | None,
    sets: tuple[str, ...],
    out: Path | None,
    write: bool,
    options: _TuneOptions,
    mode: OutputMode,
) -> None:
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
    wanted = None if scenario is None else load_scenario(scenario, model, Changes(list(sets), None))
    asks = wanted is None or isinstance(wanted.mind, LanguageSettings)
    if wanted is None and model is None:
        raise click.UsageError("Give a SCENARIO, or the --model to measure, such as --model openai/gpt-4.1-mini.")
    if wanted is None and (sets or write):
        raise click.UsageError(f"{'--write' if write else '--set'} is about a SCENARIO, and none is given.")
    if write and not asks:
        raise click.UsageError("--write is about calls of a language model, and this scenario asks none.")
    name = wanted.name if wanted is not None else _UNNAMED.sub("-", str(model)).strip("-.")
    with claim_directory(out, Path(), f"tune-{name}") as folder:
        # Refuse a folder in use before anything is spent.
        with storage_errors(folder):
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise RunRefused(f"{folder} is there already, and not empty; choose another --out")
            folder.mkdir(parents=True, exist_ok=True)
        if wanted is None or asks:
            found, interrupted = _tune_calls(wanted, str(model), options, mode)
        else:
            found, interrupted = _tune_simulations(wanted, folder, options, mode)
        if not found.levels:
            errors.complain(f"nothing was measured: {found.ended}")
            raise click.exceptions.Exit(errors.INTERRUPTED if interrupted else errors.Refused.exit_code)
        written = found.write(folder)
    where = _place_setting(scenario, found, write and not interrupted)
    if mode.json:
        echo_json({**found.as_dict(), "written": [str(path) for path in written]})
    elif mode.quiet:
        click.echo(written[0].parent)
    else:
        console = Output()
        for part in render_result(found, written, where):
            console.print(part, soft_wrap=isinstance(part, Text))
    if found.knee is None:
        raise RunRefused(describe_failure(found))
    if interrupted:
        raise click.exceptions.Exit(errors.INTERRUPTED)


def _place_setting(scenario: Path | None, found: TuneResult, write: bool) -> str:
    """Write the setting into the scenario's file if that is wanted, and say what was done."""
    if scenario is None:
        return "for a scenario"
    if not write or found.knee is None:
        return f"for {quote_path(scenario)}; --write puts it there"
    if scenario.is_file() and set_number_in_file(scenario, "max_workers", found.knee.at_once):
        return f"written into {quote_path(scenario)}"
    return f"could not be put safely into {quote_path(scenario)}; please write it there"


# Measuring


def _tune_calls(
    scenario: Scenario | None, model: str, options: _TuneOptions, mode: OutputMode
) -> tuple[TuneResult, bool]:
    target, bounds = _build_target(scenario, model, options), options.bounds
    if options.is_usual and target.spending().price(target.model) is not None:
        bounds = replace(bounds, max_cost=USUAL_DOLLARS)
    if not options.yes:
        _confirm(target, bounds)
    gauge = Gauge()
    ended, interrupted = _measure(measure_calls(target, bounds, gauge), gauge, CALLS, mode)
    found = TuneResult(
        kind=CALLS,
        name=target.model,
        where=target.endpoint.base_url,
        levels=tuple(gauge.levels),
        ended=ended,
        spent=msgspec.to_builtins(gauge.spending.total) if gauge.spending is not None else {},
        seed=options.seed,
    )
    if found.knee is not None and not interrupted:
        save_result(target.endpoint, found, BrokerLocation.of_user(os.environ).memory)
    return found, interrupted


def _build_target(scenario: Scenario | None, model: str, options: _TuneOptions) -> TuneTarget:
    proxies = Proxies.of(os.environ)
    if scenario is None:
        probes = make_synthetic_probes(model, options.seed, options.prompt_tokens, options.reply_tokens)
        return TuneTarget(
            model, resolve_endpoint(model, base_url=None, key_variable=None, environ=os.environ), probes, proxies
        )
    assert isinstance(scenario.mind, LanguageSettings)
    model = scenario.mind.model
    # A missing key is reported before the scenario is played through.
    at = find_endpoints(scenario.mind, os.environ)[model]
    return TuneTarget(model, at, run_async(make_scenario_probes(scenario, options.seed)), proxies)


def _confirm(target: TuneTarget, bounds: TuneBounds) -> None:
    """Ask at the terminal before much is spent."""
    calls, question = min(bounds.max_calls, count_most_calls(bounds.up_to)), target.probes(0)
    tokens = sum(estimate(message.content) for message in question.messages)
    price = target.spending().price(target.model)
    cost = None if price is None else price.of(Usage(tokens, question.max_tokens or 0)) * calls
    if cost is not None and bounds.max_cost is not None:
        cost = min(cost, bounds.max_cost)
    is_small = calls <= THRESHOLD_CALLS and (cost or 0.0) <= THRESHOLD_DOLLARS
    if is_small or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    at_price = "at a price that is not known" if cost is None else f"for up to ${cost:,.2f}"
    if not click.confirm(f"This may take up to {calls:,} calls {at_price}.\nGo on?", err=True):
        raise RunRefused("not confirmed, so nothing was measured and nothing was spent")


def _tune_simulations(
    scenario: Scenario, folder: Path, options: _TuneOptions, mode: OutputMode
) -> tuple[TuneResult, bool]:
    gauge, bounds = Gauge(), options.bounds
    measurement = measure_simulations(scenario, folder, gauge, bounds.up_to, bounds.seconds)
    ended, interrupted = _measure(measurement, gauge, SIMULATIONS, mode)
    where = f"{count_cores():g} cores"
    found = TuneResult(kind=SIMULATIONS, name=scenario.name, where=where, levels=tuple(gauge.levels), ended=ended)
    return found, interrupted


def _measure(measurement: Coroutine[Any, Any, str], gauge: Gauge, kind: str, mode: OutputMode) -> tuple[str, bool]:
    """Measure and show it; return why it ended, and whether by Ctrl-C. What was measured is in the gauge."""
    console = Console(stderr=True, highlight=False)
    shown: AbstractContextManager[object] = nullcontext()
    if not mode.quiet and console.file.isatty() and not console.is_dumb_terminal:
        # A table that grows, for a person who watches; otherwise a line for each level.
        shown = Live(TuningView(gauge, kind), console=console, refresh_per_second=_FRAMES_PER_SECOND, transient=True)
    elif not mode.quiet:
        gauge.tell = lambda level: errors.complain(describe_level(level, kind))
    with shown:
        try:
            return run_async(measurement), False
        except KeyboardInterrupt:
            return STOPPED, True
