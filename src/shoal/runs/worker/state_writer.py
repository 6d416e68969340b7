"""Writes what is seen of a run beside its history: its state, its metrics and its log."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from types import TracebackType

import msgspec

import shoal
from shoal.agents.language import PrefixMeter, total_share
from shoal.engine import RoundRecord, Seats
from shoal.errors import ShoalError, Stopped, StorageFailed
from shoal.journal import Journal
from shoal.models import Pause
from shoal.runs.directory import LOG, METRICS, RunDirectory
from shoal.runs.files import storage_errors
from shoal.runs.progress import RunProgress
from shoal.runs.resources import ModelSession
from shoal.runs.state import RunState, SeatState, Status, WaitState, read_sinks, wall_clock

#: The state is written at most this often while rounds go by, and at least this often while none does.
_STATE_SECONDS = 0.5
_HEARTBEAT_SECONDS = 2.0

_encode = msgspec.json.Encoder().encode


class StateWriter:
    """Keeps the run's state, metrics and log up to date, and writes how each `advance` ended."""

    def __init__(self, run: RunDirectory, state: RunState, progress: RunProgress, log: logging.Logger) -> None:
        self.state = state
        self.progress = progress
        #: World -> how much of its prompts repeats earlier ones.
        self.prefixes: Mapping[str, PrefixMeter] = {}
        self._run = run
        self.log = log
        self._written_at = 0.0
        #: How the last `advance` ended, according to the log. Calls that just go on do not fill it.
        self._logged: Status | None = None
        self._metrics: FileIO | None = None
        self._is_held = False
        self._seats: tuple[Seats, Sequence[str]] | None = None
        #: Calls of earlier workers; None until rounds are counted, and the state keeps what an earlier worker counted.
        self._calls_before: int | None = None
        self._journal: Journal | None = None
        self._has_sinks = False
        progress.watch_pauses(self._show_pause)

    def __enter__(self) -> StateWriter:
        if self._run.scenario.metrics and self._metrics is None:
            path = self._run.file(METRICS)
            with storage_errors(path):
                self._metrics = path.open("ab", buffering=0)
        # Asked once: to know the latest version of the scenario, all that is added to the journal is read.
        self._has_sinks = bool(self._run.scenario_versions.latest.sinks)
        self.state.process_pid = os.getpid()
        self.state.become(Status.RUNNING)
        if not self._written_at:
            # Engines that go on say so with their next round; a script that calls for one round after the other
            # would wait for the file system more than for its agents.
            self._write()
            self.log.info("running with Shoal %s, process %d", shoal.__version__, os.getpid())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the end. Where that fails, the state still says `running` without a worker: the run is resumable."""
        status = Status.COMPLETED
        if error is not None:
            status = Status.STOPPED if isinstance(error, Stopped | asyncio.CancelledError) else Status.FAILED
        self.state.process_pid = self.state.waiting = None
        self.state.takes_commands = False
        self.state.become(status, None if error is None else str(error))
        with suppress(StorageFailed):
            self._write()
        if status is not self._logged:
            # The traceback of an error that is not one of ours is worth keeping.
            surprise = None if isinstance(error, ShoalError | asyncio.CancelledError | None) else error
            self.log.info("%s%s", status, f": {error}" if error else "", exc_info=surprise)
        self._logged = status

    def close(self) -> None:
        if self._metrics is not None:
            self._metrics.close()
            self._metrics = None

    def count_from(self, journal: Journal, models: ModelSession | None) -> None:
        """Begin to count rounds, from round 0 on."""
        self._calls_before, self._journal = journal.calls, journal
        self.progress.begin(self.state)
        if models is not None:
            # Spending goes on from where earlier workers left it. What a killed one had not written down is lost.
            if self.state.spending is not None:
                models.model.spending.add_earlier(self.state.spending)
            self.progress.open_models(models.model, models.limits)

    def follow_seats(self, seats: Seats, names: Sequence[str]) -> None:
        """Show who has taken a seat and what waits for them, as soon as that changes."""
        self._seats = seats, names
        seats.watch(self._show_seats)

    def _show_seats(self) -> None:
        with suppress(StorageFailed):
            self._write()

    def _show_pause(self, pause: Pause | None) -> None:
        self.state.waiting = None if pause is None else WaitState.of(pause)
        self._show_waiting("" if pause is None else f"waiting: {pause.reason}")

    def show_hold(self, is_held: bool) -> None:
        """Show that a user has paused the run, or lets it go on."""
        self._is_held = is_held
        self._show_waiting("paused by a user" if is_held else "")

    def _show_waiting(self, why: str) -> None:
        status = Status.PAUSED if self._is_held or self.state.waiting is not None else Status.RUNNING
        if self.state.runner_status is not status:
            self.state.become(status)
            self.log.warning(why or "going on")
            with suppress(StorageFailed):
                self._write()

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Show that the worker is alive, also in rounds that take long."""
        loop = asyncio.get_running_loop()

        def beat() -> None:
            # A state that cannot be written is no reason to stop; a round that cannot be committed is.
            with suppress(StorageFailed):
                self._write()
            timers.append(loop.call_later(_HEARTBEAT_SECONDS, beat))

        timers = deque([loop.call_later(_HEARTBEAT_SECONDS, beat)], maxlen=1)
        try:
            yield
        finally:
            timers[0].cancel()

    def add_round(self, record: RoundRecord) -> None:
        if record.step is not None and self._metrics is not None:
            tally = record.tally
            measured = {
                "world": record.world,
                "round": record.round,
                "acting": tally.acting,
                "actions": tally.actions,
                "calls": tally.calls,
                "errors": tally.errors,
                "timeouts": tally.timeouts,
                "mode": record.step.mode,
                "seconds": round(record.step.seconds, 6),
                "deciding_seconds": round(record.step.deciding_seconds, 6),
                "speedup": record.step.speedup and round(record.step.speedup, 3),
                "blocked": record.step.blocked,
                "latency_ms": record.step.latencies.milliseconds(),
                "at": wall_clock(),
            }
            if record.world in self.prefixes:
                measured["prefixes"] = self.prefixes[record.world].total.as_dict()
            if self.progress.limits is not None:
                measured["limits"] = self.progress.limits.as_dict()
            with storage_errors(self._run.file(METRICS)):
                self._metrics.write(_encode(measured) + b"\n")
        if time.monotonic() - self._written_at > _STATE_SECONDS:
            self._write()

    def _write(self) -> None:
        self._written_at = time.monotonic()
        if self._calls_before is not None:
            self.progress.copy_to(self.state, self._calls_before)
        if self._seats is not None:
            self.state.seats = SeatState.list_all(*self._seats)
        if self._journal is not None:
            self.state.journal = self._journal.mark
        if self.prefixes:
            self.state.prefixes = total_share(each.total for each in self.prefixes.values()).as_dict()
        if self._has_sinks:
            self.state.sinks = read_sinks(self._run.path)
        self.state.updated_at = wall_clock()
        self._run.write_state(self.state)


@contextmanager
def open_log(run: RunDirectory) -> Iterator[logging.Logger]:
    """Open the run's own log. Messages of the model stack go there too, and not to the screen."""
    path = run.file(LOG)
    log, models = logging.getLogger(f"shoal.run.{path}"), logging.getLogger("shoal.models")
    log.setLevel(logging.INFO)
    with storage_errors(path):
        handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for source in (log, models):
        source.propagate = False
        source.addHandler(handler)
    try:
        yield log
    finally:
        for source in (log, models):
            source.removeHandler(handler)
        models.propagate = True
        handler.close()
