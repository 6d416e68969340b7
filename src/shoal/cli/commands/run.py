"""The commands that run something: run, resume, replay, fork."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import click
import msgspec
from rich.console import Console

from shoal.agents.settings import LanguageSettings
from shoal.cli.errors import complain
from shoal.cli.options import (
    PATH,
    Changes,
    change_options,
    describe_scenario,
    load_scenario,
    out_option,
    outside_options,
    run_argument,
    scenario_argument,
    set_option,
    speech_options,
    truncate_scenario,
    yes_option,
)
from shoal.cli.play import terminal_answer
from shoal.cli.runner import OutputMode, end_command, run_operation
from shoal.cli.views.output import Output
from shoal.cli.views.progress import ProgressDisplay, SilentDisplay, choose_display
from shoal.cli.views.summary import print_summary
from shoal.runs import operations
from shoal.runs.directory import RUNS, RunDirectory, claim_directory, full_name
from shoal.runs.progress import RunProgress
from shoal.runs.reports.summary import summarize
from shoal.runs.rerun.rerun import replay
from shoal.runs.resources import RunResources, check_models
from shoal.runs.state import Status
from shoal.runs.worker import work_on_run
from shoal.scenario.importers.mirofish.scenario import import_mirofish, is_mirofish
from shoal.scenario.loading import load_events
from shoal.scenario.overrides import override
from shoal.scenario.sampling.sampler import sample
from shoal.scenario.scenario import BudgetSettings, Scenario
from shoal.text import format_count, quote_path
from shoal.types import Persona, Versioned
from shoal.worlds.names import NameIndex

_PLANNING = "shoal.cli.commands.plan"


@click.command("run")
@scenario_argument
@out_option
@change_options
@click.option("--play", multiple=True, metavar="NAME", help="Take this person's turns yourself; may be repeated.")
@click.option("--model", metavar="NAME", help="Let this language model decide, such as openai/gpt-4.1-mini.")
@outside_options
@yes_option
@speech_options
def run_(  # noqa: PLR0913  # a command has as many options as it has
    scenario: Path,
    out: Path | None,
    changes: Changes,
    play: tuple[str, ...],
    model: str | None,
    outside: RunResources,
    yes: bool,
    speech: OutputMode,
) -> None:
    """Run a scenario to its end.

    The run is kept in runs/NAME-N, or in the directory given with --out. Ctrl-C stops it cleanly, a second one at once;
    either way `shoal resume` goes on from there. Where language models will cost more than a dollar or take more than
    2,000 calls, whoever sits at the terminal is asked first; `shoal plan` says it without running anything.

    \b
    Examples:
      shoal run scenario.yaml
      shoal run scenario.yaml --seed 7 --rounds 12 --out runs/short
      shoal run scenario.yaml --set population.count=1000 --set follows=small-world
      shoal run scenario.yaml --json | jq .digest
      shoal run uploads/simulations/sim_0123456789ab          a directory that MiroFish prepared
      shoal run examples/negotiation.yaml --play Ada
      shoal run examples/rumour.yaml --model openai/gpt-4.1-mini --max-cost 2
    """
    wanted = load_scenario(scenario, model, changes, _parts(play))
    if is_mirofish(scenario) and not speech.quiet:
        complain(_understood(scenario))
    check_models(wanted, outside)
    if not yes:
        _confirm(Versioned(wanted), outside.budget)
    with claim_directory(out, RUNS, wanted.name) as path:
        directory = operations.create_run(wanted, path)
    _work(directory, {}, f"running {directory.path}", speech, outside)


@click.command("resume")
@run_argument
@click.option(
    "--rounds", type=click.IntRange(min=1), metavar="N", help="Go on to this round, also where the run was to end."
)
@outside_options
@yes_option
@speech_options
def resume_(run: Path, rounds: int | None, outside: RunResources, yes: bool, speech: OutputMode) -> None:
    """Continue a run that was stopped, killed or failed, or add rounds to one that is complete.

    Everything is done again from its journal, which takes moments and costs nothing, and then goes on as if it had
    never been interrupted. The history is the same as that of an unbroken run; with --rounds it is that of a run that
    was to be so long from the start. Where the rounds that are left will cost much you are asked first, as by `run`.

    \b
    Examples:
      shoal resume runs/rumour-1
      shoal resume runs/rumour-1 --rounds 72
    """
    directory = RunDirectory.open(run)
    done = directory.committed_rounds()
    longer = None if rounds is None else _longer(directory, rounds, max(done.values()))
    is_over = longer is None and directory.is_over()
    if is_over and speech.plain:
        click.echo(f"{run} has run to its end already; shoal show {quote_path(run)} says what happened")
        return
    if not yes and not is_over:
        # What a run may spend counts all its sessions, so a limit cannot be compared with what is left.
        _confirm(_extended(directory.scenario_versions, longer, done), BudgetSettings(), done, "The rest of this run")
    if longer is not None:
        operations.extend_run(directory, longer)
    _work(directory, done, f"resuming {run}", speech, outside)


@click.command("replay")
@run_argument
@speech_options
def replay_(run: Path, speech: OutputMode) -> None:
    """Run a run again from its journal and compare every round; changes nothing and asks nobody.

    \b
    Example:
      shoal replay runs/rumour-1
    """
    directory = RunDirectory(run)
    rounds = max(directory.committed_rounds().values())
    progress = RunProgress(rounds, dict.fromkeys(directory.worlds, 0), directory.clock)
    display = choose_display(Console(stderr=True), progress, f"replaying {run}", speech.quiet)
    ended = run_operation(directory, lambda stop: replay(directory, stop, progress), display)
    if ended.signal is not None:
        complain(f"stopped before the end of the replay; {run} was not touched")
    elif ended.error is None and speech.plain:
        outcome = ended.outcome
        click.echo(
            f"replayed {format_count(outcome.rounds, 'round')} of {run}: "
            f"the same {format_count(outcome.actions, 'action')}, the same history\ndigest {outcome.digest}"
        )
    end_command(ended, speech, is_logged=False)


@click.command("fork")
@run_argument
@click.option(
    "--at", type=click.IntRange(min=0), required=True, metavar="ROUND", help="Round from which on it differs."
)
@set_option
@click.option("--inject", type=PATH, metavar="FILE", help="YAML list of events that happen in the fork.")
@out_option
@outside_options
@yes_option
@speech_options
def fork_(  # noqa: PLR0913  # a command has as many options as it has
    run: Path,
    at: int,
    sets: tuple[str, ...],
    inject: Path | None,
    out: Path | None,
    outside: RunResources,
    yes: bool,
    speech: OutputMode,
) -> None:
    """Branch a run at a round, with something changed, and run the branch to its end.

    Up to that round the fork shares its parent's past for nothing. After it, only those are asked again whose picture
    of the world really changed, so that the two histories differ by cause and not by luck. The parent is not touched.
    Where it would cost much to ask everybody again you are asked first, as by `run`.

    \b
    Examples:
      shoal fork runs/rumour-1 --at 12 --set mind.persuasion=0.3
      shoal fork runs/rumour-1 --at 12 --inject denial.yaml
      shoal fork runs/rumour-1 --at 48 --set rounds=72          go on for longer
    \b
    where denial.yaml holds
      - {post: "It is not true, I was there.", by: most_followed}
    """
    parent = RunDirectory(run)
    history = parent.scenario_versions
    changed = override(history.at(at), sets)
    _check_round(at, _last_round(parent), changed)
    injected = load_events(inject, changed, at) if inject else []
    if not yes:
        shared = _shared(parent, at, changed, is_alike=not injected)
        _confirm(
            operations.fork_versions(history, at, changed),
            outside.budget,
            shared,
            "This fork, if everybody is asked again,",
        )
    with claim_directory(out, full_name(parent.path).parent, f"{parent.path.resolve().name}-fork") as path:
        directory = operations.fork_run(parent, path, at, changed, injected)
    title = f"forking {run} at round {at} into {directory.path}"
    _work(directory, dict.fromkeys(history.first.worlds, at), title, speech, outside)


def _parts(play: tuple[str, ...]) -> list[str]:
    """Who is played, as a change of the scenario; a number is one."""
    parts = [int(who) if who.isdecimal() else who for who in play]
    return [f"play={msgspec.json.encode(parts).decode()}"] if parts else []


def _understood(directory: Path) -> str:
    """What became of the fields of a directory that somebody else's system prepared, in one line."""
    found = import_mirofish(directory)
    uses = Counter(field.use for field in found.fields)
    counts = ", ".join(f"{uses[use]} {use}" for use in ("used", "kept", "unused"))
    return f"{found.kind}: fields {counts}; shoal import {quote_path(directory)} --dry-run shows every one"


