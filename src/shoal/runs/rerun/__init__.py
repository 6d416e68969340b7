"""Runs a run again from its journal: explain, diff, retry."""

from shoal.runs.rerun.diff import INJECTED, Diff, Divergence, WorldDiff, diff_runs
from shoal.runs.rerun.explain import ExplainResult, Explanation, explain_turn, explain_turns
from shoal.runs.rerun.retry import RetryPlan, archive_failed, plan_retry
from shoal.runs.rerun.spread import How
