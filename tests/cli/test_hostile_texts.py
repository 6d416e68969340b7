"""Texts of agents, servers, files and command lines never take over the terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from shoal.cli.main import COMMANDS, cli
from shoal.cli.views.output import Output
from tests.cli.terminal import call, shoal

#: A title, a colour, a cleared screen, C1 controls, a reversed text, a zero byte, and a carriage return.
HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x1b[2J\x9b2J\u202egnp.exe\u2066x\0y\rz\x7f"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
MIND = """\
from shoal import Action, Decision, Mind

class Hostile(Mind):
    def decide(self, observation):
        if observation.agent == 1 and observation.round == 2:
            raise ValueError({hostile!r})
        kind = {hostile!r} if observation.agent == 2 else "CREATE_POST"
        return Decision((Action(kind, {{"content": f"{{observation.round}}" + {hostile!r}}}),))
"""


@pytest.fixture
def hostile_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a run in which everything that a user or a mind can name is hostile."""
    (folder / "hostile.py").write_text(MIND.format(hostile=HOSTILE))
    monkeypatch.syspath_prepend(str(folder))
    names = ["Ada", "Bo", "Cy"]
    scenario = {
        "name": "hostile",
        "topic": f"the bridge {HOSTILE}",
        "rounds": 3,
        "population": [
            {"name": name, "bio": HOSTILE, "persona": f"A {HOSTILE} person.", "age": 40, "activity": 1.0}
            for name in names
        ],
        "time": {"daily_rhythm": False},
        "worlds": ["twitter"],
        "mind": {"kind": "hostile:Hostile"},
        "events": [{"post": f"News: {HOSTILE}", "by": 0}, {"broadcast": HOSTILE, "round": 2}],
    }
    (folder / "hostile.yaml").write_text(json.dumps(scenario))
    return "runs/hostile-1"


def list_calls(run: str) -> dict[str, list[list[str]]]:
    """Return calls of each command that print what it can print."""
    sql = "select * from post"
    return {
        "init": [["init", f"x/{HOSTILE}".replace("\0", "")]],
        "validate": [["validate", "hostile.yaml"], ["validate", "broken.yaml"], ["validate", "no\x1b[2Jfile.yaml"]],
        "import": [["import", "people.csv", "--dry-run"], ["import", "no\x1b[2J.csv"]],
        "plan": [["plan", "hostile.yaml"]],
        "doctor": [["doctor", "\x1b[2J"]],
        "tune": [["tune", "\x1b[2J"]],
        "limits": [["limits", "--once"], ["limits", "--json"], ["limits", "--forget"]],
        "run": [["run", "hostile.yaml"], ["run", "hostile.yaml", "--set", "\x1b[2J=1"]],
        "resume": [["resume", run], ["resume", run, "--rounds", "5"], ["resume", "no\x1b[2J"]],
        "replay": [["replay", run]],
        "fork": [["fork", run, "--at", "2", "--set", "\x1b[2J=1"]],
        "show": [["show", run], ["show", run, "--json"]],
        "query": [["query", run, sql], ["query", run, sql, "--json"], ["query", run, "select '\x1b[2J' bad \x9b"]],
        "list": [["list"], ["list", "--json"], ["list", "\x1b[2J"]],
        "explain": [["explain", run, "1", "2"], ["explain", run, "2", "2", "--json"], ["explain", run, "\x1b[2J", "1"]],
        "diff": [["diff", run, "runs/hostile-2"], ["diff", run, "runs/hostile-2", "--json"]],
        "ask": [["ask", run, f"What {HOSTILE}?".replace("\0", "")], ["ask", run, "x", "--who", "\x1b[2J"]],
        "interview": [["interview", run, "\x1b[2J", "hello"], ["interview", "no\x1b[2J", "Ada", "hello"]],
        "seat": [["seat", run, "Ada"], ["seat", run, "\x1b[2J"], ["seat", "no\x1b[2J", "Ada"]],
        "watch": [["watch", run], ["watch", "no\x1b[2J"]],
        "stop": [["stop", run], ["stop", "no\x1b[2J"]],
        "serve": [["serve", "--host", "\x1b[2J"], ["serve", "--\x1b[2J"]],
        "prepare": [["prepare", "What \x1b[2J?", "people.csv"], ["prepare", "What?", "no\x1b[2J.md"]],
        "bundle": [["bundle", run], ["bundle", run, "--out", "c\x1b[2Jb"], ["bundle", "no\x1b[2J"]],
        "graph": [["graph", run], ["graph", run, "What of \x1b[2J?"], ["graph", run, "Ada", "--json"]],
        "report": [["report", run], ["report", run, "--json"], ["report", "no\x1b[2J"]],
        "metrics": [["metrics", run], ["metrics", run, "--json"], ["metrics", run, "\x1b[2J"]],
        "compare": [["compare", run, "runs/hostile-2"], ["compare", run, "no\x1b[2J"]],
        "experiment": [["experiment", "hostile.yaml"], ["experiment", "study.yaml"], ["experiment", "no\x1b[2J"]],
        "judge": [["judge", "results/hostile"], ["judge", "no\x1b[2J"]],
        "batch": [["batch", "hostile.yaml", "no\x1b[2J.csv"], ["batch", "hostile.yaml", "people.csv"]],
        "check": [["check", "\x1b[2J"], ["check", "--list"]],
        "export": [["export", run], ["export", run, "--out", "a\x1b[2Jb", "--json"], ["export", run]],
        "plot": [["plot", run], ["plot", run, "--out", "a\x1b[2Jb", "--json"], ["plot", "no\x1b[2J"]],
        "model": [["model", "list"], ["model", "get", "\x1b[2J"], ["model", "remove", "\x1b[2J"]],
        "rehearse": [["rehearse", "--\x1b[2J"]],
    }


