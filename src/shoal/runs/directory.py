"""A run on disk: its files, who works on it, and what state it is in. The only place that makes run directories."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import RunLocked, RunRefused
from shoal.journal import JournalLine, read_events, write_lines
from shoal.runs import inputs
from shoal.runs.config import Config, read_config, restore_scenario
from shoal.runs.files import is_half_written, replace_json, storage_errors
from shoal.runs.state import RunState, Status, WorldState
from shoal.runs.store import stream_from
from shoal.runs.stream import ActionStream
from shoal.scenario.declared.events import DeclaredEvent
from shoal.scenario.happenings import build_clock, parse_event
from shoal.scenario.sampling.sampler import sample
from shoal.scenario.scenario import Scenario
from shoal.types import Versioned
from shoal.worlds.clock import Clock

CONFIG = "simulation_config.json"
STATE = "run_state.json"
JOURNAL = "journal.jsonl"
METRICS = "metrics.jsonl"
LOG = "simulation.log"
LOCK = "worker.lock"
ENV_STATUS = "env_status.json"


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The directory of one run."""

    path: Path

    @property
    def journal(self) -> Path:
        return self.path / JOURNAL

    def file(self, name: str) -> Path:
        return self.path / name

    @classmethod
    def create(
        cls, path: Path, config: Config, scenario: Scenario, lines: list[JournalLine], copies: inputs.InputNames
    ) -> RunDirectory:
        """A new run. The config comes last: a directory without one is not a run yet, and can be used again."""
        directory = cls(path)
        with storage_errors(path):
            path.mkdir(parents=True, exist_ok=True)
            if (path / CONFIG).exists():
                raise RunRefused(
                    f"{path} already holds a run.\n"
                    f"Continue it with `shoal resume {path}`, or choose another directory with --out."
                )
            found = [file for file in path.iterdir() if not inputs.is_left_over(file)]
            leftovers = [file for file in found if file.name == JOURNAL or is_half_written(file, CONFIG)]
            if len(leftovers) < len(found):
                raise RunRefused(f"{path} is not empty.\nChoose another directory with --out.")
            for file in leftovers:
                file.unlink()
        write_lines(path / JOURNAL, lines)
        inputs.copy_inputs(copies, path)
        replace_json(path / CONFIG, inputs.keep_inputs(config, copies).to_json(sample(scenario), scenario))
        return directory

    def stream(self, world: str, since: int = 0) -> ActionStream:
        """Open the stream of a world, at the start of a round where one is given."""
        return stream_from(self.path, world, since)

    def config(self) -> Config:
        return read_config(self.path / CONFIG)

    def history(self) -> Versioned[Scenario]:
        """The scenario, how it changed where the run was forked, and how where it was made to go on."""
        return add_continuations(self.config().history(self.path), read_events(self.journal), self.path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the one worker on this directory. The lock goes with the process, however that ends."""
        lock = self.path / LOCK
        with storage_errors(lock):
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = os.pread(handle, 32, 0).decode().strip() or "unknown"
                raise RunLocked(
                    f"{self.path} is being worked on by process {pid}.\nWait until it ends, or stop it first."
                ) from None
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
            yield
        finally:
            os.close(handle)

    def has_worker(self) -> bool:
        """Whether a worker is alive on this directory now."""
        try:
            handle = os.open(self.path / LOCK, os.O_RDONLY)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

    def state(self) -> RunState:
        """What the run's last worker wrote, or a new state."""
        try:
            return msgspec.json.decode((self.path / STATE).read_bytes(), type=RunState)
        except FileNotFoundError:
            return self.new_state()

    def new_state(self) -> RunState:
        history = self.history()
        worlds = {name: WorldState() for name in history.first.worlds}
        state = RunState(self.config().simulation_id, worlds)
        state.plan(history)
        return state

    def status(self) -> Status:
        """A run that says it is running while nobody works on it was interrupted."""
        status = self.state().runner_status
        return Status.FAILED if status is Status.RUNNING and not self.has_worker() else status

    def is_over(self) -> bool:
        """Whether there is nothing left to do; a run that was made to go on has something."""
        state = self.state()
        return state.runner_status is Status.COMPLETED and state.total_rounds == self.history().versions()[-1].rounds

    def clock(self) -> Clock:
        """Simulated time in the run."""
        skips = (line for line in read_events(self.journal) if line.event is not None and "skip" in line.event)
        return build_clock(self.history(), injected_events(skips))

    def write_state(self, state: RunState) -> None:
        replace_json(self.path / STATE, state.to_json())

    def write_env_status(self, content: dict[str, Any]) -> None:
        replace_json(self.path / ENV_STATUS, content)


def add_continuations(history: Versioned[Scenario], lines: Iterable[JournalLine], folder: Path) -> Versioned[Scenario]:
    """With what the journal says about the run being made to go on."""
    changes = [
        (line.round, restore_scenario(line.event["scenario"], folder))
        for line in lines
        if line.event is not None and line.is_continuation
    ]
    return Versioned(history.first, (*history.changes, *changes))


def injected_events(lines: Iterable[JournalLine]) -> list[DeclaredEvent]:
    """What was made to happen from outside, in the order in which it came."""
    return [parse_event(line.event) for line in lines if line.event is not None and not line.is_continuation]


def list_runs(folder: Path) -> list[RunDirectory]:
    """All runs directly in a folder, oldest first."""
    if not folder.is_dir():
        return []
    found = [path.parent for path in folder.glob(f"*/{CONFIG}")]
    return [RunDirectory(path) for path in sorted(found, key=lambda path: ((path / CONFIG).stat().st_mtime_ns, path))]


RUNS = Path("runs")


@contextmanager
def place_for(out: Path | None, folder: Path, name: str) -> Iterator[Path]:
    """The directory that was asked for, or the first free one in the folder; one that stays empty is taken back."""
    path = _free(folder, name) if out is None else _named(out)
    try:
        yield path
    except BaseException:
        _take_back(path)
        raise


def _free(folder: Path, name: str) -> Path:
    """Making the directory is what claims it, so two commands at once never get the same."""
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for n in count(1):
            path = folder / f"{name}-{n}"
            try:
                path.mkdir()
            except FileExistsError:
                continue
            return path
    raise AssertionError("there is always a next number")


def _named(path: Path) -> Path:
    """A run is called what its directory is called, and `.` is called nothing."""
    return path if path.name not in ("", "..") else path.resolve()


def _take_back(path: Path) -> None:
    if path.is_dir() and not any(path.iterdir()):
        path.rmdir()


def fork_folder(parent: RunDirectory) -> Path:
    """Beside the parent."""
    return _named(parent.path).parent
