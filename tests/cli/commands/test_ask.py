"""Asking agents, from a shell."""

from __future__ import annotations

import asyncio
import csv
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.rehearsal.server import Rehearsal, start
from shoal.rehearsal.settings import RehearsalSettings
from tests.cli.terminal import DEADLINE_SECONDS, call

RUN = "runs/small-1"
MODEL = "--model=openai/gpt-4.1-mini"
SURVEY = """\
- question: Will you cross the old bridge?
  fields: {cross: yes/no, why: text}
- question: Whom do you trust most?
"""


class Server(threading.Thread):
    """A rehearsal server in another thread, as commands have their own event loop."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ready, self._loop, self._over = threading.Event(), asyncio.new_event_loop(), asyncio.Event()
        self.rehearsal: Rehearsal | None = None

    def run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        async with start(RehearsalSettings()) as self.rehearsal:
            self._ready.set()
            await self._over.wait()

    def __enter__(self) -> Rehearsal:
        self.start()
        assert self._ready.wait(DEADLINE_SECONDS)
        assert self.rehearsal is not None
        return self.rehearsal

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self.join(DEADLINE_SECONDS)


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rehearsal]:
    """A folder with a run of heuristic minds, and a private cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    call("run", "small.yaml", "--quiet")
    with Server() as rehearsal:
        monkeypatch.setenv("OPENAI_BASE_URL", rehearsal.base_url)
        yield rehearsal


def answers(*args: str) -> dict[str, Any]:
    result = call("ask", RUN, *args, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_question_is_answered_in_a_table(server: Rehearsal) -> None:
    result = call("ask", RUN, "Will it rain?", "--fields", "rain:yes/no", "--sample", "3", MODEL)
    assert result.exit_code == 0
    head, *rows = result.stdout.splitlines()
    assert head.split() == ["agent", "rain"]
    assert [row.split()[-1] in ("yes", "no") for row in rows] == [True] * 3
    assert "3 calls" in result.stderr
    assert "note: openai/gpt-4.1-mini answered in the name of agents" in result.stderr


def test_all_answers_come_as_one_json_object(server: Rehearsal) -> None:
    found = answers("Will it rain?", "--who", "0,3", "--iterations", "2", MODEL)
    assert [(row["agent"], row["iteration"]) for row in found["rows"]] == [(0, 0), (0, 1), (3, 0), (3, 1)]
    assert all(row["answer"] and row["error"] is None for row in found["rows"])
    assert (found["run"], found["round"], found["columns"]) == (RUN, 5, ["answer"])
    assert found["spending"]["calls"] == server.stats.requests == 4


def test_a_table_is_written_as_csv(server: Rehearsal, folder: Path) -> None:
    result = call("ask", RUN, "How sure?", "--fields", "sure:integer 0-10,why", "--sample", "4", MODEL, "--csv=out.csv")
    assert result.stdout == "out.csv: 4 rows\n"
    with (folder / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["agent", "name", "iteration", "model", "sure", "why", "error"]
    assert all(int(row["sure"]) in range(11) for row in rows)


def test_a_survey_is_one_call_for_each_agent(server: Rehearsal, folder: Path) -> None:
    (folder / "survey.yaml").write_text(SURVEY)
    found = answers("--survey", "survey.yaml", "--sample", "2", MODEL)
    assert found["columns"] == ["cross", "why", "answer_2"]
    assert server.stats.requests == len(found["rows"]) == 2


def test_people_are_chosen_by_what_they_are_like_and_asked_as_of_a_round(server: Rehearsal) -> None:
    found = answers("Will it rain?", "--where", "stance > 0 and number < 10", "--round", "2", MODEL)
    assert found["round"] == 2
    assert 0 < len(found["rows"]) < 10


def test_claims_are_scored_on_agents_and_on_a_world(server: Rehearsal) -> None:
    people = answers("--claim", "Talks about the bridge.", "--sample", "2", MODEL)
    (world,) = answers("--claim", "All is calm.", "--world", "reddit", MODEL)["rows"]
    assert all(row["score"] in range(10) and row["reason"] for row in [*people["rows"], world])
    assert (world["agent"], world["name"]) == (None, "reddit")
    shown = call("ask", RUN, "--claim", "All is calm.", "--world", "reddit", MODEL)
    assert shown.stdout.split()[:3] == ["world", "score", "reason"]
    assert "in the name of" not in shown.stderr


def test_asking_again_is_answered_from_the_cache_unless_that_is_not_wanted(server: Rehearsal) -> None:
    args = ("ask", RUN, "Will it rain?", "--sample", "2", MODEL)
    call(*args)
    assert "0 calls, 2 from the cache, 0 tokens, $0.0000" in call(*args).stderr
    assert server.stats.requests == 2
    call(*args, "--no-cache")
    assert server.stats.requests == 4


def test_agents_that_were_not_asked_are_listed_with_the_reason(server: Rehearsal) -> None:
    result = call("ask", RUN, "Will it rain?", "--who", "0,1,2", MODEL, "--max-calls", "1", "--no-cache")
    assert result.exit_code == 0
    assert result.stderr.count("not asked: the budget is reached (max_calls)") == 2


def test_a_command_that_got_no_answer_at_all_fails(server: Rehearsal) -> None:
    result = call("ask", RUN, "Will it rain?", "--who", "0", MODEL, "--max-tokens", "1")
    assert result.exit_code == 1
    assert "not asked" in result.stderr


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ((), "give a QUESTION"),
        (("a", "--claim", "b"), "one of them"),
        (("a", "--world", "twitter"), "--world goes with --claim"),
        (("--claim", "a", "--fields", "b:text"), "--fields goes with a QUESTION"),
        (("a", "--fields", "b:colour", MODEL), "there is no kind 'colour'"),
        (("a", "--where", "agee > 3", MODEL), "did you mean 'age'"),
        (("a", "--round", "99", MODEL), "there are rounds 0 to 5"),
        (("a",), "their mind is heuristic"),
    ],
)
def test_a_wrong_question_is_refused_with_the_reason(args: tuple[str, ...], complaint: str, server: Rehearsal) -> None:
    result = call("ask", RUN, *args)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert server.stats.requests == 0


def test_a_run_that_is_not_there_cannot_be_asked(folder: Path) -> None:
    assert call("ask", "runs/none", "Why?", MODEL).exit_code == 3
