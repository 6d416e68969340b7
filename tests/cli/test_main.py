"""The command itself: help, versions, suggestions, and how each kind of error ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import shoal
from shoal.cli.main import COMMANDS
from shoal.runs.directory import RunDirectory
from tests.cli.terminal import COMMAND, call, environment, last_object


def test_help_lists_every_command_and_the_exit_codes() -> None:
    result = call("--help")
    assert result.exit_code == 0
    assert all(f"  {name} " in result.stdout for name in COMMANDS)
    assert "130  stopped by Ctrl-C" in result.stdout


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from shoal.cli.main import cli;"
        "CliRunner().invoke(cli, ['--help']);"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pydantic", "rich", "msgspec", "yaml", "asyncio", "sqlite3"} & set(loaded)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    result = call(name, "--help")
    assert result.exit_code == 0
    assert f"  shoal {name}" in result.stdout


def test_help_and_the_documentation_describe_commands_in_the_same_words() -> None:
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
    lines = page.partition("```text\n")[2].partition("```")[0].splitlines()
    described = {line.split()[1]: line[30:].strip() for line in lines}
    assert described == {name: line[0].lower() + line[1:-1] for name, (_, line) in COMMANDS.items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_about_a_command_begins_its_help(name: str) -> None:
    _, line = COMMANDS[name]
    first = " ".join(call(name, "--help").stdout.split("\n\n")[1].split())
    assert first[:12] == line[:12]


def test_the_version_is_that_of_the_package() -> None:
    assert call("--version").stdout == f"shoal {shoal.__version__}\n"


def test_an_unknown_command_is_answered_with_the_nearest() -> None:
    result = call("replya")
    assert result.exit_code == 2
    assert "Did you mean 'replay'?" in result.stderr


def test_a_command_like_no_other_is_answered_without_a_guess() -> None:
    result = call("xyzzy")
    assert result.exit_code == 2
    assert "Did you mean" not in result.stderr


# how errors end


def test_a_wrong_scenario_exits_with_2_and_says_all_that_is_wrong(folder: Path) -> None:
    (folder / "wrong.yaml").write_text("rouns: 5\npopulation: {count: -1}\n")
    result = call("run", "wrong.yaml", "--json")
    assert result.exit_code == 2
    assert last_object(result.stdout)["exit_code"] == 2
    assert "wrong.yaml:1:1: rouns" in result.stderr
    assert "wrong.yaml:2:" in result.stderr
    assert not (folder / "runs").exists()


def test_a_run_that_is_not_there_exits_with_3(folder: Path) -> None:
    for command in (["show"], ["resume"], ["replay"], ["fork", "--at", "0"]):
        result = call(*command, "runs/nothing")
        assert result.exit_code == 3
        assert result.stderr.startswith("error: there is no run in runs/nothing")


def test_a_directory_that_is_taken_exits_with_3(folder: Path) -> None:
    (folder / "taken").mkdir()
    (folder / "taken" / "thesis.txt").write_text("mine")
    result = call("run", "small.yaml", "--out", "taken")
    assert result.exit_code == 3
    assert "taken is not empty" in result.stderr
    assert [path.name for path in (folder / "taken").iterdir()] == ["thesis.txt"]


def test_a_run_from_a_newer_version_exits_with_3(folder: Path) -> None:
    call("run", "small.yaml", "--out", "new")
    path = folder / "new" / "simulation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99, "shoal_version": "9.0"}))
    result = call("resume", "new", "--json")
    assert result.exit_code == 3
    assert "written by Shoal 9.0" in result.stderr


def test_a_run_with_a_live_worker_exits_with_3(folder: Path) -> None:
    call("run", "small.yaml", "--out", "busy")
    (folder / "busy" / "run_state.json").unlink()
    with RunDirectory(Path("busy")).lock():
        result = call("resume", "busy", "--json")
    assert result.exit_code == 3
    assert f"is being worked on by process {os.getpid()}" in result.stderr
    assert last_object(result.stdout)["exit_code"] == 3


def test_a_history_that_does_not_repeat_itself_exits_with_1(folder: Path) -> None:
    call("run", "small.yaml", "--out", "odd")
    config = folder / "odd" / "simulation_config.json"
    content = json.loads(config.read_text())
    content["scenario"]["seed"] += 1
    config.write_text(json.dumps(content))
    result = call("replay", "odd", "--json")
    assert result.exit_code == 1
    assert "was committed" in result.stderr
    assert last_object(result.stdout)["status"] == "failed"


def test_a_disk_that_refuses_exits_with_1(folder: Path) -> None:
    (folder / "runs").write_text("a file where a folder should be")
    result = call("run", "small.yaml")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: cannot write runs")
    assert "resume" not in result.stderr, "there is no run yet"


def broken_run(folder: Path) -> None:
    """A run whose metrics cannot be understood, which is nothing that we foresee."""
    call("run", "small.yaml", "--out", "broken")
    (folder / "broken" / "metrics.jsonl").write_text("{}\n")


def test_an_internal_error_is_one_line_and_exits_with_70(folder: Path) -> None:
    broken_run(folder)
    result = call("show", "broken")
    assert result.exit_code == 70
    assert result.stderr.startswith("internal error: KeyError: ")
    assert len(result.stderr.splitlines()) == 1


def test_an_internal_error_in_a_run_is_in_its_log(folder: Path) -> None:
    call("run", "small.yaml", "--out", "odd")
    state = folder / "odd" / "run_state.json"
    state.write_text(state.read_text().replace('"completed"', '"failed"'))
    (folder / "odd" / "journal.jsonl").write_text('{"key":"*/1/inject/0","event":{"nonsense":1}}\n')
    result = call("resume", "odd", "--json")
    assert result.exit_code == 70
    assert "details are in odd/simulation.log" in result.stderr
    assert last_object(result.stdout)["status"] == "failed"
    assert "Traceback" in (folder / "odd" / "simulation.log").read_text()
    assert "SHOAL_TRACEBACK=1" in call("replay", "odd").stderr


def test_an_internal_error_is_shown_in_full_on_request(folder: Path) -> None:
    broken_run(folder)
    result = subprocess.run(
        [COMMAND, "show", "broken"], env=environment(SHOAL_TRACEBACK="1"), capture_output=True, text=True, check=False
    )
    assert result.returncode == 70
    assert "Traceback (most recent call last)" in result.stderr


def test_closed_input_and_output_change_nothing(folder: Path) -> None:
    command = f"exec {COMMAND} experiment study.yaml --out study <&- >&-"
    (folder / "study.yaml").write_text(
        "{topic: cats, rounds: 1, worlds: [twitter], population: [{count: 3}],"
        " experiment: {seeds: 1, tiers: [{name: one, arms: {all: {}}}]}}"
    )
    result = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, env=environment(), text=True, check=False)
    assert (result.returncode, result.stderr.splitlines()[-1]) == (0, "1/1 done")
    assert "completed" in (folder / "study/one/all/1/simulation.log").read_text()


@pytest.mark.parametrize("command", [["list"], ["list", "--json"], ["show", "runs/small-1"]])
def test_a_closed_pipe_ends_the_command_quietly(folder: Path, command: list[str]) -> None:
    call("run", "small.yaml", "--quiet")
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run(
        [COMMAND, *command], stdout=writing, stderr=subprocess.PIPE, env=environment(), text=True, check=False
    )
    os.close(writing)
    assert result.stderr == ""
    assert result.returncode == 141


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "small.yaml", "--out", "n" * 300],
        ["run", "n" * 300 + ".yaml"],
        ["show", "n" * 300],
        ["import", "n" * 300],
        ["export", "run", "--out", "n" * 300],
        ["fork", "run", "--at", "1", "--out", "n" * 300],
        ["init", "n" * 300],
    ],
)
def test_a_name_that_no_disk_takes_is_no_internal_error(folder: Path, arguments: list[str]) -> None:
    call("run", "small.yaml", "--rounds", "1", "--out", "run")
    result = call(*arguments)
    assert result.exit_code in (1, 2, 3)
    assert "too long" in result.stderr


@pytest.mark.slow
def test_too_little_memory_is_no_internal_error(folder: Path) -> None:
    command = ["run", "small.yaml", "--set", "population.count=3000000", "--set", "events=[]"]
    limited = f"ulimit -v 420000 && exec {COMMAND} {' '.join(command)}"
    result = subprocess.run(["sh", "-c", limited], capture_output=True, text=True, check=False, env=environment())
    assert (result.returncode, result.stderr.count("error: there is too little memory")) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rounds", "99999999"], "--rounds 99999999: rounds: "),
        (["--play", "Nobody Here"], "--play 'Nobody Here': play.0: unknown person"),
        (["--model", ""], "--model : mind.model: "),
        (["--set", "rounds=x"], "--set rounds=x: rounds: "),
    ],
)
def test_a_wrong_value_is_reported_under_the_option_that_was_typed(
    folder: Path, arguments: list[str], said: str
) -> None:
    result = call("run", "small.yaml", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("--") == said.count("--")


def test_every_command_that_prints_prints_json_also_where_it_fails(folder: Path) -> None:
    failing = {
        "validate": ["bad.yaml"],
        "import": ["nothing.csv"],
        "plan": ["bad.yaml"],
        "doctor": ["bad.yaml"],
        "run": ["bad.yaml"],
        "init": ["small.yaml"],
        "diff": ["no", "run"],
        "explain": ["no", "1", "1"],
        "query": ["no", "select 1"],
        "fork": ["no", "--at", "1"],
        "ask": ["no", "Why?"],
        **{key: ["no"] for key in ("show", "replay", "resume", "export")},
    }
    (folder / "bad.yaml").write_text("rounds: many\n")
    for command, arguments in failing.items():
        result = call(command, *arguments, "--json")
        printed = json.loads(result.stdout)
        assert result.exit_code in (1, 2, 3), command
        if command == "validate":
            assert [line.partition(": ")[0] for line in printed["problems"]] == ["bad.yaml:1:1", "bad.yaml:1:9"]
        else:
            assert printed["exit_code"] == result.exit_code
            assert printed["error"] in result.stderr
