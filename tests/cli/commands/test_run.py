"""Running, resuming, replaying and forking from the terminal."""

from __future__ import annotations

import os
import pty
import shlex
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from shoal.cli.main import cli
from shoal.cli.views.display import STOPPING
from shoal.runs.directory import RunDirectory
from shoal.runs.operations import create_run, extend_run, inject_before_start
from shoal.runs.seats import read_terms, take_seat_before_start
from shoal.runs.state import Status
from shoal.scenario import sample
from shoal.scenario.loading import load, override
from tests.cli.terminal import (
    COMMAND,
    KEYS,
    call,
    count_rounds,
    environment,
    last_object,
    shoal,
    start_command,
    wait_until,
)
from tests.runs.test_shards import list_shards


def test_a_run_ends_with_one_object_on_the_last_line(folder: Path) -> None:
    result = shoal("run", "small.yaml", "--json", cwd=folder)
    assert result.returncode == 0
    outcome = last_object(result.stdout)
    assert list(outcome) == KEYS
    assert outcome["run"] == "runs/small-1"
    assert outcome["status"] == "completed"
    assert outcome["rounds"] == 5
    assert outcome["actions"] > 0
    assert result.stdout.count("\n") == 1


def test_a_scenario_is_read_from_standard_input(folder: Path) -> None:
    text = Path("small.yaml").read_text()
    whole = last_object(call("run", "small.yaml", "--json").stdout)
    piped = CliRunner().invoke(cli, ["run", "-", "--json"], input=text)
    assert last_object(piped.stdout)["digest"] == whole["digest"]
    assert CliRunner().invoke(cli, ["validate", "-"], input=text).stdout.startswith("ok: 20 people")
    wrong = CliRunner().invoke(cli, ["run", "-"], input="rounds: many")
    assert "standard input:1:9: rounds: expected a whole number" in wrong.stderr
    assert "must be in a file" in CliRunner().invoke(cli, ["run", "-", "--play", "Ada"], input=text).stderr


def test_a_run_says_what_happened_and_what_to_do_next(folder: Path) -> None:
    result = shoal("run", "small.yaml", cwd=folder)
    assert result.returncode == 0
    for words in ("small-1  completed", "posts on topic", "most active", "shoal replay runs/small-1", "shoal query "):
        assert words in result.stdout


def test_the_next_steps_that_a_run_names_can_be_taken(folder: Path) -> None:
    lines = call("run", "small.yaml").stdout.splitlines()
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("  shoal ")]
    assert [command[0] for command in commands] == ["show", "replay", "fork", "query"]
    assert [call(*command).exit_code for command in commands] == [0, 0, 0, 0]


def test_a_quiet_run_says_only_where_it_is(folder: Path) -> None:
    result = shoal("run", "small.yaml", "--quiet", cwd=folder)
    assert (result.stdout, result.stderr) == ("runs/small-1\n", "")


def test_each_run_has_the_first_free_directory(folder: Path) -> None:
    (folder / "runs" / "small-2").mkdir(parents=True)
    runs = [call("run", "small.yaml", "--quiet").stdout for _ in range(3)]
    assert runs == ["runs/small-1\n", "runs/small-3\n", "runs/small-4\n"]


def test_runs_started_at_once_never_share_a_directory(folder: Path) -> None:
    runs = [start_command("run", "small.yaml", "--quiet", cwd=folder) for _ in range(3)]
    said = {run.communicate()[0] for run in runs}
    assert said == {"runs/small-1\n", "runs/small-2\n", "runs/small-3\n"}


def test_a_run_can_be_put_into_the_current_directory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "here").mkdir()
    monkeypatch.chdir(folder / "here")
    assert last_object(call("run", "../small.yaml", "--out", ".", "--json").stdout)["status"] == "completed"
    assert (folder / "here" / "simulation_config.json").exists()


def test_a_scenario_that_cannot_be_run_leaves_no_directory(folder: Path) -> None:
    assert call("run", "small.yaml", "--set", "rounds=0").exit_code == 2
    assert not (folder / "runs").exists()


def test_options_change_the_scenario(folder: Path) -> None:
    plain = last_object(call("run", "small.yaml", "--json").stdout)
    same = last_object(call("run", "small.yaml", "--max-workers", "2", "--json").stdout)
    other = last_object(call("run", "small.yaml", "--seed", "9", "--rounds", "3", "--json").stdout)
    assert same["digest"] == plain["digest"]
    assert other["digest"] != plain["digest"]
    assert other["rounds"] == 3


