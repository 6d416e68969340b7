"""The command graph: what a run's graph memory knows."""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec

from shoal.cli.options import PATH, count_option, json_option, run_argument
from shoal.cli.views.output import Output, echo, echo_json, label_table, make_table
from shoal.runs import RunDirectory
from shoal.runs.sinks import SinkFollower, open_graph, open_sink
from shoal.scenario import SinkSettings
from shoal.sinks import GraphAnswer, GraphOverview, answer_question, describe_graph, export_graphml
from shoal.text import clip, format_count, join_words

_MAX_RELATIONS = 12
_TEXT_CHARS = 300


@click.command("graph")
@run_argument
@click.argument("question", required=False)
@count_option("--limit", default=8, show_default=True, help="Episodes to show as evidence, at most.")
@click.option("--export", "graphml", type=PATH, metavar="FILE", help="Write the whole graph as GraphML.")
@click.option(
    "--to",
    "target",
    type=click.Choice(["neo4j", "zep"]),
    help="Copy the run to the server that NEO4J_URI or ZEP_API_URL names.",
)
@json_option
def graph_(  # a command has as many options as it has
    run: Path, question: str | None, limit: int, graphml: Path | None, target: str | None, as_json: bool
) -> None:
    """Ask a run's graph memory: who holds which view since when, and the episodes that show it.

    The graph has people, posts, claims, topics and groups, and facts about them with the rounds in which they held. It
    is made from what the run has committed, also while the run goes on, and kept in graph.db in its directory. No
    model is asked. Without a question, the command says what there is.

    \b
    Examples:
      shoal graph runs/rumour-1
      shoal graph runs/rumour-1 "what does Ada Lund think of the bridge?"
      shoal graph runs/rumour-1 "who opposes the bridge?" --json
      shoal graph runs/rumour-1 --export graph.graphml
      NEO4J_PASSWORD=... shoal graph runs/rumour-1 --to neo4j
    """
    if target is not None:
        copied = _copy_run(RunDirectory.open(run), target)
        echo_json({"sink": target, "episodes": copied}) if as_json else echo(f"{target}: {copied:,} new episodes")
        return
    with open_graph(RunDirectory.open(run)) as graph:
        if graphml is not None:
            edges = export_graphml(graph, graphml)
            echo_json({"file": str(graphml), "facts": edges}) if as_json else echo(
                f"{graphml}: {format_count(edges, 'fact')}"
            )
        elif question is None:
            overview = describe_graph(graph)
            echo_json(msgspec.to_builtins(overview)) if as_json else _print_overview(overview)
        else:
            answer = answer_question(graph, question, limit)
            echo_json(msgspec.to_builtins(answer)) if as_json else _print_answer(answer)


def _copy_run(run: RunDirectory, target: str) -> int:
    """Copy what a sink has not got yet, with the settings that the scenario has for it, and count the episodes."""
    declared = (sink for sink in run.scenario_versions.latest.sinks if sink.kind == target)
    sink = open_sink(run, next(declared, None) or SinkSettings.model_validate(target), os.environ)
    try:
        return SinkFollower(run, sink).catch_up()
    finally:
        sink.close()


def _print_overview(overview: GraphOverview) -> None:
    kinds = join_words((f"{count:,} {kind}" for kind, count in overview.entities.items()), len(overview.entities))
    rows = [
        ("episodes", f"{overview.episodes:,}"),
        ("facts", f"{overview.facts:,}, of which {overview.holding:,} hold now"),
        ("entities", kinds or "none"),
    ]
    output = Output()
    output.print(label_table(rows))
    if overview.relations:
        table = make_table("relation", "facts", right=("facts",))
        for relation, count in list(overview.relations.items())[:_MAX_RELATIONS]:
            table.add_row(relation.lower().replace("_", " "), f"{count:,}")
        output.print()
        output.print(table)


def _print_answer(answer: GraphAnswer) -> None:
    output = Output()
    for note in answer.notes:
        output.print_text(f"note: {note}")
    for about, views in answer.views.items():
        counts = (f"{count:,} {view.lower()}" for view, count in sorted(views.items()))
        output.print_text(f"“{about}”: {join_words(counts, len(views))}")
    if answer.facts:
        output.print()
    for fact in answer.facts:
        output.print_text(fact.sentence)
    if answer.episodes:
        output.print()
        table = make_table("round", "episode", "id", right=("round",))
        for episode in answer.episodes:
            table.add_row(str(episode.round), clip(episode.text, _TEXT_CHARS), episode.event)
        output.print(table)
    if not (answer.facts or answer.episodes or answer.views):
        output.print_text("The graph knows nothing about this. Name a person, or words that somebody wrote.")
