"""The commands `explain` and `diff`, which rebuild turns and compare runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from rich.rule import Rule
from rich.text import Text

from shoal.cli.completion import complete_people, complete_runs
from shoal.cli.options import PATH, json_option, run_argument
from shoal.cli.views.diff import print_diff
from shoal.cli.views.observation import Row, render_action, render_observation, render_values
from shoal.cli.views.output import Output, echo_json, label_table
from shoal.event_loop import run_async
from shoal.runs import RunDirectory
from shoal.runs.rerun import Explanation, diff_runs, explain_turn
from shoal.text import printable, quote_path
from shoal.types import Notice


@click.command("explain")
@run_argument
@click.argument("agent", shell_complete=complete_people)
@click.argument("round", type=click.IntRange(min=0))
@click.option("--world", metavar="NAME", help="In which world; default: in all in which the agent had a turn.")
@json_option
def explain_(run: Path, agent: str, round: int, world: str | None, as_json: bool) -> None:
    """Show what an agent saw in a round, and why it decided so.

    AGENT is a name or a number. The run is run again from its journal up to ROUND and compared with what was committed;
    nothing is changed, and no model is asked. Works for runs that failed or are under way, up to what is committed.

    \b
    Examples:
      shoal explain runs/rumour-1 "Ada Novak" 12
      shoal explain runs/rumour-1 17 12 --world reddit
      shoal explain runs/rumour-1 17 12 --json | jq '.explanations[0].rests_on'
    """
    result = run_async(explain_turn(RunDirectory(run), agent, round, world))
    if as_json:
        echo_json(result)
        return
    console = Output()
    for turn in result.explanations:
        moment = f"  round {turn.round} in {turn.world}, {turn.time[:16].replace('T', ' ')}"
        console.print(Text.assemble((f"{printable(turn.name)} ({turn.agent})", "bold"), moment))
        for title, content in _describe_turn(turn):
            console.print()
            console.print(Rule(Text(title, "bold cyan"), align="left", style="dim"))
            console.print(content)
        console.print()
    # Worlds without a turn are of interest where there was none at all, or where one world was named.
    for absence in result.absences if world is not None or not result.explanations else ():
        why = f" had no turn in round {absence.round} in {absence.world}: {absence.why}."
        text = Text.assemble((f"{printable(absence.name)} ({absence.agent})", "bold"), why)
        near = [at for at in (absence.before, absence.after) if at is not None]
        for near_round in near:
            text.append(
                f"\n  shoal explain {quote_path(result.run)} {absence.agent} {near_round} --world {absence.world}"
            )
        if not near:
            text.append("\nThere was none in any other round either.", "dim")
        console.print(text, soft_wrap=True)


@click.command("diff")
@click.argument("one", type=PATH, shell_complete=complete_runs)
@click.argument("other", type=PATH, shell_complete=complete_runs)
@click.option("--rounds", type=click.IntRange(min=0), metavar="N", help="Compare up to this round only.")
@json_option
def diff_(one: Path, other: Path, rounds: int | None, as_json: bool) -> None:
    """Show where two runs part, and how the difference spread from agent to agent and round to round.

    Both are run again from their journals, in step. People are compared by number, worlds by name.

    \b
    Examples:
      shoal diff runs/rumour-1 runs/rumour-1-fork-1
      shoal diff runs/rumour-1 runs/rumour-2 --rounds 10
      shoal diff runs/rumour-1 runs/rumour-1-fork-1 --json | jq '.worlds[0].reached'
    """
    found = run_async(diff_runs(RunDirectory(one), RunDirectory(other), rounds))
    if as_json:
        echo_json(found)
    else:
        print_diff(Output(), found)


def _describe_turn(turn: Explanation) -> Iterator[Row]:
    yield "what was seen", render_observation(turn.saw)
    happenings = label_table()
    for line in turn.happened:
        if isinstance(line, Notice):
            words = f"{line.event_type}: {printable(line.content)}"
        else:
            content = printable(str(line.action_args.get("content", "")))
            words = f"post in the name of {printable(line.agent_name)}: {content}"
        happenings.add_row(Text(f"round {line.round}"), Text(words))
    if turn.happened:
        yield "what was made to happen", happenings
    rests = {**turn.rests_on, **({} if turn.memory is None else {"memory": turn.memory})}
    nothing = Text("what was seen, and nothing that the mind would tell", "dim")
    yield "what the decision rests on", render_values(rests) if rests else nothing
    yield "what was decided", label_table(_describe_decision(turn))
    events = label_table()
    for event in turn.events:
        done = Text(printable(event.action_type.lower()))
        if event.success:
            for name, value in event.action_args.items():
                done.append(f"\n  {name.replace('_', ' ')} ", "dim").append(printable(str(value)))
        else:
            done.append(f": {printable(event.result or '')}", "red")
        events.add_row("done" if event.success else "came to nothing", done)
    yield "what came of it", events


def _describe_decision(turn: Explanation) -> Iterator[Row]:
    if turn.decision.failure is not None:
        yield turn.decision.failure, Text(printable(turn.decision.reason or ""), "red")
    elif not turn.decision.actions:
        yield "", Text("nothing", "dim")
    for done in turn.decision.actions:
        yield "", render_action(done)
    if (reply := turn.reply) is not None:
        source = f", taken over from {reply.inherited_from}" if reply.inherited_from else ""
        usage = "".join(f", {count:,} {name} tokens" for name, count in (reply.usage or {}).items())
        same = "the same request" if reply.matches else "ANOTHER REQUEST"
        words = f"{reply.key} answers {same}, {reply.request[:12]}; took {reply.ms:,} ms{usage}{source}"
        yield "journal", Text(words, "" if reply.matches else "red")
