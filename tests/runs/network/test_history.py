"""The network of a run that goes on is read on, and is then the same as one that is read at once."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shoal.runs import RunDirectory, create_run
from shoal.runs.network import NetworkHistory, PictureRequest, draw_network, explain_person
from shoal.scenario import validate
from tests.runs.harness import go_on, start, stop_after

SCENARIO: dict[str, Any] = {
    "topic": "the old bridge",
    "claims": [{"id": "closing", "text": "It closes", "truth": False}],
    "population": [{"count": 40, "activity": 0.9}],
    "rounds": 5,
    "seed": 3,
    "time": {"daily_rhythm": False},
    "events": [{"post": "They close it!", "by": "most_followed", "supports": "closing"}],
}


@pytest.mark.parametrize("world", ["twitter", "reddit", "room", "dialogue"])
def test_a_network_that_is_read_on_is_that_of_the_whole_run(world: str, tmp_path: Path) -> None:
    events = SCENARIO["events"] if world in ("twitter", "reddit") else []
    scenario = validate({**SCENARIO, "rounds": 12, "worlds": {world: None}, "events": events})
    run = create_run(scenario, tmp_path / "run")
    stop_after(run, 5)
    read_on = NetworkHistory(run, world)
    read_on.refresh()
    early = draw_network(read_on, PictureRequest())
    assert 5 <= early.last_round < 12
    go_on(run)
    read_on.refresh()
    whole = NetworkHistory(RunDirectory.open(tmp_path / "run"), world)
    whole.refresh()
    assert read_on.moves == whole.moves
    assert len(whole.moves) > 0
    assert read_on.list_ties() == whole.list_ties()
    state = PictureRequest(is_state_only=True)
    assert draw_network(read_on, state) == draw_network(whole, state)
    then = draw_network(whole, PictureRequest(round=early.last_round, is_state_only=True))
    assert then.state == early.state


@pytest.mark.parametrize("world", ["twitter", "reddit", "room", "dialogue"])
def test_a_network_that_is_read_in_parts_shows_everybody_at_once_and_becomes_the_whole(
    world: str, tmp_path: Path
) -> None:
    events = SCENARIO["events"] if world in ("twitter", "reddit") else []
    start({**SCENARIO, "rounds": 12, "worlds": {world: None}, "events": events}, tmp_path / "run")
    run = RunDirectory.open(tmp_path / "run")
    whole, parts = NetworkHistory(run, world), NetworkHistory(run, world)
    whole.refresh()
    parts.refresh(1)
    first, complete = draw_network(parts, PictureRequest()), draw_network(whole, PictureRequest())
    assert first.counted_until < first.last_round == complete.last_round == complete.counted_until
    assert first.people is not None
    assert complete.people is not None
    assert first.people.name == complete.people.name
    assert first.state.opinion == complete.state.opinion
    if world in ("twitter", "reddit"):
        assert first.ties == complete.ties
    looks = 1
    while parts.counted_until < parts.last_round:
        parts.refresh(1)
        looks += 1
    assert looks > 5
    assert parts.moves == whole.moves
    assert draw_network(parts, PictureRequest(is_state_only=True)) == draw_network(
        whole, PictureRequest(is_state_only=True)
    )
    assert [parts.trace(one.id) for one in parts.list_subjects()] == [
        whole.trace(one.id) for one in whole.list_subjects()
    ]


def test_a_network_that_was_read_before_its_people_were_there_has_them_later(tmp_path: Path) -> None:
    start({**SCENARIO, "rounds": 2}, tmp_path / "run")
    run = RunDirectory.open(tmp_path / "run")
    database = run.path / "twitter_simulation.db"
    whole = database.read_bytes()
    with closing(sqlite3.connect(database)) as connection, connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            connection.execute(f'DELETE FROM "{table}"')
    history = NetworkHistory(run, "twitter")
    history.refresh()
    database.write_bytes(whole)
    history.refresh()
    assert len(history.names) == 40
    picture = draw_network(history, PictureRequest())
    assert picture.people is not None
    assert len(picture.people.id) == 40


def test_who_stopped_following_is_tied_up_to_then(tmp_path: Path) -> None:
    start({**SCENARIO, "rounds": 40, "worlds": {"twitter": None}}, tmp_path / "run")
    history = NetworkHistory(RunDirectory.open(tmp_path / "run"), "twitter")
    history.refresh()
    events = list(RunDirectory.open(tmp_path / "run").open_stream("twitter").read_actions())
    left = [event for event in events if event.action_type == "UNFOLLOW" and event.success]
    joined = [event for event in events if event.action_type == "FOLLOW" and event.success]
    assert joined
    until = {(tie.one, tie.other, tie.until) for tie in history.contacts.past_ties}
    assert until == {(event.agent_id, event.action_args["followee_id"], event.round) for event in left}
    since = {(tie.one, tie.other): tie.since for tie in history.list_ties()}
    first = joined[0]
    assert since[first.agent_id, first.action_args["followee_id"]] == first.round


def test_an_explanation_speaks_of_the_round_that_it_is_asked_for(tmp_path: Path) -> None:
    start({**SCENARIO, "rounds": 20, "worlds": {"twitter": None}}, tmp_path / "run")
    history = NetworkHistory(RunDirectory.open(tmp_path / "run"), "twitter")
    history.refresh()
    starter = history.trace("closing").steps[0].agent
    before, after = (explain_person(history, starter, round, "closing") for round in (0, 20))
    assert before.part is not None
    assert after.part is not None
    assert before.text.startswith("Started it. Nobody took it up from there.")
    assert (before.part.reached, before.moved_total) == (0, 0.0)
    assert after.part.reached >= after.part.passed_on > 0
    assert after.moved_total > 0
