"""Experiments that processes of their own work on: started, stopped, and watched run by run."""

from shoal.experiments.live.process import (
    SCENARIO_FILE,
    ExperimentOptions,
    continue_experiment,
    start_experiment,
    stop_experiment,
)
from shoal.experiments.live.watching import ArmProgress, ExperimentProgress, RunMark, watch_experiment
