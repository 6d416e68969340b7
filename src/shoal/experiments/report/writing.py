"""Writes the whole report of an experiment into its folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from shoal.experiments.report.figures import ExperimentReport, report_experiment
from shoal.experiments.report.human import HumanComparison
from shoal.experiments.report.markdown import write_markdown
from shoal.experiments.report.page import write_page
from shoal.experiments.report.reading import read_record
from shoal.experiments.report.series import read_curves
from shoal.experiments.report.tree import REPORT, write_tree
from shoal.runs import storage_errors

PAGE = "report.html"
MARKDOWN = "report.md"


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """What was written, and the figures."""

    report: ExperimentReport
    page: Path
    markdown: Path
    figures: Path


def write_report(folder: Path, people: HumanComparison | None = None) -> ReportFiles:
    """Write `report.json` at every level, `report.md` and `report.html`. Files of these names are replaced."""
    report = report_experiment(read_record(folder))
    write_tree(report, people)
    page, markdown = folder / PAGE, folder / MARKDOWN
    _replace_text(markdown, write_markdown(report, people))
    _replace_text(page, write_page(report, read_curves(report), people))
    return ReportFiles(report, page, markdown, folder / REPORT)


def _replace_text(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with storage_errors(path):
        beside.write_text(text, encoding="utf-8", errors="replace")
        beside.replace(path)
