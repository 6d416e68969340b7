"""People who join and leave a social platform while it runs."""

from __future__ import annotations

from typing import Any

import pytest

import shoal
from shoal.errors import ScenarioInvalid
from shoal.python.person import Person
from shoal.python.run import Run
from shoal.python.world import World

BUSY = {"daily_rhythm": False}
FOLLOWS = "SELECT a.name AS who, b.name AS whom, f.created_at FROM follow f JOIN user a ON a.user_id = f.follower_id JOIN user b ON b.user_id = f.followee_id ORDER BY f.follow_id"  # noqa: E501
MISCOUNTED = """SELECT count(*) FROM user u WHERE
    num_followings != (SELECT count(*) FROM follow WHERE follower_id = u.user_id)
    OR num_followers != (SELECT count(*) FROM follow WHERE followee_id = u.user_id)"""


def net(*people: Person | dict[str, Any], **settings: Any) -> World:
    settings = {"kind": "twitter", "start": "2026-01-01T19:00:00", "minutes_per_round": 1, "topic": "tea", **settings}
    return World("Net", people, **settings)


def ada(**fields: Any) -> Person:
    return Person("Ada", activity=1, **fields)


def ben(**fields: Any) -> Person:
    return Person("Ben", activity=1, **fields)


def rows(run: Run, query: str) -> list[list[Any]]:
    found: list[list[Any]] = run.query(query).to_numpy().tolist()
    return found


def list_rounds(run: Run, name: str) -> set[int]:
    return {event.round for event in run.actions() if event.agent_name == name}


