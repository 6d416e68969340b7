"""Forks differ from their parent by cause, not by luck."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ScenarioInvalid
from shoal.runs.directory import RunDirectory
from shoal.worlds.social.settings import SocialSettings
from tests.engine.harness import village
from tests.runs.harness import branch, go_on, list_asked, read_lines, repeat, start
from tests.runs.test_worker import ASKING

ROUNDS = 7
PEOPLE = ["Ada", "Bea", "Cid", "Dan", "Eve"]
#: Bea reads Ada, Cid reads Bea, Dan reads Cid; Eve reads nobody.
EDGES = [("Bea", "Ada"), ("Cid", "Bea"), ("Dan", "Cid")]


def number_post(round: int, author: str) -> int:
    """The number of the first post that an event makes in somebody's name: of its author and round alone."""
    return (round * len(PEOPLE) + PEOPLE.index(author)) * 64 + 1 + 32


def make_scripted(turns: list[dict[str, Any]]) -> dict[str, Any]:
    return village(PEOPLE, EDGES, rounds=ROUNDS, mind={"kind": "scripted", "turns": turns})


def make_keys(*decisions: tuple[str, range]) -> set[str]:
    return {f"twitter/{n}/{PEOPLE.index(name)}/decide/0" for name, rounds in decisions for n in rounds}


def test_a_fork_that_changes_nothing_asks_nothing(tmp_path: Path) -> None:
    parent = start(ASKING, tmp_path / "parent")
    child = branch(tmp_path / "parent", tmp_path / "child", at=3)
    assert child.digest == parent.digest
    assert child.calls == 0


def test_only_those_whom_an_injected_post_reaches_are_asked_again(tmp_path: Path) -> None:
    """Ada's injected post of round 3 is seen by Bea from round 4 on. Bea reposts it in round 5, which in the parent
    was impossible, so Cid sees it from round 6 on. Nobody passes it on to Dan, and Eve reads nobody."""
    turns = [
        {"round": 2, "agent": "Ada", "action": "CREATE_POST", "args": {"content": "good morning"}},
        {"round": 5, "agent": "Bea", "action": "REPOST", "args": {"post_id": number_post(3, "Ada")}},
        {"round": 6, "agent": "Dan", "action": "CREATE_POST", "args": {"content": "hello"}},
    ]
    start(make_scripted(turns), tmp_path / "parent")
    event = {"post": "the bridge is closed", "by": "Ada", "round": 3}
    branch(tmp_path / "parent", tmp_path / "child", at=3, injected=[event])
    assert list_asked(tmp_path / "child") == make_keys(("Bea", range(4, 8)), ("Cid", range(6, 8)))
    reposts = [
        line for line in read_lines(tmp_path / "child/twitter/actions.jsonl") if line.get("action_type") == "REPOST"
    ]
    assert [line["success"] for line in reposts] == [True]


def test_a_broadcast_to_one_asks_that_one_and_those_it_then_reaches(tmp_path: Path) -> None:
    turns = [{"round": 4, "agent": "Bea", "action": "CREATE_POST", "args": {"content": "I heard something"}}]
    start(make_scripted(turns), tmp_path / "parent")
    event = {"broadcast": "psst", "to": ["Bea"], "round": 4}
    branch(tmp_path / "parent", tmp_path / "child", at=2, injected=[event])
    assert list_asked(tmp_path / "child") == make_keys(("Bea", range(4, 5)))


def test_a_later_post_keeps_its_number_when_another_one_is_injected_before_it(tmp_path: Path) -> None:
    turns = [{"round": 6, "agent": "Dan", "action": "CREATE_POST", "args": {"content": "hello"}}]
    start(make_scripted(turns), tmp_path / "parent")
    branch(tmp_path / "parent", tmp_path / "child", 2, injected=[{"post": "extra", "by": "Eve", "round": 2}])
    numbers = [
        next(line["action_args"]["post_id"] for line in read_lines(tmp_path / run / "twitter/actions.jsonl")
             if line.get("agent_name") == "Dan" and line["action_type"] == "CREATE_POST")
        for run in ("parent", "child")
    ]  # fmt: skip
    assert numbers[0] == numbers[1]