def _played(scenario: Scenario) -> list[Persona]:
    people = sample(scenario)
    index = NameIndex(people.names)
    return [people[index[who]] for who in scenario.play]


def _longer(directory: RunDirectory, rounds: int, last: int) -> Scenario | None:
    """The scenario with which the run goes to this round and no further; None where it does so already."""
    planned = _latest(directory.scenario_versions)
    if rounds == planned.rounds:
        return None
    if rounds <= last:
        raise click.BadParameter(
            f"{directory.path} has {format_count(last, 'round')} already; give more than that, or fork it to go back.",
            param_hint="--rounds",
        )
    return override(truncate_scenario(planned, rounds), [f"rounds={rounds}"])


def _extended(history: Versioned[Scenario], longer: Scenario | None, done: dict[str, int]) -> Versioned[Scenario]:
    changes = () if longer is None else ((max(done.values()) + 1, longer),)
    return Versioned(history.first, (*history.changes, *changes))


def _shared(parent: RunDirectory, at: int, changed: Scenario, is_alike: bool) -> dict[str, int]:
    """World -> the last round that a fork has for nothing. One that only goes on for longer shares all there is."""
    committed, now = parent.committed_rounds(), parent.scenario_versions.at(at)
    if is_alike and changed.model_copy(update={"rounds": now.rounds}) == now:
        return committed
    return dict.fromkeys(committed, max(at - 1, 0))


