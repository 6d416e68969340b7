"""Judging in experiments: each run once, again after a change, and again with other judges."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import msgspec
import pytest

from shoal.errors import QueryFailed, RunRefused, ScenarioInvalid
from shoal.experiments import (
    BatchSettings,
    ExperimentJudging,
    ExperimentRun,
    RunResult,
    judge_directory,
    load_experiment,
    read_results,
)
from shoal.experiments.judges import load_judging
from shoal.experiments.metrics import METRICS, choose_metrics, load_own_metrics, measure_run
from shoal.rehearsal.server import start as serve
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs import LimitSettings, RunDirectory, RunResources
from tests.experiments.harness import InlineLauncher

BASE = "name: town\ntopic: the old bridge\npopulation: [{count: 8}]\nrounds: 3\nseed: 4\nworlds: [twitter]\n"
STUDY = BASE + (
    "experiment:\n"
    "  seeds: 2\n"
    "  metrics: [virality, {file: mine.py}]\n"
    "  judges:\n"
    "    active: participation > 0.1 and people == 8\n"
    "    never: participation > 1\n"
    "  tiers: [{name: size, arms: {small: {}}}]\n"
)
MINE = "import shoal\n\n@shoal.metric\ndef people(world):\n    return world.people\n"


def write(folder: Path, text: str = STUDY) -> Path:
    (folder / "mine.py").write_text(MINE)
    path = folder / "town.yaml"
    path.write_text(text)
    return path


def run(path: Path, resources: RunResources | None = None) -> list[RunResult]:
    work = ExperimentRun(load_experiment(path), path.parent / "results", BatchSettings(max_simulations=2))
    work.check(resources or RunResources())
    return asyncio.run(work.run(InlineLauncher(), asyncio.Event()))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an experiment that has ended."""
    folder = tmp_path_factory.mktemp("study")
    run(write(folder))
    return folder


@pytest.fixture
def ended(study: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(study, tmp_path / "ended"))


def read(folder: Path) -> list[RunResult]:
    return [*read_results(folder / "results.jsonl")]


def test_each_run_is_measured_and_judged_once_also_after_a_kill(study: Path) -> None:
    results = read(study / "results")
    assert len(results) == 2
    for result in results:
        assert result.metrics["people"] == 8.0
        assert "activity" in result.metrics
        assert [(each.judge, each.passed) for each in result.judgements] == [("active", True), ("never", False)]
        assert result.passed is False
    file = study / "results" / "results.jsonl"
    whole = file.read_bytes()
    # Killed in the middle of the second line: the first stays as it is, and the second is the same again.
    lines = whole.splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1][:200])
    assert run(write(study)) == results
    assert file.read_bytes() == whole


def test_runs_are_judged_again_beside_what_was_said_before(ended: Path) -> None:
    folder = ended / "results"
    results = read(folder)
    before = (folder / "results.jsonl").read_bytes()
    judging = load_judging("participation <= 1")
    work = ExperimentJudging(folder, judging, "lenient", "participation <= 1")
    seen: list[str] = []
    again = asyncio.run(work.run(RunResources(), lambda result: seen.append(result.id)))
    assert [result.passed for result in again] == [True, True]
    # They are judged side by side, and returned in their order.
    assert [result.id for result in again] == [result.id for result in results]
    assert sorted(seen) == sorted(result.id for result in results)
    assert [result.cost for result in again] == [result.cost for result in results]
    assert (folder / "results.jsonl").read_bytes() == before
    assert read(folder / "judged" / "lenient") == again
    assert (folder / "judged" / "lenient" / "experiment.json").read_bytes() == (folder / "experiment.json").read_bytes()
    # The runs can be read from there, and what is written there does not reach them.
    linked = folder / "judged" / "lenient" / again[0].id
    reported = (folder / again[0].id / "report.json").read_bytes()
    (linked / "report.json").write_text("{}")
    assert (folder / again[0].id / "report.json").read_bytes() == reported
    metrics = choose_metrics(["people", "virality"], [*METRICS.values(), *load_own_metrics(ended / "mine.py")])
    assert measure_run(RunDirectory.open(linked), metrics).values["people"] == 8.0
    # Nothing is left to do, and other judges need another name.
    assert asyncio.run(work.run(RunResources(), lambda result: seen.append(result.id))) == again
    assert len(seen) == 2
    with pytest.raises(RunRefused, match="holds the results of other judges, which are kept"):
        asyncio.run(ExperimentJudging(folder, load_judging("participation > 1"), "lenient", "").run(RunResources()))


