"""What was learned about limits outlives the broker, and never harms it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.slots.adaptive.store import LimitStore
from shoal.slots.broker import SlotPool
from shoal.slots.leases import Control, Fixed

NOW = 1_800_000_000.0
DAY = 24 * 3600.0


class Lesson(msgspec.Struct, frozen=True):
    limit: int


class Learner(Fixed):
    """Learns what it is told."""

    def __init__(self, limit: int | None) -> None:
        super().__init__(1)
        self.limit = limit

    def get_learned(self) -> Lesson | None:
        return None if self.limit is None else Lesson(self.limit)


def pools(**limits: int | None) -> list[SlotPool]:
    controls: dict[str, Control] = {name: Learner(limit) for name, limit in limits.items()}
    return [SlotPool(name, control) for name, control in controls.items()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "shoal" / "limits.json"


def test_what_was_learned_is_there_the_next_time(path: Path) -> None:
    LimitStore(path, NOW).keep([*pools(a=7, b=None), SlotPool("c", Fixed(3))], NOW)
    again = LimitStore(path, NOW + DAY)
    assert (again.of("a", Lesson), again.of("b", Lesson), again.of("c", Lesson)) == (Lesson(7), None, None)


def test_nothing_is_written_where_nothing_is_new(path: Path) -> None:
    remembered = LimitStore(path, NOW)
    remembered.keep(pools(a=7), NOW)
    path.unlink()
    remembered.keep(pools(a=7), NOW + 5)
    assert not path.exists()
    remembered.keep(pools(a=8), NOW + 10)
    assert json.loads(path.read_text())["pools"] == {"a": {"at": NOW + 10, "learned": {"limit": 8}}}


def test_old_knowledge_is_dropped(path: Path) -> None:
    LimitStore(path, NOW).keep(pools(old=1), NOW)
    LimitStore(path, NOW).keep(pools(new=2), NOW + 20 * DAY)
    later = LimitStore(path, NOW + 31 * DAY)
    assert (later.of("old", Lesson), later.of("new", Lesson)) == (None, Lesson(2))
    later.keep(pools(new=3), NOW + 31 * DAY)
    assert list(json.loads(path.read_text())["pools"]) == ["new"]


def test_what_another_broker_wrote_stays(path: Path) -> None:
    one, other = LimitStore(path, NOW), LimitStore(path, NOW)
    one.keep(pools(a=1), NOW)
    other.keep(pools(b=2), NOW)
    assert sorted(json.loads(path.read_text())["pools"]) == ["a", "b"]


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"{", b"[]", b'{"format": 99, "pools": {}}', b'{"format": 1, "pools": {"a": 5}}'],
)
def test_a_file_that_cannot_be_read_means_starting_afresh(
    path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    remembered = LimitStore(path, NOW)
    assert "learned anew" in caplog.text
    assert remembered.of("a", Lesson) is None
    remembered.keep(pools(a=7), NOW)
    assert LimitStore(path, NOW).of("a", Lesson) == Lesson(7)


def test_an_entry_of_another_shape_means_learning_that_pool_anew(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    entries: dict[str, Any] = {
        "a": {"at": NOW, "learned": {"limit": "many"}},
        "b": {"at": NOW, "learned": {"limit": 2}},
    }
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"format": 1, "pools": entries}))
    remembered = LimitStore(path, NOW)
    assert (remembered.of("a", Lesson), remembered.of("b", Lesson)) == (None, Lesson(2))
    assert "what is kept of a cannot be read" in caplog.text


def test_a_file_that_cannot_be_written_is_said_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "limits.json"
    remembered = LimitStore(path, NOW)
    caplog.clear()
    remembered.keep(pools(a=7), NOW)
    remembered.keep(pools(a=8), NOW)
    written = [record for record in caplog.records if "cannot keep" in record.message]
    assert [record.levelno for record in written] == [logging.WARNING]
    (tmp_path / "file").unlink()
    remembered.keep(pools(a=8), NOW)
    assert LimitStore(path, NOW).of("a", Lesson) == Lesson(8)
