"""One simulation made durable: its directory, its state, its worker and the commands to it."""

from shoal.runs.config import Config, input_names, portable_scenario, rename_inputs
from shoal.runs.directory import CONFIG, RUNS, RunDirectory, claim_directory, list_runs
from shoal.runs.doctor import DoctorReport, DoctorTarget, examine, list_limits
from shoal.runs.files import storage_errors
from shoal.runs.operations import (
    create_run,
    extend_run,
    fork_run,
    plan_extension,
    plan_fork,
    plan_resume,
    replay,
    truncate_scenario,
)
from shoal.runs.progress import RunProgress, WorldProgress
from shoal.runs.resources import RunResources, check_models, find_endpoints
from shoal.runs.state import RunState, Status
from shoal.runs.worker import RunOutcome, RunSession, read_outcome, work_on_run

__all__ = [
    # config
    "Config",
    "input_names",
    "portable_scenario",
    "rename_inputs",
    # directory
    "CONFIG",
    "RUNS",
    "RunDirectory",
    "claim_directory",
    "list_runs",
    # doctor
    "DoctorReport",
    "DoctorTarget",
    "examine",
    "list_limits",
    # files
    "storage_errors",
    # operations
    "create_run",
    "extend_run",
    "fork_run",
    "plan_extension",
    "plan_fork",
    "plan_resume",
    "replay",
    "truncate_scenario",
    # progress
    "RunProgress",
    "WorldProgress",
    # resources
    "RunResources",
    "check_models",
    "find_endpoints",
    # state
    "RunState",
    "Status",
    # worker
    "RunOutcome",
    "RunSession",
    "read_outcome",
    "work_on_run",
]
