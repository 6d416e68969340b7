"""What only Unix has, with and without what only Linux has."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from shoal.unix import read_command_line


def test_the_command_line_of_a_process_is_read() -> None:
    assert b"python" in read_command_line(os.getpid())
    assert read_command_line(2**22 + 1).strip() == b""


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps")
def test_the_command_line_of_a_process_is_read_where_there_is_no_proc(tmp_path: Path) -> None:
    there, elsewhere = read_command_line(os.getpid()), read_command_line(os.getpid(), tmp_path)
    assert there.split() == elsewhere.split()
    assert read_command_line(2**22 + 1, tmp_path).strip() == b""
