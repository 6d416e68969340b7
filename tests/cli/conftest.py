"""A folder with small scenarios in it, which is also the current one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import GATED, GATED_MIND, SLOW, SMALL


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "small.yaml").write_text(SMALL)
    (tmp_path / "slow.yaml").write_text(SLOW)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def gated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with gated.yaml in it, a run of which waits in its second round for the file `go`."""
    (folder / "gated.py").write_text(GATED_MIND)
    (folder / "gated.yaml").write_text(GATED)
    monkeypatch.syspath_prepend(str(folder))
    return folder