def test_a_shorter_run_leaves_out_what_would_happen_later(folder: Path) -> None:
    with (folder / "small.yaml").open("a") as file:
        file.write('  - {post: "The last word.", by: random, round: 5}\n')
    result = call("run", "small.yaml", "--rounds", "2", "--json")
    assert result.exit_code == 0
    assert "1 event after round 2 will not happen" in result.stderr


# resume


def test_a_run_that_is_complete_is_resumed_by_saying_so(folder: Path) -> None:
    first = last_object(call("run", "small.yaml", "--json").stdout)
    result = call("resume", "runs/small-1", "--json")
    assert result.exit_code == 0
    assert last_object(result.stdout) == first
    assert "has run to its end already" in call("resume", "runs/small-1").stdout


def test_a_complete_run_goes_on_to_as_many_rounds_as_it_is_told(folder: Path) -> None:
    whole = last_object(call("run", "small.yaml", "--rounds", "9", "--json").stdout)
    call("run", "small.yaml", "--quiet")
    longer = call("resume", "runs/small-2", "--rounds", "9", "--json")
    assert longer.exit_code == 0
    assert last_object(longer.stdout) == whole | {"run": "runs/small-2"}
    assert "has run to its end already" in call("resume", "runs/small-2", "--rounds", "9").stdout
    assert last_object(call("resume", "runs/small-2", "--json").stdout)["rounds"] == 9


def stop_run(run: subprocess.Popen[str], number: signal.Signals, folder: Path) -> tuple[str, str]:
    """Stop a run that waits at its gate, open the gate, and read what the run says from then on."""
    with run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.send_signal(number)
        while STOPPING not in (line := run.stderr.readline()):
            assert line, "it ended without a word"
        (folder / "go").touch()
        return run.stdout.read(), run.stderr.read()


def test_a_stopped_run_may_be_told_to_end_sooner_or_later(gated: Path) -> None:
    run = start_command("run", "gated.yaml", "--rounds", "40", cwd=gated)
    wait_until(lambda: count_rounds(gated / "runs/small-1/twitter/actions.jsonl") >= 2)
    stop_run(run, signal.SIGINT, gated)
    assert run.returncode == 130
    assert last_object(call("resume", "runs/small-1", "--rounds", "8", "--json").stdout)["rounds"] == 8
    assert last_object(call("resume", "runs/small-1", "--rounds", "10", "--json").stdout)["rounds"] == 10
    assert call("replay", "runs/small-1").exit_code == 0


def test_a_run_cannot_go_on_to_a_round_that_it_has_behind_it(folder: Path) -> None:
    call("run", "small.yaml", "--quiet")
    result = call("resume", "runs/small-1", "--rounds", "3")
    assert result.exit_code == 2
    assert "runs/small-1 has 5 rounds already; give more than that, or fork it to go back." in result.stderr


def test_a_run_that_was_told_to_go_on_and_killed_before_it_did_is_resumed(folder: Path) -> None:
    call("run", "small.yaml", "--quiet")
    directory = RunDirectory(Path("runs/small-1"))
    extend_run(directory, override(directory.scenario_versions.first, ["rounds=7"]))
    assert last_object(call("resume", "runs/small-1", "--json").stdout)["rounds"] == 7


@pytest.mark.parametrize("patience", ["10", "m", "-1s", "nan", "infh", "10 minutes", ""])
def test_a_patience_without_a_unit_is_refused(folder: Path, patience: str) -> None:
    """Ten of what? A number alone is taken for seconds by some and for minutes by others."""
    refused = call("run", "small.yaml", "--patience", patience)
    assert refused.exit_code == 2
    assert "90s, 15m or 2h" in refused.stderr


@pytest.mark.parametrize("cost", ["nan", "inf", "0", "-1"])
def test_a_limit_that_is_none_is_refused(folder: Path, cost: str) -> None:
    result = call("run", "small.yaml", "--max-cost", cost)
    assert result.exit_code == 2
    assert "--max-cost" in result.stderr
    assert not (folder / "runs").exists()


