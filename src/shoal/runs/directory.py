"""A run on disk: its files, its worker, and its state. The only place that makes run directories."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Any

import msgspec

from shoal.errors import JournalChanged, RunLocked, RunRefused, StorageFailed
from shoal.journal import EventReader, Journal, JournalLine, read_journal, write_lines
from shoal.models.local import VectorFile, WordTable
from shoal.runs import mirofish
from shoal.runs.config import (
    INPUTS,
    Config,
    LimitSettings,
    Parent,
    copy_inputs,
    is_leftover_inputs,
    name_inputs,
    read_config,
)
from shoal.runs.files import is_half_written, replace_json, storage_errors
from shoal.runs.state import RunOutcome, RunState, Status, WorldState, read_sinks
from shoal.runs.store import database_path, open_stream, read_last_round, read_rounds, stream_path
from shoal.runs.stream import ActionStream
from shoal.scenario import DeclaredEvent, Scenario, build_clock, parse_event, sample
from shoal.text import clip, format_count, quote_path
from shoal.types import Versioned
from shoal.unix import read_lock, try_lock, write_lock
from shoal.worlds import Clock

RUNS = Path("runs")
CONFIG = "simulation_config.json"
#: The config that another program wrote for a directory which became a run.
PREPARED_CONFIG = "prepared_config.json"
STATE = "run_state.json"
JOURNAL = "journal.jsonl"
METRICS = "metrics.jsonl"
VECTORS = "vectors.bin"
LOG = "simulation.log"
LOCK = "worker.lock"
#: Held while a process starts or stops a worker; it says which of the two.
CONTROL_LOCK = "control.lock"
LIMITS = "limits.json"
ENV_STATUS = "env_status.json"
ARCHIVE = "archive"
#: A run with this file is listed among the archived ones only.
ARCHIVED = "archived.json"
#: Others may be looking, just now, whether the directory has a worker.
_GLANCE_SECONDS = 0.05
#: Of the log, this much is searched for its last line.
_LOG_TAIL_BYTES = 8192
_MAX_REASON_CHARS = 500


class RunDirectory:
    """One run on disk.

    Its config is read once, when it is first needed. Of its journal, only what was added since the last look is read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        #: Several threads of a server may look at the same run.
        self._reading = RLock()
        self._event_reader = EventReader(self.journal)
        self._events: list[JournalLine] = []
        #: The versions of the scenario that follow from the first `_versions_read` events.
        self._versions: Versioned[Scenario] | None = None
        self._versions_read = 0
        #: What the first `_plans_read` events plan.
        self._plans: dict[int, int] = {}
        self._plans_read = 0
        #: Key of a line -> the scenario that it extends the run with, where this process wrote the line itself.
        self._extended: dict[str, Scenario | None] = {}
        self._has_live_status = True

    @classmethod
    def create(
        cls,
        path: Path,
        versions: Versioned[Scenario],
        lines: list[JournalLine],
        parent: Parent | None = None,
        limits: LimitSettings | None = None,
    ) -> RunDirectory:
        """Make a new run. Its config is written last: a directory without one is not a run yet and can be used."""
        copies = name_inputs(versions)
        with storage_errors(path):
            path.mkdir(parents=True, exist_ok=True)
            if (path / CONFIG).exists():
                raise RunRefused(
                    f"{path} already holds a run.\n"
                    f"Continue it with `shoal resume {path}`, or choose another directory with --out."
                )
            found = [file for file in path.iterdir() if not is_leftover_inputs(file)]
            leftovers = [file for file in found if file.name in (JOURNAL, LIMITS) or is_half_written(file, CONFIG)]
            if len(leftovers) < len(found):
                raise RunRefused(f"{path} is not empty.\nChoose another directory with --out.")
            for file in leftovers:
                file.unlink()
        directory = cls(path)
        write_lines(directory.journal, lines)
        copy_inputs(copies, path)
        directory.keep_limits(limits or LimitSettings())
        directory._freeze(Config.of(path.name, versions, copies, parent), versions.first)
        return directory

    @classmethod
    def adopt(cls, path: Path, versions: Versioned[Scenario]) -> RunDirectory:
        """Make a run of a directory that another program prepared; what that one has written of a run is archived.

        Its config is kept under another name, and is replaced by the run's at the end. So this can be repeated.
        """
        directory = cls(path)
        directory.config = Config.of(path.name, versions, name_inputs(versions))
        with directory.lock():
            with storage_errors(path):
                shutil.copy2(path / CONFIG, path / PREPARED_CONFIG)
                directory.journal.unlink(missing_ok=True)
            write_lines(directory.journal, [])
            if directory.file(STATE).exists() or any(database_path(path, world).exists() for world in directory.worlds):
                directory.archive()
            directory._freeze(directory.config, versions.first)
        return directory

    def _freeze(self, config: Config, scenario: Scenario) -> None:
        fields = mirofish.list_config_fields(sample(scenario), scenario)
        replace_json(self.path / CONFIG, {**msgspec.to_builtins(config), **fields})
        self.config = config

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

    def open_vectors(self, table: WordTable | None = None) -> VectorFile:
        """Open the vectors of texts that the worlds compared by meaning; a table finds those of further texts."""
        return VectorFile(self.file(VECTORS), table)

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
        with self._reading:
            self._events += self._event_reader.read()
        return self._events

    @property
    def scenario_versions(self) -> Versioned[Scenario]:
        """The scenario, and how it changed where the run was forked or extended."""
        with self._reading:
            versions = self._versions or self.config.scenario_versions(self.path)
            added, self._versions_read = self.events[self._versions_read :], len(self._events)
            extensions = [
                (
                    line.round,
                    self._extended.get(line.key) or self.config.restore_scenario(line.event["scenario"], self.path),
                )
                for line in added
                if line.event is not None and line.is_continuation
            ]
            self._versions = Versioned(versions.first, (*versions.changes, *extensions)) if extensions else versions
            return self._versions

    @property
    def round_plans(self) -> dict[int, int]:
        """How many rounds were planned when the run was made, and from each extension on.

        Versions that did not write the latter into the stream did not write it into the journal either.
        """
        with self._reading:
            added, self._plans_read = self.events[self._plans_read :], len(self._events)
            for line in added:
                if line.event is not None and line.is_continuation and "total_rounds" in line.event:
                    self._plans[line.round] = line.event["total_rounds"]
        return {0: self.config.planned_rounds, **self._plans}

    def know_extension(self, line: JournalLine, scenario: Scenario) -> None:
        """Take over the scenario of an extension that is being written, so that it is not validated once more."""
        self._extended[line.key] = scenario

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

    def read_camps(self) -> dict[str, list[int]] | None:
        """Read which agents held which opinion at the start, where the directory lists them all."""
        config = msgspec.json.decode(self.file(CONFIG).read_bytes())
        if config["agents_count"] != len(config["agent_configs"]):
            return None
        camps: dict[str, list[int]] = {"supportive": [], "neutral": [], "opposing": []}
        for agent in config["agent_configs"]:
            camps[agent["stance"]].append(agent["agent_id"])
        return camps

    def read_limits(self) -> LimitSettings:
        """Read the limits that the run was given beside its scenario."""
        path = self.path / LIMITS
        try:
            return msgspec.json.decode(path.read_bytes(), type=LimitSettings)
        except FileNotFoundError:
            return LimitSettings()
        except (OSError, msgspec.MsgspecError) as error:
            raise StorageFailed(f"cannot read {path}: {error}; mend it, or remove it to lift its limits") from error

    def keep_limits(self, given: LimitSettings) -> LimitSettings:
        """Keep these limits for all later sessions, and return all that are in force. They are no part of history."""
        before = self.read_limits()
        limits = before.replace_with(given)
        if limits != before:
            replace_json(self.path / LIMITS, limits)
        return limits

    def replace_limits(self, limits: LimitSettings) -> None:
        """Keep these limits for all later sessions, and none of those before."""
        if limits != self.read_limits():
            replace_json(self.path / LIMITS, limits)

    @property
    def resume_command(self) -> str:
        """The command that goes on with the run, with its limits."""
        return f"shoal resume {quote_path(self.path)}{self.read_limits().format_options()}"

    # What has happened

    def read_last_rounds(self) -> dict[str, int]:
        """Return the last committed round of each world."""
        return {world: read_last_round(self.path, world) for world in self.worlds}

    def list_begun_worlds(self) -> list[str]:
        """Return the worlds of which a round was committed, be it only round 0."""
        return [world for world in self.worlds if read_rounds(self.path, world)[0]]

    def read_state(self) -> RunState:
        """Read the state that the last worker wrote, or make a new one."""
        try:
            text = (self.path / STATE).read_bytes()
        except FileNotFoundError:
            text = b""
        try:
            return msgspec.json.decode(text, type=RunState)
        except msgspec.DecodeError:
            # A power cut may leave it empty. What counts of it is in the journal and the databases.
            return self.rebuild_state()

    def rebuild_state(self) -> RunState:
        """Make the state of what was committed. Failures and what was measured are not known any more."""
        state, clock, last = self.make_state(), self.clock, max(self.read_last_rounds().values())
        is_extended = any(at > last for at, _ in self.scenario_versions.changes)
        for name, world in state.worlds.items():
            rounds, is_finished = read_rounds(self.path, name)
            is_finished = is_finished and not is_extended
            if rounds:
                world.current_round, world.digest, _ = rounds[-1]
                world.actions_count = sum(actions for _, _, actions in rounds)
                world.simulated_hours = clock.hours_gone(world.current_round)
                world.completed, world.measured_round = is_finished, world.current_round
                world.ended = is_finished and world.current_round < state.total_rounds
        if state.current_round:
            is_whole = all(world.completed for world in state.worlds.values())
            state.runner_status = Status.COMPLETED if is_whole else Status.STOPPED
            state.calls = sum(line.event is None and line.inherited is None for line in read_journal(self.journal)[0])
        return state

    def make_state(self) -> RunState:
        state = RunState(self.config.simulation_id, {name: WorldState() for name in self.worlds})
        state.plan(self.scenario_versions)
        return state

    def observe_state(self) -> RunState:
        """Read the state as it is now, which the last worker may not have been able to write.

        A run that is being worked on without a worker was interrupted: it has failed, and the log says why, or nothing
        does. While a process starts or stops a worker, the run is starting or stopping.
        """
        state = self.read_state()
        state.sinks = read_sinks(self.path)
        control = read_lock(self.path / CONTROL_LOCK)
        if control in (Status.STARTING, Status.STOPPING):
            state.runner_status = Status(control)
        elif state.runner_status.is_working and not self.has_worker():
            # It may have ended between the two looks; then it has written how.
            state = self.read_state()
            if state.runner_status.is_working:
                state.runner_status, state.process_pid, state.waiting = Status.FAILED, None, None
                state.error = (
                    f"the worker ended without a word, as one that is killed; its log ends: {self.read_last_words()}"
                )
                state.seats = [seat.without_turns() for seat in state.seats]
                for world in state.worlds.values():
                    world.running = False
        return state

    def check_journal(self) -> None:
        """Raise JournalCorrupt where the journal is damaged, as far as that shows without running the run again."""
        # The state is read first: a worker that goes on has written at least that much.
        state = self.read_state()
        Journal.sealed(self.journal, mark=state.journal)
        if state.journal is not None and state.is_over(self.scenario.rounds):
            added = self.journal.stat().st_size - state.journal.bytes if self.journal.exists() else 0
            if added > 0:
                raise JournalChanged(self.journal, f"{format_count(added, 'byte')} were added to it")

    def read_status(self) -> Status:
        """Return where the run stands."""
        return self.observe_state().runner_status

    def read_last_words(self) -> str:
        """Return the last line of the log."""
        try:
            with self.file(LOG).open("rb") as log:
                log.seek(max(log.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES, 0))
                lines = log.read().decode(errors="replace").splitlines()
        except FileNotFoundError:
            lines = []
        return clip(next((line.strip() for line in reversed(lines) if line.strip()), "nothing"), _MAX_REASON_CHARS)

    def is_over(self) -> bool:
        """Return whether nothing is left to do."""
        return self.read_state().is_over(self.scenario.rounds)

    def write_state(self, state: RunState) -> None:
        replace_json(self.path / STATE, mirofish.format_state(state), sync=False)
        # That no process works on the run needs to be written only once.
        if state.process_pid is not None or self._has_live_status:
            self.write_env_status(state)

    def write_env_status(self, state: RunState) -> None:
        """Write whether a worker is alive, and whether it answers commands."""
        replace_json(self.path / ENV_STATUS, mirofish.describe_environment(state), sync=False)
        self._has_live_status = state.process_pid is not None

    # Who works on it

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the one worker on this directory. The lock ends with the process, however that ends.

        RunRefused if the directory holds a symbolic link: what a worker writes must not end up elsewhere.
        """
        lock, folders = self.path / LOCK, (INPUTS, *self.worlds)
        with os.scandir(self.path) as found:
            files = [*found]
        for folder in [file for file in files if file.name in folders and file.is_dir()]:
            with os.scandir(folder) as found:
                files += found
        if links := [file.path for file in files if file.is_symlink()]:
            raise RunRefused(f"{links[0]} is a symbolic link.\nPut the file itself there, or remove the link.")
        with storage_errors(lock):
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not try_lock(handle, _GLANCE_SECONDS):
                pid = os.pread(handle, 32, 0).decode().strip() or "unknown"
                raise RunLocked(
                    f"{self.path} is being worked on by process {pid}.\n"
                    f"Wait until it ends, or stop it with `shoal stop {quote_path(self.path)}`."
                )
            write_lock(handle, str(os.getpid()))
            yield
        finally:
            os.close(handle)

    def has_worker(self) -> bool:
        """Return whether a worker is alive on this directory now."""
        return read_lock(self.path / LOCK) is not None

    def read_worker(self) -> int | None:
        """Return the number of the process that works on this directory now; None if none does."""
        text = read_lock(self.path / LOCK)
        return int(text) if text and text.isdecimal() else None

    def read_env_status(self) -> dict[str, Any]:
        """Read what the last worker wrote about itself; it may be dead. Empty where none ever did."""
        try:
            found: dict[str, Any] = msgspec.json.decode(self.file(ENV_STATUS).read_bytes())
        except (FileNotFoundError, msgspec.DecodeError):
            return {}
        return found

    def read_env_pid(self) -> int | None:
        """Return the process that says it is at work, or waits for commands."""
        return self.read_env_status().get("pid")

    def archive(self) -> Path:
        """Move what was written to `archive/N/`, copy the journal there, and return that folder. Needs the lock.

        A run that is killed here is repeated from its journal, so each step may be the last one.
        """
        with storage_errors(self.path):
            self.file(ARCHIVE).mkdir(exist_ok=True)
            archive = next(path for number in count(1) if _make(path := self.file(ARCHIVE) / str(number)))
            shutil.copy2(self.journal, archive / JOURNAL)
            for world in self.worlds:
                database = database_path(self.path, world)
                # What a killed worker left beside a database goes first: it must never meet a new one.
                beside = [database.with_name(f"{database.name}-{part}") for part in ("shm", "wal")]
                for path in (*beside, database, stream_path(self.path, world)):
                    _move(path, archive / path.relative_to(self.path))
            for name in (STATE, METRICS, ENV_STATUS):
                _move(self.file(name), archive / name)
        return archive


def read_outcome(run: RunDirectory) -> RunOutcome:
    """Read how far a run has come from its directory."""
    return replace(RunOutcome.of(run.path, run.read_state()), status=run.read_status())


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


def _move(path: Path, target: Path) -> None:
    if path.exists():
        target.parent.mkdir(exist_ok=True)
        path.replace(target)


def _make(path: Path) -> bool:
    """Make a folder; False where it is there already."""
    try:
        path.mkdir()
    except FileExistsError:
        return False
    return True


def full_name(path: Path) -> Path:
    """Resolve a path without a name, such as `.`: a run is called what its directory is called."""
    return path if path.name not in ("", "..") else path.resolve()
