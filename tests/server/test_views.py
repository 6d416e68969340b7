"""What the pages are told about runs: cards, figures, feeds, conversations and people, after any round."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shoal.runs.directory import RunDirectory
from shoal.types import Event
from tests.runs.harness import start
from tests.server.conftest import SCENARIO, RunningServer, Serve

ROOM = {
    "name": "meeting",
    "topic": "the old bridge",
    "population": [{"count": 5}],
    "rounds": 4,
    "worlds": {"room": None},
    "events": [{"hear": "Welcome."}],
    "seed": 2,
}


@pytest.fixture
def read(serve: Serve, finished: str) -> Callable[[str], Any]:
    """Reads what a route tells of the finished run."""
    server = serve()

    def read_route(route: str) -> Any:
        answer = server.get(f"{finished}/{route}")
        assert answer.status == 200, answer.body
        return answer.json["data"]

    return read_route


def list_events(run: Path, world: str, until: int) -> list[Event]:
    return [event for event in RunDirectory(run).open_stream(world).read_actions(until) if event.success]


# lists of runs


def test_a_card_says_what_a_run_is_and_how_far(serve: Serve, finished: str) -> None:
    found = serve().get("overview").json["data"]
    assert found["total"] == 1
    (card,) = found["items"]
    assert (card["simulation_id"], card["status"], card["round"], card["rounds"]) == (finished, "completed", 6, 6)
    assert card["worlds"] == [{"name": "twitter", "kind": "twitter"}, {"name": "reddit", "kind": "reddit"}]
    assert card["people"] == 12
    assert len(card["activity"]) == 7
    assert card["quality"]["verdict"] in ("good", "doubtful", "bad")


def test_a_list_of_runs_comes_in_pages_and_shows_what_changed(serve: Serve, tmp_path: Path) -> None:
    server = serve()
    for number in range(3):
        start({**SCENARIO, "rounds": 1}, tmp_path / "runs" / f"run-{number}")
    first = server.get("overview?limit=2").json["data"]
    assert [card["simulation_id"] for card in first["items"]] == ["run-2", "run-1"]
    rest = server.get(f"overview?limit=2&offset={first['next']}").json["data"]
    assert [card["simulation_id"] for card in rest["items"]] == ["run-0"]
    assert rest["next"] is None
    state = server.folder / "run-0" / "run_state.json"
    state.write_text(state.read_text().replace('"completed"', '"stopped"'))
    assert server.get("overview?offset=2").json["data"]["items"][0]["status"] == "stopped"


def test_a_run_that_cannot_be_read_is_listed_and_says_why(serve: Serve, finished: str) -> None:
    server = serve()
    broken = server.folder / "broken"
    broken.mkdir()
    (broken / "simulation_config.json").write_text("{}")
    cards = {card["simulation_id"]: card for card in server.get("overview").json["data"]["items"]}
    assert cards[finished]["status"] == "completed"
    assert cards["broken"]["status"] == "failed"
    assert cards["broken"]["error"]


def test_a_run_whose_worker_was_killed_has_failed_and_says_what_to_do(serve: Serve, finished: str) -> None:
    server = serve()
    state = server.folder / finished / "run_state.json"
    state.write_text(state.read_text().replace('"completed"', '"running"'))
    card = server.get(f"{finished}/overview").json["data"]
    assert card["status"] == "failed"
    assert "without a word" in card["error"]
    assert card["hint"]


def test_the_head_of_a_run_has_its_time_and_its_marks(serve: Serve, tmp_path: Path) -> None:
    events = [{"broadcast": "Look out.", "round": 3}, {"leave": [1, 2], "round": 4}]
    claims = [{"id": "hoax", "text": "It is a hoax.", "truth": "false"}]
    start({**SCENARIO, "events": events, "claims": claims}, tmp_path / "runs" / "eventful")
    head = serve().get("eventful/overview").json["data"]
    marks = [(mark["round"], mark["kind"], mark["text"]) for mark in head["marks"]]
    assert marks == [(3, "event", "broadcast: Look out."), (4, "leave", "leave: 2 people")]
    assert head["claims"] == [{"id": "hoax", "text": "It is a hoax.", "truth": False}]
    assert head["start"].startswith("2026-01-01T08:00")
    assert (head["round_minutes"], head["last_round"]) == (60, 6)


def test_interventions_that_happened_are_marks(serve: Serve, tmp_path: Path) -> None:
    rule = {"name": "calm down", "when": "round == 2", "do": {"broadcast": "Calm down."}}
    start({**SCENARIO, "interventions": [rule]}, tmp_path / "runs" / "ruled")
    marks = serve().get("ruled/overview").json["data"]["marks"]
    assert ("intervention", "calm down") in [(mark["kind"], mark["text"]) for mark in marks]


# figures


def test_figures_have_a_value_for_each_round(read: Callable[[str], Any]) -> None:
    figures = read("figures")
    assert figures["rounds"] == [*range(7)]
    assert len(figures["activity"]) == len(figures["opinions"]) == 7
    assert all(len(values) == 7 for worlds in figures["figures"].values() for values in worlds.values())
    assert all(sum(counts) == 24 for counts in figures["opinions"])
    later = read("figures?since=5")
    assert later["rounds"] == [5, 6]
    assert later["activity"] == figures["activity"][5:]
    assert read("figures?until=3")["rounds"] == [0, 1, 2, 3]
    fewer = read("figures?points=3")
    assert fewer["rounds"] == [0, 3, 6]
    assert fewer["opinions"] == figures["opinions"][::3]


def test_opinions_of_runs_that_did_not_count_them_are_counted(serve: Serve, finished: str) -> None:
    server = serve()
    recorded = server.get(f"{finished}/figures").json["data"]["opinions"]
    for world in ("twitter", "reddit"):
        with sqlite3.connect(server.folder / finished / f"{world}_simulation.db") as database:
            database.execute("DROP TABLE opinion_count")
    assert server.get(f"{finished}/figures").json["data"]["opinions"] == recorded


# feeds


def test_a_feed_has_every_post_once_and_the_newest_first(serve: Serve, finished: str) -> None:
    server = serve()
    shown: list[dict[str, Any]] = []
    before = ""
    while before is not None:
        page = server.get(f"{finished}/feed?world=twitter&limit=3&before={before}").json["data"]
        shown += page["items"]
        before = page["next"]
    numbers = [post["post_id"] for post in shown]
    assert numbers == sorted(set(numbers), reverse=True)
    with sqlite3.connect(server.folder / finished / "twitter_simulation.db") as database:
        assert len(numbers) == database.execute("SELECT count(*) FROM post").fetchone()[0]


def test_a_feed_in_the_past_is_the_feed_that_was_there(serve: Serve, tmp_path: Path) -> None:
    """A run of three rounds is what a run of six was after three."""
    server = serve()
    for rounds in (3, 6):
        start({**SCENARIO, "rounds": rounds}, tmp_path / "runs" / f"of-{rounds}")
    for world in ("twitter", "reddit"):
        for order in ("new", "liked", "shared"):
            route = f"feed?world={world}&limit=100&sort={order}"
            before = server.get(f"of-3/{route}").json["data"]["items"]
            assert server.get(f"of-6/{route}&until=3").json["data"]["items"] == before, (world, order)


def test_the_rounds_of_posts_are_those_of_the_stream(serve: Serve, finished: str) -> None:
    server = serve()
    for world in ("twitter", "reddit"):
        posts = server.get(f"{finished}/feed?world={world}&limit=200").json["data"]["items"]
        rounds = {post["post_id"]: post["round"] for post in posts}
        events = list_events(server.folder / finished, world, 6)
        numbers = {
            event.action_args.get("new_post_id") or event.action_args["post_id"]: event.round
            for event in events
            if event.action_type in ("CREATE_POST", "REPOST", "QUOTE_POST")
        }
        assert rounds == numbers


def test_a_shared_post_stands_inside_the_one_that_passes_it_on(read: Callable[[str], Any]) -> None:
    posts = read("feed?world=twitter&limit=200")["items"] + read("feed?world=reddit&limit=200")["items"]
    shares = [post for post in posts if post["shared"]]
    assert shares
    assert all(post["text"] == "" and post["shared"]["text"] for post in shares)


def test_comments_in_the_past_are_those_that_were_there(serve: Serve, tmp_path: Path) -> None:
    start({**SCENARIO, "mind": {"talkativeness": 4}}, tmp_path / "runs" / "chatty")
    server = serve()
    events = list_events(server.folder / "chatty", "reddit", 6)
    last = next(event for event in reversed(events) if event.action_type == "CREATE_COMMENT")
    route = f"chatty/thread?world=reddit&post_id={last.action_args['post_id']}"
    now = server.get(route).json["data"]
    assert last.action_args["content"] in [comment["text"] for comment in now["items"]]
    assert now["total"] == len(now["items"])
    past = server.get(f"{route}&until={last.round - 1}").json["data"]
    assert last.action_args["content"] not in [comment["text"] for comment in past["items"]]


def test_a_feed_shows_the_posts_of_one_person_or_claim(serve: Serve, tmp_path: Path) -> None:
    claims = [{"id": "hoax", "text": "The old bridge falls.", "truth": "false", "appeal": 5}]
    events = [{"post": "It falls!", "by": 3, "supports": "hoax"}]
    start({**SCENARIO, "claims": claims, "events": events}, tmp_path / "runs" / "claiming")
    server = serve()
    by_claim = server.get("claiming/feed?world=twitter&claim=hoax").json["data"]["items"]
    assert by_claim
    assert {post["claim"] for post in by_claim} == {"hoax"}
    by_person = server.get("claiming/feed?world=twitter&agent=3").json["data"]["items"]
    assert {post["agent_id"] for post in by_person} == {3}
    trends = server.get("claiming/trends?world=twitter").json["data"]
    assert all(trend["posts"] >= 3 for trend in trends)


# conversations


def test_talk_comes_in_pages_from_any_round_on(serve: Serve, tmp_path: Path) -> None:
    start(ROOM, tmp_path / "runs" / "meeting")
    server = serve()
    turns: list[dict[str, Any]] = []
    before = ""
    while before is not None:
        page = server.get(f"meeting/talk?world=room&limit=4&before={before}").json["data"]
        turns += page["items"]
        before = page["next"]
    done = [event for event in list_events(server.folder / "meeting", "room", 4) if event.action_type != "DO_NOTHING"]
    said = [(turn["round"], turn["agent_id"]) for turn in turns if turn["agent_id"] >= 0]
    assert said == [(event.round, event.agent_id) for event in reversed(done)]
    assert "Welcome." in [turn["text"] for turn in turns if turn["agent_id"] == -1]
    past = server.get("meeting/talk?world=room&until=2&limit=200").json["data"]["items"]
    assert past == [turn for turn in turns if turn["round"] <= 2]


def test_conversations_of_two_are_listed_and_read_apart(serve: Serve, tmp_path: Path) -> None:
    scenes = [{"setting": "On the jetty.", "turning_point": "It rains.", "turns": 4}, {"setting": "Indoors."}]
    dialogue = {"population": [{"count": 6}], "worlds": {"dialogue": {"turns": 4, "scenes": scenes}}}
    start({**ROOM, **dialogue, "rounds": 9, "events": []}, tmp_path / "runs" / "pairs")
    server = serve()
    found = server.get("pairs/conversations?world=dialogue&limit=2").json["data"]
    assert (found["total"], found["next"], len(found["items"])) == (3, "2", 2)
    first = found["items"][0]
    number, speakers = first["conversation"], {person["agent_id"] for person in first["people"]}

    def read(query: str) -> Any:
        return server.get(f"pairs/talk?world=dialogue&conversation={number}&{query}").json["data"]

    turns = read("limit=200")["items"]
    assert [turn["text"] for turn in turns if turn["kind"] == "setting"] == ["Indoors.", "On the jetty."]
    assert "It rains." in [turn["text"] for turn in turns if turn["kind"] == "turning_point"]
    said = [turn for turn in turns if turn["kind"] == "say"]
    assert {turn["agent_id"] for turn in said} == speakers
    assert (len(said), said[0]["text"]) == (first["lines"], first["last_text"])
    assert [turn["round"] for turn in turns] == sorted((turn["round"] for turn in turns), reverse=True)
    head = read("limit=3")
    assert head["items"] + read(f"limit=200&before={head['next']}")["items"] == turns
    assert read("limit=200&until=2")["items"] == [turn for turn in turns if turn["round"] <= 2]
    one = server.get(f"pairs/conversations?world=dialogue&agent={min(speakers)}").json["data"]
    assert [card["conversation"] for card in one["items"]] == [number]


def test_a_world_without_pairs_has_no_conversations_of_two(serve: Serve, finished: str) -> None:
    assert serve().get(f"{finished}/conversations?world=twitter").json["data"]["items"] == []
    answer = serve().get(f"{finished}/talk?world=twitter&conversation=1")
    assert (answer.status, answer.json["field"]) == (400, "conversation")


# people


def test_people_are_listed_in_any_order_and_found_by_name(read: Callable[[str], Any]) -> None:
    everybody = read("people?limit=50")
    assert everybody["total"] == 12
    assert [person["agent_id"] for person in everybody["items"]] == [*range(12)]
    busiest = read("people?sort=actions&limit=50")["items"]
    counts = [person["actions"] for person in busiest]
    assert counts == sorted(counts, reverse=True)
    assert sorted(busiest, key=lambda person: person["agent_id"]) == everybody["items"]
    name = everybody["items"][4]["name"]
    assert name in [person["name"] for person in read(f"people?query={name.split()[0].lower()}")["items"]]
    page = read("people?limit=5&offset=10")
    assert ([person["agent_id"] for person in page["items"]], page["next"]) == ([10, 11], None)


def test_what_people_did_is_counted_in_the_trace_of_runs_that_did_not_count_it(serve: Serve, finished: str) -> None:
    server = serve()
    recorded = server.get(f"{finished}/people?sort=actions").json["data"]["items"]
    assert recorded[0]["actions"] > 0
    for world in ("twitter", "reddit"):
        with sqlite3.connect(server.folder / finished / f"{world}_simulation.db") as database:
            database.execute("DROP TABLE action_count")
    assert server.get(f"{finished}/people?sort=actions").json["data"]["items"] == recorded


def test_opinions_of_people_are_those_of_the_round(serve: Serve, finished: str) -> None:
    server = serve()
    with sqlite3.connect(server.folder / finished / "twitter_simulation.db") as database:
        query = "SELECT agent_id, value FROM opinion WHERE round = 2 AND about = 'topic'"
        expected = dict(database.execute(query).fetchall())
    with sqlite3.connect(server.folder / finished / "reddit_simulation.db") as database:
        other = dict(database.execute(query).fetchall())
    people = server.get(f"{finished}/people?round=2").json["data"]["items"]
    for person in people:
        mean = (expected[person["agent_id"]] + other[person["agent_id"]]) / 2
        assert person["opinion"] == pytest.approx(mean, abs=1e-4)


def test_people_in_the_past_are_as_in_a_run_that_ended_there(serve: Serve, tmp_path: Path) -> None:
    scenario = {**SCENARIO, "mind": {"talkativeness": 4}}
    for rounds in (1, 3, 5, 7):
        start({**scenario, "rounds": rounds}, tmp_path / "runs" / f"ends-{rounds}")
    server = serve()

    def read(run: int, query: str) -> Any:
        return server.get(f"ends-{run}/{query}").json["data"]

    assert read(7, "people?sort=actions") != read(5, "people?sort=actions")
    for round in (1, 3, 5):
        for order in ("followers", "influence", "actions"):
            assert read(7, f"people?round={round}&sort={order}") == read(round, f"people?sort={order}")
        past, end = read(7, f"agent/3?round={round}"), read(round, "agent/3")
        assert past["round"] == round
        for one, other in zip(past["worlds"], end["worlds"], strict=True):
            assert {**one, "opinions": {}} == {**other, "opinions": {}}
        picture, whole = read(7, f"network?world=twitter&round={round}"), read(round, "network?world=twitter")
        assert picture["state"]["followers"] == whole["state"]["followers"]


# what is wrong with a request


@pytest.mark.parametrize(
    ("route", "field"),
    [
        ("feed", "world"),
        ("feed?world=nowhere", "world"),
        ("feed?world=../twitter", "world"),
        ("feed?world=twitter&until=-1", "until"),
        ("feed?world=twitter&sort=best", "sort"),
        ("feed?world=twitter&before=../x", "before"),
        ("feed?world=twitter&limit=100000", "limit"),
        ("feed?world=twitter&agent=-3", "agent"),
        ("thread?world=twitter", "post_id"),
        ("thread?world=twitter&post_id=x", "post_id"),
        ("talk?world=nowhere", "world"),
        ("talk?world=twitter&before=1e9", "before"),
        ("trends?world=nowhere", "world"),
        ("people?sort=luck", "sort"),
        ("people?offset=-1", "offset"),
        ("figures?since=x", "since"),
    ],
)
def test_a_wrong_request_is_refused_and_the_field_is_named(serve: Serve, finished: str, route: str, field: str) -> None:
    answer = serve().get(f"{finished}/{route}")
    assert answer.status == 400, answer.body
    assert answer.json["field"] == field


def test_a_run_that_is_not_there_has_nothing_to_show(serve: Serve) -> None:
    server: RunningServer = serve()
    for route in ("overview", "figures", "feed?world=twitter", "talk?world=twitter", "people", "trends?world=twitter"):
        assert server.get(f"nothing/{route}").status == 404


def test_a_run_that_has_not_begun_is_empty(serve: Serve) -> None:
    server = serve()
    with server.client() as client:
        made = client.create(SCENARIO).simulation_id
    assert server.get(f"{made}/overview").json["data"]["status"] == "idle"
    assert server.get(f"{made}/figures").json["data"]["rounds"] == []
    for route in ("feed?world=twitter", "talk?world=twitter", "thread?world=twitter&post_id=1"):
        assert server.get(f"{made}/{route}").json["data"]["items"] == []
    assert server.get(f"{made}/people").json["data"]["total"] == 12
