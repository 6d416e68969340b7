"""Disks fill up and directories cannot be written: a clear error, and nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import StorageFailed
from shoal.runs.directory import RunDirectory
from shoal.runs.files import replace_json
from shoal.runs.operations import create_run
from shoal.runs.state import Status
from shoal.scenario.loading import validate
from tests.runs.harness import check_consistency, go_on, start
from tests.runs.test_worker import ASKING, RUMOUR

#: Works on a run in a process that may not write files longer than given: the writes fail as on a full disk.
_LIMITED = """
import resource, signal, sys
from pathlib import Path
from shoal.errors import StorageFailed
from shoal.runs.directory import RunDirectory
from tests.runs.harness import go_on
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    go_on(RunDirectory(Path(sys.argv[1])))
except StorageFailed as error:
    print(error)
    sys.exit(9)
"""


def work_with_little_space(directory: Path, most_bytes: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _LIMITED, str(directory), str(most_bytes)]
    root = Path(__file__).parents[2]
    return subprocess.run(command, capture_output=True, text=True, cwd=root, check=False)


@pytest.mark.parametrize(
    ("scenario", "most_bytes"),
    [(RUMOUR, 1_000), (RUMOUR, 30_000), (RUMOUR, 120_000), (ASKING, 8_000), (ASKING, 180_000)],
)
def test_a_full_disk_is_a_clear_error_and_the_run_goes_on_when_there_is_room(
    tmp_path: Path, scenario: dict[str, Any], most_bytes: int
) -> None:
    whole = start(scenario, tmp_path / "whole")
    directory = create_run(validate(scenario), tmp_path / "run")
    full = work_with_little_space(directory.path, most_bytes)
    assert full.returncode == 9, full.stderr
    assert "cannot write" in full.stdout
    assert "Free some space" in full.stdout
    assert directory.read_status() in (Status.IDLE, Status.FAILED)
    assert directory.read_status().resumable
    check_consistency(directory.path, finished=False)
    assert go_on(RunDirectory(directory.path)).digest == whole.digest
    check_consistency(directory.path, finished=True)


def test_a_run_cannot_be_made_where_a_file_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFailed, match="cannot write"):
        start(RUMOUR, tmp_path / "file" / "run")


def test_a_run_cannot_be_made_where_nothing_can_be_written() -> None:
    with pytest.raises(StorageFailed, match="cannot write"):
        start(RUMOUR, Path("/proc/shoal/run"))


def test_a_json_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    replace_json(file, {"round": 1})
    (tmp_path / f".state.json.{os.getpid()}").mkdir()
    with pytest.raises(StorageFailed):
        replace_json(file, {"round": 2})
    assert json.loads(file.read_text()) == {"round": 1}
