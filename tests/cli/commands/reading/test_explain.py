"""Asking why, from a shell."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import call, count_rounds, start_command, wait_until

#: All agents act in every round.
AWAKE = [
    f"--set={change}"
    for change in ("population.0.activity=1.0", "population.0.active_hours=0-23", "time.daily_rhythm=false")
]
POST = '- {post: "It is not true, I was there.", by: 0}\n'
TALKS = """\
name: talks
topic: the old bridge
rounds: 6
population: [{name: Ada}, {name: Bea}]
worlds:
  talk: {kind: dialogue, pairs: [[0, 1]], scenes: [{setting: "on a \\u001b[31mbench"}]}
  kitchen: {kind: room}
"""
OWN = """\
name: own
rounds: 2
population: [{name: Ada}, {name: Bea}]
worlds: {auction: {kind: "auction:Auction"}}
mind: {kind: "auction:Bidder"}
"""
AUCTION = """\
from shoal import Action, BaseWorld, Decision, Mind

class Auction(BaseWorld):
    actions = {"BID": {"price": int}}
    highest = 7
    def view(self, round, agent):
        return {"highest_bid": self.highest, "lots": [{"lot": 1, "what": "a chair"}, {"lot": 2, "what": "a lamp"}]}
    def act(self, round, agent, action):
        return None

class Bidder(Mind):
    def decide(self, observation):
        return Decision((Action("BID", {"price": 8}),))
