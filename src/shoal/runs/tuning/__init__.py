"""Measures how many calls or simulations at once are best."""

from shoal.runs.tuning.calls import TuneBounds, TuneTarget, count_most_calls, measure_calls
from shoal.runs.tuning.knee import Knee, MeasuredLevel
from shoal.runs.tuning.levels import STOPPED, Gauge
from shoal.runs.tuning.probes import (
    FEWEST_PROMPT_TOKENS,
    PROMPT_TOKENS,
    REPLY_TOKENS,
    make_scenario_probes,
    make_synthetic_probes,
)
from shoal.runs.tuning.result import CALLS, SIMULATIONS, TuneResult, save_result
from shoal.runs.tuning.simulations import count_cores, measure_simulations