def run_through(folder: Path) -> dict[str, Any]:
    """The outcome of a run whose gate is open; it is closed again for the next one."""
    (folder / "go").touch()
    outcome = last_object(shoal("run", "gated.yaml", "--json", cwd=folder).stdout)
    (folder / "go").unlink()
    return outcome


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_run_stopped_by_a_signal_and_resumed_has_the_same_history(gated: Path, number: signal.Signals) -> None:
    unbroken = run_through(gated)
    limits = ["--max-cost", "2.5", "--parallel", "3"]
    run = start_command("run", "gated.yaml", "--json", *limits, "--no-cache", cwd=gated)
    wait_until(lambda: count_rounds(gated / "runs/small-2/twitter/actions.jsonl") >= 2)
    out, err = stop_run(run, number, gated)
    assert run.returncode == 128 + number
    assert f"continue with: shoal resume runs/small-2 {' '.join(limits)} --no-cache\n" in err
    assert "limited to $2.5, 3 agents at once over all runs with --parallel" in call("show", "runs/small-2").stdout
    assert last_object(out)["status"] == "stopped"

    resumed = shoal("resume", "runs/small-2", "--json", cwd=gated)
    assert resumed.returncode == 0
    outcome = last_object(resumed.stdout)
    assert outcome == unbroken | {"run": "runs/small-2", "calls": outcome["calls"]}


def test_a_second_signal_ends_a_run_at_once_and_nothing_is_lost(folder: Path) -> None:
    run = start_command("run", "slow.yaml", "--set", "mind.latency.median_ms=60000", cwd=folder)
    assert run.stderr is not None
    assert run.stderr.readline().startswith("running runs/small-1")
    wait_until(lambda: count_rounds(folder / "runs/small-1/twitter/actions.jsonl") == 1)
    run.send_signal(signal.SIGINT)
    assert "once more to end at once" in run.stderr.readline()
    run.send_signal(signal.SIGINT)
    run.communicate()
    assert run.returncode == 130
    assert '"status":"failed"' in call("list", "--json").stdout


def test_ctrl_c_twice_ends_a_run_over_shards_and_leaves_none_of_them(folder: Path) -> None:
    run = start_command("run", "slow.yaml", "--shards", "2", "--set", "mind.latency.median_ms=60000", cwd=folder)
    assert run.stderr is not None
    assert run.stderr.readline().startswith("running runs/small-1")
    wait_until(lambda: count_rounds(folder / "runs/small-1/twitter/actions.jsonl") == 1)
    shards = list_shards(RunDirectory(folder / "runs/small-1"))
    assert len(shards) == 2
    # A terminal sends it to the whole group.
    for pid in (*shards, run.pid):
        os.kill(pid, signal.SIGINT)
    assert "once more to end at once" in run.stderr.readline()
    for pid in (*shards, run.pid):
        os.kill(pid, signal.SIGINT)
    run.communicate()
    assert run.returncode == 130
    wait_until(lambda: not list_shards(RunDirectory(folder / "runs/small-1")))


@pytest.mark.parametrize("count", ["0", "-1", "many"])
def test_shards_are_a_number_above_0(folder: Path, count: str) -> None:
    refused = call("run", "small.yaml", "--shards", count)
    assert refused.exit_code == 2
    assert "Invalid value for '--shards'" in refused.stderr


def test_a_run_that_was_killed_is_resumed_to_the_same_history(gated: Path) -> None:
    unbroken = run_through(gated)
    run = start_command("run", "gated.yaml", cwd=gated)
    wait_until(lambda: count_rounds(gated / "runs/small-2/reddit/actions.jsonl") >= 2)
    run.kill()
    run.communicate()
    assert run.returncode == -signal.SIGKILL
    (gated / "go").touch()
    resumed = shoal("resume", "runs/small-2", "--json", cwd=gated)
    assert last_object(resumed.stdout)["digest"] == unbroken["digest"]


def test_signals_are_as_they_were_after_a_run(folder: Path) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    call("run", "small.yaml", "--quiet")
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert threading.current_thread() is threading.main_thread()


# replay


def test_a_replay_is_the_same_history_and_changes_nothing(folder: Path) -> None:
    first = last_object(call("run", "slow.yaml", "--json").stdout)
    before = {path: path.stat().st_mtime_ns for path in (folder / "runs").rglob("*") if path.is_file()}
    result = call("replay", "runs/small-1", "--json")
    assert result.exit_code == 0
    assert last_object(result.stdout) == first | {"calls": 0}
    after = {path: path.stat().st_mtime_ns for path in (folder / "runs").rglob("*") if path.is_file()}
    assert {path: at for path, at in after.items() if path in before} == before