def test_the_past_before_the_fork_is_shared(tmp_path: Path) -> None:
    start(ASKING, tmp_path / "parent")
    branch(tmp_path / "parent", tmp_path / "child", 4, ["worlds.twitter.feed.followed=1"])
    digests = [
        [line["digest"] for line in read_lines(tmp_path / run / "twitter/actions.jsonl") if "digest" in line]
        for run in ("parent", "child")
    ]
    assert digests[0][:4] == digests[1][:4]
    assert digests[0][4] != digests[1][4]
    assert all(int(key.split("/")[1]) >= 4 for key in list_asked(tmp_path / "child"))
    assert repeat(RunDirectory(tmp_path / "child")).calls == 0


def test_the_past_is_shared_in_whatever_order_events_are_listed(tmp_path: Path) -> None:
    """Who posts a random event is drawn once: a fork that splits the list must not draw again."""
    events = [{"post": "late", "round": 5}, {"post": "early", "round": 0}, {"post": "middle", "round": 2}]
    start({**ASKING, "events": events}, tmp_path / "parent")
    branch(tmp_path / "parent", tmp_path / "child", 4, ["worlds.reddit.feed.recommended=2"])
    authors = [
        {line["action_args"]["content"]: line["agent_id"]
         for line in read_lines(tmp_path / run / "twitter/actions.jsonl") if "event" in line.get("id", "")}
        for run in ("parent", "child")
    ]  # fmt: skip
    assert set(authors[0]) == {"late", "early", "middle"}
    assert authors[0] == authors[1]


def test_a_change_from_the_start_may_change_anything(tmp_path: Path) -> None:
    start(ASKING, tmp_path / "parent")
    child = branch(tmp_path / "parent", tmp_path / "child", 0, ["population.count=30", "seed=5"])
    assert child.calls > 0


@pytest.mark.parametrize(
    "change", ["population.count=30", "seed=5", "time.minutes_per_round=30", "worlds.twitter.visibility=2"]
)
def test_what_cannot_change_in_the_middle_is_refused(tmp_path: Path, change: str) -> None:
    start(ASKING, tmp_path / "parent")
    with pytest.raises(ScenarioInvalid, match="cannot change in the middle"):
        branch(tmp_path / "parent", tmp_path / "child", 3, [change])
    assert not (tmp_path / "child").exists()


def test_a_fork_can_run_longer_than_its_parent(tmp_path: Path) -> None:
    parent = start(ASKING, tmp_path / "parent")
    child = branch(tmp_path / "parent", tmp_path / "child", 6, ["rounds=9"])
    assert (parent.rounds, child.rounds) == (6, 9)
    assert all(int(key.split("/")[1]) > 6 for key in list_asked(tmp_path / "child"))


def test_a_fork_of_a_fork_keeps_both_changes(tmp_path: Path) -> None:
    start(ASKING, tmp_path / "parent")
    branch(tmp_path / "parent", tmp_path / "child", 2, ["worlds.twitter.feed.followed=1"])
    branch(tmp_path / "child", tmp_path / "grandchild", 4, ["worlds.reddit.feed.recommended=2"])
    history = RunDirectory(tmp_path / "grandchild").scenario_versions
    assert [at for at, _ in history.changes] == [2, 4]
    twitter = history.at(5).worlds["twitter"]
    assert isinstance(twitter, SocialSettings)
    assert twitter.feed.followed == 1
    assert all(key.startswith("reddit") for key in list_asked(tmp_path / "grandchild"))


def test_a_fork_is_resumed_replayed_and_consistent_like_any_run(tmp_path: Path) -> None:
    start(ASKING, tmp_path / "parent")
    event = {"post": "The mayor resigns over the old bridge!", "by": "most_followed", "round": 3}
    child = branch(tmp_path / "parent", tmp_path / "child", 3, injected=[event])
    directory = RunDirectory(tmp_path / "child")
    assert go_on(directory) == child
    assert repeat(directory).digest == child.digest
    assert list_asked(tmp_path / "child")


def test_removing_the_parent_leaves_the_fork_whole(tmp_path: Path) -> None:
    start(ASKING, tmp_path / "parent")
    child = branch(tmp_path / "parent", tmp_path / "child", 3, ["worlds.twitter.feed.followed=1"])
    for path in sorted((tmp_path / "parent").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert repeat(RunDirectory(tmp_path / "child")).digest == child.digest
