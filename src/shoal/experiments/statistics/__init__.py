"""Intervals, effects and corrected comparisons of the arms of an experiment."""

from shoal.experiments.statistics.effects import (
    Effect,
    compare_paired,
    compare_rates,
    correct_holm,
    describe_power,
)
from shoal.experiments.statistics.intervals import Interval, bootstrap_mean, estimate_cost_of_pass, estimate_rate