def test_a_replay_says_that_the_history_is_the_same(folder: Path) -> None:
    digest = last_object(call("run", "small.yaml", "--json").stdout)["digest"]
    said = call("replay", "runs/small-1").stdout
    assert "replayed 5 rounds of runs/small-1" in said
    assert digest in said


# fork


def test_a_fork_with_nothing_changed_is_the_same_history(folder: Path) -> None:
    first = last_object(call("run", "slow.yaml", "--json").stdout)
    forked = last_object(call("fork", "runs/small-1", "--at", "3", "--json").stdout)
    assert forked == first | {"run": "runs/small-1-fork-1", "calls": 0}


def test_a_fork_with_a_value_changed_goes_its_own_way(folder: Path) -> None:
    first = last_object(call("run", "small.yaml", "--json").stdout)
    longer = last_object(call("fork", "runs/small-1", "--at", "5", "--set", "rounds=7", "--json").stdout)
    assert longer["rounds"] == 7
    assert longer["digest"] != first["digest"]
    assert call("replay", longer["run"]).exit_code == 0


def test_a_fork_with_an_event_injected_goes_its_own_way(folder: Path) -> None:
    (folder / "denial.yaml").write_text('- {post: "It is not true, I was there.", by: most_followed}\n')
    first = last_object(call("run", "small.yaml", "--json").stdout)
    result = call("fork", "runs/small-1", "--at", "3", "--inject", "denial.yaml", "--out", "denied", "--json")
    assert result.exit_code == 0
    assert last_object(result.stdout)["digest"] != first["digest"]
    assert "It is not true, I was there." in (folder / "denied/twitter/actions.jsonl").read_text()


def test_a_fork_says_which_events_of_its_parent_it_leaves_out(folder: Path) -> None:
    run = create_run(load(folder / "small.yaml"), folder / "told")
    inject_before_start(run, {"broadcast": "The bridge is open."})
    call("resume", "told", "--quiet")
    assert "left out: 1 event put into told from round 1 on" in call("fork", "told", "--at", "1").stderr
    assert "left out" not in call("fork", "told", "--at", "2").stderr


def test_a_fork_says_for_whom_it_waits(folder: Path) -> None:
    run = create_run(override(load(folder / "small.yaml"), ["rounds=2"]), folder / "sat")
    name = take_seat_before_start(run, sample(run.scenario), 3, read_terms(1.0, "mind")).name
    call("resume", "sat", "--quiet")
    told = call("fork", "sat", "--at", "2").stderr
    assert f"{name}'s turns wait for a person, 1 s each: shoal seat sat-fork-1 3" in told


def test_a_fork_stands_beside_its_parent(folder: Path) -> None:
    call("run", "small.yaml", "--out", "study/one", "--quiet")
    assert call("fork", "study/one", "--at", "1", "--quiet").stdout == "study/one-fork-1\n"
    assert call("fork", "study/one", "--at", "1", "--quiet").stdout == "study/one-fork-2\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--at", "6"], "it has rounds 0 to 5"),
        (["--at", "-1"], "-1 is not in the range"),
        ([], "Missing option '--at'"),
        (["--at", "4", "--set", "rounds=2"], "after the last round of the fork"),
        (["--at", "4", "--set", "seed=3"], "this cannot change in the middle of a run"),
        (["--at", "4", "--inject", "nothing.yaml"], "nothing.yaml: no such file"),
    ],
)
def test_a_fork_that_makes_no_sense_exits_with_2_and_leaves_nothing(
    folder: Path, options: list[str], words: str
) -> None:
    call("run", "small.yaml", "--quiet")
    result = call("fork", "runs/small-1", *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert [path.name for path in (folder / "runs").iterdir()] == ["small-1"]


def test_a_run_whose_terminal_is_closed_stops_and_ends_as_the_signal_says(folder: Path) -> None:
    command = [COMMAND, "run", "slow.yaml", "--set", "mind.latency.median_ms=120", "--set", "rounds=400"]
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(COMMAND, command, environment(TERM="dumb"))
    signal.signal(signal.SIGHUP, before)
    wait_until(lambda: count_rounds(folder / "runs/small-1/twitter/actions.jsonl") >= 2)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 129
    assert RunDirectory.open(folder / "runs/small-1").read_status() is Status.STOPPED
