"""Compares experiments, arms and runs with one another, and writes results as one table."""

from shoal.experiments.comparison.sides import Comparison, MetricDifference, compare_sides
from shoal.experiments.comparison.table import export_results
