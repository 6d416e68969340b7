"""Copies a run into its sinks while the run goes on, as a process in its own session.

The run knows nothing of it: it reads the streams, with a thread for each sink, and ends when the run has no worker and
everything is copied. A sink that fails is tried again; one that hangs does not hold up the others. After a kill, the
next process goes on where the sink is.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from shoal.errors import ShoalError, SinkFailed
from shoal.runs.directory import RunDirectory
from shoal.runs.files import replace_json
from shoal.runs.sinks.follower import SinkFollower
from shoal.runs.sinks.opening import open_sink
from shoal.runs.state import SINKS, SINKS_LOCK, SinkState, SinkStatus, wall_clock
from shoal.runs.store import stream_path
from shoal.scenario import SinkSettings
from shoal.unix import spawn_session, try_lock, write_lock

LOG = "sinks.log"
#: How long another process on the same run may still need to end.
_LOCK_SECONDS = 120.0
#: How often streams are looked at, and the state is written.
_LOOK_SECONDS, _REPORT_SECONDS = 0.1, 2.0
#: Waiting times between attempts that fail.
_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 0.5, 30.0
#: Everything else on the machine goes first.
_NICENESS = 10
_ROOT = Path(__file__).parents[3]
_CODE = (
    "import sys; sys.path.append(sys.argv[1]); from importlib import import_module; "
    "sys.exit(import_module('shoal.runs.sinks.live').main(sys.argv[2]))"
)


@dataclass(frozen=True, slots=True)
class SinkPatience:
    """How long sinks are waited for."""

    #: After the end of the run, to take over the rest, and to fail.
    flush_seconds: float = 60.0
    #: A sink that takes longer over one batch is said to hang.
    hang_seconds: float = 30.0


def start_following(run: RunDirectory, environ: Mapping[str, str]) -> None:
    """Start a process that copies a run into its sinks, where it has any."""
    if run.scenario_versions.latest.sinks:
        command = [sys.executable, "-P", "-c", _CODE, str(_ROOT), str(run.path.absolute())]
        spawn_session(command, environ, run.file(LOG))


def main(directory: str) -> int:
    """Become the process that copies a run into its sinks."""
    with suppress(OSError):
        os.nice(_NICENESS)
    run = RunDirectory.open(Path(directory))
    handle = os.open(run.file(SINKS_LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    if not try_lock(handle, _LOCK_SECONDS):
        return 1
    write_lock(handle, str(os.getpid()))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    failed = follow_run(run, os.environ, stop)
    sys.stdout.flush()
    # Threads that hang in a sink are left behind.
    os._exit(1 if failed else 0)


def follow_run(
    run: RunDirectory, environ: Mapping[str, str], stop: threading.Event, patience: SinkPatience | None = None
) -> bool:
    """Copy a run into its sinks until it has no worker and they have everything; return whether one failed."""
    patience = patience or SinkPatience()
    works = [SinkWork(run, settings, environ, stop, patience) for settings in run.scenario_versions.latest.sinks]
    for work in works:
        work.thread.start()
    ended_at: float | None = None
    while any(work.thread.is_alive() for work in works):
        _report(run, works)
        if ended_at is None and (stop.is_set() or not run.has_worker()):
            ended_at = time.monotonic()
        if ended_at is not None and time.monotonic() - ended_at > patience.flush_seconds:
            stop.set()
            break
        for work in works:
            work.thread.join(min(_REPORT_SECONDS, patience.hang_seconds) / len(works))
    _report(run, works, is_over=True)
    return any(work.state.status is not SinkStatus.COMPLETE for work in works)


@dataclass
class SinkWork:
    """Copies a run into one sink, in a thread."""

    run: RunDirectory
    settings: SinkSettings
    environ: Mapping[str, str]
    stop: threading.Event
    patience: SinkPatience
    state: SinkState = field(default_factory=SinkState)
    #: Whether the sink is at work, and since when on the same batch.
    is_busy: bool = False
    busy_since: float = field(default_factory=time.monotonic)
    follower: SinkFollower | None = None
    #: How long the streams were at the last look that succeeded.
    seen: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state.since = wall_clock()
        self.thread = threading.Thread(target=self._work, name=f"shoal-sink-{self.settings.name}", daemon=True)

    def _work(self) -> None:
        try:
            self._follow()
        except Exception as error:
            # A stream that is damaged, or a fault of ours: the log has the traceback.
            self.state.status, self.state.error = SinkStatus.FAILED, f"{type(error).__name__}: {error}"
            raise

    def _follow(self) -> None:
        """Follow the run to its end, and try again whatever fails."""
        pause, ended_at = _LOOK_SECONDS, None
        while self.state.status is not SinkStatus.COMPLETE:
            # Looked at before the streams: what is committed after it is found by the next look.
            is_last = self.stop.is_set() or not self.run.has_worker()
            ended_at = ended_at or (time.monotonic() if is_last else None)
            try:
                self._catch_up(is_last=is_last)
                pause = _LOOK_SECONDS
            except SinkFailed as failed:
                self._let_go()
                self.state.status, self.state.error = SinkStatus.FAILED, str(failed)
                self.state.retries += 1
                pause = min(max(pause * 2, _FIRST_RETRY_SECONDS), _LAST_RETRY_SECONDS)
                if ended_at is not None and time.monotonic() - ended_at + pause > self.patience.flush_seconds:
                    return
            self.is_busy = False
            time.sleep(pause)

    def _catch_up(self, *, is_last: bool) -> None:
        """Copy what was committed since the last look, if anything was."""
        sizes = []
        for world in self.run.worlds:
            try:
                sizes.append(stream_path(self.run.path, world).stat().st_size)
            except FileNotFoundError:
                sizes.append(0)
        if sizes != self.seen or is_last:
            self.is_busy, self.busy_since = True, time.monotonic()
            if self.follower is None:
                sink = open_sink(self.run, self.settings, self.environ)
                self.follower = SinkFollower(self.run, sink, on_batch=self._count)
            self.follower.catch_up()
            self.seen = sizes
        if is_last:
            self._let_go()
        self.state.status, self.state.error = SinkStatus.COMPLETE if is_last else SinkStatus.FOLLOWS, None

    def _let_go(self) -> None:
        """Close the sink. After a failure it is opened again, and says where it is."""
        if self.follower is not None:
            self.follower.sink.close()
            self.follower = None
        self.seen = []

    def _count(self, episodes: int) -> None:
        self.state.episodes += episodes
        self.busy_since = time.monotonic()


def _report(run: RunDirectory, works: list[SinkWork], *, is_over: bool = False) -> None:
    """Write how far the sinks are. What cannot be written is no reason to stop copying."""
    for work in works:
        busy = time.monotonic() - work.busy_since
        if work.thread.is_alive() and work.is_busy and (is_over or busy > work.patience.hang_seconds):
            work.state.status, work.state.error = SinkStatus.HANGS, f"it has not answered for {busy:.0f} s"
        work.state.updated_at = wall_clock()
    with suppress(ShoalError):
        replace_json(run.file(SINKS), {work.settings.name: work.state for work in works}, sync=False)