def _confirm(
    wanted: Versioned[Scenario],
    budget: BudgetSettings | None,
    done: dict[str, int] | None = None,
    what: str = "This run",
) -> None:
    """Ask before much is spent. Planning is loaded only where there is something to plan."""
    if isinstance(_latest(wanted).mind, LanguageSettings):
        import_module(_PLANNING).confirm(wanted, budget, done, what)


def _last_round(directory: RunDirectory) -> int:
    """The last round of which all worlds know; of a complete run, some worlds may have ended before."""
    committed = directory.committed_rounds().values()
    return max(committed) if directory.status() is Status.COMPLETED else min(committed)


def _check_round(at: int, last: int, changed: Scenario) -> None:
    if at > last:
        raise click.BadParameter(f"{at} is not a round of this run; it has rounds 0 to {last}.", param_hint="--at")
    if at > changed.rounds:
        raise click.BadParameter(f"{at} is after the last round of the fork, {changed.rounds}.", param_hint="--at")


def _work(
    directory: RunDirectory, known: dict[str, int], title: str, speech: OutputMode, outside: RunResources
) -> None:
    """Work on a run to its end and say what happened."""
    scenario = _latest(directory.scenario_versions)
    title = f"{title}: {describe_scenario(scenario)}"
    progress = RunProgress.of(directory, known={name: known.get(name, 0) for name in directory.worlds})
    if scenario.play:
        # A view that draws itself anew would draw over what is being typed.
        complain(title)
        for who in _played(scenario):
            complain(f"You are {who.name}. {who.persona}")
        display: ProgressDisplay = SilentDisplay()
        outside = replace(outside, answer=terminal_answer())
    else:
        display = choose_display(Console(stderr=True), progress, title, speech.quiet)
    ended = run_operation(directory, lambda stop: work_on_run(directory, stop, progress, outside), display)
    if ended.signal is not None:
        rounds = f"round {ended.outcome.rounds} of {scenario.rounds}"
        complain(f"stopped at {rounds}; continue with: shoal resume {quote_path(directory.path)}")
    elif ended.error is None and speech.plain:
        print_summary(Output(), summarize(directory))
    end_command(ended, speech)


def _latest(history: Versioned[Scenario]) -> Scenario:
    return history.latest