"""


@pytest.fixture
def run(folder: Path) -> str:
    call("run", "small.yaml", "--quiet", *AWAKE)
    return "runs/small-1"


@pytest.fixture
def fork(run: str, folder: Path) -> str:
    (folder / "denial.yaml").write_text(POST)
    call("fork", run, "--at", "2", "--inject", "denial.yaml", "--quiet")
    return f"{run}-fork-1"


def name_of(run: str, agent: int) -> str:
    config = json.loads((Path(run) / "simulation_config.json").read_text())
    name: str = config["agent_configs"][agent]["entity_name"]
    return name


def answer(*args: str) -> Any:
    result = call(*args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def has_come_to(stream: Path, round: int) -> bool:
    return count_rounds(stream) > round


# explain


def test_a_turn_is_shown_from_the_observation_to_the_result(run: str) -> None:
    result = call("explain", run, name_of(run, 3), "4", "--world", "twitter")
    assert result.exit_code == 0, result.stderr
    titles = ["what was seen", "what the decision rests on", "what was decided", "what came of it"]
    places = [result.stdout.index(title) for title in titles]
    assert places == sorted(places)
    assert f"{name_of(run, 3)} (3)  round 4 in twitter, 2026-03-02 21:00" in result.stdout
    assert "reddit" not in result.stdout
    (turn,) = answer("explain", run, "3", "4", "--world", "twitter")["explanations"]
    told = " ".join(result.stdout.split())
    posts = turn["saw"]["followed"] + turn["saw"]["recommended"]
    assert len(posts) > 1
    assert all(f"{post['author']}: {post['content']}" in told for post in posts if not post["original_author"])
    assert all(event["action_type"].lower() in told for event in turn["events"])


def test_the_json_of_an_explanation_has_the_whole_picture(run: str) -> None:
    found = answer("explain", run, "3", "4")
    assert (found["agent"], found["name"], found["round"]) == (3, name_of(run, 3), 4)
    for turn in found["explanations"]:
        assert {"followed", "recommended", "announcements"} <= set(turn["saw"])
        assert turn["rests_on"]["mind"] == "heuristic"
        assert turn["events"]


def test_an_agent_without_a_turn_is_reported_with_commands_for_the_nearest(run: str) -> None:
    result = call("explain", run, "3", "0")
    assert result.exit_code == 0
    assert "had no turn in round 0 in twitter: nobody has" in result.stdout
    assert "  shoal explain runs/small-1 3 1 --world reddit\n" in result.stdout
    assert [found["after"] for found in answer("explain", run, "3", "0")["absences"]] == [1, 1]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("nobody", "1"), "there is no agent 'nobody'"),
        (("3", "99"), "round 99 has not been committed; there are rounds 0 to 5"),
        (("3", "1", "--world", "mars"), "there is no world 'mars'; there are twitter, reddit"),
        (("3", "-1"), "-1 is not in the range"),
    ],
)
def test_a_wrong_question_is_answered_with_what_is_wrong(run: str, args: tuple[str, ...], told: str) -> None:
    result = call("explain", run, *args) if args[1] != "-1" else call("explain", run, "--", *args)
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_folder_without_a_run_is_refused(folder: Path) -> None:
    for args in (("explain", "nowhere", "1", "1"), ("diff", "nowhere", "nowhere")):
        result = call(*args)
        assert result.exit_code == 3
        assert "there is no run in nowhere" in result.stderr


def test_rooms_and_conversations_are_shown_without_control_characters(folder: Path) -> None:
    (folder / "talks.yaml").write_text(TALKS)
    call("run", "talks.yaml", "--quiet")
    told = [call("explain", "runs/talks-1", "0", str(round)).stdout for round in (1, 2, 3)]
    assert any("partner" in text and "on a  [31mbench" in text for text in told)
    assert all("within hearing" in text for text in told)
    assert not any("\x1b" in text for text in told)


def test_the_journals_answer_is_shown_with_the_run_it_comes_from(folder: Path) -> None:
    call("run", "slow.yaml", "--quiet", *AWAKE)
    call("fork", "runs/small-1", "--at", "2", "--quiet")
    told = " ".join(call("explain", "runs/small-1-fork-1", "3", "2", "--world", "twitter").stdout.split())
    assert "twitter/2/3/decide/0 answers the same request" in told
    assert "taken over from small-1" in told


def test_an_own_world_is_shown_field_by_field(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "auction.py").write_text(AUCTION)
    (folder / "own.yaml").write_text(OWN)
    monkeypatch.syspath_prepend(str(folder))
    assert call("run", "own.yaml", "--quiet").exit_code == 0
    told = call("explain", "runs/own-1", "Bea", "2").stdout
    assert "highest bid      7" in told
    assert "a lamp" in told
    assert "BID: price 8" in told


def test_a_run_is_explained_while_it_goes_on(folder: Path) -> None:
    run = start_command(
        "run", "slow.yaml", *AWAKE, "--set", "mind.latency.median_ms=60", "--set", "rounds=200", cwd=folder
    )
    try:
        for rounds in (2, 4, 6):
            wait_until(partial(has_come_to, folder / "runs/small-1/twitter/actions.jsonl", rounds))
            found = answer("explain", "runs/small-1", "3", str(rounds), "--world", "twitter")
            assert found["explanations"][0]["reply"]["matches"]
    finally:
        run.terminate()
        run.communicate()


# diff


def test_a_fork_and_its_parent_part_at_the_injected_post(run: str, fork: str) -> None:
    result = call("diff", run, fork)
    assert result.exit_code == 0, result.stderr
    assert "injected" in result.stdout
    assert "first difference  round 2, 2026-03-02 19:00" in result.stdout
    assert "+ CREATE_POST" in result.stdout
    assert f"{name_of(run, 0)} (0) in round 2, by what was made to happen" in result.stdout
    found = answer("diff", run, fork)
    assert found["same"] is False
    assert [world["first"]["round"] for world in found["worlds"]] == [2, 2]
    assert {"round", "pictures", "acted", "reached", "acting"} == set(found["worlds"][0]["by_round"][0])


def test_equal_runs_are_the_same_and_show_their_digest(run: str) -> None:
    result = call("diff", run, run)
    digest = answer("diff", run, run)["worlds"][0]["digests"][0]
    assert f"the same up to round 5, digest {digest}" in result.stdout


def test_a_comparison_can_end_early(run: str, fork: str) -> None:
    assert call("diff", run, fork, "--rounds", "1").stdout.count("the same up to round 1") == 2


def test_different_lengths_and_worlds_of_runs_are_reported(run: str) -> None:
    call("run", "small.yaml", "--quiet", "--rounds", "2", "--set", "worlds=[twitter]", "--out", "runs/short")
    told = call("diff", run, "runs/short").stdout
    assert "they have 5 and 2 rounds; 2 are compared" in told
    assert f"only {run} has reddit" in told
    assert "rounds: 5 -> 2" in told
