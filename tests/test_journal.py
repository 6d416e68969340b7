"""What the journal promises: nothing that was acted upon is lost, nothing is guessed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from shoal.errors import Diverged, JournalCorrupt, JournalIncomplete, StorageFailed
from shoal.journal import DECIDE, EMBED, INJECT, Journal, JournalKey, JournalLine, digest, read_journal, write_lines


def key(n: int) -> JournalKey:
    return JournalKey("twitter", n, 0, DECIDE)


def find(journal: Journal, n: int, request: str = "") -> JournalLine | None:
    return journal.find(key(n), lambda: request)


def line(n: int) -> JournalLine:
    return JournalLine(key(n), f"request {n}", reply=[{"kind": "DO_NOTHING", "args": {}}], ms=n)


async def test_what_was_recorded_is_there_after_opening_again(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    async with Journal.open(path) as journal:
        await asyncio.gather(*(journal.record(line(n)) for n in range(50)))
    async with Journal.open(path) as again:
        assert sorted(found.key for found in again) == sorted(line(n).key for n in range(50))
        assert find(again, 7) == line(7)


async def test_a_line_is_on_disk_when_record_returns(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    async with Journal.open(path) as journal:
        await journal.record(line(1))
        assert read_journal(path)[0] == [line(1)]


async def test_a_torn_last_line_is_cut_off_and_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write_lines(path, [line(1), line(2)])
    whole = path.read_bytes()
    for cut in range(whole.index(b"\n") + 1, len(whole)):
        path.write_bytes(whole[:cut])
        async with Journal.open(path) as journal:
            assert [found.key for found in journal] == [line(1).key]
            await journal.record(line(3))
        assert [found.key for found in read_journal(path)[0]] == [line(1).key, line(3).key]


def test_a_corrupt_line_is_named_with_its_number_and_the_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write_lines(path, [line(1), line(2), line(3)])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"key": "twitter/2\x00\n' + lines[2])
    before = path.read_bytes()
    with pytest.raises(JournalCorrupt, match=r"journal\.jsonl:2: .*cannot be read"):
        Journal.open(path)
    assert path.read_bytes() == before


async def test_a_directory_that_cannot_be_written_is_a_storage_failure(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="cannot write"):
        Journal.open(tmp_path / "missing" / "journal.jsonl")


async def test_a_full_disk_fails_every_waiting_line_and_keeps_the_lines_before(tmp_path: Path) -> None:
    """/dev/full refuses every write as a full disk does."""
    path = tmp_path / "journal.jsonl"
    path.symlink_to("/dev/full")
    journal = Journal(path, [line(1)], os.open(path, os.O_WRONLY))
    results = await asyncio.gather(journal.record(line(2)), journal.record(line(3)), return_exceptions=True)
    assert [type(result) for result in results] == [StorageFailed, StorageFailed]
    assert "Free some space" in str(results[0])
    assert find(journal, 1) == line(1)
    assert find(journal, 2) is None
    await journal.close()


async def test_an_inherited_line_answers_only_the_same_request(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write_lines(path, [JournalLine(key(1), "abc", reply=[], inherited="parent")])
    journal = Journal.sealed(path)
    assert find(journal, 1, "abc") is not None
    assert find(journal, 1, "xyz") is None
    assert journal.calls == 0


def test_after_a_run_was_made_to_go_on_earlier_lines_about_later_rounds_answer_only_the_same_request() -> None:
    go_on = JournalLine("*/2/continue/0", event={"scenario": {}})
    journal = Journal(Path(), [line(1), line(2), line(3), go_on, JournalLine(key(3), "another", reply=[])], None)
    assert find(journal, 1) == line(1)
    assert find(journal, 2, "request 2") == line(2)
    assert find(journal, 2, "another") is None
    assert find(journal, 3) == JournalLine(key(3), "another", reply=[])
    assert journal.calls == 4
    assert [event.is_continuation for event in journal.events] == [True]


def test_an_own_line_must_answer_the_request() -> None:
    journal = Journal(Path(), [line(1)], None)
    assert journal.lookup(key(1), lambda: "request 1") == line(1)
    with pytest.raises(Diverged, match="answers request request 1, but this run now asks another"):
        journal.lookup(key(1), lambda: "another")


async def test_only_a_journal_that_is_sealed_must_be_complete(tmp_path: Path) -> None:
    async with Journal.open(tmp_path / "journal.jsonl") as journal:
        assert journal.lookup(key(1), lambda: "abc") is None
    with pytest.raises(JournalIncomplete, match="no reply under twitter/1/0/decide/0"):
        Journal.sealed(tmp_path / "journal.jsonl").lookup(key(1), lambda: "abc")


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("twitter/2/17/decide/0", JournalKey("twitter", 2, 17, DECIDE)),
        ("town/60/0/embed/cue", JournalKey("town", 60, 0, EMBED, "cue")),
        ("*/12/inject/1", JournalKey("*", 12, None, INJECT, 1)),
        ("claim/5/town/0/0", JournalKey("claim", 5, "town", "0")),
    ],
)
def test_a_key_is_written_and_read_back(text: str, known: JournalKey) -> None:
    parsed = JournalKey.parse(text)
    assert str(known) == text == parsed
    assert (parsed.turn, parsed.purpose, parsed.n) == (known.turn, known.purpose, known.n)


def test_a_key_enters_a_digest_as_its_text() -> None:
    assert digest({"key": key(1)}) == digest({"key": "twitter/1/0/decide/0"})


def test_the_same_request_has_the_same_digest() -> None:
    assert digest({"a": 1, "b": [1, 2]}) == digest({"a": 1, "b": [1, 2]})
    assert digest({"a": 1}) != digest({"a": 2})


async def test_a_sealed_journal_refuses_to_be_written(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write_lines(path, [])
    with pytest.raises(AssertionError):
        await Journal.sealed(path).record(line(1))
