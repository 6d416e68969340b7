"""The command `check`, which compares a mind with published results."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

import click
from rich.text import Text

from shoal.agents import LanguageSettings
from shoal.cli.options import count_option, json_option
from shoal.cli.views.output import Output, echo_json, make_table
from shoal.experiments.checks import CheckResult, CheckVerdict, ValidationCheck, choose_checks, run_checks
from shoal.machine import inspect_machine
from shoal.text import format_count

_STYLES = {CheckVerdict.HOLDS: "green", CheckVerdict.UNCLEAR: "yellow", CheckVerdict.FAILS: "bold red"}


@click.command("check")
@click.argument("checks", nargs=-1)
@count_option("--seeds", default=20, help="Seeds of each check; default: 20.")
@count_option("--jobs", help="Simulations at once; default: one for each core.")
@click.option("--model", metavar="MODEL", help="Language model that decides; default: the offline mind.")
@click.option("--list", "only_list", is_flag=True, help="List the checks, and run nothing.")
@json_option
def check_(
    checks: tuple[str, ...], seeds: int, jobs: int | None, model: str | None, only_list: bool, as_json: bool
) -> None:
    """Compare a mind with published results.

    Each check runs small scenarios with many seeds, and compares a figure of them with what was published. It holds if
    the 95 % interval of the mean over seeds lies within the bounds. Without CHECKS all are run. Exit code 1 if one
    fails.

    \b
    Examples:
      shoal check
      shoal check herding-up homophily --seeds 50
      shoal check --model ollama/llama3.2 --seeds 3
    """
    chosen = choose_checks(checks, is_offline=model is None)
    if only_list:
        _list_checks(chosen, as_json)
        return
    mind = None if model is None else LanguageSettings(model=model).model_dump(mode="json", exclude_defaults=True)
    results: dict[str, CheckResult] = {}
    jobs, console = jobs or int(inspect_machine().cores.usable or 1), Output()
    with console.status("") as status:
        for check, done, result in run_checks(chosen, seeds, jobs=jobs, mind=mind):
            status.update(f"{check.id}: {done} of {seeds} seeds; {len(results)} of {len(chosen)} checks done")
            if result is not None:
                results[check.id] = result
    ordered = [results[check.id] for check in chosen]
    if as_json:
        echo_json({"seeds": seeds, "mind": model or "offline", "results": [_describe(result) for result in ordered]})
    else:
        _print_results(console, ordered)
    if any(result.verdict is CheckVerdict.FAILS for result in ordered):
        raise click.exceptions.Exit(1)


def _list_checks(checks: Sequence[ValidationCheck], as_json: bool) -> None:
    if as_json:
        echo_json([_describe_check(check) for check in checks])
        return
    table = make_table("check", "result", "published", "source")
    for check in checks:
        table.add_row(check.id, check.result, check.published, check.source)
    Output().print(table)


def _describe_check(check: ValidationCheck) -> dict[str, Any]:
    names = ("id", "result", "published", "source", "figure", "bounds")
    return {name: getattr(check, name) for name in names}


def _describe(result: CheckResult) -> dict[str, Any]:
    return _describe_check(result.check) | {
        "mean": _drop_nan(result.mean),
        "interval": [_drop_nan(result.low), _drop_nan(result.high)],
        "verdict": result.verdict,
        "missing": result.missing,
        "values": [_drop_nan(value) for value in result.values],
    }


def _drop_nan(value: float) -> float | None:
    """JSON has no word for what is not a number."""
    return None if isnan(value) else value


def _print_results(console: Output, results: Sequence[CheckResult]) -> None:
    table = make_table("check", "published", "found", "interval", "expected", "verdict")
    for result in results:
        check, verdict = result.check, Text(result.verdict, _STYLES[result.verdict])
        has_figure = not isnan(result.mean)
        mean = f"{result.mean:.3g}" if has_figure else "no figure"
        if has_figure and result.missing:
            mean += f", {format_count(result.missing, 'seed')} without"
        interval = f"{result.low:.3g} to {result.high:.3g}" if has_figure else ""
        table.add_row(check.id, check.published, mean, interval, check.bounds, verdict)
    console.print(table)
    held = sum(result.verdict is CheckVerdict.HOLDS for result in results)
    if results:
        seeds = format_count(len(results[0].values), "seed")
        console.print(f"{held} of {len(results)} hold, {seeds} each; --list and --json say what each figure is")
