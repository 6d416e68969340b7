"""Many runs: batches; tiers, arms and seeds; judges, statistics and the report."""

from shoal.experiments.batch import RESULTS, Batch, BatchProgress, BatchResult, BatchSettings
from shoal.experiments.batch_rows import BatchRow, name_batch, read_rows
from shoal.experiments.budgets import BudgetLimits
from shoal.experiments.design import Design, Experiment, TierSettings, declares_experiment, load_experiment
from shoal.experiments.experiment import ExperimentRun
from shoal.experiments.folder import (
    RESULTS_FOLDER,
    DesignRecord,
    ExperimentState,
    is_experiment,
    read_design,
    read_experiment_state,
)
from shoal.experiments.forecast import ArmForecast, Forecast, forecast_experiment
from shoal.experiments.judges.rejudging import ExperimentJudging, judge_directory
from shoal.experiments.pacing import DailyWindow, SimulationLimit, recommend_simulations
from shoal.experiments.results import Judgement, RunResult, list_counted, measure_arm, read_results
from shoal.experiments.standing import ArmStanding, ExperimentStanding, read_standing, take_standing
from shoal.experiments.stopping import ArmStop, StopRule
