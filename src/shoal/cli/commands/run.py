"""The commands that run something: run, resume, replay, fork."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from shoal.cli.commands.plan import confirm
from shoal.cli.errors import complain
from shoal.cli.options import (
    PATH,
    STDIN,
    Changes,
    change_options,
    describe_scenario,
    load_scenario,
    out_option,
    output_options,
    quality_option,
    resource_options,
    run_argument,
    scenario_argument,
    set_option,
    shards_option,
    yes_option,
)
from shoal.cli.play import terminal_answer
from shoal.cli.runner import OutputMode, end_command, require_quality, run_operation
from shoal.cli.views.display import ProgressDisplay, SilentDisplay
from shoal.cli.views.output import Output, echo
from shoal.cli.views.progress import choose_run_display
from shoal.cli.views.summary import print_summary
from shoal.errors import ProviderRefused, ProviderUnavailable, StorageFailed
from shoal.event_loop import run_async
from shoal.models.local import ModelStore, find_table
from shoal.runs import (
    RunDirectory,
    RunProgress,
    RunResources,
    check_models,
    create_run,
    describe_free_models,
    extend_run,
    fork_run,
    plan_fork,
    plan_resume,
    replay,
)
from shoal.runs.commands import RunServing
from shoal.runs.launchers import make_room
from shoal.runs.reports import summarize
from shoal.runs.rerun import archive_failed, plan_retry
from shoal.runs.seats import read_seats
from shoal.runs.shards import count_shards
from shoal.scenario import BudgetSettings, describe_unheeded, import_mirofish, is_mirofish, sample
from shoal.text import format_count, printable, quote_path
from shoal.types import Versioned
from shoal.worlds import NameIndex


@click.command("run")
@scenario_argument
@out_option
@change_options
@click.option("--play", multiple=True, metavar="NAME", help="Take this person's turns yourself; may be repeated.")
@click.option("--model", metavar="NAME", help="Let this language model decide, such as openai/gpt-4.1-mini.")
@resource_options
@shards_option
@yes_option
@quality_option
@output_options
def run_(  # noqa: PLR0913  # a command has as many options as it has
    scenario: Path,
    out: Path | None,
    changes: Changes,
    play: tuple[str, ...],
    model: str | None,
    resources: RunResources,
    yes: bool,
    mode: OutputMode,
) -> None:
    """Run a scenario to its end.

    The run is kept in runs/NAME-N, or in the directory given with --out. Ctrl-C stops it cleanly, a second one at once;
    either way `shoal resume` goes on from there. If language models will cost more than a dollar or take more than
    2,000 calls, you are asked first at a terminal; `shoal plan` shows the cost without running anything.

    \b
    Examples:
      shoal run scenario.yaml
      shoal run scenario.yaml --seed 7 --rounds 12 --out runs/short
      shoal run scenario.yaml --set population.count=1000 --set follows=small-world
      shoal run scenario.yaml --json | jq .digest
      shoal run uploads/simulations/sim_0123456789ab          a directory that MiroFish prepared
      shoal run examples/negotiation.yaml --play Ada
      make-scenario | shoal run -                             a scenario from standard input
      shoal run examples/rumour.yaml --model openai/gpt-4.1-mini --max-cost 2
    """
    if play and scenario == STDIN:
        raise click.UsageError("--play: your turns are read from standard input, so the scenario must be in a file")
    parts = [int(who) if who.isdecimal() else who for who in play]
    typed = " ".join(f"--play {quote_path(who)}" for who in play)
    playing = {f"play={msgspec.json.encode(parts).decode()}": typed} if parts else {}
    wanted = load_scenario(scenario, model, changes, playing)
    if is_mirofish(scenario) and not mode.quiet:
        imported = import_mirofish(scenario)
        uses = Counter(field.use for field in imported.fields)
        counts = ", ".join(f"{uses[use]} {use}" for use in ("used", "kept", "unused"))
        details = f"shoal import {quote_path(scenario)} --dry-run shows every one"
        complain(f"{imported.kind}: fields {counts}; {details}")
        for note in imported.notes:
            complain(f"note: {note}")
    for note in () if mode.quiet else describe_unheeded(wanted):
        complain(f"note: {note}")
    check_models(wanted, resources)
    shards = count_shards(wanted, resources)
    if not mode.quiet and shards < (resources.limits.shards or 1):
        why = "people in it and decisions that it makes at once allow no more"
        complain(f"note: the run is spread over {format_count(shards, 'process', 'processes')}: the {why}")
    for note in () if mode.quiet else describe_free_models(wanted, resources.limits, resources.environ):
        complain(f"note: {note}")
    if not yes:
        confirm(Versioned(wanted), resources.limits.apply_to(wanted.budget))
    run = create_run(wanted, out, resources.limits)
    _work(run, RunProgress.of(run), f"running {run.path}", mode, resources)


@click.command("resume")
@run_argument
@click.option(
    "--rounds", type=click.IntRange(min=1), metavar="N", help="Go on to this round instead of the planned last one."
)
@click.option("--retry-failed", is_flag=True, help="Ask again for turns that were lost to an outage.")
@resource_options
@shards_option
@yes_option
@quality_option
@output_options
def resume_(  # a command has as many options as it has
    run: Path, rounds: int | None, retry_failed: bool, resources: RunResources, yes: bool, mode: OutputMode
) -> None:
    """Continue a run that was stopped, killed or failed, or add rounds to one that is complete.

    Everything is repeated from its journal, which takes moments and costs nothing, and then goes on as if it had never
    been interrupted. The history is the same as that of an unbroken run; with --rounds it is that of a run that was
    planned with this many rounds from the start. If the rounds that are left will cost much, you are asked first.

    Runs of older versions recorded the outage of a server as the agents' failure. --retry-failed asks again for these
    turns. The history changes from the first of them on; what was written before is kept in archive/N of the run.

    \b
    Examples:
      shoal resume runs/rumour-1
      shoal resume runs/rumour-1 --rounds 72
      shoal resume runs/rumour-1 --retry-failed
    """
    if retry_failed and rounds is not None:
        raise click.UsageError("--retry-failed and --rounds: first ask again for what failed, then go on for longer")
    directory = RunDirectory.open(run)
    run_async(make_room(directory))
    if retry_failed:
        _forget_failed(directory, yes)
        directory = RunDirectory.open(run)
    plan = plan_resume(directory, rounds)
    if plan.is_over and mode.plain:
        echo(f"{run} has run to its end already; shoal show {quote_path(run)} says what happened")
        require_quality(plan.run, mode)
        return
    if not yes and not plan.is_over:
        # The budget of a run counts all its sessions, so it cannot be compared with what is left.
        confirm(plan.versions, BudgetSettings(), plan.done, "The rest of this run")
    if plan.extension is not None:
        extend_run(plan.run, plan.extension)
    _work(plan.run, RunProgress.of(plan.run), f"resuming {run}", mode, resources)


def _forget_failed(run: RunDirectory, yes: bool) -> None:
    """Make a run forget the turns that it lost to outages, and say so."""
    plan = plan_retry(run)
    if plan is None:
        complain(f"note: {run.path} has lost no turn to an outage")
        return
    if not yes:
        versions = plan.run.scenario_versions
        confirm(versions, BudgetSettings(), plan.kept, "This run from there on, if all agents are asked again,")
    archive = archive_failed(plan)
    turns = format_count(len(plan.lost), "turn")
    complain(f"asking again for {turns} from round {plan.first_round} on; what was there is in {archive}")


@click.command("replay")
@run_argument
@output_options
def replay_(run: Path, mode: OutputMode) -> None:
    """Run a run again from its journal and compare every round; changes nothing and asks no model.

    \b
    Example:
      shoal replay runs/rumour-1
    """
    directory = RunDirectory.open(run)
    rounds = max(directory.read_last_rounds().values())
    progress = RunProgress(rounds, dict.fromkeys(directory.worlds, 0), directory.clock)
    display = choose_run_display(Output(stderr=True), progress, f"replaying {run}", mode.quiet)
    result = run_operation(directory, lambda stop: replay(directory, stop, progress), display)
    if result.signal is not None:
        complain(f"stopped before the end of the replay; {run} was not touched")
    elif result.error is None and mode.plain:
        outcome = result.outcome
        echo(
            f"replayed {format_count(outcome.rounds, 'round')} of {run}: "
            f"the same {format_count(outcome.actions, 'action')}, the same history\ndigest {outcome.digest}"
        )
    end_command(result, mode, is_logged=False)


@click.command("fork")
@run_argument
@click.option("--at", type=click.IntRange(min=0), required=True, metavar="ROUND", help="The first round that differs.")
@set_option
@click.option("--inject", type=PATH, metavar="FILE", help="YAML list of events that happen in the fork.")
@out_option
@resource_options
@shards_option
@yes_option
@quality_option
@output_options
def fork_(  # noqa: PLR0913  # a command has as many options as it has
    run: Path,
    at: int,
    sets: tuple[str, ...],
    inject: Path | None,
    out: Path | None,
    resources: RunResources,
    yes: bool,
    mode: OutputMode,
) -> None:
    """Branch a run at a round, with something changed, and run the branch to its end.

    Up to that round the fork shares its parent's past for nothing. After it, only agents whose view of the world really
    changed are asked again, so that the two histories differ by cause and not by luck. The parent is not touched. If
    asking all agents again would cost much, you are asked first.

    \b
    Examples:
      shoal fork runs/rumour-1 --at 12 --set mind.persuasion=0.3
      shoal fork runs/rumour-1 --at 12 --inject denial.yaml
      shoal fork runs/rumour-1 --at 48 --set rounds=72          go on for longer
    \b
    where denial.yaml holds
      - {post: "It is not true, I was there.", by: most_followed}
    """
    plan = plan_fork(RunDirectory.open(run), at, changes=sets, events=inject or ())
    if not yes:
        budget = resources.limits.apply_to(plan.versions.latest.budget)
        confirm(plan.versions, budget, plan.shared, "This fork, if all agents are asked again,")
    child = fork_run(plan, out, resources.limits)
    if plan.left_out:
        complain(
            f"left out: {format_count(len(plan.left_out), 'event')} put into {run} from round {at} on; see --inject"
        )
    if any("seat" in (line.event or {}) for line in child.events):
        for seat in read_seats(child, sample(child.scenario)):
            told = f"{printable(seat.name)}'s turns wait for a person, {seat.seconds:g} s each"
            complain(f"{told}: shoal seat {quote_path(child.path)} {seat.agent_id}")
    progress = RunProgress.of(child, known=dict.fromkeys(child.worlds, at))
    _work(child, progress, f"forking {run} at round {at} into {child.path}", mode, resources)


def _work(run: RunDirectory, progress: RunProgress, title: str, mode: OutputMode, resources: RunResources) -> None:
    """Work on a run to its end and print what happened."""
    scenario = run.scenario
    title = f"{title}: {describe_scenario(scenario)}"
    if scenario.play:
        # A live view would draw over what is being typed.
        display: ProgressDisplay = SilentDisplay()
        complain(title)
        people = sample(scenario)
        index = NameIndex(people.names)
        for person in (people[index[who]] for who in scenario.play):
            complain(f"You are {person.name}. {person.persona}")
        resources = replace(resources, answer=terminal_answer())
    else:
        display = choose_run_display(Output(stderr=True), progress, title, mode.quiet)
    result = run_operation(run, lambda stop: RunServing(run, progress, resources).work(stop), display)
    uncached = " --no-cache" if resources.cache is None else ""
    again = (
        f"stopped at round {result.outcome.rounds} of {scenario.rounds}; continue with: {run.resume_command}{uncached}"
    )
    if result.signal is not None:
        complain(again)
    elif result.error is None and mode.plain:
        print_summary(Output(), summarize(run, find_table(ModelStore.of_user(os.environ))))
    passing = ProviderRefused | ProviderUnavailable | StorageFailed | MemoryError | OSError
    may_pass = isinstance(result.error, passing)
    end_command(result, mode, again=again if may_pass else "")
