"""Experiments over HTTP: planned, started as processes of their own, stopped, continued, and reported."""

from __future__ import annotations

import csv
import io
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.experiments.live.process import find_process
from tests.server.conftest import RunningServer, Serve

BASE = """
name: bridge
topic: the old bridge
population: {count: 12}
rounds: 4
time: {daily_rhythm: false}
worlds: [twitter]
seed: 4
claims: [{id: closing, text: The old bridge will be closed}]
events: [{post: "It will be closed!", by: random, supports: closing}]
"""
EXPERIMENT = f"""{BASE}
experiment:
  seeds: 3
  judges: {{heard: reach(closing) > 0.2}}
  tiers:
    - name: size
      control: few
      arms: {{few: {{}}, many: {{population.0.count: 20}}}}
"""
LONG = EXPERIMENT.replace("rounds: 4", "rounds: 100000")


@pytest.fixture
def server(serve: Serve, tmp_path: Path) -> Iterator[RunningServer]:
    """A server with a folder of experiments. No process of one outlives the test."""
    yield serve(results=tmp_path / "results")
    for folder in (tmp_path / "results").glob("*"):
        if (pid := find_process(folder)) is not None:
            os.killpg(pid, signal.SIGKILL)


def ask(server: RunningServer, method: str, path: str, body: object = None) -> Any:
    answer = server.request(method, f"/api/{path}", body)
    assert answer.status == 200, answer.body
    return answer.json["data"]


