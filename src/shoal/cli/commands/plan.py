"""The command `plan`, and the confirmation of runs that cost much."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import msgspec
from rich.text import Text

from shoal.agents import HeuristicSettings, LanguageSettings, ScriptedSettings
from shoal.cli.options import (
    POSITIVE,
    Changes,
    change_options,
    describe_scenario,
    json_option,
    load_scenario,
    scenario_argument,
)
from shoal.cli.views.output import Output, echo_json, label_line, label_table, make_table
from shoal.errors import RunRefused
from shoal.event_loop import run_async
from shoal.machine import Need, advise_shards, inspect_machine
from shoal.runs import check_local_models, describe_servers
from shoal.runs.planning import Expected, Plan, plan_run
from shoal.scenario import (
    BudgetSettings,
    Scenario,
    describe_notes,
    describe_shortened_personas,
    describe_unheeded,
)
from shoal.text import format_count, format_duration, hide_controls
from shoal.types import Versioned

#: A run that may take more than this is confirmed at the terminal.
THRESHOLD_DOLLARS = 1.0
THRESHOLD_CALLS = 2000

#: Totals that the JSON of a plan has beside its fields.
_TOTALS = "calls least_calls input cached output cost cost_uncached".split()


@click.command("plan")
@scenario_argument
@click.option("--model", metavar="NAME", help="As if this language model decided, such as openai/gpt-4.1-mini.")
@change_options
@click.option(
    "--latency",
    type=POSITIVE,
    metavar="SECONDS",
    help="What one call takes; default: what is usual for replies of their length.",
)
@json_option
def plan_(scenario: Path, model: str | None, changes: Changes, latency: float | None, as_json: bool) -> None:
    """Predict calls, tokens, cost and time of a run with language models.

    The scenario is played through in memory, with the prompts that its agents would send. No model is asked, no
    key is needed, and nothing is written.

    \b
    Examples:
      shoal plan examples/rumour.yaml --model openai/gpt-4.1-mini
      shoal plan scenario.yaml --set population.count=1000 --rounds 24
      shoal plan scenario.yaml --model ollama/llama3.2 --latency 4 --max-workers 8
      shoal plan scenario.yaml --model openai/gpt-4.1-mini --json | jq .cost
    """
    wanted = load_scenario(scenario, model, changes)
    check_local_models(wanted, os.environ)
    found = run_async(plan_run(wanted, latency, servers=describe_servers(wanted, os.environ)))
    if as_json:
        totals = {name: getattr(found.total, name) for name in _TOTALS}
        more = {"may_end_early": found.may_end_early, "unpriced": found.unpriced, "notes": describe_notes(wanted)}
        echo_json(msgspec.to_builtins(found) | totals | more)
        return
    console = Output()
    console.print_text(Text.assemble((found.name, "bold"), f"  {describe_scenario(wanted)}"))
    if isinstance(wanted.mind, LanguageSettings):
        figures = ("calls", "tokens sent", "received", "cost")
        table = make_table("world", "model", *figures, right=figures)
        for each in found.expected:
            table.add_row(Text(each.world), Text(each.model), *_format_figures(each))
        table.add_row("total", "", *_format_figures(found.total), style="bold")
        console.print()
        console.print(table)
        console.print()
        for label, words, style in _explain_figures(found):
            _print_labelled(console, label, words, style)
        for cut in describe_shortened_personas(wanted):
            _print_labelled(console, "cut", cut, "yellow")
    elif isinstance(wanted.mind, HeuristicSettings | ScriptedSettings):
        nothing = "No language model is asked, so it costs nothing. --model NAME shows what one would take."
        console.print_text(nothing)
    else:
        own = f"The mind {wanted.mind.kind} is your own: whether it asks anybody cannot be seen from here."
        console.print_text(Text(own))
    for number, note in enumerate(describe_unheeded(wanted)):
        if not number:
            console.print()
        _print_labelled(console, "note", note, "yellow")


def _print_labelled(console: Output, label: str, words: str, style: str) -> None:
    if console.is_terminal:
        console.print(label_table([(label, Text(words, style))], width=12))
    else:
        console.print(label_line(label, words, style, width=14), soft_wrap=True)


def confirm(
    wanted: Versioned[Scenario],
    budget: BudgetSettings | None,
    done: Mapping[str, int] | None = None,
    what: str = "This run",
) -> None:
    """Plan a run and ask at the terminal before much is spent; RunRefused where the answer is no.

    `done`: world -> the last round of it that need not be paid for, where a run goes on or is forked.
    """
    if not is_watched() or not isinstance(wanted.versions()[-1].mind, LanguageSettings):
        return
    servers = describe_servers(wanted.latest, os.environ)
    found = run_async(plan_run(wanted, budget=budget, done=done, servers=servers))
    total, most = found.total, found.total.cost_uncached
    cost = "at a price that is not known" if most is None else f"for up to {_format_dollars(most)}"
    about = "up to" if found.may_end_early else "about"
    tokens = f"{total.tokens / 1e6:,.1f} million" if total.tokens >= 1e6 else f"{total.tokens:,}"
    calls = f"{about} {format_count(total.calls, 'call')} with {tokens} tokens {cost}"
    shortages = "".join(f"\n{shortage}." for shortage in found.short)
    if not is_confirmed(total.calls, most, f"{what} will take {calls}.{shortages}"):
        raise RunRefused("not confirmed, so nothing was run and nothing was spent")


def is_confirmed(calls: int, cost: float | None, question: str) -> bool:
    """Return whether something may begin. The question is put only where it takes much and there is a terminal."""
    is_small = (cost or 0.0) <= THRESHOLD_DOLLARS and calls <= THRESHOLD_CALLS
    return is_small or not is_watched() or click.confirm(hide_controls(f"{question}\nGo on?"), err=True)


def is_watched() -> bool:
    """Return whether a person at a terminal can answer a question."""
    # Both are None where they are closed.
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def _format_figures(each: Expected) -> list[str]:
    cost = "unknown" if each.cost is None else _format_dollars(each.cost)
    calls = f"up to {each.calls:,}" if each.least_calls < each.calls else f"{each.calls:,}"
    return [calls, f"{each.input:,}", f"{each.output:,}", cost]


def _explain_figures(found: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield labels, texts and styles about what the figures rest on and what follows from them."""
    total, about = found.total, "up to" if found.may_end_early else "about"
    each = f"{found.seconds_per_call:.2g} s each (--latency)"
    source = ", as learned from earlier calls (shoal limits)" if found.is_learned else ""
    at_once = f"{format_count(found.max_workers, 'call')} at once of {each}{source}"
    yield "time", f"{about} {format_duration(found.seconds)}, with {at_once}", ""
    calls_a_second = total.calls / found.seconds if found.seconds else 0.0
    need = Need(people=found.people, rounds=found.rounds, max_workers=found.max_workers)
    shards = advise_shards(inspect_machine(), need, calls_a_second)
    if shards is not None and shards.count > 1:
        yield "shards", f"--shards {shards.count} is faster: {shards.reason}", "yellow"
    if total.remembering:
        yield "memory", f"in {total.remembering:,} of the calls people draw conclusions from what they remember", ""
    if total.embedding:
        yield (
            "embeddings",
            f"in {total.embedding:,} of the calls texts are embedded, to find what they bring to mind",
            "",
        )
    if total.judging:
        yield "interventions", f"in {total.judging:,} of the calls claims are judged, if none comes true before", ""
    if total.cached:
        share = f"{total.cached / total.input:.0%} of what is sent has been sent before"
        cost, most = (None if each is None else _format_dollars(each) for each in (total.cost, total.cost_uncached))
        without = f"; {most} if the server does not keep it" if cost and most and cost != most else ""
        yield "prefix cache", f"{share}, as the beginning of another prompt{without}", ""
    if found.unpriced:
        example = "such as --set mind.price='{input: 0.4, output: 1.6}'"
        models = ", ".join(found.unpriced)
        yield "price", f"that of {models} is not known; give it in dollars per million tokens, {example}", "yellow"
    if found.followed < found.people:
        followed = f"{found.followed:,} of {found.people:,} people"
        yield "a sample", f"the prompts of {followed} were built, and scaled to all", ""
    if found.may_end_early:
        least = format_count(total.least_calls, "call")
        yield (
            "may be less",
            "how long people talk is not known: these figures are for conversations that take all their turns; "
            f"with those that end at their first words it would be {least}",
            "",
        )
    rests_on = "tokens from the length of texts, what people do from the offline minds, one or two actions a reply"
    yield "estimated", rests_on, ""
    for shortage in found.short:
        yield "budget", f"{shortage}: the run will stop before its end, and can be resumed", "yellow"


def _format_dollars(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 1 or cost == 0 else f"${cost:.2g}"
