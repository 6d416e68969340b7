"""Looking at runs: finished, under way, stopped, killed, broken."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import call, count_rounds, shoal, start_command, wait_until


def list_runs() -> dict[str, Any]:
    return {row["run"]: row for row in json.loads(call("list", "--json").stdout)}


def test_an_empty_folder_lists_nothing_and_says_so(folder: Path) -> None:
    assert "no runs in runs" in call("list").stdout
    assert call("list", "--json").stdout == "[]\n"


def test_runs_are_listed_with_where_they_stand(folder: Path) -> None:
    call("run", "small.yaml", "--quiet")
    call("fork", "runs/small-1", "--at", "2", "--quiet")
    rows = list_runs()
    assert list(rows) == ["runs/small-1", "runs/small-1-fork-1"]
    assert rows["runs/small-1-fork-1"]["parent"] == "small-1"
    assert rows["runs/small-1"]["status"] == "completed"
    table = call("list").stdout
    assert "runs/small-1-fork-1  completed    5/5" in table


def test_a_run_can_be_looked_at_while_it_runs_after_a_stop_and_after_a_kill(folder: Path) -> None:
    slow = ["--set", "mind.latency.median_ms=120", "--set", "rounds=400"]
    run = start_command("run", "slow.yaml", *slow, cwd=folder)
    wait_until(lambda: count_rounds(folder / "runs/small-1/twitter/actions.jsonl") >= 2)
    assert list_runs()["runs/small-1"]["status"] == "running"
    assert "small-1  running" in call("show", "runs/small-1").stdout

    run.send_signal(signal.SIGINT)
    run.communicate()
    assert list_runs()["runs/small-1"]["status"] == "stopped"
    stopped = call("show", "runs/small-1").stdout
    assert "small-1  stopped" in stopped
    assert "shoal resume runs/small-1" in stopped

    known = count_rounds(folder / "runs/small-1/twitter/actions.jsonl")
    run = start_command("resume", "runs/small-1", cwd=folder)
    wait_until(lambda: count_rounds(folder / "runs/small-1/twitter/actions.jsonl") > known)
    run.kill()
    run.communicate()
    assert list_runs()["runs/small-1"]["status"] == "failed"
    assert "its worker was killed" in call("show", "runs/small-1").stdout


def test_a_run_that_was_never_started_can_be_shown(folder: Path) -> None:
    call("run", "small.yaml", "--quiet")
    kept = folder / "runs" / "small-1" / "simulation_config.json"
    (folder / "runs" / "bare").mkdir()
    (folder / "runs" / "bare" / kept.name).write_bytes(kept.read_bytes())
    shown = call("show", "runs/bare")
    assert shown.exit_code == 0
    assert "nothing has happened here yet" in shown.stdout


def test_a_run_that_cannot_be_read_does_not_hide_the_others(folder: Path) -> None:
    call("run", "small.yaml", "--quiet")
    (folder / "runs" / "odd").mkdir()
    (folder / "runs" / "odd" / "simulation_config.json").write_text("not JSON")
    rows = list_runs()
    assert rows["runs/odd"]["status"] == "unreadable"
    assert rows["runs/small-1"]["status"] == "completed"
    assert "unreadable" in call("list").stdout


def test_show_says_the_same_as_the_database(folder: Path) -> None:
    call("run", "small.yaml", "--quiet")
    summary = json.loads(call("show", "runs/small-1", "--json").stdout)
    assert summary["people"] == 20
    for world in summary["worlds"]:
        assert world["round"] == 5
        assert world["actions"] == sum(world["actions_by_round"]) == sum(kind["count"] for kind in world["kinds"])
        assert len(world["talk"]["posts_by_round"]) == 6
        reached = world["talk"]["people_by_round"]
        assert sorted(reached) == reached
        assert reached[-1] <= 20
        assert sum(camp["people"] for camp in world["talk"]["camps"]) == 20


def test_a_path_with_odd_characters_can_be_run_shown_and_pasted(folder: Path) -> None:
    call("run", "small.yaml", "--out", "odd #1? 100%/a b", "--quiet")
    shown = call("show", "odd #1? 100%/a b")
    assert shown.exit_code == 0
    assert "shoal replay 'odd #1? 100%/a b'" in shown.stdout
    assert call("replay", "odd #1? 100%/a b").exit_code == 0


def test_a_terminal_that_knows_only_ascii_is_no_obstacle(folder: Path) -> None:
    result = shoal("run", "small.yaml", cwd=folder, PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert "small-1  completed" in result.stdout


def test_a_question_in_sql_is_answered_by_the_named_world(folder: Path) -> None:
    call("run", "small.yaml", "--quiet")
    table = call("query", "runs/small-1", "select count(*) as people from user", "--world", "reddit")
    assert table.stdout.split() == ["people", "20"]
    rows = call("query", "runs/small-1", "select user_id, name from user order by 1 limit 2", "--json").stdout
    assert [row["user_id"] for row in json.loads(rows)] == [0, 1]
    nothing = call("query", "runs/small-1", "select name from user where user_id < 0", "--json").stdout
    assert json.loads(nothing) == []


@pytest.mark.parametrize(
    "sql",
    [
        "delete from post",
        "attach database 'other.db' as other",
        "create temp table copy as select * from post",
        "pragma journal_mode = wal",
        "drop table post",
    ],
)
def test_a_question_changes_nothing_and_opens_no_other_file(folder: Path, sql: str) -> None:
    call("run", "small.yaml", "--quiet")
    refused = call("query", "runs/small-1", sql)
    assert refused.exit_code == 2
    assert "a query can only read this one database" in refused.stderr
    assert not (folder / "other.db").exists()


def test_a_question_may_ask_how_a_table_is_made(folder: Path) -> None:
    call("run", "small.yaml", "--quiet")
    columns = json.loads(call("query", "runs/small-1", "pragma table_info(trace)", "--json").stdout)
    assert [column["name"] for column in columns] == ["user_id", "created_at", "action", "info"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["select nosuch from post"], "no such column"), (["select 1", "--world", "mars"], "no world 'mars'")],
)
def test_a_wrong_question_is_answered_with_what_is_wrong(folder: Path, arguments: list[str], said: str) -> None:
    call("run", "small.yaml", "--quiet")
    wrong = call("query", "runs/small-1", *arguments)
    assert wrong.exit_code == 2
    assert said in wrong.stderr


def test_the_quality_of_a_run_stands_in_every_output(folder: Path) -> None:
    quality = json.loads(call("run", "small.yaml", "--json", "--require-quality").stdout)["quality"]
    assert quality["verdict"] == "good"
    assert json.loads(call("show", "runs/small-1", "--json").stdout)["quality"] == quality
    assert json.loads((folder / "runs/small-1/run_state.json").read_text())["quality"] == quality
    assert "\nquality good\n" in call("show", "runs/small-1", "--require-quality").stdout


def test_a_run_that_is_not_good_ends_the_command_where_quality_is_required(folder: Path) -> None:
    silent = ["--set", "mind={kind: scripted, turns: []}", "--require-quality"]
    done = call("run", "small.yaml", *silent)
    assert done.exit_code == 6
    assert "quality bad\n  - " in done.stdout
    assert "people who had turns only looked on" in done.stdout
    assert "the run is bad, and --require-quality was given" in done.stderr
    for command in (("show", "runs/small-1"), ("resume", "runs/small-1"), ("resume", "runs/small-1", "--json")):
        assert [call(*command, "--require-quality").exit_code, call(*command).exit_code] == [6, 0]
