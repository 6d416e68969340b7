"""Many runs: batches; tiers, arms and seeds; judges, statistics and the report."""

from shoal.experiments.batch import Batch, BatchProgress, BatchResult, BatchSettings, recommend_simulations
from shoal.experiments.batch_rows import BatchRow, name_batch, read_rows
from shoal.experiments.design import Experiment, load_experiment
from shoal.experiments.experiment import ExperimentRun
from shoal.experiments.pacing import DailyWindow, SimulationLimit
from shoal.experiments.results import Judgement, RunResult
