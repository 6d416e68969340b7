"""The command report: what happened in a run, with evidence."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from shoal.cli.options import PATH, json_option, run_argument
from shoal.cli.views.output import Output, echo, echo_json
from shoal.runs import RunDirectory, storage_errors
from shoal.runs.narrative import render_html, render_markdown, tell_run

MARKDOWN, PAGE = "report.md", "report.html"


@click.command("report")
@run_argument
@click.option("--out", type=PATH, metavar="DIR", help="Folder of the report; default: the run's directory.")
@json_option
def report_(run: Path, out: Path | None, as_json: bool) -> None:
    """Report what happened in a run: turning points, influence, cascades, and who changed sides.

    Every sentence names what shows it: actions by their ids, and figures with their rounds. Writes report.md, and
    report.html, a page with charts that needs nothing else. Files of these names are replaced. No model is asked. Also
    works while a run goes on.

    \b
    Examples:
      shoal report runs/rumour-1
      shoal report runs/rumour-1 --out study --json
    """
    narrative = tell_run(RunDirectory.open(run))
    folder = out or run
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
