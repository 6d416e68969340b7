"""Experiments: how they are declared, and their runs on worker processes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from shoal.errors import ScenarioInvalid, Stopped
from shoal.experiments import BatchSettings, ExperimentRun, load_experiment
from shoal.runs.launchers import LocalLauncher
from tests.runs.harness import start

BASE = "name: town\npopulation: [{count: 8}]\nrounds: 3\nseed: 4\nworlds: [twitter]\n"
STUDY = BASE + (
    "experiment:\n"
    "  seeds: 2\n"
    "  tiers:\n"
    "    - {name: size, control: small, arms: {small: {}, large: {population.0.count: 12}}}\n"
    "    - {name: length, inherits: {tier: size, highest: posts}, sweep: {rounds: [2]}}\n"
)


def write(folder: Path, text: str) -> Path:
    path = folder / "town.yaml"
    path.write_text(text)
    return path


def make_run(folder: Path, text: str = STUDY) -> ExperimentRun:
    return ExperimentRun(load_experiment(write(folder, text)), folder / "results", BatchSettings(max_simulations=2))


def make_launcher() -> LocalLauncher:
    return LocalLauncher(os.environ, idle_seconds=0)


async def test_arms_run_with_the_same_seeds_and_a_tier_starts_from_the_best_arm(tmp_path: Path) -> None:
    text = STUDY.replace("highest: posts", "highest: activity").replace("large: {", "large: {rounds: 4, ")
    work = make_run(tmp_path, text)
    results = await work.run(make_launcher(), asyncio.Event())
    assert [result.id for result in results] == [
        f"{arm}/{seed}" for arm in ("size/small", "size/large", "length/base", "length/rounds-2") for seed in (4, 5)
    ]
    assert {result.status for result in results} == {"completed"}
    by_id = {result.id: result for result in results}
    means = {arm: sum(by_id[f"size/{arm}/{seed}"].metrics["activity"] for seed in (4, 5)) for arm in ("small", "large")}
    best = max(means, key=lambda arm: means[arm])
    assert by_id["length/base/4"].digest == by_id[f"size/{best}/4"].digest
    small = {"name": "town", "population": [{"count": 8}], "rounds": 3, "seed": 5, "worlds": ["twitter"]}
    assert by_id["size/small/5"].digest == (await asyncio.to_thread(start, small, tmp_path / "alone")).digest


async def test_a_stopped_experiment_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    text = STUDY.replace("highest: posts", "highest: activity")
    stop = asyncio.Event()
    first = make_run(tmp_path, text)

    first.batch.progress.watch = lambda _: stop.set()
    with pytest.raises(Stopped):
        await first.run(make_launcher(), stop)
    ended = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("journal.jsonl")}
    recorded = (tmp_path / "results" / "runs.jsonl").read_bytes()
    results = await make_run(tmp_path, text).run(make_launcher(), asyncio.Event())
    assert len(results) == 8
    assert ended
    assert (tmp_path / "results" / "runs.jsonl").read_bytes().startswith(recorded)
    whole = (tmp_path / "results" / "results.jsonl").read_bytes()
    await make_run(tmp_path, text).run(make_launcher(), asyncio.Event())
    assert (tmp_path / "results" / "results.jsonl").read_bytes() == whole


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("{tier: []}", "unknown field 'tier'; did you mean 'tiers'?"),
        ("{tiers: [{name: a}]}", "no arms in it"),
        ("{tiers: [{name: a, arms: {x: {}}, control: y}]}", "unknown arm 'y'"),
        ("{tiers: [{name: a, arms: {x: {rouns: 3}}}]}", "rouns"),
        ("{tiers: [{name: a, arms: {x: {}}, inherits: {tier: b, highest: activity}}]}", "unknown earlier tier 'b'"),
        ("{tiers: [{name: a, sweep: {topic: [a b, a-b]}}]}", "two arms of it have the same name"),
        ("{seeds: 0, tiers: [{name: a, arms: {x: {}}}]}", "seeds"),
    ],
)
def test_a_wrong_experiment_is_refused_with_its_place(tmp_path: Path, section: str, problem: str) -> None:
    path = write(tmp_path, f"{BASE}experiment: {section}\n")
    with pytest.raises(ScenarioInvalid) as caught:
        load_experiment(path)
    assert all(each.startswith(f"{path}:6:") for each in caught.value.problems)
    assert problem in str(caught.value)


def test_a_scenario_without_an_experiment_says_what_to_add(tmp_path: Path) -> None:
    with pytest.raises(ScenarioInvalid, match="no section 'experiment' in it; add one such as"):
        load_experiment(write(tmp_path, BASE))
