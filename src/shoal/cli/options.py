"""Arguments and options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click
import msgspec

from shoal.agents import LanguageSettings
from shoal.cli.errors import complain
from shoal.cli.runner import OutputMode
from shoal.runs import RunResources, truncate_scenario
from shoal.scenario import BudgetSettings, Scenario, count_people, load, override
from shoal.text import format_count

F = TypeVar("F", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)

scenario_argument = click.argument("scenario", type=PATH)
run_argument = click.argument("run", type=PATH)
out_option = click.option("--out", type=PATH, metavar="DIR", help="Directory of the new run; must be new or empty.")
json_option = click.option("--json", "as_json", is_flag=True, help="End with one JSON object on standard output.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask for a confirmation of the cost.")
set_option = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="PATH=VALUE",
    help="Change one value of the scenario, such as time.minutes_per_round=30; may be repeated.",
)


def describe_scenario(scenario: Scenario) -> str:
    """Describe a scenario in one line: people, worlds, rounds."""
    worlds = f"{format_count(len(scenario.worlds), 'world')} ({', '.join(scenario.worlds)})"
    minutes = format_count(scenario.time.minutes_per_round, "minute")
    people = format_count(count_people(scenario.population), "person", "people")
    return f"{people}, {worlds}, {format_count(scenario.rounds, 'round')} of {minutes}"


def output_options(command: F) -> F:
    """Add `--json` and `--quiet`, and pass them as one `mode`."""

    @json_option
    @click.option("--quiet", is_flag=True, help="Print only the directory of the run.")
    @wraps(command)
    def with_mode(*args: Any, as_json: bool, quiet: bool, **rest: Any) -> Any:
        return command(*args, mode=OutputMode(as_json, quiet), **rest)

    return cast(F, with_mode)


def resource_options(command: F) -> F:
    """Add options for budget, cache and parallel agents, and pass them as one `resources`."""

    @click.option(
        "--max-cost", type=click.FloatRange(min=0, min_open=True), metavar="DOLLARS", help="Stop before spending more."
    )
    @click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Tokens sent and received, at most.")
    @click.option("--max-calls", type=click.IntRange(min=1), metavar="N", help="Calls to a language model, at most.")
    @click.option("--no-cache", is_flag=True, help="Do not use replies that other runs have paid for, nor keep any.")
    @click.option(
        "--parallel",
        type=click.IntRange(min=1),
        metavar="N",
        help="At most N agents act at once, over all runs with this option; `shoal limits --parallel` changes it.",
    )
    @wraps(command)
    def with_resources(*args: Any, no_cache: bool, parallel: int | None, **rest: Any) -> Any:
        limits = {name: rest.pop(name) for name in ("max_cost", "max_tokens", "max_calls")}
        budget = BudgetSettings(**limits) if any(limits.values()) else None
        resources = replace(RunResources.of_user(os.environ), budget=budget, parallel=parallel)
        return command(*args, resources=replace(resources, cache=None) if no_cache else resources, **rest)

    return cast(F, with_resources)


#: Options that are a shorter way to write `--set`.
_SHORTCUTS = {
    "seed": (click.IntRange(min=0), "The seed of everything that is drawn at random."),
    "rounds": (click.IntRange(min=1), "How many rounds to run."),
    "max_workers": (
        click.IntRange(min=1),
        "Decisions that this run makes at once, at most; by default it finds out how many are allowed.",
    ),
}


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of the scenario that the options ask for."""

    assignments: list[str]
    rounds: int | None


def change_options(command: F) -> F:
    """Add `--set` and its shortcuts, and pass them as one `changes`."""

    @wraps(command)
    def with_changes(*args: Any, sets: tuple[str, ...], **rest: Any) -> Any:
        given = {name: rest.pop(name) for name in _SHORTCUTS}
        short = [f"{name}={value}" for name, value in given.items() if value is not None]
        return command(*args, changes=Changes([*short, *sets], given["rounds"]), **rest)

    decorated: Any = set_option(with_changes)
    for name, (kind, words) in reversed(_SHORTCUTS.items()):
        decorated = click.option(f"--{name.replace('_', '-')}", name, type=kind, metavar="N", help=words)(decorated)
    return cast(F, decorated)


def load_scenario(path: Path, model: str | None, changes: Changes, more: Sequence[str] = ()) -> Scenario:
    """Load the scenario of a file, with another language model and all other changes."""
    scenario = load(path)
    if changes.rounds is not None:
        whole, scenario = scenario, truncate_scenario(scenario, changes.rounds)
        if lost := len(whole.events) - len(scenario.events):
            complain(f"note: {format_count(lost, 'event')} after round {changes.rounds} will not happen")
    model_changes = []
    if model is not None:
        is_language = isinstance(scenario.mind, LanguageSettings)
        field, value = ("mind.model", model) if is_language else ("mind", {"kind": "language", "model": model})
        model_changes = [f"{field}={msgspec.json.encode(value).decode()}"]
    return override(scenario, [*model_changes, *changes.assignments, *more])
