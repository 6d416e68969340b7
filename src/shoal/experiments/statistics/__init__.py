"""Intervals, effects and corrected comparisons of the arms of an experiment."""

from shoal.experiments.statistics.distributions import (
    Agreement,
    compare_unpaired,
    estimate_agreement,
    estimate_diversity_ratio,
    estimate_variance_ratio,
    measure_jensen_shannon,
    measure_total_variation,
    measure_wasserstein,
)
from shoal.experiments.statistics.effects import (
    Effect,
    compare_paired,
    compare_rates,
    correct_holm,
    describe_power,
)
from shoal.experiments.statistics.intervals import (
    COVERED,
    Interval,
    bootstrap_mean,
    estimate_cost_of_pass,
    estimate_rate,
)
from shoal.experiments.statistics.student import find_t
