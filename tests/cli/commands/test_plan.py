"""Saying what a run will take, and asking whether that is wanted."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pytest

from shoal.cli.commands.plan import is_confirmed
from shoal.rehearsal.server import start
from shoal.rehearsal.settings import RehearsalSettings
from tests.cli.terminal import COMMAND, DEADLINE_SECONDS, call, environment, last_object, shoal

MODEL = ("--model", "openai/gpt-4.1-mini")
#: More than 2,000 calls: all people in the room have a turn in every round.
MANY = """\
name: many
rounds: 30
population: {count: 70}
worlds: {hall: {kind: room, turns: parallel}}
mind: {kind: language, model: some/model, base_url: "http://127.0.0.1:9/v1"}
"""


@pytest.fixture
def folder(folder: Path) -> Path:
    (folder / "many.yaml").write_text(MANY)
    return folder


def plan(*args: str) -> dict[str, Any]:
    result = call("plan", "small.yaml", *args, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def run_on_terminal(*args: str, typed: str, cwd: Path) -> tuple[int, str]:
    """Run the command on a terminal with typed answers; return its exit code and what the terminal showed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, *args], cwd=cwd, env=environment(TERM="dumb"), stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:
        # How the end of a terminal shows on Linux.
        pass
    finally:
        os.close(ours)
    return process.wait(timeout=DEADLINE_SECONDS), shown.decode()


# The command


def test_a_plan_names_worlds_models_and_totals(folder: Path) -> None:
    result = call("plan", "small.yaml", *MODEL)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    rows = [line.split() for line in lines if line.startswith(("twitter", "reddit", "total"))]
    assert [row[0] for row in rows] == ["reddit", "twitter", "total"]
    calls = [int(row[-4].replace(",", "")) for row in rows]
    assert calls[0] + calls[1] == calls[2] > 0
    assert all(row[-1].startswith("$") for row in rows)
    assert "time" in result.stdout


def test_a_plan_as_json_holds_the_same(folder: Path) -> None:
    found = plan(*MODEL, "--latency", "2")
    assert found["calls"] == sum(each["calls"] for each in found["expected"])
    assert found["cost"] == pytest.approx(sum(each["cost"] for each in found["expected"]))
    assert (found["seconds_per_call"], found["followed"], found["people"]) == (2.0, 20, 20)


def test_changes_of_the_scenario_are_planned(folder: Path) -> None:
    usual, longer = plan(*MODEL), plan(*MODEL, "--rounds", "10", "--set", "population.count=40")
    assert longer["people"] == 40
    assert longer["calls"] > 2 * usual["calls"]


def test_a_plan_without_a_model_reports_no_cost(folder: Path) -> None:
    assert "costs nothing" in call("plan", "small.yaml").stdout
    assert plan()["calls"] == 0


def test_a_plan_with_an_own_mind_claims_nothing(folder: Path) -> None:
    result = call("plan", "small.yaml", "--set", "mind=tests.contracts.own:Thrifty")
    assert "your own" in result.stdout
    assert "nothing" not in result.stdout


def test_an_unknown_price_is_reported_with_how_to_set_it(folder: Path) -> None:
    unknown = call("plan", "small.yaml", "--model", "openai/nobody-knows-it")
    assert "unknown" in unknown.stdout
    assert "--set mind.price=" in unknown.stdout
    known = call(
        "plan", "small.yaml", "--model", "openai/nobody-knows-it", "--set", "mind.price={input: 0.4, output: 1.6}"
    )
    assert "unknown" not in known.stdout


def test_a_plan_of_conversations_has_the_most_and_the_least_calls(folder: Path) -> None:
    """Ten pairs take four turns each, or only one; and then both say how it went."""
    talking = ["--set", "worlds={talk: {kind: dialogue, turns: 4}}", "--set", "events=[]"]
    result = call("plan", "small.yaml", *MODEL, *talking)
    assert "up to 60" in result.stdout, result.stderr
    assert "it would be 30 calls" in result.stdout
    found = plan(*MODEL, *talking)
    assert (found["calls"], found["least_calls"], found["may_end_early"]) == (60, 30, True)


def test_embeddings_are_reported_and_counted_apart(folder: Path) -> None:
    embedding = "mind.memory={embeddings: openai/text-embedding-3-small, recent_tokens: 50, episodes_shown: 1}"
    result = call("plan", "small.yaml", *MODEL, "--set", embedding)
    assert "of the calls texts are embedded" in result.stdout, result.stderr
    assert "text-embedding-3-small" in result.stdout


