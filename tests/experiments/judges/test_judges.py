"""Judges one by one, on runs that have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.errors import ScenarioInvalid
from shoal.experiments import Judgement, RunResult
from shoal.experiments.judges import JUDGING, Judging, JudgingReader, load_judging, measure_agreement
from shoal.experiments.judges.agreement import measure_fleiss_kappa
from shoal.rehearsal.server import start as serve
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs import LimitSettings, RunDirectory, RunResources, read_outcome
from tests.runs.harness import start

MODEL = "openai/gpt-4.1-mini"
RUBRIC = {"rubric": "People stay polite.", "model": MODEL, "votes": 5}
TRUST = {"ask": "Do you trust the town hall?", "at_least": 0.5, "model": MODEL}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A small run, as an experiment records it."""
    path = tmp_path_factory.mktemp("judges") / "run"
    scenario = {"population": [{"count": 6}], "rounds": 3, "seed": 4, "topic": "the old bridge", "worlds": ["twitter"]}
    start(scenario, path)
    return describe(path)


def describe(path: Path) -> RunResult:
    outcome = read_outcome(RunDirectory(path))
    return RunResult(
        "main", "control", 4, str(outcome.status), None, 0.5, 7, 10, 5, 0.5, {"reach(a)": 0.4, "reach(b)": 0.6}, (),
        outcome.run, outcome.digest,
    )  # fmt: skip


def read(judges: Mapping[str, Any], folder: Path = Path()) -> Judging:
    reader = JudgingReader(folder, is_open=True)
    judging = reader.read([], dict(judges))
    assert reader.problems == []
    return judging


def judge(run: RunResult, judges: Mapping[str, Any], resources: RunResources | None = None) -> tuple[Judgement, ...]:
    return asyncio.run(read(judges).judge(run, resources or RunResources())).judgements


# Expressions


@pytest.mark.parametrize(
    ("expression", "passed"),
    [
        ("reach(a) < 0.5 and reach('b') >= 0.6", True),
        ("reach(a) > reach(b)", False),
        ("not reach(a) > 0.5", True),
        ("(reach(b) - reach(a)) * 10 > 1.9", True),
        ("twitter.reach(a) > 1", None),
        ("reach > 0.1", None),
        ("virality > 0 or reach(a) > 0", None),
        ("reach(a) / (reach(a) - reach(a)) > 1", None),
        ("cost < 1 and calls == 7", True),
        ("0 < participation <= 1", True),
    ],
)
def test_an_expression_holds_or_not_or_cannot_be_judged(run: RunResult, expression: str, passed: bool | None) -> None:
    quiet = msgspec.structs.replace(run, metrics=dict(run.metrics))
    (found,) = judge(quiet, {"rule": expression})
    assert found.passed is passed
    assert (found.error is None) is (passed is not None)
    assert found.score is None or passed is not None


def test_an_expression_says_the_values_and_what_is_missing(run: RunResult) -> None:
    holds, missing, several = judge(run, {"a": "reach(a) < 0.5", "b": "balance > 0.5", "c": "reach > 0"})
    assert (holds.reason, holds.score) == ("reach(a) is 0.4", 0.4)
    assert missing.error == "balance has no value: it is for room and dialogue worlds, and twitter is none"
    assert several.error == "reach has no value: there are several; write which one: reach(a) or reach(b)"
    assert not missing.is_pending


# Functions


def test_a_function_judges_with_a_reason_or_a_number(run: RunResult, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def judge(run):\n    with run.open() as world:\n        return world.people == 6, 'six people'\n"
        "def share(run):\n    return 0.25\n"
        "def breaks(run):\n    return run.values['nothing']\n"
        "def says(run):\n    return 'yes'\n"
    )
    judges = {
        "default": {"file": "mine.py"},
        "score": {"file": "mine.py", "function": "share"},
        "least": {"file": "mine.py", "function": "share", "at_least": 0.5},
        "breaks": {"file": "mine.py", "function": "breaks"},
        "says": {"file": "mine.py", "function": "says"},
    }
    judged = asyncio.run(read(judges, tmp_path).judge(run, RunResources()))
    default, score, least, breaks, says = judged.judgements
    assert (default.passed, default.reason) == (True, "six people")
    assert (score.passed, score.score, score.is_verdict) == (None, 0.25, False)
    assert (least.passed, least.reason) == (False, "0.25, at least 0.5 passes")
    assert breaks.error == f"{tmp_path / 'mine.py'}:7: KeyError: 'nothing'"
    assert (breaks.passed, breaks.score) == (None, None)
    assert "it returned 'yes'" in str(says.error)
    assert judged.passed is False


