"""Asking the graph memory of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import shoal
from tests.cli.terminal import call
from tests.formats.test_graphml import parse_file
from tests.sinks.bolt_server import serve_bolt

TOWN = """\
name: town
topic: the old bridge
rounds: 3
population: [{name: Ada Lund, activity: 1}, {name: Ben Okafor, activity: 1}]
worlds: [twitter]
claims: [{id: closing, text: the old bridge closes}]
mind:
  kind: scripted
  turns:
    - round: 2
      agent: Ada Lund
      action: CREATE_POST
      args: {content: "It closes! \\u001b[31m", claim: closing, lean: 1.0}
    - {round: 3, agent: Ben Okafor, action: FOLLOW, args: {followee_id: 0}}
"""


def start(folder: Path) -> None:
    (folder / "town.yaml").write_text(TOWN)
    result = call("run", "town.yaml", "--quiet", "--out", "town")
    assert result.exit_code == 0, result.stderr


def ask(*args: str) -> dict[str, Any]:
    result = call("graph", "town", *args, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_question_is_answered_with_facts_and_their_episodes(folder: Path) -> None:
    start(folder)
    answer = ask("What does Ada think about closing?")
    assert [fact["sentence"] for fact in answer["facts"]] == ["Ada Lund supports “the old bridge closes” since round 2"]
    assert answer["episodes"][0]["event"] == "twitter-2-0-0"
    shown = call("graph", "town", "What does Ada think about closing?").stdout
    assert "Ada Lund supports" in shown
    assert "\x1b" not in shown


def test_without_a_question_it_says_what_there_is(folder: Path) -> None:
    start(folder)
    overview = ask()
    assert (overview["episodes"], overview["relations"]["FOLLOWS"]) == (2, 1)
    assert "person" in call("graph", "town").stdout


def test_the_graph_is_written_as_graphml(folder: Path) -> None:
    start(folder)
    assert ask("--export", "graph.graphml") == {"file": "graph.graphml", "facts": 3}
    nodes, _ = parse_file(folder / "graph.graphml")
    assert any("Ada Lund" in node.values() for node in nodes.values())


def test_what_nobody_spoke_of_is_said_to_be_unknown(folder: Path) -> None:
    start(folder)
    result = call("graph", "town", "penguins")
    assert result.exit_code == 0
    assert "knows nothing about this" in result.stdout


def test_a_missing_run_is_an_error_without_a_file(folder: Path) -> None:
    result = call("graph", "nowhere", "x")
    assert result.exit_code == 3
    assert not (folder / "nowhere").exists()


def test_python_asks_the_same_graph(folder: Path) -> None:
    start(folder)
    answer = shoal.open("town").ask_graph("Ada and Ben")
    assert answer.people == ("Ada Lund", "Ben Okafor")
    assert [fact.sentence for fact in answer.facts] == ["Ben Okafor follows “Ada Lund” since round 3"]


def test_a_run_that_has_ended_is_copied_to_a_server_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(folder)
    with serve_bolt("secret") as server:
        monkeypatch.setenv("NEO4J_URI", server.address)
        monkeypatch.setenv("NEO4J_PASSWORD", "secret")
        assert call("graph", "town", "--to", "neo4j").stdout == "neo4j: 2 new episodes\n"
        assert json.loads(call("graph", "town", "--to", "neo4j", "--json").stdout) == {"sink": "neo4j", "episodes": 0}
        assert {each.kind for each in server.graph.relationships} == {"POSTED", "SUPPORTS", "FOLLOWS"}


def test_a_server_that_cannot_be_reached_is_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(folder)
    monkeypatch.setenv("NEO4J_URI", "bolt://127.0.0.1:9")
    result = call("graph", "town", "--to", "neo4j")
    assert result.exit_code == 1
    assert "bolt://127.0.0.1:9" in result.stderr
    assert "Traceback" not in result.stderr
    assert "set ZEP_API_KEY" in call("graph", "town", "--to", "zep").stderr