def test_no_command_prints_control_characters(folder: Path, hostile_run: str) -> None:
    (folder / "broken.yaml").write_text(json.dumps({"rounds": HOSTILE, HOSTILE: 1}))
    (folder / "people.csv").write_text(f"name,bio\nAda,{HOSTILE}\n".replace("\0", "").replace("\r", ""))
    calls = list_calls(hostile_run)
    assert set(calls) == set(COMMANDS)
    assert call("run", "hostile.yaml", "--json").exit_code == 0
    assert call("run", "hostile.yaml", "--seed", "2", "--json").exit_code == 0
    for command in calls.values():
        for args in command:
            # In colour, as on a terminal: a colour of ours may be there, and nothing else.
            result = CliRunner().invoke(cli, args, prog_name="shoal", color=True)
            ours = re.sub(r"\x1b\[[0-9;]*m", "", result.output) if args[-1] != "--json" else result.output
            assert not CONTROLS.search(ours), (args, CONTROLS.search(ours), result.output)
            assert "\x1b[31mred" not in result.output, args
            assert result.exit_code in (0, 1, 2, 3), (args, result.output)


def test_json_is_the_same_value(hostile_run: str) -> None:
    call("run", "hostile.yaml")
    shown = call("query", hostile_run, "select content from post where user_id = 0", "--json").output
    assert not CONTROLS.search(shown)
    assert HOSTILE in json.loads(shown)[0]["content"]


def test_bytes_that_are_no_text_can_be_given_on_the_command_line(folder: Path) -> None:
    for args in (["show", "no\udcff"], ["\udcff"], ["run", "small.yaml", "--set", "topic=\udcff"]):
        done = shoal(*args, cwd=folder)
        assert done.returncode in (0, 2, 3), done.stderr
        assert "internal error" not in done.stderr


def test_what_a_table_shows_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    Output().print(f"one\ntwo {HOSTILE}")
    assert capsys.readouterr().out.startswith("one\ntwo ")
