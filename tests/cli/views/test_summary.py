"""The summary of rooms, conversations, own worlds, interventions and measurements."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import call

ROOM = """\
name: room
topic: the old bridge
rounds: 6
population: [{name: Ada}, {name: Ben}, {name: Cid}]
worlds: {room: {relations: [{between: [Ada, Ben], relation: sisters}]}}
time: {minutes_per_round: 60}
events: [{skip: 2 days, round: 3}]
interventions:
  - {when: round >= 1, do: {hear: A bell rings.}, name: the bell, times: 2, pause: 2}
mind:
  kind: scripted
  turns:
    - {round: 1, agent: Ada, action: TALK, args: {content: Hello all.}}
    - {round: 2, agent: Ada, action: TALK, args: {content: A word with you., target: Ben}}
    - {round: 3, agent: Ada, action: TALK, args: {content: And another., target: Ben}}
    - {round: 4, agent: Ben, action: TALK, args: {content: "Yes,   sister?", target: Ada}}
    - {round: 4, agent: Cid, action: RELATE, args: {target: Ada, relation: friends}}
    - {round: 2, agent: Cid, action: ATTEND, args: {content: the window}}
    - {round: 5, agent: Cid, action: ATTEND, args: {content: the bridge}}
    - {round: 5, agent: Ben, action: ATTEND, args: {content: the bridge}}
"""
TALKS = """\
name: talks
topic: the old bridge
population: [{name: Ada}, {name: Ben}, {name: Cid}, {name: Dan}]
worlds: {dialogue: {turns: 2}}
mind:
  kind: scripted
  latency: {median_ms: 5, sigma: 0}
  turns:
    - {round: 1, agent: Ada, action: SAY, args: {content: I am all for it., opinion: 1}}
    - {round: 2, agent: Ben, action: SAY, args: {content: So am I., opinion: 1}}
    - {round: 3, agent: Ada, action: RATE, args: {score: 10}}
    - {round: 3, agent: Ben, action: RATE, args: {score: 9}}
    - {round: 1, agent: Cid, action: SAY, args: {content: I am against it., opinion: -1}}
    - {round: 2, agent: Dan, action: LEAVE}
    - {round: 3, agent: Cid, action: RATE, args: {score: 1}}
    - {round: 3, agent: Dan, action: RATE, args: {score: 2}}
