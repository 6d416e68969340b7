"""The command judge: judges runs that have ended again, without running them again."""

from __future__ import annotations

import re
from pathlib import Path

import click
from rich.text import Text

from shoal.cli.errors import Failed
from shoal.cli.options import PATH, json_option, resource_options
from shoal.cli.views.output import Output, echo, echo_json, make_table
from shoal.errors import QueryFailed
from shoal.event_loop import run_async
from shoal.experiments import ExperimentJudging, RunResult, is_experiment, judge_directory
from shoal.experiments.judges import Judging, load_judging, measure_agreement
from shoal.runs import RunResources
from shoal.text import format_count, quote_path

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.]+")


@click.command("judge")
@click.argument("targets", type=PATH, nargs=-1, required=True, metavar="EXPERIMENT|RUN...")
@click.option("--judge", "source", required=True, metavar="FILE|EXPRESSION", help="Who judges: a YAML file, or a rule.")
@click.option("--name", help="Where the results are kept: judged/NAME; default: after the file or the rule.")
@resource_options
@json_option
def judge_(targets: tuple[Path, ...], source: str, name: str | None, resources: RunResources, as_json: bool) -> None:
    """Judge runs that have ended with other judges. Nothing is run again, and no earlier result is lost.

    The results of an experiment are written to judged/NAME in its folder, which a report can be made of; that of a run
    is a line of its judgements.jsonl. The same command again judges only what is not judged yet, and what a model has
    answered once is never asked again. Exits with 1 if a judgement is pending, as a server did not answer.

    \b
    Examples:
      shoal judge results/rumour --judge "reach(closing) < 0.5 and virality < 3"
      shoal judge results/rumour --judge strict.yaml --max-cost 0.05
      shoal judge runs/rumour-1 runs/rumour-2 --judge strict.yaml --json
    \b
    where strict.yaml holds
      judges:
        small: cascade_size < 20
        civil: {rubric: "People stay polite.", model: openai/gpt-4.1-mini, votes: 3}
    """
    judging = load_judging(source)
    judging.check_models(resources)
    chosen = name or (Path(source).stem if Path(source).is_file() else _NOT_IN_NAMES.sub("-", source).strip("-")[:60])
    results, folders = run_async(_judge_all(targets, judging, chosen, source, resources))
    if as_json:
        agreement = measure_agreement(each for result in results for each in result.judgements)
        echo_json({"judged": folders, "results": results, "agreement": agreement})
    else:
        _show(results, folders)
    pending = sum(each.is_pending for result in results for each in result.judgements)
    if pending:
        raise Failed(f"{format_count(pending, 'judgement')} pending; the same command again asks for what is missing")
    if all(each.error is not None for result in results for each in result.judgements):
        raise Failed("no judge could say anything")


async def _judge_all(
    targets: tuple[Path, ...], judging: Judging, name: str, source: str, resources: RunResources
) -> tuple[list[RunResult], list[str]]:
    results: list[RunResult] = []
    folders = []
    for target in targets:
        if is_experiment(target):
            work = ExperimentJudging(target, judging, name, source)
            results += await work.run(resources)
            folders.append(str(work.folder))
        else:
            results.append(await judge_directory(target, judging, resources))
    if not results:
        raise QueryFailed("there is nothing to judge")
    return results, folders


def _show(results: list[RunResult], folders: list[str]) -> None:
    table = make_table("run", "judge", "verdict", "score", "reason", right=("score",))
    for result in results:
        for each in result.judgements:
            score = "" if each.score is None else f"{each.score:.3g}"
            run = result.id if result.tier else result.run
            if each.passed is not None:
                verdict = "passed" if each.passed else "not passed"
            else:
                verdict = "" if not each.is_verdict else "pending" if each.is_pending else "failed"
            table.add_row(Text(run), each.judge, verdict, score, Text(each.error or each.reason))
    Output().print(table)
    counted = [result.passed for result in results if result.passed is not None]
    if counted:
        echo(f"{sum(counted)} of {format_count(len(counted), 'run')} passed")
    for found in measure_agreement(judgement for result in results for judgement in result.judgements):
        kappa = "" if found.kappa is None else f", Fleiss' kappa {found.kappa:.2f}"
        echo(f"votes of {found.judge} agree in {found.share:.0%} of pairs{kappa}")
    for folder in folders:
        echo(f"results  {folder}")
        echo(f"report   shoal report {quote_path(folder)}")
