"""What pages do with runs: make them of texts and examples, fork them, put them away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.runs.directory import RunDirectory
from tests.runs.harness import go_on, start
from tests.server.conftest import SCENARIO, RunningServer, Serve

TEXT = """name: typed
population: {count: 5}
rounds: 3
worlds: [twitter]
"""


def list_actions(folder: Path, world: str, rounds: range) -> list[tuple[int, int, str]]:
    events = RunDirectory(folder).open_stream(world).read_actions()
    return [(event.round, event.agent_id, event.action_type) for event in events if event.round in rounds]


# texts


def test_a_run_is_made_of_the_text_of_a_scenario(serve: Serve) -> None:
    server = serve()
    made = server.post("create", {"text": TEXT})
    assert made.status == 200, made.body
    card = server.get(f"{made.json['data']['simulation_id']}/overview").json["data"]
    assert (card["name"], card["people"], card["rounds"]) == ("typed", 5, 3)


def test_a_text_with_mistakes_is_answered_with_their_lines(serve: Serve) -> None:
    server = serve()
    wrong = TEXT.replace("rounds: 3", "rounds: many") + "speling: 1\n"
    found = server.post("check", {"text": wrong}).json["data"]
    assert [(problem["path"], problem["line"]) for problem in found] == [("rounds", 3), ("speling", 5)]
    assert "whole number" in found[0]["text"]
    refused = server.post("create", {"text": wrong})
    assert refused.status == 400
    assert "line 3: rounds:" in refused.json["error"]
    assert not server.folder.exists()


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("", 1, "a mapping"),
        ("- 1\n- 2", 1, "a mapping"),
        ("population: {count: 5}\nevents: [", 2, ""),
        ("population:\n  - {file: /etc/passwd}", 2, "cannot name files"),
        ("population: {count: 2}\nmind: {kind: 'os:system'}", 2, "cannot name code"),
        ("population: {count: 2}\nplay: [Ada]", 2, "no terminal"),
    ],
)
def test_what_is_wrong_with_a_text_is_found_in_its_line(serve: Serve, text: str, line: int, why: str) -> None:
    (problem,) = serve().post("check", {"text": text}).json["data"][:1]
    assert problem["line"] == line
    assert why in problem["text"]


def test_every_example_can_be_made_as_it_is(serve: Serve) -> None:
    server = serve()
    examples = server.get("examples").json["data"]
    assert examples[0]["name"] == "rumour"
    for example in examples:
        assert example["title"], example["name"]
        assert server.post("check", {"text": example["text"]}).json["data"] == [], example["name"]


@pytest.mark.parametrize(("of_all", "of_group"), [({"key_variable": "MINE"}, {}), ({}, {"key_variable": "MINE"})])
def test_an_address_that_is_sent_for_a_group_gets_no_key(
    serve: Serve, of_all: dict[str, str], of_group: dict[str, str]
) -> None:
    server = serve(key_variables=frozenset({"MINE"}))
    group = {"count": 2, "mind": {"model": "y", "base_url": "http://evil.example", **of_group}}
    mind = {"kind": "language", "model": "x", **of_all}
    answer = server.post("create", {"scenario": {**SCENARIO, "population": [group], "mind": mind}})
    assert answer.status == 400
    assert "gets no key of this machine" in answer.json["error"]


# forks


def fork(server: RunningServer, run: str, **request: Any) -> Any:
    answer = server.post("fork", {"simulation_id": run, **request})
    assert answer.status == 200, answer.body
    return answer.json["data"]["simulation_id"]


def test_a_fork_shares_its_past_and_knows_where_it_branches_off(serve: Serve, finished: str) -> None:
    server = serve()
    made = fork(server, finished, at=3, set={"mind.persuasion": 0.9}, name="What if: persuasive?")
    assert made == "What-if-persuasive"
    card = server.get(f"{made}/overview").json["data"]
    assert card["parent"] == {"id": finished, "round": 3}
    assert card["status"] == "idle"
    server.get("overview")
    marks = server.get(f"{finished}/overview").json["data"]["marks"]
    assert {"round": 3, "kind": "fork", "text": f"{made} branches off", "run_id": made} in marks
    go_on(RunDirectory(server.folder / made))
    for world in ("twitter", "reddit"):
        before = list_actions(server.folder / finished, world, range(3))
        assert list_actions(server.folder / made, world, range(3)) == before


def test_a_person_who_is_taken_out_does_nothing_more_and_the_others_live_on(serve: Serve, finished: str) -> None:
    server = serve()
    made = fork(server, finished, at=3, without=[4])
    work = RunDirectory(server.folder / made)
    go_on(work)
    for world in ("twitter", "reddit"):
        past = list_actions(work.path, world, range(3))
        assert past == list_actions(server.folder / finished, world, range(3))
        later = list_actions(work.path, world, range(3, 7))
        assert later
        assert 4 not in {agent for _, agent, _ in later}


def test_events_of_a_fork_happen_in_it_only(serve: Serve, finished: str) -> None:
    server = serve()
    made = fork(server, finished, at=2, events=[{"broadcast": "Look out.", "round": 4}])
    assert "broadcast: Look out." in [mark["text"] for mark in server.get(f"{made}/overview").json["data"]["marks"]]
    marks = server.get(f"{finished}/overview").json["data"]["marks"]
    assert "broadcast: Look out." not in [mark["text"] for mark in marks]


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ({"at": 99, "set": {"rounds": 200}}, "not a round of this run"),
        ({"at": -1}, "at"),
        ({"at": 2, "set": {"mind.persuasian": 1}}, "persuasion"),
        ({"at": 2, "set": {"population": [{"file": "/etc/passwd"}]}}, "cannot name files"),
        ({"at": 0, "set": {"population.0.file": "/etc/passwd"}}, "cannot name files"),
        ({"at": 0, "set": {"mind.kind": "os:system"}}, "cannot name code"),
        ({"at": 0, "set": {"variables": ["os:getcwd"]}}, "cannot name code"),
        ({"at": 2, "set": {"population.0.count": 3}}, "cannot change in the middle"),
        ({"at": 2, "events": [{"post": "x", "by": "Nobody Here"}]}, "Nobody Here"),
        ({"at": 2, "without": [12]}, "12"),
        ({"at": 2, "without": "everybody"}, "without"),
        ({"at": 2, "name": ""}, "name"),
    ],
)
def test_a_fork_that_cannot_be_is_refused(serve: Serve, finished: str, request_: dict[str, Any], why: str) -> None:
    server = serve()
    answer = server.post("fork", {"simulation_id": finished, **request_})
    assert answer.status == 400, answer.body
    assert why in answer.json["error"]
    assert [path.name for path in server.folder.iterdir()] == [finished]


def test_an_address_that_is_sent_with_a_fork_gets_no_key(serve: Serve, tmp_path: Path) -> None:
    server = serve(key_variables=frozenset({"MINE"}))
    mind = {"kind": "language", "model": "x", "key_variable": "MINE"}
    made = server.post("create", {"scenario": {**SCENARIO, "mind": mind}}).json["data"]["simulation_id"]
    answer = server.post("fork", {"simulation_id": made, "at": 0, "set": {"mind.base_url": "http://evil.example"}})
    assert answer.status == 400
    assert "gets no key of this machine" in answer.json["error"]


# put away


def test_an_archived_run_is_listed_apart_and_comes_back(serve: Serve, finished: str) -> None:
    server = serve()
    assert server.post("archive", {"simulation_id": finished}).status == 200
    assert server.get("overview").json["data"]["items"] == []
    (card,) = server.get("overview?archived=true").json["data"]["items"]
    assert (card["simulation_id"], card["archived"]) == (finished, True)
    assert server.get(f"{finished}/figures").status == 200
    server.post("archive", {"simulation_id": finished, "archived": False})
    assert server.get("overview").json["data"]["total"] == 1


def test_a_run_that_goes_on_is_not_archived(serve: Serve, tmp_path: Path) -> None:
    start({**SCENARIO, "rounds": 1}, tmp_path / "runs" / "held")
    server = serve()
    with RunDirectory(server.folder / "held").lock():
        answer = server.post("archive", {"simulation_id": "held"})
    assert answer.status == 409
    assert server.get("overview").json["data"]["total"] == 1


def test_the_family_of_a_run_is_listed_each_parent_first(serve: Serve, tmp_path: Path, finished: str) -> None:
    server = serve()
    first = server.post("fork", {"simulation_id": finished, "at": 2, "set": {"mind.persuasion": 0.5}}).json["data"]
    go_on(RunDirectory.open(tmp_path / "runs" / first["simulation_id"]))
    body = {"simulation_id": first["simulation_id"], "at": 1, "name": "again", "set": {"mind.persuasion": 0.7}}
    second = server.post("fork", body).json["data"]
    ids = [finished, first["simulation_id"], second["simulation_id"]]
    for name in ids:
        found = server.get(f"lineage?of={name}").json["data"]
        assert [card["simulation_id"] for card in found] == ids
    assert [card["parent"] and card["parent"]["round"] for card in found] == [None, 2, 1]
    assert server.get("lineage?of=nobody").status == 404
    assert server.get("lineage").status == 400
