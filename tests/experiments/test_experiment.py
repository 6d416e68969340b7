"""Experiments: their runs, what goes on after a stop, budgets, stopped arms, changed designs, and runs made again."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from shoal.cli.main import cli
from shoal.errors import ExperimentBudgetReached, RunRefused, Stopped, StorageFailed
from shoal.experiments import BudgetLimits, read_design, read_experiment_state, read_results, read_standing
from shoal.rehearsal.server import start as rehearse
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs import RunResources
from shoal.runs.launchers import LocalLauncher
from tests.experiments.harness import InlineLauncher, make_study
from tests.runs.harness import start

BASE = "name: town\npopulation: [{count: 8}]\nrounds: 3\nseed: 4\nworlds: [twitter]\n"
STUDY = BASE + (
    "experiment:\n"
    "  seeds: 2\n"
    "  tiers:\n"
    "    - {name: size, control: small, arms: {small: {}, large: {rounds: 4, population.0.count: 12}}}\n"
    "    - {name: length, inherits: {tier: size, highest: activity}, sweep: {rounds: [2]}}\n"
    "    - {name: beside, arms: {only: {rounds: 2}}}\n"
)
TALK = """\
name: talk
rounds: 6
seed: 1
population: [{name: Ada}, {name: Ben}]
worlds: {dialogue: {turns: 6}}
mind: {kind: language, model: openai/gpt-4.1-mini}
experiment:
  seeds: 3
  tiers:
    - name: news
      control: none
      arms: {none: {}, late: {events: [{broadcast: "The bridge is closed.", round: 5}]}}
