"""A person takes the seat of an agent over HTTP."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from typing import Any

import pytest

from shoal.journal import read_journal
from shoal.runs.directory import RunDirectory
from shoal.runs.launchers import find_worker
from shoal.runs.rerun.rerun import replay
from tests.server.conftest import VILLAGE, Answer, RunningServer, Serve, wait_until

#: Every kind of world at once.
KINDS = {
    "twitter": None,
    "reddit": None,
    "square": {"kind": "room"},
    "talk": {"kind": "dialogue", "pairs": [["Ada", "Bo"]]},
}


@dataclass
class Browser:
    """A browser of somebody who sits in Ada's seat, or would like to."""

    server: RunningServer
    run: str
    secret: str = "the first browser"

    def post(self, route: str, **more: Any) -> Answer:
        body = {"simulation_id": self.run, "agent_id": 0, "secret": self.secret, **more}
        return self.server.post(f"seat/{route}", body)

    def take(self, **more: Any) -> dict[str, Any]:
        answer = self.post("take", **more)
        assert answer.status == 200, answer.json
        found: dict[str, Any] = answer.json["data"]
        return found

    def seats(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.server.get(
            f"{self.run}/seats?secret={self.secret.replace(' ', '%20')}"
        ).json["data"]
        return found

    def turns(self) -> list[dict[str, Any]]:
        return [turn for seat in self.seats() for turn in seat["turns"]]

    def wait_for_turn(self) -> dict[str, Any]:
        wait_until(lambda: bool(self.turns()))
        return self.turns()[0]

    def answer(self, turn: dict[str, Any], *actions: dict[str, Any]) -> Answer:
        return self.post("answer", world=turn["world"], round=turn["round"], actions=list(actions))

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.server.get(f"{self.run}/run-status").json["data"]
        return found

    def wait_for_end(self) -> None:
        wait_until(lambda: self.status()["runner_status"] == "completed")

    def directory(self) -> RunDirectory:
        return RunDirectory(self.server.folder / self.run)


@pytest.fixture
def browser(serve: Serve) -> Browser:
    server = serve()
    created = server.post("create", {"scenario": VILLAGE}).json["data"]
    return Browser(server, created["simulation_id"])


def start(browser: Browser) -> None:
    assert browser.server.post("start", {"simulation_id": browser.run}).status == 200


def list_answers(browser: Browser) -> list[tuple[str, str]]:
    """Return the keys of the turns in which somebody was in the seat, and who decided."""
    lines = read_journal(browser.directory().journal)[0]
    return [(line.key, line.reply["by"]) for line in lines if "/seat/" in line.key]


def test_a_person_sits_down_before_the_start_sees_what_the_agent_sees_and_posts(browser: Browser) -> None:
    assert browser.take(seconds=300)["since_round"] == 1
    assert [seat["name"] for seat in browser.seats()] == ["Ada"]
    start(browser)
    turn = browser.wait_for_turn()
    (status,) = browser.status()["seats"]
    assert (status["name"], status["turns"][0]["round"]) == ("Ada", 1)
    assert any(line["text"] == "The bridge is closed." for row in turn["saw"] for line in row["lines"])
    assert 200 < turn["seconds_left"] <= 300
    actions = {action["kind"]: action for action in turn["actions"]}
    (post, content) = actions["CREATE_COMMENT"]["fields"]
    assert [choice["label"] for choice in post["choices"]] == ["Bo: The bridge is closed."]
    assert content["max_chars"] == 1000
    # What is wrong stands beside the field, and the turn waits on.
    wrong = browser.answer(
        turn, {"action": "CREATE_COMMENT", "post_id": post["choices"][0]["value"]}, {"action": "FLY"}
    ).json["data"]
    assert [(one["action"], one["fields"]) for one in wrong["problems"]] == [(0, ["content"]), (1, [])]
    assert not wrong["is_accepted"]
    too_long = browser.answer(turn, {"action": "CREATE_POST", "content": "x" * 1001}).json["data"]
    assert too_long["problems"] == [
        {"action": 0, "fields": ["content"], "message": "1,001 characters; at most 1,000 fit"}
    ]
    # It takes the right words.
    said = {"action": "CREATE_COMMENT", "post_id": post["choices"][0]["value"], "content": "For how long?"}
    assert browser.answer(turn, said).json["data"]["is_accepted"]
    wait_until(lambda: browser.turns() != [] and browser.turns()[0]["round"] == 2)
    assert browser.answer(turn, said).status == 409
    assert browser.post("give-back").status == 200
    browser.wait_for_end()
    assert list_answers(browser) == [("twitter/1/0/seat/0", "person"), ("twitter/2/0/seat/0", "mind")]
    explained = browser.server.get(f"{browser.run}/explain?agent=0&round=1").json["data"][0]
    assert explained["rests_on"]["decided_by"] == "a person"
    assert explained["actions"][0]["args"]["content"] == "For how long?"
    second = browser.server.get(f"{browser.run}/explain?agent=0&round=2").json["data"][0]
    assert second["rests_on"]["because"] == "the seat was given back"
    asyncio.run(replay(browser.directory(), asyncio.Event()))


def test_a_script_takes_a_seat_with_the_client(browser: Browser) -> None:
    mine = "my own words"
    with browser.server.client() as client:
        assert client.take_seat(browser.run, 0, mine, seconds=300).since_round == 1
        client.start(browser.run)
        wait_until(lambda: bool(client.seats(browser.run, mine)[0].turns))
        assert client.take_seat(browser.run, 0, mine, seconds=300).is_mine
        (turn,) = client.seats(browser.run, mine)[0].turns
        assert (turn.world, turn.round) == ("twitter", 1)
        (problem,) = client.answer_turn(browser.run, 0, mine, turn, [{"action": "FLY"}]).problems
        assert "FLY" in problem.message
        post = {"action": "CREATE_POST", "content": "Hello."}
        assert client.answer_turn(browser.run, 0, mine, turn, [post]).is_accepted
        client.give_seat_back(browser.run, 0, mine)
    browser.wait_for_end()
    assert list_answers(browser)[0] == ("twitter/1/0/seat/0", "person")


def test_a_second_browser_is_told_that_the_seat_is_taken_until_it_insists(browser: Browser) -> None:
    browser.take(seconds=300)
    start(browser)
    turn = browser.wait_for_turn()
    browser.take(seconds=300)
    other = Browser(browser.server, browser.run, "another browser")
    refused = other.post("take")
    assert refused.status == 409
    assert "Ada's seat is taken: another browser holds it since" in refused.json["error"]
    assert (other.answer(turn, {"action": "DO_NOTHING"}).status, other.post("give-back").status) == (409, 409)
    assert (other.seats()[0]["is_held"], other.seats()[0]["is_mine"]) == (True, False)
    other.take(seconds=300, force=True)
    assert browser.answer(turn, {"action": "DO_NOTHING"}).status == 409
    assert other.answer(turn, {"action": "DO_NOTHING"}).json["data"]["is_accepted"]


def test_after_a_kill_only_the_turn_without_an_answer_is_asked_again(browser: Browser) -> None:
    browser.take(seconds=300)
    start(browser)
    assert browser.answer(browser.wait_for_turn(), {"action": "CREATE_POST", "content": "One."}).json["success"]
    wait_until(lambda: [turn["round"] for turn in browser.turns()] == [2])
    worker = find_worker(browser.directory())
    assert worker is not None
    os.killpg(worker.pid, signal.SIGKILL)
    wait_until(lambda: browser.status()["runner_status"] == "failed")
    assert [(seat["name"], seat["turns"]) for seat in browser.status()["seats"]] == [("Ada", [])]
    start(browser)
    wait_until(lambda: [turn["round"] for turn in browser.turns()] == [2])
    browser.answer(browser.turns()[0], {"action": "CREATE_POST", "content": "Two."})
    wait_until(lambda: [turn["round"] for turn in browser.turns()] == [3])
    browser.answer(browser.turns()[0], {"action": "DO_NOTHING"})
    browser.wait_for_end()
    assert [key for key, _ in list_answers(browser)] == [f"twitter/{round}/0/seat/0" for round in (1, 2, 3)]


def test_a_seat_is_in_every_kind_of_world(serve: Serve) -> None:
    server = serve()
    created = server.post("create", {"scenario": {**VILLAGE, "worlds": KINDS, "events": [], "rounds": 2}}).json["data"]
    browser = Browser(server, created["simulation_id"])
    browser.take(seconds=300)
    start(browser)
    answered: dict[str, list[str]] = {}

    def answer_all() -> bool:
        for turn in browser.turns():
            answered[turn["kind"]] = [action["kind"] for action in turn["actions"]]
            browser.answer(turn)
        return bool(browser.status()["runner_status"] == "completed")

    wait_until(answer_all)
    assert answered.keys() == {"twitter", "reddit", "room", "dialogue"}
    assert ("SAY" in answered["dialogue"], "THINK" in answered["room"]) == (True, True)
    assert {by for _, by in list_answers(browser)} == {"person"}
