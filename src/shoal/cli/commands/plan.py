"""The command that says what a run will take before it is paid for: plan. And asking whether that is wanted."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.table import Table
from rich.text import Text

from shoal.agents.settings import HeuristicSettings, LanguageSettings, ScriptedSettings
from shoal.cli.options import Changes, change_options, describe_scenario, json_option, load_scenario, scenario_argument
from shoal.cli.views.output import Output, echo_json
from shoal.cli.views.progress import duration
from shoal.errors import RunRefused
from shoal.event_loop import run_async
from shoal.runs.planning.plan import Expected, Plan, plan_run
from shoal.scenario.scenario import BudgetSettings, Scenario
from shoal.text import format_count
from shoal.types import Versioned

#: A run that may take more than this is confirmed by whoever sits at the terminal.
THRESHOLD_DOLLARS = 1.0
THRESHOLD_CALLS = 2000

UNKNOWN = "unknown"


@click.command("plan")
@scenario_argument
@click.option("--model", metavar="NAME", help="As if this language model decided, such as openai/gpt-4.1-mini.")
@change_options
@click.option(
    "--latency",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="What one call takes; default: what is usual for replies of their length.",
)
@json_option
def plan_(scenario: Path, model: str | None, changes: Changes, latency: float | None, as_json: bool) -> None:
    """Predict calls, tokens, cost and time of a run with language models.

    The scenario is played through in memory, with the prompts that its agents would send. Nobody is asked, no key is
    needed, and nothing is written.

    \b
    Examples:
      shoal plan examples/rumour.yaml --model openai/gpt-4.1-mini
      shoal plan scenario.yaml --set population.count=1000 --rounds 24
      shoal plan scenario.yaml --model ollama/llama3.2 --latency 4 --max-workers 8
      shoal plan scenario.yaml --model openai/gpt-4.1-mini --json | jq .cost
    """
    wanted = load_scenario(scenario, model, changes)
    found = run_async(plan_run(wanted, latency))
    if as_json:
        echo_json(as_dict(found))
    else:
        _print(Output(), wanted, found)


def as_dict(found: Plan) -> dict[str, Any]:
    """The plan with its totals."""
    return {**msgspec.to_builtins(found), **{name: getattr(found, name) for name in _TOTALS}}


_TOTALS = "calls least_calls may_end_early input cached output cost cost_uncached unpriced".split()


# Whether that is wanted


def confirm(
    wanted: Versioned[Scenario],
    budget: BudgetSettings | None,
    done: Mapping[str, int] | None = None,
    what: str = "This run",
) -> None:
    """Ask whoever sits at the terminal before much is spent; RunRefused where the answer is no.

    `done`: world -> the last round of it that need not be paid for, where a run goes on or is forked.
    """
    if not _is_watched() or not isinstance(wanted.versions()[-1].mind, LanguageSettings):
        return
    if not is_confirmed(run_async(plan_run(wanted, budget=budget, done=done)), what):
        raise RunRefused("not confirmed, so nothing was run and nothing was spent")


def is_confirmed(found: Plan, what: str = "This run") -> bool:
    """Whether the run may begin. Only asked where it takes much and somebody is there to answer."""
    is_small = (found.cost_uncached or 0.0) <= THRESHOLD_DOLLARS and found.calls <= THRESHOLD_CALLS
    if is_small or not _is_watched():
        return True
    cost = (
        "at a price that is not known" if found.cost_uncached is None else f"for up to {_dollars(found.cost_uncached)}"
    )
    about = "up to" if found.may_end_early else "about"
    told = f"{about} {format_count(found.calls, 'call')} with {_rounded(found.input + found.output)} tokens {cost}"
    short = "".join(f"\n{words}." for words in found.short)
    return click.confirm(f"{what} will take {told}.{short}\nGo on?", err=True)


def _is_watched() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


# In words


def _print(console: Output, scenario: Scenario, found: Plan) -> None:
    console.print(Text.assemble((found.name, "bold"), f"  {describe_scenario(scenario)}"), soft_wrap=True)
    if not isinstance(scenario.mind, LanguageSettings):
        console.print(Text(_nothing(scenario)), soft_wrap=True)
        return
    console.print()
    console.print(_table(found))
    console.print()
    for line in _remarks(found):
        console.print(line, soft_wrap=True)


def _nothing(scenario: Scenario) -> str:
    if isinstance(scenario.mind, HeuristicSettings | ScriptedSettings):
        return "No language model is asked, so it costs nothing. --model NAME shows what one would take."
    return f"The mind {scenario.mind.kind} is your own: whether it asks anybody cannot be seen from here."


def _table(found: Plan) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("world", "model"):
        table.add_column(name, overflow="fold")
    for name in ("calls", "tokens sent", "received", "cost"):
        table.add_column(name, justify="right")
    for each in found.expected:
        table.add_row(Text(each.world), Text(each.model), *_figures(each))
    table.add_row("total", "", *_figures(found), style="bold")
    return table


def _figures(each: Expected | Plan) -> list[str]:
    cost = UNKNOWN if each.cost is None else _dollars(each.cost)
    calls = f"up to {each.calls:,}" if each.least_calls < each.calls else f"{each.calls:,}"
    return [calls, f"{each.input:,}", f"{each.output:,}", cost]


def _remarks(found: Plan) -> Iterator[Text]:
    """What the figures rest on, and what follows from them."""
    seconds = f"{found.seconds_per_call:.2g} s"
    yield _remark(
        "time",
        f"{'up to' if found.may_end_early else 'about'} {duration(found.seconds)}, "
        f"with {found.max_workers:,} calls at once of {seconds} each (--latency)",
    )
    if remembering := sum(each.remembering for each in found.expected):
        yield _remark("memory", f"in {remembering:,} of the calls people draw conclusions from what they remember")
    if embedding := sum(each.embedding for each in found.expected):
        yield _remark(
            "embeddings", f"in {embedding:,} of the calls texts are embedded, to find what they bring to mind"
        )
    if found.cached:
        yield _remark("prefix cache", _caching(found))
    if found.unpriced:
        yield _remark("price", _pricing(found), "yellow")
    if found.followed < found.people:
        yield _remark(
            "a sample", f"the prompts of {found.followed:,} of {found.people:,} people were built, and scaled to all"
        )
    if found.may_end_early:
        yield _remark(
            "may be less",
            "how long people talk is not known: these figures are for conversations that take all their turns; "
            f"with those that end at their first words it would be {format_count(found.least_calls, 'call')}",
        )
    yield _remark(
        "estimated",
        "tokens from the length of texts, what people do from the offline minds, one or two actions a reply",
    )
    for words in found.short:
        yield _remark("budget", f"{words}: the run will stop before its end, and can be resumed", "yellow")


def _remark(label: str, words: str, style: str = "") -> Text:
    return Text.assemble((f"{label:<14}", "dim"), (words, style))


def _caching(found: Plan) -> str:
    told = f"{found.cached / found.input:.0%} of what is sent has been sent before, as the beginning of another prompt"
    if found.cost is None or found.cost_uncached is None or _dollars(found.cost_uncached) == _dollars(found.cost):
        return told
    return f"{told}; {_dollars(found.cost_uncached)} if the server does not keep it"


def _pricing(found: Plan) -> str:
    models = ", ".join(found.unpriced)
    return (
        f"that of {models} is not known; give it in dollars per million tokens, "
        "such as --set mind.price='{input: 0.4, output: 1.6}'"
    )


def _dollars(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 1 or cost == 0 else f"${cost:.2g}"


def _rounded(count: int) -> str:
    return f"{count / 1e6:,.1f} million" if count >= 1e6 else f"{count:,}"
