"""One simulation made durable: its directory, its state, its worker and the commands to it."""

from shoal.runs.config import Config, LimitSettings, freeze_scenario, rename_inputs
from shoal.runs.directory import (
    ARCHIVE,
    CONFIG,
    JOURNAL,
    LOG,
    RUNS,
    RunDirectory,
    claim_directory,
    list_runs,
    read_outcome,
)
from shoal.runs.doctor import DoctorReport, DoctorTarget, examine, list_limits
from shoal.runs.files import replace_json, storage_errors
from shoal.runs.mirofish import format_state
from shoal.runs.operations import (
    adopt_mirofish,
    archive_run,
    check_extension,
    create_run,
    extend_run,
    fork_run,
    is_archived,
    open_or_create_run,
    plan_extension,
    plan_fork,
    plan_resume,
    replay,
    truncate_scenario,
)
from shoal.runs.progress import RunProgress, WorldProgress
from shoal.runs.resources import (
    KnownServer,
    RunResources,
    check_local_models,
    check_models,
    describe_free_models,
    describe_servers,
    find_endpoints,
    open_models,
    serve_local_models,
)
from shoal.runs.state import RunOutcome, RunState, Status, wall_clock
from shoal.runs.worker import RunExtension, RunSession, work_on_run