def test_a_budget_that_will_not_do_is_warned_of(folder: Path) -> None:
    result = call("plan", "small.yaml", *MODEL, "--set", "budget.max_calls=3")
    assert "max_calls is 3" in result.stdout


def test_a_plan_needs_no_key_and_makes_no_run(folder: Path) -> None:
    result = shoal("plan", "small.yaml", *MODEL, cwd=folder, OPENAI_API_KEY="")
    assert result.returncode == 0, result.stderr
    assert not (folder / "runs").exists()


# Being asked first


def test_without_a_terminal_no_confirmation_is_asked_for() -> None:
    assert is_confirmed(1_000_000, 5000.0, "This is much.")


def test_a_refused_run_costs_nothing(folder: Path) -> None:
    code, shown = run_on_terminal("run", "many.yaml", typed="n\n", cwd=folder)
    assert code == 3
    assert "2,240 calls" in shown
    assert "nothing was spent" in shown
    assert not (folder / "runs").exists()


def test_an_answer_is_not_guessed(folder: Path) -> None:
    code, _ = run_on_terminal("run", "many.yaml", typed="\n", cwd=folder)
    assert code == 3


async def test_a_small_run_does_not_ask_and_yes_answers_for_a_large_one(folder: Path) -> None:
    async with start(RehearsalSettings()) as server:
        at = ["--set", f"mind.base_url={server.base_url}", "--no-cache", "--json"]
        small = await asyncio.to_thread(
            run_on_terminal, "run", "many.yaml", "--rounds", "2", *at, typed="n\n", cwd=folder
        )
        large = await asyncio.to_thread(run_on_terminal, "run", "many.yaml", "--yes", *at, typed="n\n", cwd=folder)
    assert (small[0], large[0]) == (0, 0)
    assert "Go on?" not in small[1] + large[1]


async def test_a_script_runs_without_being_asked(folder: Path) -> None:
    async with start(RehearsalSettings()) as server:
        at = ["--set", f"mind.base_url={server.base_url}", "--no-cache"]
        result = await asyncio.to_thread(shoal, "run", "many.yaml", *at, "--json", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert last_object(result.stdout)["calls"] > 2000


async def test_going_on_is_asked_about_for_what_is_left(folder: Path) -> None:
    """A refusal changes nothing, and --yes skips the question."""
    async with start(RehearsalSettings()) as server:
        at = ["--set", f"mind.base_url={server.base_url}", "--no-cache", "--json", "--out", "runs/a"]
        await asyncio.to_thread(shoal, "run", "many.yaml", "--rounds", "2", *at, cwd=folder)
        before = (folder / "runs" / "a" / "journal.jsonl").read_bytes()
        longer = ["resume", "runs/a", "--rounds", "40", "--no-cache"]
        code, shown = await asyncio.to_thread(run_on_terminal, *longer, typed="n\n", cwd=folder)
        assert code == 3
        assert f"The rest of this run will take about {38 * 70 + 3 * 70:,} calls" in shown
        assert (folder / "runs" / "a" / "journal.jsonl").read_bytes() == before
        limited = [*longer, "--yes", "--max-calls", "150"]
        _, shown = await asyncio.to_thread(run_on_terminal, *limited, typed="n\n", cwd=folder)
    assert "Go on?" not in shown
    assert server.stats.answered.total() == 150


async def test_a_fork_is_asked_about_for_what_it_does_not_share(folder: Path) -> None:
    """One that is only longer shares all that its parent has."""
    async with start(RehearsalSettings()) as server:
        at = ["--set", f"mind.base_url={server.base_url}", "--no-cache", "--json", "--out", "runs/a"]
        await asyncio.to_thread(shoal, "run", "many.yaml", "--rounds", "2", *at, cwd=folder)
    branch = ["fork", "runs/a", "--at", "1", "--set", "rounds=40"]
    longer = await asyncio.to_thread(run_on_terminal, *branch, typed="n\n", cwd=folder)
    other = await asyncio.to_thread(run_on_terminal, *branch, "--set", "mind.temperature=0.1", typed="n\n", cwd=folder)
    assert (longer[0], other[0]) == (3, 3)
    assert f"will take about {38 * 70 + 3 * 70:,} calls" in longer[1]
    assert f"will take about {40 * 70 + 3 * 70:,} calls" in other[1]
    assert [path.name for path in (folder / "runs").iterdir()] == ["a"]