"""
POT = """\
name: pot
rounds: 5
population: {count: 4}
worlds: {pot: {kind: "tests.contracts.own:Pot"}}
"""


@pytest.fixture
def runs(folder: Path) -> Path:
    for name, text in (("room", ROOM), ("talks", TALKS), ("pot", POT)):
        (folder / f"{name}.yaml").write_text(text)
    return folder / "runs"


def run_and_show(name: str) -> tuple[str, dict[str, Any]]:
    """Run a scenario; return the printed summary and the one in JSON."""
    file = Path(name if "." in name else f"{name}.yaml")
    run = call("run", str(file))
    assert run.exit_code == 0, run.output
    return run.stdout, json.loads(call("show", f"runs/{file.stem}-1", "--json").stdout)


def test_a_room_is_summarised_with_talkers_relations_and_last_remarks(runs: Path) -> None:
    words, summary = run_and_show("room")
    room = summary["worlds"][0]["room"]
    assert [(who["name"], who["remarks"]) for who in room["talkers"]] == [("Ada", 3), ("Ben", 1)]
    assert room["talkers"][0]["hearers"] == pytest.approx(4 / 3)
    assert [(each["speaker"], each["target"], each["remarks"]) for each in room["addresses"]] == [
        ("Ada", "Ben", 2),
        ("Ben", "Ada", 1),
    ]
    assert room["bonds"] == [{"first": "Cid", "second": "Ada", "relation": "friends", "round": 4}]
    assert room["attention"] == [{"content": "the bridge", "people": 2}]
    assert [(each["speaker"], each["target"]) for each in room["last"]][-2:] == [("Ada", "Ben"), ("Ben", "Ada")]
    for line in ("talked most      Ada 3, Ben 1", "Ada to Ben 2, Ben to Ada 1", "Cid and Ada: friends",
                 "the bridge 2", "Ben to Ada: Yes, sister?"):  # fmt: skip
        assert line in words


def test_interventions_and_skipped_time_are_shown(runs: Path) -> None:
    words, summary = run_and_show("room")
    world = summary["worlds"][0]
    assert world["interventions"] == [{"name": "the bell", "rounds": [2, 5]}]
    assert "the bell  in rounds 2, 5" in words
    assert world["simulated_hours"] == 54.0


def test_what_a_platform_dates_is_put_into_its_round_however_much_time_was_skipped(runs: Path) -> None:
    posts = [{"round": n, "agent": "Ada", "action": "CREATE_POST", "args": {"content": f"post {n}"}} for n in (2, 3, 5)]
    scenario = {
        "rounds": 6,
        "topic": "post",
        "population": [{"name": "Ada", "activity": 1, "active_hours": "0-23"}],
        "time": {"daily_rhythm": False},
        "worlds": ["reddit"],
        "mind": {"kind": "scripted", "turns": posts},
        "events": [{"skip": "2 days", "round": 3}, {"skip": 45, "round": 5}],
    }
    (runs.parent / "skips.json").write_text(json.dumps({"name": "skips", **scenario}))
    _, summary = run_and_show("skips.json")
    world = summary["worlds"][0]
    assert sorted(post["round"] for post in world["top_posts"]) == [2, 3, 5]
    assert world["talk"]["posts_by_round"] == [0, 0, 1, 1, 0, 1, 0]
    assert world["busiest_at"] == "2026-01-01T08:00:00+00:00"


def test_conversations_say_how_they_ended_and_which_went_best_and_worst(runs: Path) -> None:
    words, summary = run_and_show("talks")
    talks = summary["worlds"][0]["conversations"]
    assert (talks["pairs"], talks["finished"], talks["scenes"]) == (2, 2, 1)
    assert {each["reason"]: each["scenes"] for each in talks["endings"]} == {"left": 1, "turns": 1}
    assert (talks["mean_score"], talks["mean_agreement"], talks["mean_turns"]) == (5.5, 1.0, 2.0)
    assert [(pair["first"], pair["second"], pair["score"]) for pair in talks["highest"]] == [("Ada", "Ben", 9.5)]
    assert [(pair["first"], pair["second"], pair["score"]) for pair in talks["lowest"]] == [("Cid", "Dan", 1.5)]
    assert [line["text"] for line in talks["highest"][0]["last"]] == ["I am all for it.", "So am I."]
    for line in ("2 of 2 conversations finished", "somebody left 1", "5.5 of 10", "Cid and Dan  1.5"):
        assert line in words


def test_an_own_world_is_summarised_with_kinds_and_most_active_people(runs: Path) -> None:
    words, summary = run_and_show("pot")
    world = summary["worlds"][0]
    assert {"put", "say"} <= {kind["name"] for kind in world["kinds"]}
    assert len(world["active"]) == 4
    assert world["room"] is world["conversations"] is None
    assert "most active" in words


@pytest.mark.parametrize("name", ["room", "talks", "pot"])
def test_the_next_steps_that_are_named_can_be_taken(runs: Path, name: str) -> None:
    lines = call("run", f"{name}.yaml").stdout.splitlines()
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("  shoal ")]
    assert [command[0] for command in commands] == ["show", "replay", "fork", "query"]
    assert [call(*command).exit_code for command in commands] == [0, 0, 0, 0]


def test_what_was_measured_is_shown(runs: Path) -> None:
    words, summary = run_and_show("talks")
    measured = summary["measured"]
    assert (measured["parallel_steps"], measured["sequential_steps"], measured["decisions"]) == (3, 0, 8)
    assert measured["speedup"] > 0
    assert 5 <= measured["latency_ms"]["p50"] < measured["latency_ms"]["max"] + 1
    assert "3 parallel steps, measured speedup" in words
    assert "a decision took" in words


def test_without_metrics_no_times_are_shown(runs: Path) -> None:
    run = call("run", "talks.yaml", "--set", "metrics=false")
    assert "speedup" not in run.stdout
    assert "of work" not in run.stdout
    assert json.loads(call("show", "runs/talks-1", "--json").stdout)["measured"] is None


def test_a_world_that_came_to_its_end_says_so(runs: Path) -> None:
    run = call("run", "room.yaml", "--set", 'events=[{"stop": "closed", "round": 4}]', "--set", "mind.turns=[]")
    assert "4 of 6 rounds, when it came to its end" in run.stdout


def test_a_missing_class_is_reported_by_validate_and_by_run(runs: Path) -> None:
    for command in ("validate", "run"):
        result = call(command, "pot.yaml", "--set", "worlds.pot.kind=nowhere:Pot")
        assert result.exit_code == 2
        assert "worlds.pot.kind: cannot import 'nowhere': No module named 'nowhere'" in result.stderr
    assert not list(runs.glob("*"))
