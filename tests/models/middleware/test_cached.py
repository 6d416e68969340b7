from __future__ import annotations

import asyncio
import sqlite3
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import StorageFailed
from shoal.models.base import Answer, FailureKind, ModelFailed, Question, Usage
from shoal.models.costs import Spending
from shoal.models.middleware.cached import Cached, open_cache
from shoal.models.openai.endpoints import Endpoint
from tests.models.fakes import Scripted, endpoints, make_failure, question


async def run(
    path: Path, inner: Scripted, *questions: Question, at: Mapping[str, Endpoint] | None = None
) -> tuple[list[Answer], Spending]:
    """One run with this cache."""
    spending = Spending({})
    async with open_cache(path) as cache:
        model = Cached(inner, cache, at or endpoints(), spending)
        return [await model.answer(each) for each in questions], spending


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "answers.sqlite"


async def test_only_the_user_can_read_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "shoal" / "replies.db"
    path.parent.mkdir(mode=0o755)
    for name in ("replies.db", "replies.db-wal"):
        path.with_name(name).touch(mode=0o644)
    async with open_cache(path) as cache:
        cache.put(b"key", "model", "text")
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert "replies.db" in modes
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_another_run_does_not_pay_for_the_same_answer(path: Path) -> None:
    [first], _ = await run(path, Scripted(Answer("yes", Usage(9, 9), ms=70)), question())
    inner = Scripted(make_failure(FailureKind.FATAL))
    [again], spending = await run(path, inner, question(key="elsewhere/9/9/decide/0"))
    assert first.text == again.text == "yes"
    assert (again.usage, spending.cache_hits, inner.asked) == (Usage(), 1, [])


@pytest.mark.parametrize(
    "changes",
    [{"iteration": 1}, {"temperature": 0.3}, {"max_tokens": 7}, {"schema": {"type": "object"}}, {"model": "other"}],
    ids=str,
)
async def test_a_question_that_differs_in_anything_is_another_one(path: Path, changes: dict[str, Any]) -> None:
    inner = Scripted(Answer("one"), Answer("two"))
    answers, _ = await run(path, inner, question(), question(**changes))
    assert [answer.text for answer in answers] == ["one", "two"]


async def test_an_answer_of_a_rehearsal_is_not_taken_for_that_of_the_model(path: Path) -> None:
    await run(path, Scripted(Answer("rehearsed")), question(), at=endpoints("http://localhost:1/v1"))
    [answer], _ = await run(path, Scripted(Answer("real")), question(), at=endpoints("https://api.openai.com/v1"))
    assert answer.text == "real"


@pytest.mark.parametrize("finish", ["length", "refused"])
async def test_what_was_cut_off_or_refused_is_not_kept(path: Path, finish: str) -> None:
    await run(path, Scripted(Answer("no", finish=finish)), question())
    [answer], _ = await run(path, Scripted(Answer("whole")), question())
    assert answer.text == "whole"


async def test_failures_are_not_kept(path: Path) -> None:
    with pytest.raises(ModelFailed):
        await run(path, Scripted(make_failure(FailureKind.REFUSED)), question())
    [answer], _ = await run(path, Scripted(Answer("now")), question())
    assert answer.text == "now"


async def test_two_runs_use_it_at_the_same_time(path: Path) -> None:
    asked = [question(number) for number in range(100)]
    await asyncio.gather(*(run(path, Scripted(Answer("x")), *asked) for _ in range(4)))
    _, spending = await run(path, Scripted(make_failure(FailureKind.FATAL)), *asked)
    assert spending.cache_hits == 100


async def test_everything_is_on_disk_when_it_is_closed(path: Path) -> None:
    await run(path, Scripted(), *map(question, range(50)))
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(*) FROM answers").fetchone() == (50,)
    database.close()


async def test_a_file_that_is_no_cache_is_refused_with_a_message(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database " * 100)
    with pytest.raises(StorageFailed, match="Delete it, or run with --no-cache"):
        await run(path, Scripted(), question())
    assert path.read_text().startswith("not a database")


async def test_a_cache_that_breaks_during_a_run_does_not_break_the_run(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_cache(path) as cache:
        model = Cached(Scripted(), cache, endpoints(), Spending({}))
        await model.answer(question(1))
        await cache.close()
        with sqlite3.connect(path) as database:
            database.execute("DROP TABLE answers")
        database.close()
        for number in range(2, 5):
            assert (await model.answer(question(number))).text == "yes"
    assert caplog.text.count("is not used any more by this run") == 1
