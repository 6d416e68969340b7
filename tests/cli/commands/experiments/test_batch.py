"""The command batch, as users type it."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from shoal.rehearsal.server import start
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs import RunDirectory
from shoal.runs.launchers import find_worker
from tests.cli.terminal import (
    COMMAND,
    DEADLINE_SECONDS,
    call,
    environment,
    last_object,
    shoal,
    start_command,
    wait_until,
)

DIALOGUE = """\
name: talk
rounds: 8
population: [{name: Ada}, {name: Ben}]
worlds: {dialogue: {turns: 8}}
mind: {kind: language, model: openai/gpt-4.1-mini}
"""
PAIRS = """\
id,population.0.name,population.0.persona,population.1.name
romeo,Romeo,"Romeo: rash, in love # always",Juliet
holmes,Holmes,A detective who misses nothing.,Watson
"""


def read_results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def test_a_table_of_names_and_personas_becomes_a_simulation_a_row(folder: Path) -> None:
    (folder / "talk.yaml").write_text(DIALOGUE.partition("mind:")[0])
    (folder / "pairs.csv").write_text(PAIRS)
    done = shoal("batch", "talk.yaml", "pairs.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "2 completed" in done.stdout
    assert "2/2 done" in done.stderr
    batch = folder / "runs/talk-pairs"
    assert {result["id"] for result in read_results(batch)} == {"romeo", "holmes"}
    people = RunDirectory.open(batch / "runs/romeo").scenario.model_dump()["population"]
    assert [person["name"] for person in people] == ["Romeo", "Juliet"]
    assert people[0]["persona"] == "Romeo: rash, in love # always"
    again = shoal("batch", "talk.yaml", "pairs.csv", "--json", cwd=folder)
    assert last_object(again.stdout) | {"cost": None} == {
        "batch": "runs/talk-pairs",
        "simulations": 2,
        "completed": 2,
        "failed": 0,
        "stopped": 0,
        "left": 0,
        "cost": None,
        "results": "runs/talk-pairs/results.jsonl",
        "notes": [],
    }


def test_bad_rows_are_refused_before_anything_runs(folder: Path) -> None:
    (folder / "rows.csv").write_text("seed,rounds\n1,2\n2,many\n")
    result = call("batch", "small.yaml", "rows.csv")
    assert result.exit_code == 2
    assert "rows.csv:3: column rounds: expected a whole number, found 'many'" in result.output
    assert not (folder / "runs").exists()


def test_a_model_without_a_key_is_refused_before_anything_runs(folder: Path) -> None:
    (folder / "rows.csv").write_text(
        'seed,mind\n1,\n2,"{""kind"": ""language"", ""model"": ""openai/gpt-4.1-mini""}"\n'
    )
    result = call("batch", "small.yaml", "rows.csv")
    assert result.exit_code == 3
    assert "OPENAI_API_KEY" in result.output
    assert not (folder / "runs").exists()


def test_hours_that_are_none_are_wrong_usage(folder: Path) -> None:
    (folder / "rows.csv").write_text("seed\n1\n")
    result = call("batch", "small.yaml", "rows.csv", "--between", "night")
    assert result.exit_code == 2
    assert "--between: expected hours such as 22:00-06:00" in result.output


def test_a_batch_that_is_killed_goes_on_with_the_workers_that_outlived_it(gated: Path) -> None:
    (gated / "rows.csv").write_text("id,rounds\nquick,1\ngated,3\n")
    command = ("batch", "gated.yaml", "rows.csv", "--max-simulations", "2")
    process = start_command(*command, cwd=gated)
    batch = gated / "runs/small-rows"
    wait_until(lambda: (batch / "results.jsonl").exists() and len(read_results(batch)) == 1)
    run = RunDirectory(batch / "runs/gated")
    wait_until(lambda: run.read_worker() is not None)
    process.kill()
    process.communicate()
    before, worker = read_results(batch), run.read_worker()
    (gated / "go").touch()
    done = shoal(*command, "--json", cwd=gated)
    assert (done.returncode, last_object(done.stdout)["completed"]) == (0, 2), done.stderr
    quick, gated_result = read_results(batch)
    assert [quick] == before
    assert (worker is not None, gated_result["status"]) == (True, "completed")


def test_ctrl_c_stops_the_simulations_and_says_how_to_go_on(gated: Path) -> None:
    (gated / "rows.csv").write_text("id\na\nb\n")
    process = start_command("batch", "gated.yaml", "rows.csv", "--max-simulations", "1", cwd=gated)
    run = RunDirectory(gated / "runs/small-rows/runs/a")
    wait_until(lambda: run.path.exists() and run.read_worker() is not None)
    process.send_signal(signal.SIGINT)
    shown, _ = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 130
    assert "2; the same command goes on with them" in shown
    assert find_worker(run) is None


def test_simulations_that_fail_are_recorded_and_end_the_command_with_1(folder: Path) -> None:
    (folder / "frail.py").write_text(
        "from shoal import Mind\n\nclass Frail(Mind):\n    outside = True\n\n"
        "    async def decide(self, observation):\n        raise ValueError('no idea')\n"
    )
    (folder / "rows.csv").write_text('id,mind\ngood,\nbad,"{""kind"": ""frail:Frail""}"\n')
    done = shoal("batch", "small.yaml", "rows.csv", cwd=folder)
    assert done.returncode == 1
    assert "of 2 simulations, 1 failed; --retry-failed tries them again" in done.stderr
    results = {result["id"]: result for result in read_results(folder / "runs/small-rows")}
    assert (results["good"]["status"], results["bad"]["status"]) == ("completed", "failed")
    assert "no idea" in results["bad"]["error"]


async def test_agents_at_once_are_counted_over_all_simulations(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "talk.yaml").write_text(DIALOGUE)
    (folder / "rows.csv").write_text("seed\n" + "\n".join(map(str, range(6))))
    async with start(RehearsalSettings(latency_seconds=0.05)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        process = start_command(
            "batch", "talk.yaml", "rows.csv", "--max-simulations", "4", "--parallel", "2", cwd=folder
        )
        _, complaints = await asyncio.to_thread(process.communicate)
    assert process.returncode == 0, complaints
    assert server.stats.in_flight_peak == 2
    assert all(result["calls"] > 0 for result in read_results(folder / "runs/talk-rows"))


def test_a_terminal_shows_the_simulations_that_run(gated: Path) -> None:
    (gated / "rows.csv").write_text("id\nalice\n")
    ours, theirs = pty.openpty()
    env = environment(TERM="xterm", COLUMNS="100")
    with subprocess.Popen(
        [COMMAND, "batch", "gated.yaml", "rows.csv"], cwd=gated, env=env, stdout=subprocess.DEVNULL, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while b"round 1/5" not in shown:
            shown += os.read(ours, 4096)
        (gated / "go").touch()
        try:
            while more := os.read(ours, 4096):
                shown += more
        except OSError:
            pass
    os.close(ours)
    assert process.returncode == 0
    text = shown.decode()
    assert "1 of 1 running" in text
    assert "alice" in text
