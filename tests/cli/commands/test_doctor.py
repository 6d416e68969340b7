"""Asking how many at once."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shoal.cli.commands.doctor import describe_report
from shoal.machine.hardware import Cores, Files, Machine, MemoryLimits, MemorySpace
from shoal.rehearsal.server import start
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs.doctor import DoctorReport, DoctorTarget, examine
from tests.cli.terminal import call, shoal

KEY = "sk-very-secret-0123456789"


def as_json(*args: str, exit_code: int = 0) -> dict[str, Any]:
    result = call("doctor", *args, "--json")
    assert result.exit_code == exit_code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture
def findings(folder: Path) -> DoctorReport:
    return examine(DoctorTarget.of_usual_runs(None), folder, 1.5, call=False)


def test_it_tells_of_the_machine_and_recommends(folder: Path) -> None:
    result = call("doctor")
    assert result.exit_code == 0, result.output
    labels = [line[:12].strip() for line in result.stdout.splitlines() if line[:12].strip()]
    assert labels[:5] == ["cores", "memory", "container", "open files", "disk"]
    assert labels.count("simulations") == 2
    assert "change first" in labels
    assert not (folder / "runs").exists()


def test_json_begins_with_what_is_recommended(folder: Path) -> None:
    found = as_json()
    offline, asking = found["recommended"]
    assert offline["calls"] is None
    assert offline["simulations"] >= 1
    assert asking["calls"] >= asking["simulations"] >= 1
    assert found["advice"][1]["calls"][0]["count"] == asking["calls"]
    assert found["disk"]["path"] == str(folder)
    assert found["endpoints"] == found["problems"] == []


def test_it_recommends_for_each_purpose_and_says_what_the_network_needs(folder: Path) -> None:
    offline, asking = as_json("--latency", "2")["recommended"]
    for found in (offline, asking):
        numbers = list(found["purposes"].values())
        assert list(found["purposes"]) == ["development", "research", "batch work", "large studies"]
        assert 1 <= numbers[0] <= numbers[1] <= numbers[2] == numbers[3] == found["simulations"]
    assert offline["network_mbit"] is None
    assert asking["network_mbit"]["sent"] == pytest.approx(asking["calls"] / 2 * 10_500 * 8 / 1e6)
    printed = call("doctor").stdout
    assert "development: " in printed
    assert "Mbit/s" in printed


def test_a_scenario_says_what_is_needed(folder: Path) -> None:
    (recommended,) = as_json("small.yaml")["recommended"]
    assert recommended["need"] == {"people": 20, "rounds": 5, "worlds": 2, "asks": False, "max_workers": None}
    shown = call("doctor", "small.yaml").stdout
    assert "small: people 20, rounds 5, worlds 2" in " ".join(shown.split())


def test_slow_calls_allow_more_at_once(folder: Path) -> None:
    counts = [as_json("--latency", seconds)["recommended"][1]["calls"] for seconds in ("0.5", "2")]
    assert counts[1] > counts[0]


def test_a_wrong_scenario_is_answered_as_everywhere(folder: Path) -> None:
    (folder / "wrong.yaml").write_text("population: {count: many}")
    assert call("doctor", "wrong.yaml").exit_code == 2


def test_without_a_key_it_says_which_and_fails(folder: Path) -> None:
    result = call("doctor", "small.yaml", "--model", "openai/gpt-4.1-mini")
    assert result.exit_code == 1
    assert "OPENAI_API_KEY is not set" in " ".join(result.stdout.split())


async def test_a_server_that_answers_is_told_about(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with start(RehearsalSettings(requests_per_minute=600)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        quiet = await asyncio.to_thread(call, "doctor", "--model", "openai/rehearsal")
        assert server.stats.requests == 0
        called = await asyncio.to_thread(call, "doctor", "--model", "openai/rehearsal", "--call", "--json")
        assert server.stats.requests == 1
    shown = " ".join(quiet.stdout.split())
    assert quiet.exit_code == 0
    assert "the key in OPENAI_API_KEY was not refused" in shown
    assert "--call shows those that come with an answer" in shown
    found = json.loads(called.stdout)
    assert found["endpoints"][0]["allowance"] == {"requests": 600}
    assert found["recommended"][0]["calls"] == 15
    assert KEY not in quiet.output + called.output


async def test_each_model_of_a_scenario_is_looked_at(folder: Path) -> None:
    async with start(RehearsalSettings()) as server:
        mind = f'mind: {{kind: language, model: a/b, base_url: "{server.base_url}", by_group: {{x: c/d}}}}\n'
        (folder / "two.yaml").write_text("population: [{count: 3, group: x}, {count: 3}]\n" + mind)
        found = await asyncio.to_thread(as_json, "two.yaml")
    assert [each["model"] for each in found["endpoints"]] == ["a/b", "c/d"]


def test_a_server_that_is_not_there_makes_it_fail(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    found = as_json("--model", "openai/gpt-4.1-mini", exit_code=1)
    assert "cannot be reached" in found["problems"][0]


def test_a_server_that_is_not_there_is_said_before_anything_about_the_machine(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    said = call("doctor", "--model", "openai/gpt-4.1-mini").stdout
    assert said.startswith("problem ")
    assert "change first" not in said


def test_lines_fit_a_narrow_terminal_and_hold_no_control_characters(folder: Path) -> None:
    result = shoal("doctor", cwd=folder, COLUMNS="50", NO_COLOR="1")
    assert result.returncode == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 50
    assert "\x1b" not in result.stdout


def test_what_is_unknown_is_called_so(findings: DoctorReport) -> None:
    unknown = Machine(Cores(None), MemoryLimits(None), Files(None, None))
    shown = describe_report(replace(findings, machine=unknown, disk=None)).splitlines()
    assert [line.split()[-1] for line in shown[:5]][1] == "unknown"
    assert shown[0].startswith("cores         unknown")
    assert shown[2].startswith("container     none; control groups unknown")


def test_the_limits_of_a_container_are_told(findings: DoctorReport) -> None:
    memory = MemoryLimits(MemorySpace("machine", 64 << 30, 8 << 30), MemorySpace("container", 4 << 30, 1 << 30), 0)
    machine = Machine(Cores(16, tuple(range(16)), 1.5), memory, Files(1024, 4096), "Docker", "v2")
    shown = " ".join(describe_report(replace(findings, machine=machine)).split())
    assert "1.5 usable of 16 (by quota)" in shown
    assert "3.0 GiB free of the container's 4.0 GiB (25% used)" in shown
    assert "Docker; control groups v2, CPU 1.5 cores and memory 4.0 GiB" in shown
    assert "4,096 for each process (1,024 now; Shoal asks for more by itself)" in shown
