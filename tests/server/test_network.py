"""The network of people over HTTP: the picture as of a round, and one person explained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.runs import RunDirectory
from shoal.runs.reports import open_world
from tests.runs.harness import start
from tests.server.conftest import SCENARIO, RunningServer, Serve

CLAIM = {
    **SCENARIO,
    "claims": [{"id": "closing", "text": "The bridge will be closed", "truth": False}],
    "population": [{"count": 30, "activity": 0.9}],
    "worlds": {"twitter": None},
    "events": [{"post": "They close it!", "by": "most_followed", "supports": "closing"}],
}


def read(server: RunningServer, path: str) -> dict[str, Any]:
    answered = server.get(path)
    assert answered.status == 200, answered.body
    data: dict[str, Any] = answered.json["data"]
    return data


@pytest.fixture
def claimed(tmp_path: Path) -> str:
    """The id of a complete run with a claim."""
    start(CLAIM, tmp_path / "runs" / "claimed")
    return "claimed"


def test_everybody_is_drawn_with_the_ties_of_the_database(serve: Serve, finished: str) -> None:
    server = serve()
    picture = read(server, f"{finished}/network?world=twitter")
    assert picture["people_total"] == len(picture["people"]["id"]) == 12
    assert picture["note"] == ""
    with open_world(RunDirectory.open(server.folder / finished), "twitter") as database:
        assert database is not None
        follows = set(database.execute("SELECT follower_id, followee_id FROM follow"))
    ties = picture["ties"]
    held = [at for at, until in enumerate(ties["until"]) if until is None]
    assert {(ties["source"][at], ties["target"][at]) for at in held} == follows
    places = zip(picture["people"]["x"], picture["people"]["y"], strict=True)
    assert len({place for place in places if 0 <= place[0] <= 1 and 0 <= place[1] <= 1}) == 12


def test_places_stay_the_same_over_the_rounds_and_opinions_do_not(serve: Serve, claimed: str) -> None:
    server = serve()
    early, late = (read(server, f"{claimed}/network?claim=closing&round={round}") for round in (1, 6))
    assert early["people"] == late["people"]
    assert early["state"]["opinion"] != late["state"]["opinion"]
    again = read(serve(), f"{claimed}/network?claim=closing&round=1")
    assert again == early


def test_opinions_are_those_that_the_run_recorded(serve: Serve, finished: str) -> None:
    server = serve()
    picture = read(server, f"{finished}/network?world=reddit&round=3&only_state=true")
    assert picture["people"] is None
    assert picture["about"] == "topic"
    with open_world(RunDirectory.open(server.folder / finished), "reddit") as database:
        assert database is not None
        rows = database.execute("SELECT value FROM opinion WHERE round = 3 AND about = 'topic' ORDER BY agent_id")
        assert picture["state"]["opinion"] == pytest.approx([value for (value,) in rows], abs=0.001)


def test_the_path_of_a_claim_grows_from_its_first_author(serve: Serve, claimed: str) -> None:
    server = serve()
    picture = read(server, f"{claimed}/network?claim=closing")
    assert picture["about"] == "closing"
    assert picture["subjects"][0]["text"] == "The bridge will be closed"
    paths = [len(read(server, f"{claimed}/network?claim=closing&round={round}")["state"]["path"]) for round in range(7)]
    assert paths == sorted(paths)
    first = picture["state"]["part"].index(2)
    assert first >= 0
    starters = [
        read(server, f"{claimed}/network/{agent}?claim=closing")
        for agent, part in enumerate(picture["state"]["part"])
        if part == 2
    ]
    began = [person for person in starters if person["part"]["role"] == "began"]
    assert len(began) == 1
    assert began[0]["text"].startswith("Started it. ")
    assert began[0]["followers"] == max(picture["state"]["followers"])


def test_who_moved_whom_is_told_from_both_sides(serve: Serve, claimed: str) -> None:
    server = serve()
    state = read(server, f"{claimed}/network")["state"]
    assert state["moves"]
    author, agent, amount = state["moves"][0]
    mover, moved = (read(server, f"{claimed}/network/{who}") for who in (author, agent))
    assert any(one["agent"] == agent and one["amount"] * amount > 0 for one in mover["moved"])
    assert any(one["agent"] == author for one in moved["moved_by"])
    assert mover["moved_total"] == pytest.approx(state["influence"][author], abs=0.002)


def test_a_sample_says_that_it_is_one(serve: Serve, claimed: str) -> None:
    server = serve()
    picture = read(server, f"{claimed}/network?max_nodes=10")
    assert len(picture["people"]["id"]) == len(picture["state"]["opinion"]) == 10
    assert picture["people_total"] == 30
    assert picture["note"] == "10 of 30 people: the 5 with most ties, and 5 drawn at random."
    positions = [*picture["ties"]["source"], *picture["ties"]["target"]]
    assert max(positions) < 10
    assert read(server, f"{claimed}/network?max_nodes=10&round=2")["people"] == picture["people"]


def test_rooms_and_conversations_have_networks_of_who_speaks_with_whom(serve: Serve, tmp_path: Path) -> None:
    worlds = {"room": None, "dialogue": {"kind": "dialogue"}}
    start({**SCENARIO, "worlds": worlds}, tmp_path / "runs" / "talk")
    server = serve()
    room = read(server, "talk/network?world=room")
    assert room["tie"] == "talk"
    assert sum(room["ties"]["times"]) > 0
    pairs = read(server, "talk/network?world=dialogue")
    assert pairs["tie"] == "pair"
    assert sorted([*pairs["ties"]["source"], *pairs["ties"]["target"]]) == list(range(12))


def test_what_does_not_exist_is_answered_with_what_is_wrong(serve: Serve, finished: str) -> None:
    server = serve()
    assert server.get("nobody/network").status == 404
    assert server.get(f"{finished}/network/12").status == 404
    for query in ("world=mars", "claim=moon", "round=-1", "max_nodes=0"):
        refused = server.get(f"{finished}/network?{query}")
        assert (refused.status, refused.json["field"]) == (400, query.partition("=")[0])


def test_a_run_that_has_not_begun_has_an_empty_network(serve: Serve) -> None:
    server = serve()
    run = server.post("create", {"scenario": SCENARIO}).json["data"]["simulation_id"]
    picture = read(server, f"{run}/network")
    assert picture["people"]["id"] == []
    assert picture["subjects"] == []
