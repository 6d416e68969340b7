from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from shoal import __version__
from shoal.errors import Diverged, JournalIncomplete
from shoal.journal import REMEMBER, Journal, JournalKey, JournalLine, read_journal, write_lines
from shoal.models.base import Answer, FailureKind, ModelFailed, Question, Usage
from shoal.models.middleware.journaled import Journaled
from shoal.models.stack import build_replay_stack
from tests.models.fakes import MODEL, Scripted, make_failure, question

WHOLE = Answer("yes", Usage(100, 20, 60), "length", 913)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


async def run(path: Path, inner: Scripted, *questions: Question) -> list[Answer]:
    """Ask questions in one session of a run with this journal."""
    async with Journal.open(path, written_by="0.1") as journal:
        model = Journaled(inner, journal)
        return [await model.answer(each) for each in questions]


async def test_a_line_says_what_was_asked_answered_and_used(path: Path) -> None:
    await run(path, Scripted(WHOLE), question(3))
    assert read_journal(path)[0] == [
        JournalLine(
            "town/1/3/decide/0",
            question(3).digest,
            reply={"text": "yes", "finish": "length", "model": MODEL},
            usage={"input": 100, "output": 20, "cached": 60},
            ms=913,
        )
    ]


async def test_what_is_in_the_journal_is_not_asked_again(path: Path) -> None:
    await run(path, Scripted(WHOLE), question())
    inner = Scripted(make_failure(FailureKind.FATAL))
    assert await run(path, inner, question()) == [WHOLE]
    assert inner.asked == []


async def test_an_answer_is_on_disk_before_anybody_has_it(path: Path) -> None:
    async with Journal.open(path) as journal:
        await Journaled(Scripted(WHOLE), journal).answer(question())
        assert len(read_journal(path)[0]) == 1


async def test_an_answer_that_cost_nothing_has_no_usage(path: Path) -> None:
    await run(path, Scripted(Answer("from the cache")), question())
    assert read_journal(path)[0][0].usage is None
    assert await run(path, Scripted(make_failure(FailureKind.FATAL)), question()) == [Answer("from the cache")]


async def test_a_failure_leaves_no_line(path: Path) -> None:
    with pytest.raises(ModelFailed):
        await run(path, Scripted(make_failure(FailureKind.QUOTA)), question())
    assert read_journal(path)[0] == []


async def test_the_same_key_with_another_question_has_diverged(path: Path) -> None:
    await run(path, Scripted(WHOLE), question())
    with pytest.raises(Diverged, match=rf"town/1/0/decide/0: the journal .*\n.*Shoal 0.1; this is Shoal {__version__}"):
        await run(path, Scripted(WHOLE), question(temperature=0.9))


async def test_a_parents_line_answers_only_the_same_question(path: Path) -> None:
    reply = {"text": "inherited", "finish": "stop"}
    write_lines(path, [JournalLine(question().key, question().digest, reply=reply, inherited="parent")])
    assert [answer.text for answer in await run(path, Scripted(WHOLE), question())] == ["inherited"]
    assert [answer.text for answer in await run(path, Scripted(WHOLE), question(temperature=0.9))] == ["yes"]


async def test_a_failure_of_another_question_under_the_same_key_has_diverged_too(path: Path) -> None:
    write_lines(path, [JournalLine(question().key, "another digest", outcome="timeout")])
    with pytest.raises(Diverged):
        await run(path, Scripted(WHOLE), question())


async def test_a_background_question_that_failed_fails_again_without_being_asked(path: Path) -> None:
    background = question(key=JournalKey("town", 1, 0, REMEMBER))
    with pytest.raises(ModelFailed):
        await run(path, Scripted(make_failure(FailureKind.QUOTA)), background)
    inner = Scripted(WHOLE)
    with pytest.raises(ModelFailed, match="quota: a quota failure"):
        await run(path, inner, background)
    assert inner.asked == []


async def test_an_answer_under_way_to_the_disk_is_kept_when_its_asker_is_cancelled(path: Path) -> None:
    async with Journal.open(path) as journal:
        task = asyncio.create_task(Journaled(Scripted(WHOLE), journal).answer(question()))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(read_journal(path)[0]) == 1


async def test_a_replay_has_the_journal_and_nothing_else(path: Path) -> None:
    await run(path, Scripted(WHOLE), question(1))
    stack = build_replay_stack(Journal.sealed(path))
    assert await stack.answer(question(1)) == WHOLE
    with pytest.raises(JournalIncomplete, match="no reply under town/1/2/decide/0"):
        await stack.answer(question(2))


async def test_a_sealed_journal_is_never_asked_around(path: Path) -> None:
    path.touch()
    inner = Scripted(WHOLE)
    with pytest.raises(JournalIncomplete):
        await Journaled(inner, Journal.sealed(path)).answer(question())
    assert inner.asked == []
