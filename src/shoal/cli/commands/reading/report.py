"""The command report: what happened in a run, with evidence, or what an experiment found."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from shoal.cli.options import PATH, human_options, json_option, resource_options, run_argument
from shoal.cli.views.output import Output, echo, echo_json
from shoal.event_loop import run_async
from shoal.experiments import RESULTS, is_experiment
from shoal.experiments.report import (
    HumanComparison,
    compare_with_people,
    describe_experiment,
    describe_findings,
    join_sentence,
    write_report,
)
from shoal.runs import RunDirectory, RunResources, storage_errors
from shoal.runs.narrative import render_html, render_markdown, tell_run, write_narrative
from shoal.text import printable

MARKDOWN, PAGE = "report.md", "report.html"


@click.command("report")
@run_argument
@click.option("--out", type=PATH, metavar="DIR", help="Folder of the report; default: the run's directory.")
@click.option("--model", metavar="NAME", help="Let this language model write the report of a run.")
@human_options
@resource_options
@json_option
def report_(  # noqa: PLR0913  # a command has as many options as it has
    run: Path,
    out: Path | None,
    model: str | None,
    human: Path | None,
    answers: Path | None,
    by: tuple[str, ...],
    resources: RunResources,
    as_json: bool,
) -> None:
    """Report what happened in a run: turning points, influence, cascades, and who changed sides; or an experiment.

    Every sentence about a run names what shows it: actions by their ids, and figures with their rounds. The report of
    an experiment begins with the answer: arms with intervals, effects against the control, cost of a pass, curves over
    rounds, failed runs. Its folder, its tiers, arms and runs get a report.json each. --human sets what people answered
    beside what was simulated.

    Writes report.md, and report.html, a page with charts that needs nothing else. Files of these names are replaced.
    No model is asked, unless --model names one: it writes each section anew from the plain report of a run. Every
    sentence keeps the evidence of what it rests on, and sentences without valid evidence are left out and counted.
    Also works while a run or an experiment goes on.

    \b
    Examples:
      shoal report runs/rumour-1
      shoal report runs/rumour-1 --out study --json
      shoal report runs/rumour-1 --model openai/gpt-4.1-mini --max-cost 0.10
      shoal report results/misinformation
      shoal report results/misinformation --human survey.csv --by region
    """
    has_results = (run / RESULTS).is_file() or is_experiment(run)
    if has_results and model is not None:
        raise click.UsageError("--model writes the report of a run; the report of an experiment asks no model")
    if human is None and (answers is not None or by):
        raise click.UsageError("--answers and --by go with --human FILE")
    if has_results and out is not None:
        raise click.UsageError("the report of an experiment is written into its folder; leave out --out")
    if human is not None and not has_results:
        raise click.UsageError("--human goes with an experiment; `shoal compare --human` takes answers alone")
    if has_results:
        _report_experiment(run, None if human is None else compare_with_people(human, run, answers, by), as_json)
    else:
        _report_run(RunDirectory.open(run), out or run, model, resources, as_json)


def _report_run(run: RunDirectory, folder: Path, model: str | None, resources: RunResources, as_json: bool) -> None:
    narrative = tell_run(run)
    if model is not None:
        narrative = run_async(write_narrative(narrative, run, model, resources))
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MARKDOWN).write_text(render_markdown(narrative), encoding="utf-8")
        (folder / PAGE).write_text(render_html(narrative), encoding="utf-8")
    if as_json:
        sections = [
            {"heading": section.heading, "statements": [msgspec.to_builtins(each) for each in section.statements]}
            for section in narrative.sections
        ]
        files = {"markdown": str(folder / MARKDOWN), "page": str(folder / PAGE)}
        echo_json({**files, "title": narrative.title, "sections": sections, "evidence": narrative.evidence})
        return
    output = Output()
    for section in narrative.sections[:2]:
        for statement in section.statements:
            output.print_text(statement.text)
    echo(f"{folder / PAGE}, and the same as {MARKDOWN} beside it")


def _report_experiment(folder: Path, people: HumanComparison | None, as_json: bool) -> None:
    written = write_report(folder, people)
    if as_json:
        paths = {"page": str(written.page), "markdown": str(written.markdown), "figures": str(written.figures)}
        echo_json({**paths, **describe_experiment(written.report)})
        return
    for sentence in describe_findings(written.report):
        echo(printable(join_sentence(sentence)))
    echo(f"{written.page}, and the same as {written.markdown.name} and {written.figures.name} beside it")