def test_a_single_run_is_judged_and_every_judgement_is_kept(ended: Path) -> None:
    path = ended / "results" / "size" / "small" / "4"
    found = [
        asyncio.run(judge_directory(path, load_judging(rule), RunResources())) for rule in ("people == 8", "calls == 0")
    ]
    assert [each.error for each in found[0].judgements] == ["people has no value: the run records no figure 'people'"]
    assert found[1].passed
    again = asyncio.run(judge_directory(path, load_judging("calls == 0"), RunResources()))
    assert again == found[1]
    assert len((path / "judgements.jsonl").read_bytes().splitlines()) == 2
    RunDirectory.open(path).check_journal()


def test_a_pending_judgement_is_made_by_the_next_call_and_nothing_is_run_again(tmp_path: Path) -> None:
    judges = "    polite: {rubric: People stay polite., model: openai/gpt-4.1-mini, votes: 2}\n"
    path = write(tmp_path, STUDY.replace("    never: participation > 1\n", judges))

    async def go(url: str) -> list[RunResult]:
        limits = LimitSettings(patience=0)
        resources = RunResources(environ={"OPENAI_API_KEY": "test", "OPENAI_BASE_URL": url})
        settings = BatchSettings(max_simulations=2, limits=limits)
        work = ExperimentRun(load_experiment(path), tmp_path / "results", settings)
        work.check(resources)
        return await work.run(InlineLauncher(), asyncio.Event())

    async def go_twice() -> tuple[list[RunResult], list[RunResult], list[RunResult], int]:
        async with serve(RehearsalSettings()) as server:
            url = server.base_url
        first = await go(url)
        ended = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("journal.jsonl")}
        async with serve(RehearsalSettings()) as server:
            second = await go(server.base_url)
            third = await go(server.base_url)
            calls = server.stats.requests
        assert {path: path.stat().st_mtime_ns for path in ended} == ended
        return first, second, third, calls

    first, second, third, calls = asyncio.run(go_twice())
    assert [each.judgements[1].is_pending for each in first] == [True, True]
    assert [each.passed for each in first] == [None, None]
    assert [each.judgements[1].error for each in second] == [None, None]
    assert second == third
    assert calls == 4
    assert all(each.judging_cost and each.cost == 0 for each in second)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("    active: partecipation > 0.1\n", "unknown metric 'partecipation'; did you mean 'participation'?"),
        ("    active: {rubric: a}\n", "missing field 'model'"),
    ],
)
def test_wrong_judges_are_refused_with_their_place_before_anything_runs(
    tmp_path: Path, wrong: str, problem: str
) -> None:
    path = write(tmp_path, STUDY.replace("    active: participation > 0.1 and people == 8\n", wrong))
    with pytest.raises(ScenarioInvalid) as caught:
        load_experiment(path)
    assert str(caught.value).startswith(f"{path}:11:")
    assert "experiment.judges.active" in str(caught.value)
    assert problem in str(caught.value)


def test_agents_without_a_model_cannot_be_asked_unless_one_is_named(tmp_path: Path) -> None:
    judges = "    trust: {ask: Do you trust them?, at_least: 0.5}\n"
    path = write(tmp_path, STUDY.replace("    never: participation > 1\n", judges))
    with pytest.raises(QueryFailed, match="judge trust: the agents have no language model to answer with"):
        run(path)


def test_a_large_survey_needs_a_limit_before_anything_runs(tmp_path: Path) -> None:
    judges = "    trust: {ask: Do you trust them?, at_least: 0.5, model: openai/gpt-4.1-mini}\n"
    text = STUDY.replace("    never: participation > 1\n", judges).replace("count: 8", "count: 2000")
    resources = RunResources(environ={"OPENAI_API_KEY": "test"})
    with pytest.raises(QueryFailed, match="judge trust: this would put 2,000 questions to a model for each run"):
        run(write(tmp_path, text), resources)
    work = ExperimentRun(
        load_experiment(write(tmp_path, text.replace("at_least", "sample: 100, at_least"))),
        tmp_path / "results",
        BatchSettings(max_simulations=2),
    )
    work.check(resources)


def test_a_result_without_what_is_new_is_read(study: Path) -> None:
    """Results that an earlier version wrote have none of the newer fields."""
    result, _ = read(study / "results")
    old = json.loads(msgspec.json.encode(result))
    for name in ("unmeasured", "judging"):
        del old[name]
    found = msgspec.json.decode(json.dumps(old), type=RunResult)
    assert (found.judging, found.unmeasured, found.judgements) == ("", {}, result.judgements)
