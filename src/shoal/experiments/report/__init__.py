"""The report of an experiment: figures of every level as JSON, and a page that puts the answer first."""

from shoal.experiments.report.figures import ArmReport, ExperimentReport, TierReport, report_experiment
from shoal.experiments.report.human import HumanComparison, compare_with_people
from shoal.experiments.report.overview import describe_curves, describe_report
from shoal.experiments.report.page import list_people
from shoal.experiments.report.reading import ExperimentColumns, read_record
from shoal.experiments.report.series import read_curves
from shoal.experiments.report.tree import describe_experiment
from shoal.experiments.report.wording import (
    describe_findings,
    format_p,
    format_range,
    format_signed,
    format_value,
    join_sentence,
    name_outcome,
)
from shoal.experiments.report.writing import PAGE, ReportFiles, write_report
