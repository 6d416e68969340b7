"""A run on disk: its files, its worker, and its state. The only place that makes run directories."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from pathlib import Path

import msgspec

from shoal.errors import RunLocked, RunRefused
from shoal.journal import EventReader, JournalLine, write_lines
from shoal.runs import mirofish
from shoal.runs.config import (
    Config,
    copy_inputs,
    input_names,
    is_leftover_inputs,
    read_config,
    restore_scenario,
)
from shoal.runs.files import is_half_written, replace_json, storage_errors
from shoal.runs.state import RunState, Status, WorldState
from shoal.runs.store import open_stream, read_last_round
from shoal.runs.stream import ActionStream
from shoal.scenario import DeclaredEvent, Scenario, build_clock, parse_event, sample
from shoal.types import Versioned
from shoal.worlds import Clock

RUNS = Path("runs")
CONFIG = "simulation_config.json"
STATE = "run_state.json"
JOURNAL = "journal.jsonl"
METRICS = "metrics.jsonl"
LOG = "simulation.log"
LOCK = "worker.lock"
ENV_STATUS = "env_status.json"


class RunDirectory:
    """One run on disk.

    Its config is read once, when it is first needed. Of its journal, only what was added since the last look is read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._event_reader = EventReader(self.journal)
        self._events: list[JournalLine] = []
        #: The versions of the scenario that follow from the first `_versions_read` events.
        self._versions: Versioned[Scenario] | None = None
        self._versions_read = 0

    @classmethod
    def create(
        cls, path: Path, versions: Versioned[Scenario], lines: list[JournalLine], parent: str | None = None
    ) -> RunDirectory:
        """Make a new run. Its config is written last: a directory without one is not a run yet and can be used."""
        copies = input_names(versions)
        with storage_errors(path):
            path.mkdir(parents=True, exist_ok=True)
            if (path / CONFIG).exists():
                raise RunRefused(
                    f"{path} already holds a run.\n"
                    f"Continue it with `shoal resume {path}`, or choose another directory with --out."
                )
            found = [file for file in path.iterdir() if not is_leftover_inputs(file)]
            leftovers = [file for file in found if file.name == JOURNAL or is_half_written(file, CONFIG)]
            if len(leftovers) < len(found):
                raise RunRefused(f"{path} is not empty.\nChoose another directory with --out.")
            for file in leftovers:
                file.unlink()
        write_lines(path / JOURNAL, lines)
        copy_inputs(copies, path)
        config = Config.of(path.name, versions, copies, parent)
        fields = mirofish.config_fields(sample(versions.first), versions.first)
        replace_json(path / CONFIG, {**msgspec.to_builtins(config), **fields})
        directory = cls(path)
        directory.config = config
        return directory

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """Open a run; RunMissing if the directory holds none."""
        directory = cls(path)
        directory.config = read_config(path / CONFIG)
        return directory

    def file(self, name: str) -> Path:
        return self.path / name

    @property
    def journal(self) -> Path:
        return self.path / JOURNAL

    def open_stream(self, world: str, since: int = 0) -> ActionStream:
        """Open the stream of a world, at the start of a round where one is given."""
        return open_stream(self.path, world, since)

    # What was declared

    @cached_property
    def config(self) -> Config:
        return read_config(self.path / CONFIG)

    @property
    def events(self) -> Sequence[JournalLine]:
        """The lines of the journal that users caused: injected events, and extensions of the run."""
        self._events += self._event_reader.read()
        return self._events

    @property
    def scenario_versions(self) -> Versioned[Scenario]:
        """The scenario, and how it changed where the run was forked or extended."""
        versions = self._versions or self.config.scenario_versions(self.path)
        added, self._versions_read = self.events[self._versions_read :], len(self._events)
        extensions = [
            (line.round, restore_scenario(line.event["scenario"], self.path))
            for line in added
            if line.event is not None and line.is_continuation
        ]
        self._versions = Versioned(versions.first, (*versions.changes, *extensions)) if extensions else versions
        return self._versions

    @property
    def extensions(self) -> int:
        """The number of times that the run was extended."""
        return len(self.scenario_versions.changes) - len(self.config.changes)

    @property
    def scenario(self) -> Scenario:
        """The scenario in its latest version."""
        return self.scenario_versions.latest

    @property
    def worlds(self) -> tuple[str, ...]:
        """The names of the worlds. They are the same in every version."""
        return tuple(self.config.scenario["worlds"])

    @property
    def clock(self) -> Clock:
        """Simulated time in the run."""
        skips = [line for line in self.events if line.event is not None and "skip" in line.event]
        return build_clock(self.scenario_versions, parse_injected_events(skips))

    # What has happened

    def read_last_rounds(self) -> dict[str, int]:
        """Return the last committed round of each world."""
        return {world: read_last_round(self.path, world) for world in self.worlds}

    def read_state(self) -> RunState:
        """Read the state that the last worker wrote, or make a new one."""
        try:
            text = (self.path / STATE).read_bytes()
        except FileNotFoundError:
            text = b""
        # A power cut may leave it empty. What it said is in the journal and the databases.
        return msgspec.json.decode(text, type=RunState) if text.strip(b"\0") else self.make_state()

    def make_state(self) -> RunState:
        state = RunState(self.config.simulation_id, {name: WorldState() for name in self.worlds})
        state.plan(self.scenario_versions)
        return state

    def read_status(self) -> Status:
        """Return where the run stands. One that is `running` without a worker was interrupted, so it has failed."""
        status = self.read_state().runner_status
        return Status.FAILED if status is Status.RUNNING and not self.has_worker() else status

    def is_over(self, state: RunState | None = None) -> bool:
        """Return whether nothing is left to do. A run that was extended after its end has something left."""
        state = state or self.read_state()
        return state.runner_status is Status.COMPLETED and state.total_rounds == self.scenario.rounds

    def write_state(self, state: RunState) -> None:
        replace_json(self.path / STATE, {**state.to_json(), **mirofish.state_fields(state)}, sync=False)
        replace_json(self.path / ENV_STATUS, mirofish.env_status(state), sync=False)

    # Who works on it

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the one worker on this directory. The lock ends with the process, however that ends."""
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
            owner = f"{os.getpid()}\n".encode()
            if os.pread(handle, 32, 0) != owner:
                os.ftruncate(handle, 0)
                os.pwrite(handle, owner, 0)
            yield
        finally:
            os.close(handle)

    def has_worker(self) -> bool:
        """Return whether a worker is alive on this directory now."""
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


def parse_injected_events(lines: Iterable[JournalLine]) -> list[DeclaredEvent]:
    """Parse the injected events among journal lines, in their order."""
    return [parse_event(line.event) for line in lines if line.event is not None and not line.is_continuation]


def list_runs(folder: Path) -> list[RunDirectory]:
    """List all runs directly in a folder, oldest first."""
    if not folder.is_dir():
        return []
    found = [path.parent for path in folder.glob(f"*/{CONFIG}")]
    return [RunDirectory(path) for path in sorted(found, key=lambda path: ((path / CONFIG).stat().st_mtime_ns, path))]


@contextmanager
def claim_directory(out: Path | None, folder: Path, name: str) -> Iterator[Path]:
    """Yield `out`, or else a new directory `NAME-N` in the folder. It is removed again if it stays empty.

    Making the directory is what claims it, so two commands at once never get the same one.
    """
    if out is not None:
        path = full_name(out)
    else:
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            path = next(path for number in count(1) if _make(path := folder / f"{name}-{number}"))
    try:
        yield path
    except BaseException:
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        raise


def _make(path: Path) -> bool:
    try:
        path.mkdir()
    except FileExistsError:
        return False
    return True


def full_name(path: Path) -> Path:
    """Resolve a path without a name, such as `.`: a run is called what its directory is called."""
    return path if path.name not in ("", "..") else path.resolve()
