"""The commands that look at runs: show, query, list."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec
from rich.text import Text

from shoal.cli.errors import QualityMissed, complain
from shoal.cli.options import PATH, json_option, quality_option, run_argument
from shoal.cli.views.output import Output, echo, echo_json, make_table
from shoal.cli.views.summary import STYLES, print_summary
from shoal.errors import QueryFailed, ShoalError
from shoal.event_loop import run_async
from shoal.models.local import ModelStore, find_table
from shoal.runs import RUNS, RunDirectory, list_runs, replay
from shoal.runs.reports import Verdict, query_database, summarize
from shoal.text import format_count


@click.command("show")
@run_argument
@click.option("--check", is_flag=True, help="First compare its streams and tables with the history in its journal.")
@quality_option
@json_option
def show_(run: Path, check: bool, require_quality: bool, as_json: bool) -> None:
    """Summarise a run, at any time: while it runs, after it, after a crash.

    Its quality is good, doubtful or bad, with the reasons. With --check, the run is run again from its journal first,
    and a file that was changed ends the command with exit code 1; what differs first is named.

    \b
    Examples:
      shoal show runs/rumour-1
      shoal show runs/rumour-1 --check
      shoal show runs/rumour-1 --json | jq '.worlds[0].top_posts'
      shoal show runs/rumour-1 --require-quality && echo good
    """
    directory = RunDirectory.open(run)
    if check:
        if directory.has_worker():
            raise QueryFailed(f"{run} is being worked on; it can be checked when it stops")
        outcome = run_async(replay(directory, asyncio.Event()))
        complain(f"checked {format_count(outcome.rounds, 'round')}: streams and tables are those of the journal")
    summary = summarize(directory, find_table(ModelStore.of_user(os.environ)))
    if as_json:
        echo_json(summary)
    else:
        print_summary(Output(), summary)
    # Last, so that it is not missed below a long summary.
    directory.check_journal()
    if require_quality and summary.quality.verdict is not Verdict.GOOD:
        raise QualityMissed(summary.quality.verdict)


@click.command("query")
@run_argument
@click.argument("sql")
@click.option("--world", metavar="NAME", help="Which world's database; default: the first of the run.")
@json_option
def query_(run: Path, sql: str, world: str | None, as_json: bool) -> None:
    """Query a run's database in SQL, also while the run goes on. A query can only read; Ctrl-C ends it.

    \b
    Examples:
      shoal query runs/rumour-1 "select content, num_likes from post order by num_likes desc limit 3"
      shoal query runs/rumour-1 "select action, count(*) from trace group by 1" --world reddit
    """
    directory = RunDirectory(run)
    worlds = list(directory.worlds)
    if world is not None and world not in worlds:
        raise click.BadParameter(f"there is no world {world!r}; there are {', '.join(worlds)}", param_hint="--world")
    columns, rows = query_database(directory, world or worlds[0], sql)
    if as_json:
        # A second column of the same name would replace the first.
        names = [name if columns.index(name) == n else f"{name}_{n + 1}" for n, name in enumerate(columns)]
        echo_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        table = make_table(*map(Text, columns))
        for row in rows:
            table.add_row(*("" if value is None else Text(str(value)) for value in row))
        Output().print(table)


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of the list."""

    run: str
    status: str
    round: int = 0
    rounds: int = 0
    actions: int = 0
    started_at: str | None = None
    parent: str | None = None
    error: str | None = None

    @classmethod
    def of(cls, directory: RunDirectory) -> RunRow:
        """Describe a run. One that cannot be read is listed too, so that it does not hide the others."""
        try:
            state = directory.read_state()
            return cls(
                run=str(directory.path),
                status=directory.read_status(),
                round=state.current_round,
                rounds=state.total_rounds,
                actions=state.actions_count,
                started_at=state.started_at,
                parent=directory.config.parent,
                error=state.error,
            )
        except (ShoalError, msgspec.DecodeError) as error:
            return cls(str(directory.path), "unreadable", error=str(error))


@click.command("list")
@click.argument("folder", type=PATH, default=RUNS)
@json_option
def list_(folder: Path, as_json: bool) -> None:
    """List the runs in a folder, oldest first; in ./runs unless another is named.

    \b
    Examples:
      shoal list
      shoal list studies --json
    """
    rows = [RunRow.of(directory) for directory in list_runs(folder)]
    if as_json:
        echo_json(rows)
        return
    if not rows:
        echo(f"no runs in {folder}; shoal run SCENARIO makes one")
        return
    forked = ["forked from"] if any(row.parent for row in rows) else []
    table = make_table("run", "status", "round", "actions", "started", *forked, right=("round", "actions"))
    for row in rows:
        parent = [Text(row.parent or "")] if forked else []
        table.add_row(
            Text(row.run),
            Text(row.status, STYLES.get(row.status, "red")),
            f"{row.round}/{row.rounds}",
            f"{row.actions:,}",
            (row.started_at or "")[:16].replace("T", " "),
            *parent,
        )
    Output().print(table)