# Models


def resources(url: str, **limits: Any) -> RunResources:
    environ = {"OPENAI_API_KEY": "test", "OPENAI_BASE_URL": url}
    return RunResources(environ=environ, limits=LimitSettings(**limits))


def count_lines(run: RunResult) -> int:
    path = Path(run.run, JUDGING)
    return len(path.read_bytes().splitlines()) if path.exists() else 0


async def test_a_model_votes_and_is_asked_once(run: RunResult, tmp_path: Path) -> None:
    async with serve(RehearsalSettings()) as server:
        first = await read({"polite": RUBRIC}).judge(run, resources(server.base_url))
    (found,) = first.judgements
    assert found.error is None
    assert len(found.votes) == found.calls == count_lines(run) == 5
    assert found.passed is (found.votes_for * 2 > 5)
    assert found.votes_for == sum(vote >= 6 for vote in found.votes)
    assert found.score == pytest.approx(sum(found.votes) / 5)
    assert found.cost is not None
    assert first.judging_cost == found.cost > 0
    assert first.cost == run.cost
    # The server is gone: the answers are read again, also by a judge with another threshold.
    again = await read({"polite": RUBRIC, "strict": {**RUBRIC, "at_least": 9}}).judge(run, resources(server.base_url))
    assert again.judgements[0] == found
    assert again.judgements[1].votes == found.votes
    assert count_lines(run) == 5


async def test_agents_are_asked_and_the_share_of_answers_decides(run: RunResult) -> None:
    judges = {
        "trust": TRUST,
        "calm": {
            "ask": "How angry are you?",
            "answer": "integer 0-10",
            "counts_from": 0,
            "at_most": 0.2,
            "model": MODEL,
        },
    }
    async with serve(RehearsalSettings()) as server:
        first = await read(judges).judge(run, resources(server.base_url))
        trust, calm = first.judgements
        assert trust.error is None
        assert trust.score is not None
        assert trust.passed is (trust.score >= 0.5)
        assert (calm.passed, calm.score) == (False, 1.0)
        assert calm.reason == "6 of 6 answers count, at most 0.2 of them must"
        assert trust.calls == 6
    assert (await read(judges).judge(run, resources(server.base_url))).judgements == first.judgements


async def test_a_server_that_dies_leaves_a_judgement_pending_until_the_next_call(run: RunResult) -> None:
    judging = read({"fair": {**RUBRIC, "rubric": "People are fair.", "votes": 3}, "reach": "reach(a) > 0"})
    async with serve(RehearsalSettings()) as server:
        url = server.base_url
    before = count_lines(run)
    result = await judging.judge(run, resources(url, patience=0))
    fair, reach = result.judgements
    assert (fair.passed, fair.score, fair.is_pending) == (None, None, True)
    assert "3 of 3 gave no answer" in str(fair.error)
    assert reach.passed
    assert (result.passed, judging.is_current(result)) == (None, False)
    assert count_lines(run) == before
    async with serve(RehearsalSettings()) as server:
        result = await judging.judge(run, resources(server.base_url))
    assert result.judgements[0].error is None
    assert judging.is_current(result)


async def test_a_budget_of_judges_is_kept_and_what_was_paid_is_not_lost(run: RunResult) -> None:
    judging = read({"kind": {**RUBRIC, "rubric": "People are kind."}})
    paid = count_lines(run)
    async with serve(RehearsalSettings()) as server:
        result = await judging.judge(run, resources(server.base_url, max_calls=paid + 2))
        assert "the budget is reached (max_calls)" in str(result.judgements[0].error)
        assert result.judgements[0].is_pending
        assert count_lines(run) == paid + 2
        assert (await judging.judge(run, resources(server.base_url))).judgements[0].calls == 5
    assert count_lines(run) == paid + 5


async def test_answers_that_cannot_be_used_are_a_failed_judgement_and_no_score(run: RunResult) -> None:
    settings = RehearsalSettings(refused=1.0)
    async with serve(settings) as server:
        result = await read({"odd": {**RUBRIC, "rubric": "People are odd."}}).judge(run, resources(server.base_url))
    (found,) = result.judgements
    assert (found.passed, found.score, found.is_pending) == (None, None, False)
    assert "5 of 5 gave no answer: the model refused" in str(found.error)


def test_a_run_that_failed_has_not_passed_and_one_that_was_stopped_is_not_judged(run: RunResult) -> None:
    judging = read({"a": "reach(a) > 0", "b": "reach(a) > 1"})
    failed = msgspec.structs.replace(run, status="failed", error="the disk is full\nfree some")
    judged = asyncio.run(judging.judge(failed, RunResources()))
    assert judged.passed is False
    assert [(each.passed, each.score, each.reason) for each in judged.judgements] == [
        (False, None, "the run failed: the disk is full")
    ] * 2
    stopped = asyncio.run(judging.judge(msgspec.structs.replace(run, status="stopped"), RunResources()))
    assert (stopped.passed, stopped.judgements) == (None, ())


