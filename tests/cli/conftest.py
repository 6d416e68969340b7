"""A folder with small scenarios in it, which is also the current one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import SLOW, SMALL


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "small.yaml").write_text(SMALL)
    (tmp_path / "slow.yaml").write_text(SLOW)
    monkeypatch.chdir(tmp_path)
    return tmp_path