"""


async def run(folder: Path, text: str, launcher: InlineLauncher | None = None) -> InlineLauncher:
    launcher = launcher or InlineLauncher()
    await make_study(folder, text).run(launcher, asyncio.Event())
    return launcher


async def test_arms_run_with_the_same_seeds_and_a_tier_starts_from_the_best_arm(tmp_path: Path) -> None:
    work, launcher = make_study(tmp_path, STUDY), InlineLauncher()
    results = await work.run(launcher, asyncio.Event())
    arms = ("size/small", "size/large", "length/base", "length/rounds-2", "beside/only")
    assert [result.id for result in results] == [f"{arm}/{seed}" for arm in arms for seed in (4, 5)]
    assert {result.status for result in results} == {"completed"}
    by_id = {result.id: result for result in results}
    means = {arm: sum(by_id[f"size/{arm}/{seed}"].metrics["activity"] for seed in (4, 5)) for arm in ("small", "large")}
    best = max(means, key=lambda arm: means[arm])
    assert read_experiment_state(work.folder).starts == {"length": f"size/{best}"}
    assert by_id["length/base/4"].digest == by_id[f"size/{best}/4"].digest
    # A tier that waits for nothing is not held up by the one that does.
    assert launcher.started.index("beside/only/4") < launcher.started.index("length/base/4")
    small = {"name": "town", "population": [{"count": 8}], "rounds": 3, "seed": 5, "worlds": ["twitter"]}
    assert by_id["size/small/5"].digest == (await asyncio.to_thread(start, small, tmp_path / "alone")).digest


async def test_runs_on_worker_processes_have_the_same_history(tmp_path: Path) -> None:
    text = BASE + "experiment: {seeds: 1, tiers: [{name: size, arms: {small: {}, large: {population.0.count: 12}}}]}\n"
    (tmp_path / "inline").mkdir()
    await run(tmp_path / "inline", text)
    results = await make_study(tmp_path, text).run(LocalLauncher(os.environ, idle_seconds=0), asyncio.Event())
    inline = list(read_results(tmp_path / "inline" / "results" / "results.jsonl"))
    assert [result.digest for result in results] == [result.digest for result in inline]


async def test_a_stopped_experiment_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    stop, first = asyncio.Event(), make_study(tmp_path, STUDY)
    first.batch.progress.watch = lambda _: stop.set()
    with pytest.raises(Stopped):
        await first.run(InlineLauncher(), stop)
    state = read_experiment_state(first.folder)
    assert (state.status, 0 < state.ended < 10) == ("stopped", True)
    recorded = first.batch.results_file.read_bytes()
    launcher = await run(tmp_path, STUDY)
    assert len(launcher.started) == 10 - recorded.count(b"\n")
    assert first.batch.results_file.read_bytes().startswith(recorded)
    whole = first.results_file.read_bytes()
    assert (await run(tmp_path, STUDY)).started == []
    assert first.results_file.read_bytes() == whole
    assert read_experiment_state(first.folder).status == "completed"


async def test_an_experiment_has_completed_once_its_report_is_there(tmp_path: Path) -> None:
    work = make_study(tmp_path, STUDY)
    work.folder.mkdir()
    in_the_way = work.folder / "report.html"
    in_the_way.mkdir()
    with pytest.raises(StorageFailed):
        await work.run(InlineLauncher(), asyncio.Event())
    state = read_experiment_state(work.folder)
    assert (state.status, state.ended) == ("running", 10)
    in_the_way.rmdir()
    assert (await run(tmp_path, STUDY)).started == []
    assert read_experiment_state(work.folder).status == "completed"
    assert in_the_way.is_file()


async def test_a_kill_between_a_run_and_its_judgement_loses_nothing(tmp_path: Path) -> None:
    await run(tmp_path, STUDY)
    path = tmp_path / "results" / "results.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert (await run(tmp_path, STUDY)).started == []
    assert path.read_bytes() == whole


async def test_an_arm_that_stops_early_leaves_out_seeds_and_decides_the_same_again(tmp_path: Path) -> None:
    # The first arm is the same in every run, so its interval is narrow at once.
    still = "{mind: {kind: scripted, turns: []}}"
    section = (
        "experiment: {seeds: 8, stop: {metric: activity, narrower: 0.001, at_least: 3}, "
        f"tiers: [{{name: a, arms: {{still: {still}, lively: {{}}}}}}]}}\n"
    )
    launcher = await run(tmp_path, BASE + section)
    standing = read_standing(tmp_path / "results")
    assert [(arm.arm, arm.runs, arm.ended) for arm in standing.arms] == [("still", 3, 3), ("lively", 8, 8)]
    assert "stopped after 3 seeds" in standing.arms[0].note
    assert len(launcher.started) <= 3 + 8 + 1
    # A run that may be left out is not made before it starts.
    assert len(list(tmp_path.glob("results/a/*/*/simulation_config.json"))) == len(launcher.started)
    whole = (tmp_path / "results" / "results.jsonl").read_bytes()
    assert (await run(tmp_path, BASE + section)).started == []
    assert (tmp_path / "results" / "results.jsonl").read_bytes() == whole


async def test_a_tier_that_cannot_start_is_skipped_and_the_others_go_on(tmp_path: Path) -> None:
    text = STUDY.replace("highest: activity", "highest: belief")
    await run(tmp_path, text)
    standing = read_standing(tmp_path / "results")
    assert list(standing.state.skipped) == ["length"]
    assert "no run of tier size has belief" in standing.state.skipped["length"]
    assert standing.ended == 6


async def test_a_shared_past_is_not_paid_for_twice_nor_is_anything_after_a_budget_is_used_up(tmp_path: Path) -> None:
    async with rehearse(RehearsalSettings()) as server:
        environ = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
        launcher = InlineLauncher(RunResources(environ=environ, cache=tmp_path / "replies.db"))
        with pytest.raises(ExperimentBudgetReached, match="max_calls of the experiment") as end:
            await make_study(tmp_path, TALK, BudgetLimits(max_calls=20), at_once=3).run(launcher, asyncio.Event())
        assert "2 simulations are left" in str(end.value)
        assert "--max-calls" in str(end.value)
        assert server.stats.requests <= 20
        state = read_experiment_state(tmp_path / "results")
        assert (state.status, state.spent) == ("stopped", {"": "max_calls"})
        results = await make_study(tmp_path, TALK, BudgetLimits(max_calls=40), at_once=3).run(launcher, asyncio.Event())
        asked = server.stats.requests
    by_arm = {arm: [result.calls for result in results if result.arm == arm] for arm in ("none", "late")}
    # Only what follows the news is asked for again.
    assert all(late < none / 2 for none, late in zip(by_arm["none"], by_arm["late"], strict=True))
    assert all(result.cached_calls >= 4 for result in results if result.arm == "late")
    assert asked == sum(map(sum, by_arm.values()))


async def test_a_changed_design_is_refused_with_what_differs_and_can_be_accepted(tmp_path: Path) -> None:
    text = BASE + "experiment: {seeds: 1, tiers: [{name: a, arms: {x: {rounds: 1}}}]}\n"
    await run(tmp_path, text)
    more = text.replace("seeds: 1", "seeds: 2").replace("x: {rounds: 1}", "x: {rounds: 1}, y: {rounds: 2}")
    with pytest.raises(RunRefused) as refused:
        make_study(tmp_path, more).check(RunResources())
    assert "tier a, seeds: was [4], is [4,5] now" in str(refused.value)
    assert "tier a, arm y is new\n" in str(refused.value)
    launcher = InlineLauncher()
    await make_study(tmp_path, more, accept_changes=True).run(launcher, asyncio.Event())
    assert "a/x/4" not in launcher.started
    assert len(launcher.started) == 3
    (change,) = read_design(tmp_path / "results").changes
    assert "tier a, seeds: was [4], is [4,5] now" in change.differences
    other = more.replace("x: {rounds: 1}", "x: {rounds: 3}")
    before = (tmp_path / "results" / "experiment.json").read_bytes()
    with pytest.raises(RunRefused, match="holds runs of a/x with another scenario"):
        await make_study(tmp_path, other, accept_changes=True).run(launcher, asyncio.Event())
    assert (tmp_path / "results" / "experiment.json").read_bytes() == before


async def test_a_larger_budget_is_no_change_of_the_design(tmp_path: Path) -> None:
    text = BASE + "experiment: {seeds: 1, budget: {max_hours: 1}, tiers: [{name: a, arms: {x: {rounds: 1}}}]}\n"
    await run(tmp_path, text)
    make_study(tmp_path, text.replace("max_hours: 1", "max_hours: 2")).check(RunResources())


async def test_hours_that_are_used_up_stop_the_experiment(tmp_path: Path) -> None:
    work = make_study(tmp_path, STUDY, BudgetLimits(max_hours=1e-9))
    results = tmp_path / "results"
    results.mkdir()
    (results / "experiment_state.json").write_text(json.dumps({"hours": {"": 1.0}}))
    launcher = InlineLauncher()
    with pytest.raises(ExperimentBudgetReached, match="max_hours of the experiment"):
        await work.run(launcher, asyncio.Event())
    assert not launcher.started


def test_the_command_of_a_result_makes_the_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "people.jsonl").write_text('{"name": "Ada Null"}\n{"name": "Ben: 7"}\n')
    section = (
        "experiment:\n  seeds: [9]\n  tiers:\n"
        "    - name: who\n      arms: {file: {population: [{file: people.jsonl}], topic: 'null'}}\n"
        "    - {name: how, inherits: {tier: who, highest: activity}, arms: {long: {rounds: 4}}}\n"
    )
    asyncio.run(run(tmp_path, BASE + section))
    monkeypatch.chdir(tmp_path)
    for result in read_results(tmp_path / "results" / "results.jsonl"):
        words = shlex.split(result.command)
        assert words[:4] == ["shoal", "run", str(tmp_path / "study.yaml"), "--seed"]
        done = CliRunner().invoke(cli, [*words[1:], "--json"])
        assert done.exit_code == 0, done.output
        again = msgspec.json.decode(done.stdout.splitlines()[-1])
        assert (again["digest"], result.digest) == (result.digest, again["digest"])