def script(name: str, *turns: tuple[int, str, str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "kind": "scripted",
        "turns": [{"round": round, "agent": who, "action": kind, "args": args} for round, who, kind, args in turns],
    }


@pytest.mark.parametrize("visibility", [1, 2])
def test_who_is_declared_to_join_follows_and_is_followed_from_then_on(visibility: int) -> None:
    people = ada(follows=["Cem"]), ben(), Person("Cem", activity=1, follows=["Ada", "Ben"])
    events = [{"join": ["Cem"], "round": 3}, {"leave": ["Ben"], "round": 5}]
    world = net(*people, events=events, settings={"visibility": visibility})
    run = world.run(6)
    assert list_rounds(run, "Cem") == {3, 4, 5, 6}
    assert list_rounds(run, "Ben") == {1, 2, 3, 4}
    about_cem = sorted(row for row in rows(run, FOLLOWS) if "Cem" in row)
    assert about_cem == [["Ada", "Cem", 3], ["Cem", "Ada", 3], ["Cem", "Ben", 3]]
    assert rows(run, "SELECT name, created_at FROM user ORDER BY user_id") == [["Ada", 0], ["Ben", 0], ["Cem", 3]]
    assert rows(run, "SELECT count(*) FROM trace WHERE action = 'sign_up'") == [[3]]
    assert rows(run, MISCOUNTED) == [[0]]
    assert run.replay().digest == run.digest


@pytest.mark.parametrize("visibility", [1, 2])
def test_people_are_added_to_a_running_platform_and_nothing_before_them_changes(visibility: int) -> None:
    world = net(ada(), ben(), {"count": 10}, follows="scale-free", settings={"visibility": visibility})
    world.post("Tea is served.", round=2)
    world.run(4)
    before = rows(world.results, "SELECT post_id, user_id, content FROM post WHERE created_at <= 4 ORDER BY post_id")
    world.add(Person("Dea", activity=1, follows=["Ada", "Ben"])).run(2)
    world.add(Person("Eva", activity=1, follows=["Dea"])).remove("Ada").run(2)
    run = world.results
    after = rows(run, "SELECT post_id, user_id, content FROM post WHERE created_at <= 4 ORDER BY post_id")
    assert before == after
    assert before
    assert list_rounds(run, "Dea") == {5, 6, 7, 8}
    assert list_rounds(run, "Eva") == {7, 8}
    assert max(list_rounds(run, "Ada")) == 6
    late = [row for row in rows(run, FOLLOWS) if row[0] in ("Dea", "Eva") and row[2] in (5, 7)]
    assert {("Dea", "Ada", 5), ("Dea", "Ben", 5), ("Eva", "Dea", 7)} <= set(map(tuple, late))
    assert rows(run, MISCOUNTED) == [[0]]
    assert rows(run, "SELECT count(*) FROM post") == rows(run, "SELECT count(DISTINCT post_id) FROM post")
    assert run.replay().digest == run.digest


def test_a_script_in_which_people_join_a_platform_can_be_run_again() -> None:
    def run() -> str:
        world = net(ada(), ben(), out="kept")
        world.run(2)
        world.add(Person("Cem", activity=1, follows=["Ada"])).run(2)
        return world.remove("Ada").run(2).digest

    assert run() == run() == shoal.open("kept").digest


def test_a_feed_shows_what_the_followed_wrote_at_once_to_who_joins() -> None:
    turns = script("s", (1, "Ada", "CREATE_POST", {"content": "Green tea."}))
    world = net(
        ada(), ben(), Person("Cem", activity=1, follows=["Ada"]), mind=turns, events=[{"join": ["Cem"], "round": 3}]
    )
    world.run(3)
    turn = world.results.explain("Cem", round=3)
    assert "Green tea." in str(turn)


def test_nobody_follows_finds_or_speaks_for_who_is_not_there() -> None:
    turns = script(
        "s",
        (1, "Ada", "FOLLOW", {"followee_id": 2}),
        (1, "Ada", "SEARCH_USER", {"query": "Cem"}),
        (2, "Ada", "CREATE_GROUP", {"group_name": "Tea"}),
        (2, "Ben", "DO_NOTHING", {}),
        (5, "Ada", "FOLLOW", {"followee_id": 1}),
        (5, "Ada", "SEARCH_USER", {"query": "Ben"}),
    )
    events = [
        {"join": ["Cem"], "round": 3},
        {"leave": ["Ben"], "round": 4},
        {"post": "From nowhere.", "by": "Ben", "round": 5},
        {"post": "From anybody.", "round": 5},
    ]
    world = net(ada(), ben(), Person("Cem", activity=1), mind=turns, events=events)
    run = world.run(5)
    refused = [(event.round, event.result) for event in run.actions() if not event.success]
    assert refused == [(1, "there is no user 2"), (5, "Ben is not there"), (5, "Ben has left")]
    found = rows(run, "SELECT json_extract(info, '$.users') FROM trace WHERE action = 'search_user'")
    assert found == [["[]"], ["[]"]]
    assert {event.agent_name for event in run.actions() if event.action_args.get("content") == "From anybody."} <= {
        "Ada",
        "Cem",
    }


def test_who_leaves_is_in_no_group_chat_and_may_come_back() -> None:
    turns = script("s", (1, "Ada", "CREATE_GROUP", {"group_name": "Tea"}), (5, "Ada", "LISTEN_FROM_GROUP", {}))
    events = [{"leave": ["Ada"], "round": 3}, {"join": ["Ada"], "round": 5}]
    run = net(ada(), ben(follows=["Ada"]), mind=turns, events=events).run(6)
    assert list_rounds(run, "Ada") == {1, 2, 5, 6}
    assert rows(run, "SELECT count(*) FROM group_members") == [[0]]
    assert rows(run, "SELECT name, created_at, num_followers FROM user") == [["Ada", 0, 1], ["Ben", 0, 0]]
    assert run.replay().digest == run.digest


def test_a_fork_may_let_somebody_leave() -> None:
    world = net(ada(), ben())
    world.run(4)
    fork = world.results.fork(at=3, inject=[{"leave": ["Ben"]}])
    assert list_rounds(fork, "Ben") == {1, 2}
    assert fork.replay().digest == fork.digest


def test_dialogues_take_nobody_in() -> None:
    world = World("Talks", [Person("Ada"), Person("Ben")], kind="dialogue")
    world.run()
    with pytest.raises(ScenarioInvalid, match="'join' cannot happen"):
        world.add(Person("Cem"))
    with pytest.raises(ScenarioInvalid, match="'leave' cannot happen"):
        world.remove("Ada")
    assert (world.run().rounds, len(world.people)) == (2, 2)


@pytest.mark.parametrize("visibility", [1, 2])
def test_who_joins_has_not_heard_what_was_broadcast_before(visibility: int) -> None:
    events = [
        {"join": ["Cem"], "round": 3},
        {"broadcast": "Too early.", "round": 2},
        {"broadcast": "In time.", "round": 3},
        {"leave": ["Ada"], "round": 2},
        {"join": ["Ada"], "round": 3},
    ]
    people = ada(), ben(), Person("Cem", activity=1)
    run = net(*people, events=events, settings={"visibility": visibility}).run(3)
    for name in ("Ada", "Cem"):
        seen = str(run.explain(name, round=3).explanations[0].saw)
        assert ("In time." in seen, "Too early." in seen) == (True, False)


def find_seen(run: Run, name: str, round: int) -> str:
    return str(run.explain(name, round=round).explanations[0].saw)


@pytest.mark.parametrize("visibility", [1, 2])
def test_nobody_sees_finds_or_follows_who_is_suspended_until_they_join_again(visibility: int) -> None:
    turns = script(
        "s",
        (1, "Ben", "CREATE_POST", {"content": "Green tea."}),
        (1, "Ada", "CREATE_POST", {"content": "Black tea."}),
        (6, "Ada", "FOLLOW", {"followee_id": 1}),
        (6, "Ada", "SEARCH_USER", {"query": "Ben"}),
        (6, "Ada", "SEARCH_POSTS", {"query": "Green"}),
        (9, "Ada", "SEARCH_POSTS", {"query": "Green"}),
    )
    events = [{"suspend": ["Ben"], "round": 5}, {"join": ["Ben"], "round": 8}]
    dan = Person("Dan", activity=1, follows=["Ben", "Ada"])
    run = net(ada(), ben(), dan, mind=turns, events=events, settings={"visibility": visibility}).run(10)
    assert list_rounds(run, "Ben") == {1, 2, 3, 4, 8, 9, 10}
    assert ["Green tea." in find_seen(run, "Dan", round) for round in (4, 7, 10)] == [True, False, True]
    assert "Black tea." in find_seen(run, "Dan", 7)
    refused = [event.result for event in run.actions() if not event.success and event.round == 6]
    assert refused == ["Ben is suspended"]
    found = "SELECT json_array_length(info, '$.posts') FROM trace WHERE action = 'search_posts' ORDER BY created_at"
    assert rows(run, found) == [[0], [1]]
    assert rows(run, "SELECT num_followers FROM user WHERE name = 'Ben'") == [[1]]
    assert run.replay().digest == run.digest


def test_comments_of_the_suspended_are_shown_to_nobody() -> None:
    people, post = (ada(), ben(), Person("Dan", activity=1, follows=["Ada"])), {"content": "Tea."}
    number = rows(net(*people, mind=script("s", (1, "Ada", "CREATE_POST", post))).run(1), "SELECT post_id FROM post")
    comment = {"post_id": number[0][0], "content": "Never!"}
    turns = script("s", (1, "Ada", "CREATE_POST", post), (2, "Ben", "CREATE_COMMENT", comment))
    run = net(*people, mind=turns, events=[{"suspend": ["Ben"], "round": 4}]).run(4)
    assert ["Never!" in find_seen(run, "Dan", round) for round in (3, 4)] == [True, False]


@pytest.mark.parametrize("visibility", [1, 2])
def test_who_is_cut_off_has_no_ties_and_may_form_new_ones(visibility: int) -> None:
    turns = script("s", (4, "Ada", "FOLLOW", {"followee_id": 1}))
    people = ada(follows=["Ben", "Cem"]), ben(follows=["Ada"]), Person("Cem", activity=1, follows=["Ben", "Ada"])
    world = net(*people, mind=turns, events=[{"cut": ["Ben"], "round": 3}], settings={"visibility": visibility})
    run = world.run(5)
    assert [row[:2] for row in rows(run, FOLLOWS)] == [["Ada", "Cem"], ["Cem", "Ada"], ["Ada", "Ben"]]
    assert rows(run, MISCOUNTED) == [[0]]
    assert list_rounds(run, "Ben") == {1, 2, 3, 4, 5}
    assert run.replay().digest == run.digest


def test_who_is_cut_off_while_joining_has_no_ties() -> None:
    people = ada(follows=["Cem"]), ben(), Person("Cem", activity=1, follows=["Ada"])
    events = [{"join": ["Cem"], "round": 3}, {"cut": ["Cem"], "round": 3}]
    run = net(*people, mind=script("s"), events=events).run(4)
    assert rows(run, FOLLOWS) == []
    assert rows(run, MISCOUNTED) == [[0]]


def test_rooms_suspend_nobody() -> None:
    room = World("Room", [Person("Ada"), Person("Ben")], kind="room")
    with pytest.raises(ScenarioInvalid, match="'suspend' cannot happen"):
        room.happen(suspend=["Ada"])