# Agreement


def test_kappa_is_that_of_fleiss() -> None:
    # Three votes on each of four runs: 3-0, 2-1, 0-3, 1-2. Pairs agree in 1, 1/3, 1, 1/3: P̄ = 2/3; half of all votes
    # are for: Pₑ = 1/2. (2/3 - 1/2) / (1 - 1/2) = 1/3.
    assert measure_fleiss_kappa([(3, 0), (2, 1), (0, 3), (1, 2)]) == pytest.approx(1 / 3)
    assert measure_fleiss_kappa([(3, 0), (3, 0)]) is None


def test_agreement_is_measured_for_each_judge() -> None:
    one = Judgement("a", True, 7.0, votes=(7, 7, 5), votes_for=2, agreement=1 / 3)
    other = Judgement("a", False, 1.0, votes=(1, 1, 1), votes_for=0, agreement=1.0)
    (found,) = measure_agreement([one, other, Judgement("b", True, None)])
    assert (found.judge, found.runs) == ("a", 2)
    assert found.share == pytest.approx(2 / 3)
    # P̄ = 2/3, and 2 of 6 votes are for: Pₑ = 1/9 + 4/9.
    assert found.kappa == pytest.approx((2 / 3 - 5 / 9) / (4 / 9))


# As declared


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ("judges: {far: reech > 0.4}", "2:15: judges.far: unknown metric 'reech'; did you mean 'reach'?"),
        ("judges: {far: reach}", "'reach' is not a question; compare it with something: reach > 0.4"),
        ("judges: {far: reach(1) > 2}", "'reach(1)' is neither a number nor a metric"),
        ("judges: {far: {rubrik: a}}", "expected reach > 0.4, or a mapping with one of ask, rubric and file"),
        ("judges: {far: {function: mine.py}}", "rubric and file, found a mapping with function"),
        ("judges: {far: {rubric: a}}", "judges.far: missing field 'model'"),
        ("judges: {far: {rubric: a, model: b, vote: 3}}", "unknown field 'vote'; did you mean 'votes'?"),
        ("judges: {far: {rubric: a, model: b, votes: 0}}", "must be at least 1, found 0"),
        ("judges: {far: {ask: a}}", "expected at_least or at_most: the share of answers that must count"),
        ("judges: {far: {ask: a, at_least: 2}}", "must be at most 1, found 2"),
        ("judges: {far: {ask: a, at_least: 0.6, at_most: 0.4}}", "no share is at least 0.6 and at most 0.4"),
        ("judges: {far: {ask: a, at_least: 1, answer: text}}", "answers in words of their own cannot be counted"),
        ("judges: {far: {ask: a, at_least: 1, counts: maybe}}", "'maybe' is none of yes, no"),
        ("judges: {far: {ask: a, at_least: 1, answer: integer 0-9}}", "say from which number on answers count"),
        ("judges: {far: {file: none.py}}", "cannot read"),
        ("judges: {far: {file: mine.py, function: judged}}", "there is no function 'judged' in"),
        ("judges: [a]", "expected names with judges, such as {far: reach > 0.4}, found a list"),
        ("metrics: [virolity]", "unknown metric 'virolity'; did you mean 'virality'?"),
        ("metrics: reach", "expected a list of metrics, such as [reach, virality], found 'reach'"),
        ("metrics: [{file: mine.py}]", "there is no metric in it; write @shoal.metric above a function"),
    ],
)
def test_what_is_declared_wrong_is_named_with_its_place(tmp_path: Path, declared: str, problem: str) -> None:
    (tmp_path / "mine.py").write_text("def judge(run):\n    return True\n")
    path = tmp_path / "judges.yaml"
    path.write_text(f"# what passes\n{declared}\n")
    with pytest.raises(ScenarioInvalid) as caught:
        load_judging(str(path), is_open=False)
    assert str(caught.value).startswith(f"{path}:2:")
    assert problem in str(caught.value)


def test_an_expression_alone_is_a_judge() -> None:
    (judge,) = load_judging("reach(a) > 0.4").judges
    assert judge.name == "judge"
    with pytest.raises(ScenarioInvalid, match="is neither a file nor an expression"):
        load_judging("nothing here")
    with pytest.raises(Exception, match=r"none\.yaml"):
        load_judging("none.yaml")
