"""What holds for every test: no key in the environment, no connection that leaves this machine, no limits of others."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from shoal.runs.launchers import ForkLauncher

#: Files whose tests share what takes long, such as a cluster or a run: one process runs all tests of such a file.
SHARING = (
    "agents/heuristic/test_opinion.py",
    "browser",
    "runs/launchers/test_ray.py",
    "runs/narrative/test_narrative.py",
    "runs/test_shards.py",
    "test_examples.py",
    "test_project.py",
)
#: Tests that start processes, wait for real clocks, or repeat whole runs; `scripts/test --fast` leaves them out.
SLOW = (
    "agents/heuristic/test_opinion.py",
    "bench",
    "browser",
    "cli/commands",
    "contracts/test_sinks.py",
    "cli/test_hostile_texts.py",
    "cli/test_play.py",
    "cli/test_main.py",
    "cli/test_mirofish.py",
    "cli/test_parallel.py",
    "cli/views/test_progress.py",
    "experiments/test_batch.py",
    "experiments/test_global_limit.py",
    "models/local/test_download.py",
    "models/local/test_server.py",
    "preparation/test_model.py",
    "python",
    "runs/commands",
    "runs/interviews",
    "runs/launchers",
    "runs/planning",
    "runs/remote",
    "runs/narrative/test_writer.py",
    "runs/rerun",
    "runs/sinks/test_live.py",
    "runs/test_extend.py",
    "runs/test_faults.py",
    "runs/test_fork.py",
    "runs/test_hostile.py",
    "runs/test_inputs.py",
    "runs/test_kill.py",
    "runs/test_language_runs.py",
    "runs/test_own_worlds.py",
    "runs/test_provider_faults.py",
    "runs/test_shards.py",
    "runs/test_storage.py",
    "runs/test_worker.py",
    "runs/tuning/test_calls.py",
    "runs/tuning/test_simulations.py",
    "scenario/importers/test_mirofish.py",
    "scenario/importers/test_mirofish_effects.py",
    "server",
    "slots/test_processes.py",
    "test_docs.py",
    "test_examples.py",
    "test_project.py",
    "test_recordings.py",
)

#: Tests on a real language model take minutes; `scripts/test --real` runs them alone.
IS_REAL = bool(os.environ.get("SHOAL_REAL_TESTS"))
collect_ignore = [] if IS_REAL else ["real"]

_HERE = ("127.0.0.1", "127.0.0.2", "::1", "localhost", "")

# How long drawing an example takes says more about the machine than about the code.
settings.register_profile("shoal", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("shoal")


def _stay_on_this_machine(event: str, args: tuple[object, ...]) -> None:
    if event != "socket.connect":
        return
    address = args[1]
    if isinstance(address, tuple) and address[0] not in _HERE:
        raise RuntimeError(f"a test tried to reach {address[0]}; serve what it needs on the loopback address")


sys.addaudithook(_stay_on_this_machine)

# A shell starts background jobs with SIGINT ignored, which the commands that tests interrupt would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow = tuple(f"tests/{part}" for part in SLOW)
    for item in items:
        if item.nodeid.startswith(slow):
            item.add_marker(pytest.mark.slow)
    # Started last, the longest pages would keep one process at work while the others have nothing left.
    items.sort(key=lambda item: not item.nodeid.startswith("tests/test_docs.py"))


def pytest_collection_finish() -> None:
    """Keep what was imported and collected out of every search for garbage: each run begins with one."""
    gc.collect()
    gc.freeze()


class SharingScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives tests to processes one by one, but those of a file that shares something together.

    The groups of `--dist loadgroup` have no effect under pytest 9.2, which does not let xdist rename tests.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if file.startswith(tuple(f"tests/{part}" for part in SHARING)) else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharingScheduling:
    return SharingScheduling(config, log)


@pytest.fixture(scope="session")
def _slots_folder() -> Iterator[Path]:
    # The path of a socket must be short, which pytest's own folders are not.
    # A broker that nobody needs any more may still write its memory there.
    with TemporaryDirectory(prefix="shoal-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session", autouse=True)
def _own_environment(_slots_folder: Path) -> Iterator[None]:
    """Neither keys nor learned limits nor models of the person who runs the tests are used, recorded or changed."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.endswith("API_KEY")]:
            patch.delenv(name)
        patch.setenv("SHOAL_SLOTS", str(_slots_folder / "slots.sock"))
        patch.setenv("XDG_STATE_HOME", str(_slots_folder))
        # What is read from texts must not depend on the models that this person has.
        if not IS_REAL:
            patch.setenv("SHOAL_MODELS", str(_slots_folder / "models"))
        yield


@pytest.fixture(scope="session")
def forks() -> Iterator[ForkLauncher]:
    """Starts workers without importing everything each time. Who needs another environment for them makes another."""
    # Its fork server begins with the first worker, in an event loop: as a process of its own, and no fork of this one.
    launcher = ForkLauncher(os.environ, idle_seconds=0)
    yield launcher
    launcher.close()
