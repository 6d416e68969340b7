"""The command `ask`, which interviews agents and scores claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.text import Text

from shoal.agents import Item, Survey, parse_fields
from shoal.cli.completion import complete_people
from shoal.cli.errors import complain
from shoal.cli.options import PATH, count_option, json_option, resource_options, run_argument
from shoal.cli.views.output import Output, echo, echo_json, make_table
from shoal.event_loop import run_async
from shoal.runs import RunDirectory, RunResources, storage_errors
from shoal.runs.interviews import (
    AgentSelection,
    AnswerRow,
    AnswerTable,
    Asking,
    ask_agents,
    read_survey,
    score_agents,
    score_world,
)
from shoal.text import format_count, printable

#: How many rows say why they failed, on a terminal.
_MAX_REASONS = 5


@click.command("ask")
@run_argument
@click.argument("question", required=False)
@click.option(
    "--fields",
    multiple=True,
    metavar="NAME:KIND",
    help="Form of the answer: text, number, integer, integer 0-10, yes/no or a|b|c; may be repeated.",
)
@click.option("--survey", type=PATH, metavar="FILE", help="YAML list of {question, fields}, asked all at once.")
@click.option("--claim", metavar="TEXT", help="Score this claim 0 to 9, with reasons, in place of a question.")
@click.option("--world", metavar="NAME", help="Score the claim on this world, not on agents.")
@click.option(
    "--who",
    metavar="NAMES",
    shell_complete=complete_people,
    help='Names and numbers with commas between, such as "Ada Novak,17".',
)
@click.option("--where", metavar="CONDITION", help='What has to hold of them, such as "age > 40 and stance < 0".')
@count_option("--sample", help="Draw N of those at random.")
@click.option("--round", "at", type=click.IntRange(min=0), metavar="N", help="As they were after this round.")
@click.option("--iterations", type=click.IntRange(min=1), default=1, metavar="K", help="Ask each K times.")
@click.option("--model", metavar="NAME", help="Let this language model answer; default: that of the agent.")
@click.option("--csv", "csv_file", type=PATH, metavar="FILE", help="Write the table to this file as CSV.")
@resource_options
@json_option
def ask_(run: Path, csv_file: Path | None, resources: RunResources, as_json: bool, **options: Any) -> None:
    """Interview agents of a run, or score a claim; changes nothing.

    Copies of the agents are asked: one call for each, with who the agent is, what it remembers in view of the question,
    what it last saw, and the question. Agents without a language model need --model, which then answers in their name.
    With the response cache, asking the same again costs nothing.

    \b
    Examples:
      shoal ask runs/rumour-1 "Do you trust the town hall?"
      shoal ask runs/rumour-1 "Will you go?" --fields "go:yes/no,why:text" --where "age > 40"
      shoal ask runs/rumour-1 "How angry are you?" --fields "anger:integer 0-10" --sample 50 --csv anger.csv
      shoal ask runs/rumour-1 --survey survey.yaml --who "Ada Novak,17" --round 12 --iterations 5
      shoal ask runs/rumour-1 --claim "The rumour was believed by most." --world twitter
    \b
    where survey.yaml holds
      - question: Will you go to the meeting?
        fields: {go: yes/no, why: text}
      - question: Whom do you trust most?
    """
    question, survey, claim, world = (options[name] for name in ("question", "survey", "claim", "world"))
    if sum(given is not None for given in (question, survey, claim)) != 1:
        raise click.UsageError("give a QUESTION, or --survey FILE, or --claim TEXT: one of them")
    if options["fields"] and question is None:
        raise click.UsageError("--fields goes with a QUESTION; a survey has its own, and a claim has a score")
    if world is not None and claim is None:
        raise click.UsageError("--world goes with --claim; questions are put to agents")
    directory, selection = RunDirectory(run), AgentSelection(options["who"], options["where"], options["sample"])
    asking = Asking(selection, options["at"], options["model"], options["iterations"])
    if world is not None:
        answers = score_world(directory, claim, world, asking, resources)
    elif claim is not None:
        answers = score_agents(directory, claim, asking, resources)
    else:
        items = [] if question is None else [Item(question, parse_fields(options["fields"]))]
        answers = ask_agents(directory, Survey.of(items) if items else read_survey(survey), asking, resources)
    table = run_async(answers)
    if csv_file is not None:
        with storage_errors(csv_file), csv_file.open("w", encoding="utf-8", newline="") as file:
            table.write_csv(file)
    if as_json:
        named = {name: getattr(table, name) for name in ("run", "round", "columns", "stand_in", "spending")}
        echo_json({**named, "rows": table.records()})
    else:
        _print(table, csv_file)
    if all(row.error is not None for row in table.rows):
        raise click.exceptions.Exit(1)


def _print(table: AnswerTable, csv_file: Path | None) -> None:
    if csv_file is not None:
        echo(f"{csv_file}: {format_count(len(table.rows), 'row')}")
    else:
        repeated = any(row.iteration for row in table.rows)
        who = "agent" if table.rows[0].agent is not None else "world"
        columns = (Text(column.replace("_", " ")) for column in table.columns)
        grid = make_table(who, *["iteration"] * repeated, *columns)
        for row in table.rows:
            values = [printable(str(row.values.get(column, ""))) for column in table.columns]
            cells = [_format_name(row), *[str(row.iteration)] * repeated, *values]
            grid.add_row(*map(Text, cells), style="dim" if row.error else "")
        Output().print(grid)
    failed = [row for row in table.rows if row.error is not None]
    for row in failed[:_MAX_REASONS]:
        complain(f"{_format_name(row)}: {printable(row.error or '')}")
    if len(failed) > _MAX_REASONS:
        complain(f"and {len(failed) - _MAX_REASONS:,} more without an answer; --json has every reason")
    if table.stand_in:
        models = ", ".join(dict.fromkeys(row.model for row in table.rows))
        complain(f"note: {models} answered in the name of agents who did not act by it in the run")
    spent = table.spending
    cost = "cost unknown" if spent["cost"] is None else f"${spent['cost']:,.4f}"
    hits = f", {spent['cache_hits']:,} from the cache" if spent["cache_hits"] else ""
    tokens = format_count(spent["input"] + spent["output"], "token")
    complain(f"{format_count(spent['calls'], 'call')}{hits}, {tokens}, {cost}")


def _format_name(row: AnswerRow) -> str:
    return printable(row.name) if row.agent is None else f"{printable(row.name)} ({row.agent})"
