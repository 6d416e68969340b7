"""Estimates what a run will take before it is paid for."""

from shoal.runs.planning.plan import Expected, Plan, plan_run
from shoal.runs.planning.trial import time_rounds
