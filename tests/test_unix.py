"""What only Unix has, with and without what only Linux has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shoal.unix import read_command_line, read_core_wait


def test_the_command_line_of_a_process_is_read() -> None:
    assert b"python" in read_command_line(os.getpid())
    assert read_command_line(2**22 + 1).strip() == b""


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps")
def test_the_command_line_of_a_process_is_read_where_there_is_no_proc(tmp_path: Path) -> None:
    there, elsewhere = read_command_line(os.getpid()), read_command_line(os.getpid(), tmp_path)
    assert there.split() == elsewhere.split()
    assert read_command_line(2**22 + 1, tmp_path).strip() == b""


@contextmanager
def share_one_core(others: int) -> Iterator[None]:
    """Run on one core, beside processes that never rest."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(others)]
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
        for process in busy:
            process.kill()
            process.wait()


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="only Linux says it")
def test_time_without_a_core_is_told_from_time_at_work() -> None:
    with share_one_core(4):
        before, waited, began = time.perf_counter(), read_core_wait(), time.perf_counter()
        worked = time.thread_time()
        while time.thread_time() - worked < 0.1:
            pass
        ended, waited, after = time.perf_counter(), read_core_wait() - waited, time.perf_counter()
        # The core may be lost between two looks at clocks, too.
        assert ended - began - 0.15 < waited < after - before - 0.05
    assert waited > 0.1


def test_a_system_that_does_not_say_it_has_no_time_without_a_core(tmp_path: Path) -> None:
    assert read_core_wait(tmp_path) == 0.0
