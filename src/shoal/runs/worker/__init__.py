"""The worker on a run: the session from its lock to its end, the engines, and what is seen of them."""

from shoal.runs.worker.engines import (
    ObservedLedger,
    advance_worlds,
    build_engine,
    build_from,
    manual_gc,
)
from shoal.runs.worker.session import LIVE, RunExtension, RunSession, find_asked, work_on_run
