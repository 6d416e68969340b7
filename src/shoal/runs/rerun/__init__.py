"""Runs a run again from its journal: explain, diff."""

from shoal.runs.rerun.diff import INJECTED, Diff, Divergence, WorldDiff, diff_runs
from shoal.runs.rerun.explain import ExplainResult, Explanation, explain_turn
from shoal.runs.rerun.spread import How

__all__ = [
    # diff
    "Diff",
    "Divergence",
    "INJECTED",
    "WorldDiff",
    "diff_runs",
    # explain
    "ExplainResult",
    "Explanation",
    "explain_turn",
    # spread
    "How",
]
