"""Changes of one number in a scenario file that leave the rest as it is."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import yaml

from shoal.errors import StorageFailed
from shoal.scenario.document import set_number, set_number_in_file

COMMENTED = """\
# A study.
population: {count: 20}   # twenty people
max_workers: 64  # as many as we dare
# the end
"""


def test_a_value_is_replaced_and_every_comment_stays() -> None:
    assert set_number(COMMENTED, "max_workers", 12) == COMMENTED.replace("64", "12")


@pytest.mark.parametrize(
    "text",
    [
        "population: {count: 20}\n",
        "population: {count: 20}",
        "population:\n  count: 20\n",
        "population: {count: 20}\r\nrounds: 3\r\n",
        "topic: >\n  a long\n  story\npopulation:\n- count: 3\n",
        "population: {count: 1}\nnotes:\n  max_workers: 3\n",
    ],
)
def test_a_value_that_is_missing_is_added_at_the_end(text: str) -> None:
    changed = set_number(text, "max_workers", 12)
    assert changed is not None
    assert changed.startswith(text)
    assert yaml.safe_load(changed) == {**yaml.safe_load(text), "max_workers": 12}
    assert ("\r\n" in text) == changed.endswith("\r\n")


def test_in_json_a_value_is_replaced_but_not_added() -> None:
    assert set_number('{"rounds": 3, "max_workers": 64}', "max_workers", 8) == '{"rounds": 3, "max_workers": 8}'
    assert set_number('{"rounds": 3}', "max_workers", 8) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- a list\n",
        "{population: {count: 20}}\n",
        "population: {count: 20}\n...\n",
        "rounds: &n 3\nmax_workers: *n\n",
        "max_workers: [1]\n",
        "max_workers: 0x40\n",
        "no: {good\n",
    ],
)
def test_a_text_that_cannot_be_changed_safely_is_refused(text: str) -> None:
    assert set_number(text, "max_workers", 8) is None


def test_a_changed_file_keeps_its_mode_and_symlink(tmp_path: Path) -> None:
    file, link = tmp_path / "study.yaml", tmp_path / "link.yaml"
    file.write_text(COMMENTED)
    file.chmod(0o640)
    link.symlink_to(file)
    assert set_number_in_file(link, "max_workers", 12)
    assert link.is_symlink()
    assert "max_workers: 12  # as many" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.yaml", "study.yaml"]


def test_a_file_that_is_not_text_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_bytes(b"topic: \xff\n")
    assert not set_number_in_file(file, "max_workers", 12)
    assert file.read_bytes() == b"topic: \xff\n"


def test_a_missing_file_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="cannot write"):
        set_number_in_file(tmp_path / "missing.yaml", "max_workers", 12)
