"""Arguments and options that several commands share."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from shoal.cli.completion import complete_runs
from shoal.cli.errors import JSON_WANTED, complain
from shoal.cli.runner import OutputMode
from shoal.errors import ScenarioInvalid
from shoal.runs import LimitSettings, RunResources, truncate_scenario
from shoal.runs.launchers import LOCAL
from shoal.scenario import Scenario, assign_model, count_people, load, override, parse
from shoal.text import format_count

F = TypeVar("F", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
#: As a path: the scenario is read from standard input.
STDIN = Path("-")
POSITIVE = click.FloatRange(min=0, min_open=True)
_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}

count_option = partial(click.option, type=click.IntRange(min=1), metavar="N")
scenario_argument = click.argument("scenario", type=PATH)
run_argument = click.argument("run", type=PATH, shell_complete=complete_runs)
out_option = click.option("--out", type=PATH, metavar="DIR", help="Directory of the new run; must be new or empty.")
shards_option = count_option(
    "--shards", help="Spread the agents over N processes of this machine; the history stays the same."
)
json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="End with one JSON document on standard output.",
    callback=lambda context, _, value: context.meta.setdefault(JSON_WANTED, value),
)
quality_option = click.option(
    "--require-quality", is_flag=True, help="Exit with code 6 unless the quality of the run is good."
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask for a confirmation of the cost.")
set_option = click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="PATH=VALUE",
    help="Change one value of the scenario, such as time.minutes_per_round=30; may be repeated.",
)


def human_options(command: F) -> F:
    """Add `--human`, `--answers` and `--by`, which set people beside what was simulated."""
    for option in (
        click.option("--by", multiple=True, metavar="COLUMN", help="Divides people into groups; may be repeated."),
        click.option(
            "--answers", type=PATH, metavar="FILE", help="Simulated answers, as `shoal ask --csv` writes them."
        ),
        click.option(
            "--human", type=PATH, metavar="FILE", help="What people answered: a row each, columns of outcomes."
        ),
    ):
        command = option(command)
    return command


def describe_scenario(scenario: Scenario) -> str:
    """Describe a scenario in one line: people, worlds, rounds."""
    worlds = f"{format_count(len(scenario.worlds), 'world')} ({', '.join(scenario.worlds)})"
    minutes = format_count(scenario.time.minutes_per_round, "minute")
    people = format_count(count_people(scenario.population), "person", "people")
    return f"{people}, {worlds}, {format_count(scenario.rounds, 'round')} of {minutes}"


def output_options(command: F) -> F:
    """Add `--json` and `--quiet`, and pass them as one `mode`, with `--require-quality` where a command has it."""

    @json_option
    @click.option("--quiet", is_flag=True, help="Print only the directory of the run.")
    @wraps(command)
    def with_mode(*args: Any, as_json: bool, quiet: bool, **rest: Any) -> Any:
        mode = OutputMode(as_json, quiet, rest.pop("require_quality", False))
        return command(*args, mode=mode, **rest)

    return cast(F, with_mode)


def parse_patience(text: str) -> float:
    """Parse `90s`, `15m`, `2h` or `0` into seconds."""
    try:
        seconds = float(text[:-1]) * _UNIT_SECONDS[text[-1]] if text != "0" else 0.0
    except (ValueError, LookupError):
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise click.BadParameter(f"{text!r} is no time; it looks like 90s, 15m or 2h, or 0 not to wait")
    return seconds


def resource_options(command: F) -> F:
    """Add options for budget, cache, parallel agents and patience, and pass them as one `resources`."""

    @click.option("--max-cost", type=POSITIVE, metavar="DOLLARS", help="Stop before spending more.")
    @count_option("--max-tokens", help="Tokens sent and received, at most.")
    @count_option("--max-calls", help="Calls to a language model, at most.")
    @click.option("--no-cache", is_flag=True, help="Do not use replies that other runs have paid for, nor keep any.")
    @count_option(
        "--parallel",
        help="At most N agents act at once, over all runs with this option; `shoal limits --parallel` changes it.",
    )
    @click.option(
        "--patience",
        type=parse_patience,
        metavar="TIME",
        help="How long to wait for a server that does not answer, such as 90s, 15m or 2h; 0: not at all. Default: 15m.",
    )
    @wraps(command)
    def with_resources(*args: Any, no_cache: bool, **rest: Any) -> Any:
        limits = {name: rest.pop(name, None) for name in LimitSettings.__struct_fields__}
        resources = replace(RunResources.of_user(os.environ), limits=LimitSettings.of(limits))
        return command(*args, resources=replace(resources, cache=None) if no_cache else resources, **rest)

    return cast(F, with_resources)


def place_option(command: F) -> F:
    """Add `--on`, the place where simulations work."""
    return click.option(
        "--on",
        default=LOCAL,
        metavar="PLACE",
        help="Where simulations work: local, ray for the Ray cluster of this machine, or ray://HOST:PORT.",
    )(command)


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of the scenario that the options ask for."""

    #: What `override` takes -> the option as it was typed.
    assignments: dict[str, str]
    rounds: int | None = None

    @classmethod
    def of_sets(cls, sets: Sequence[str]) -> Changes:
        return cls({text: f"--set {text}" for text in sets})


def change_options(command: F) -> F:
    """Add `--set` and options that are a shorter way to write it, and pass them as one `changes`."""

    @click.option(
        "--seed", type=click.IntRange(min=0), metavar="N", help="The seed of everything that is drawn at random."
    )
    @count_option("--rounds", help="How many rounds to run.")
    @count_option(
        "--max-workers",
        help="Decisions that this run makes at once, at most; by default it finds out how many are allowed.",
    )
    @set_option
    @wraps(command)
    def with_changes(*args: Any, sets: tuple[str, ...], **rest: Any) -> Any:
        given = {name: rest.pop(name) for name in ("seed", "rounds", "max_workers")}
        short = {
            f"{name}={value}": f"--{name.replace('_', '-')} {value}"
            for name, value in given.items()
            if value is not None
        }
        return command(*args, changes=Changes(short | Changes.of_sets(sets).assignments, given["rounds"]), **rest)

    return cast(F, with_changes)


def read_scenario(path: Path) -> Scenario:
    """Read the scenario of a file, or of standard input where the path is `-`."""
    if path != STDIN:
        return load(path)
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ScenarioInvalid([f"standard input: not UTF-8 text (byte {error.start + 1})"]) from error
    return parse(text, "standard input", Path())


def load_scenario(path: Path, model: str | None, changes: Changes, more: Mapping[str, str] | None = None) -> Scenario:
    """Load the scenario of a file, with another language model and all other changes."""
    scenario = read_scenario(path)
    if changes.rounds is not None:
        whole, scenario = scenario, truncate_scenario(scenario, changes.rounds)
        if lost := len(whole.events) - len(scenario.events):
            complain(f"note: {format_count(lost, 'event')} after round {changes.rounds} will not happen")
    model_changes = {} if model is None else assign_model(scenario, model)
    return override(scenario, {**model_changes, **changes.assignments, **(more or {})})