def wait_for(server: RunningServer, name: str, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while not is_so(found := ask(server, "GET", f"experiments/{name}")):
        assert time.monotonic() < deadline, found
        time.sleep(0.05)
    return dict(found)


def test_an_experiment_is_started_and_reported(server: RunningServer) -> None:
    started = ask(server, "POST", "experiments/start", {"text": EXPERIMENT, "max_simulations": 2})
    assert (started["name"], started["runs"]) == ("bridge", 6)
    ended = wait_for(server, "bridge", lambda found: found["status"] == "completed")
    arms = ended["tier_list"][0]["arms"]
    assert [(arm["arm"], arm["is_control"], arm["seeds"]) for arm in arms] == [
        ("few", True, [4, 5, 6]),
        ("many", False, [4, 5, 6]),
    ]
    assert set("".join(arm["marks"] for arm in arms)) <= {"p", "n"}
    assert "--max-simulations 2" in ended["command"]
    report = ask(server, "GET", "experiments/bridge/report")
    assert (report["outcome"], report["runs"]) == ("pass_rate", 6)
    assert any(part["is_strong"] for sentence in report["sentences"] for part in sentence)
    few, many = report["tiers"][0]["arms"]
    assert few["effects"] == {}
    assert many["effects"]["pass_rate"]["seeds"] == 3
    (curves,) = ask(server, "GET", "experiments/bridge/curves")
    assert curves["metrics"]["reach(closing)"][0]["rounds"] == [0, 1, 2, 3, 4]
    assert [row["name"] for row in ask(server, "GET", "experiments/list")] == ["bridge"]


def test_runs_of_an_experiment_are_found_by_their_place(server: RunningServer) -> None:
    ask(server, "POST", "experiments/start", {"text": EXPERIMENT})
    wait_for(server, "bridge", lambda found: found["status"] == "completed")
    assert ask(server, "GET", "simulation/bridge~size~many~5/run-status")["runner_status"] == "completed"
    header = ask(server, "GET", "simulation/bridge~size~many~5/overview")
    assert (header["simulation_id"], header["name"]) == ("bridge~size~many~5", "many, seed 5")
    fork = ask(server, "POST", "simulation/fork", {"simulation_id": "bridge~size~many~5", "at": 2})["simulation_id"]
    assert (server.folder / fork).is_dir()
    assert ask(server, "GET", "simulation/compare?one=bridge~size~few~5&other=bridge~size~many~5")["people"] == 20
    for place in ("bridge~size~many~99", "bridge~size~..~5", "..~bridge~size~5", "bridge~size~many"):
        assert server.get(f"{place}/run-status").status == 404


def test_results_are_downloaded_as_tables_and_the_report_as_a_page(server: RunningServer) -> None:
    ask(server, "POST", "experiments/start", {"text": EXPERIMENT})
    wait_for(server, "bridge", lambda found: found["status"] == "completed")
    table = server.request("GET", "/api/experiments/bridge/download/csv")
    rows = list(csv.DictReader(io.StringIO(table.body.decode())))
    assert [row["arm"] for row in rows] == ["few"] * 3 + ["many"] * 3
    assert server.request("GET", "/api/experiments/bridge/download/parquet").body[:4] == b"PAR1"
    page = server.request("GET", "/api/experiments/bridge/download/report")
    assert "attachment" in page.headers["content-disposition"]
    assert b"<html" in page.body
    assert server.request("GET", "/api/experiments/bridge/download/pdf").status in (400, 404)


def test_an_experiment_outlives_the_server_and_is_stopped_and_continued(
    server: RunningServer, serve: Serve, tmp_path: Path
) -> None:
    ask(server, "POST", "experiments/start", {"text": LONG, "max_simulations": 1})
    wait_for(server, "bridge", lambda found: any("r" in arm["marks"] for arm in found["tier_list"][0]["arms"]))
    server.stop()
    other = serve(results=tmp_path / "results")
    assert ask(other, "GET", "experiments/bridge")["status"] == "running"
    again = other.request("POST", "/api/experiments/bridge/continue", {})
    assert (again.status, "worked on already" in again.json["error"]) == (409, True)
    stopped = ask(other, "POST", "experiments/bridge/stop", {})
    assert (stopped["status"], stopped["ended"]) == ("stopped", 0)
    assert other.request("POST", "/api/experiments/bridge/stop", {}).status == 409
    going_on = ask(other, "POST", "experiments/bridge/continue", {"max_cost": 5})
    assert going_on["status"] == "running"
    ask(other, "POST", "experiments/bridge/stop", {})
    assert "--max-cost 5" in ask(other, "GET", "experiments/bridge")["command"]


def test_an_experiment_that_cannot_start_leaves_nothing(server: RunningServer, tmp_path: Path) -> None:
    text = EXPERIMENT.replace("seed: 4", "seed: 4\nmind: {kind: language, model: openai/gpt-4.1-mini}")
    refused = server.request("POST", "/api/experiments/start", {"text": text})
    assert (refused.status, "OPENAI_API_KEY" in refused.json["error"]) == (409, True)
    assert list((tmp_path / "results").iterdir()) == []


CODE = {
    "a judge": "judges: {heard: {file: judge.py}}",
    "a metric": "metrics: [{file: metric.py}]",
    "a base": "base: other.yaml",
    "a mind in an arm": 'tiers: [{name: a, arms: {b: {mind.kind: "evil:Mind"}}}]',
    "a mind in a sweep": 'tiers: [{name: a, sweep: {mind: ["evil:Mind"]}}]',
    "people in an arm": "tiers: [{name: a, arms: {b: {population.0.file: /etc/passwd}}}]",
    "a world in a grid": "tiers: [{name: a, grid: {worlds.twitter: [{kind: 'evil:World'}]}}]",
    "an intervention": "tiers: [{name: a, arms: {b: {interventions.0.check: 'evil:check'}}}]",
    "a key": "tiers: [{name: a, arms: {b: {mind: {kind: language, model: m, key_variable: SECRET}}}}]",
    "a key in one arm and an address in another": (
        "tiers: [{name: a, arms: {b: {mind.key_variable: OPENAI_API_KEY}, c: {mind.base_url: 'http://evil.example'}}}]"
    ),
}


@pytest.mark.parametrize("section", CODE.values(), ids=CODE)
def test_an_experiment_that_is_sent_names_no_files_and_no_code(
    server: RunningServer, tmp_path: Path, section: str
) -> None:
    tiers = "" if "tiers" in section else "  tiers: [{name: a, arms: {b: {}}}]\n"
    text = f"{BASE}\nexperiment:\n  {section}\n{tiers}"
    for route in ("experiments/start", "simulation/plan"):
        refused = server.request("POST", f"/api/{route}", {"text": text})
        assert refused.status == 400
        assert any(words in refused.json["error"] for words in ("cannot name", "was not declared", "gets no key"))
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("name", ["nope", "..", ".hidden", "a%2Fb", "%00"])
def test_a_name_that_is_none_is_not_found(server: RunningServer, name: str) -> None:
    for route in ("", "/report", "/curves", "/download/csv"):
        assert server.request("GET", f"/api/experiments/{name}{route}").status == 404
    assert server.request("POST", f"/api/experiments/{name}/stop", {}).status == 404


def test_a_value_that_is_wrong_is_named(server: RunningServer) -> None:
    refused = server.request("POST", "/api/experiments/start", {"text": EXPERIMENT, "max_cost": -1})
    assert (refused.status, refused.json["field"]) == (400, "max_cost")
    missing = server.request("POST", "/api/experiments/start", {"text": BASE})
    assert (missing.status, "no section 'experiment'" in missing.json["error"]) == (400, True)
    for route in ("experiments/start", "simulation/plan"):
        mistaken = server.request("POST", f"/api/{route}", {"text": EXPERIMENT.replace("control: few", "control: fw")})
        assert mistaken.status == 400
        assert mistaken.json["error"].startswith("scenario.yaml:17:")


def test_a_run_is_planned_before_money_is_spent(server: RunningServer) -> None:
    free = ask(server, "POST", "simulation/plan", {"text": BASE})
    assert (free["kind"], free["people"], free["rounds"], free["is_free"]) == ("run", 12, 4, True)
    assert free["seconds"] > 0
    paid = ask(server, "POST", "simulation/plan", {"text": BASE, "model": "openai/gpt-4.1-mini"})
    assert paid["calls"] > 0
    assert 0 < paid["cost"] <= paid["cost_most"]
    many = ask(server, "POST", "simulation/plan", {"text": EXPERIMENT, "model": "openai/gpt-4.1-mini"})
    assert (many["kind"], many["runs"], many["calls"] > paid["calls"]) == ("experiment", 6, True)
    assert [part["name"] for part in many["parts"]] == ["size/few", "size/many"]
    wrong = server.request("POST", "/api/simulation/plan", {"text": BASE.replace("rounds: 4", "rounds: -4")})
    assert (wrong.status, "rounds" in wrong.json["error"]) == (400, True)
