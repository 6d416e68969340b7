"""Writing scenarios."""

from __future__ import annotations

from pathlib import Path

from tests.cli.terminal import SMALL, call


def test_what_init_writes_is_valid(folder: Path) -> None:
    result = call("init")
    assert result.exit_code == 0
    assert "shoal run scenario.yaml" in result.stdout
    assert call("validate", "scenario.yaml").exit_code == 0


def test_init_makes_the_folder_it_is_given(folder: Path) -> None:
    assert call("init", "studies/bridge.yaml").exit_code == 0
    assert (folder / "studies" / "bridge.yaml").exists()


def test_init_does_not_write_over_a_file(folder: Path) -> None:
    result = call("init", "small.yaml")
    assert result.exit_code == 3
    assert "--force" in result.stderr
    assert (folder / "small.yaml").read_text() == SMALL


def test_init_writes_over_a_file_with_force(folder: Path) -> None:
    assert call("init", "small.yaml", "--force").exit_code == 0
    assert (folder / "small.yaml").read_text() != SMALL
