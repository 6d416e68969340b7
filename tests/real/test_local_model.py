"""Everything that asks a language model, on a real one. `scripts/test --real` runs this; it takes some minutes.

The model is small, so little is asked of what it says: that most replies can be used, and that none is lost.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from bench.local_model import MODEL, SHOAL, ReplyFigures, run_shoal, topics
from shoal.models.local import ModelStore, WordTable
from shoal.runs.directory import RunDirectory
from tests.real.scenarios import SCENARIOS, TOPIC

pytestmark = pytest.mark.timeout(1800)

#: The share of decisions that come to nothing with a model of this size, and that of actions that a world refuses.
MAX_LOST = 0.34
MAX_REFUSED = 0.25


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("real")


@pytest.fixture(scope="session")
def table() -> WordTable:
    return WordTable.of_user(ModelStore.of_user(os.environ))


@pytest.fixture(params=list(SCENARIOS), scope="session")
def run(request: pytest.FixtureRequest, folder: Path) -> RunDirectory:
    """A run of each kind of world, made once for all tests."""
    return RunDirectory(make_run(folder, request.param))


def make_run(folder: Path, kind: str) -> Path:
    path = folder / kind
    if not path.exists():
        scenario = folder / f"{kind}.json"
        scenario.write_text(json.dumps(SCENARIOS[kind]))
        run_shoal("run", scenario, "--model", MODEL, "--out", path, "--no-cache", "--quiet")
    return path


def test_replies_can_be_used_and_cost_nothing(run: RunDirectory, table: WordTable) -> None:
    figures = ReplyFigures.read(run, table)
    print(f"\n{run.path.name}: {figures.describe()}")

    assert figures.decisions > 0
    assert figures.lost <= MAX_LOST * figures.decisions
    # What is in sight can be named, and nothing else.
    assert figures.refused <= MAX_REFUSED * figures.actions
    assert run.read_state().cost == 0


def test_a_run_is_replayed_without_the_model(run: RunDirectory) -> None:
    assert "the same history" in run_shoal("replay", run.path)


def test_people_are_interviewed(folder: Path) -> None:
    run, question = make_run(folder, "twitter"), "What do you think about the old bridge?"
    asked = json.loads(run_shoal("ask", run, question, "--who", "Ana Reyes", "--json"))
    (row,) = asked["rows"]
    print(f"\nAna Reyes: {row['answer']}")

    assert len(row["answer"].split()) > 3


def test_a_form_is_filled_in_and_a_claim_is_judged(folder: Path) -> None:
    run, form = make_run(folder, "twitter"), "go:yes/no,why:text,anger:integer 0-10,lean:number 0-1"
    asked = json.loads(run_shoal("ask", run, "Will you go to the meeting?", "--fields", form, "--json"))
    claim = "People are against closing the bridge."
    judged = json.loads(run_shoal("ask", run, "--claim", claim, "--world", "twitter", "--json"))
    rows = [*asked["rows"], *judged["rows"]]
    print("", *rows, sep="\n")

    assert [row["error"] for row in rows] == [None] * len(rows)
    assert all(row["go"] in ("yes", "no") and 0 <= row["lean"] <= 1 for row in asked["rows"])


def test_a_run_goes_on_after_its_worker_was_killed(folder: Path) -> None:
    scenario, path = folder / "killed.json", folder / "killed"
    scenario.write_text(json.dumps(SCENARIOS["twitter"] | {"seed": 8}))
    options = ("--model", MODEL, "--out", path, "--no-cache", "--quiet")
    command = [SHOAL, "run", scenario, *options]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as worker:
        journal = path / "journal.jsonl"
        while worker.poll() is None and not (journal.exists() and journal.stat().st_size):
            time.sleep(0.05)
        worker.send_signal(signal.SIGKILL)
    paid = journal.read_text().splitlines()

    run_shoal("resume", path, "--quiet")

    assert journal.read_text().splitlines()[: len(paid)] == paid
    assert "the same history" in run_shoal("replay", path)


def test_posts_on_topic_are_found_by_meaning(folder: Path) -> None:
    (bar,) = topics(folder)
    print(f"\n{TOPIC}: F1 {bar.value:.2f}, {bar.baseline}")
    assert bar.holds


def test_agents_recall_by_meaning_and_the_platform_recommends_by_it(folder: Path) -> None:
    scenario, path = folder / "meaning.json", folder / "meaning"
    feed = {"kind": "twitter", "search": "meaning", "feed": {"recommendation": "meaning"}}
    scenario.write_text(json.dumps(SCENARIOS["twitter"] | {"worlds": {"twitter": feed}}))

    run_shoal("run", scenario, "--out", path, "--quiet")

    assert json.loads(run_shoal("query", path, "SELECT count(*) AS n FROM rec", "--json"))[0]["n"] > 0
    assert "the same history" in run_shoal("replay", path)
