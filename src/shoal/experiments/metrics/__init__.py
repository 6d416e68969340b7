"""Metrics: named figures of what happened in a run, at its end and over rounds."""

from shoal.experiments.metrics.base import Metric, NotMeasured, OwnMetric, locate_failure, metric
from shoal.experiments.metrics.figures import define_figure
from shoal.experiments.metrics.measuring import (
    METRICS,
    Measurement,
    MetricName,
    choose_metrics,
    find_bounds,
    find_value,
    list_recorded,
    measure_run,
    open_record,
    read_series,
)
from shoal.experiments.metrics.own import digest_file, load_module, load_own_metrics
from shoal.experiments.metrics.record import WorldRecord
