"""An explanation is what the agent really saw and decided, and asking for it changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from shoal.agents.wrappers import WrapperMind
from shoal.errors import QueryFailed
from shoal.runs.directory import RunDirectory
from shoal.runs.operations import create_run
from shoal.runs.rerun.explain import ExplainResult, Explanation, NoTurn, explain_turn
from shoal.scenario.build import build
from shoal.scenario.loading import validate
from shoal.types import Action, Decision, Event, Mind, Notice, Observation, Versioned
from tests.engine.harness import crowd, play, village
from tests.runs.harness import branch, start, stop_after
from tests.runs.test_worker import ASKING, RUMOUR

PEOPLE = ["Ada", "Bea", "Cid"]
TURNS = [
    {"round": 1, "agent": "Ada", "action": "CREATE_POST", "args": {"content": "good morning"}},
    {"round": 2, "agent": "Bea", "action": "LIKE_POST", "args": {"post_id": 99}},
]
SCRIPTED = village(PEOPLE, [("Bea", "Ada"), ("Cid", "Bea")], rounds=3, mind={"kind": "scripted", "turns": TURNS})
SLEEPY: dict[str, Any] = village(PEOPLE, rounds=4) | {
    "time": {"daily_rhythm": False, "start": "2026-03-02T08:00", "minutes_per_round": 60},
    "population": [
        {"name": "Ada", "activity": 1.0, "active_hours": "0-23"},
        {"name": "Bea", "activity": 1.0, "active_hours": "8,10"},
        {"name": "Cid", "activity": 0.0, "active_hours": "0-23"},
    ],
}


def ask(run: Path, agent: object, round: int, world: str | None = None) -> ExplainResult:
    return asyncio.run(explain_turn(RunDirectory(run), str(agent), round, world))


def turn(run: Path, agent: object, round: int, world: str = "twitter") -> Explanation:
    (found,) = ask(run, agent, round, world).explanations
    return found


def absence(run: Path, agent: object, round: int) -> NoTurn:
    (found,) = ask(run, agent, round, "twitter").absences
    return found


class TurnRecorder(WrapperMind):
    """Keeps every turn of a run."""

    def __init__(self, inner: Mind) -> None:
        super().__init__(inner)
        self.turns: dict[tuple[int, int], tuple[Observation, Decision]] = {}

    def absorb(self, observation: Observation, decision: Decision) -> None:
        self.turns[observation.round, observation.agent] = observation, decision
        super().absorb(observation, decision)


def record_turns(scenario: dict[str, Any], path: Path) -> dict[tuple[int, int], tuple[Observation, Decision]]:
    mind = TurnRecorder(build(Versioned(validate(scenario))).minds["twitter"])
    asyncio.run(play(scenario, path, mind))
    return mind.turns


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(crowd(6, rounds=3), id="heuristic"),
        pytest.param(crowd(6, rounds=3, mind={"latency": {"median_ms": 1}}), id="journaled"),
        pytest.param(crowd(6, visibility=2, rounds=4), id="seen two rounds later"),
        pytest.param(SCRIPTED, id="scripted"),
    ],
)
def test_every_turn_is_explained_as_it_really_was(scenario: dict[str, Any], tmp_path: Path) -> None:
    turns = record_turns(scenario, tmp_path / "journal.jsonl")
    start(scenario, tmp_path / "run")
    assert len(turns) >= 9
    for (round, agent), (saw, decision) in turns.items():
        found = turn(tmp_path / "run", agent, round)
        assert (found.saw, found.decision) == (saw, decision)


def test_an_explanation_has_the_results_of_actions_and_why_one_failed(tmp_path: Path) -> None:
    start(SCRIPTED, tmp_path / "run")
    posted, liked = turn(tmp_path / "run", "Ada", 1), turn(tmp_path / "run", "Bea", 2)
    assert [(event.action_type, event.success) for event in posted.events] == [("CREATE_POST", True)]
    assert liked.decision.actions == (Action("LIKE_POST", {"post_id": 99}),)
    (refused,) = liked.events
    assert not refused.success
    assert refused.result is not None
    assert "99" in refused.result


def test_what_the_mind_says_is_taken_before_it_decides(tmp_path: Path) -> None:
    """After its first text an agent has written one; an explanation of that turn must still count none."""
    scenario = crowd(10, rounds=4)
    start(scenario, tmp_path / "run")
    firsts = [turn(tmp_path / "run", agent, 1) for agent in range(10)]
    assert any(found.events[0].action_type == "CREATE_POST" for found in firsts)
    assert {found.rests_on["before"]["texts written"] for found in firsts} == {0}
    assert all(found.memory is not None for found in firsts)


def test_the_journals_answer_is_shown_and_its_request_is_made_anew(tmp_path: Path) -> None:
    start(ASKING, tmp_path / "parent")
    branch(tmp_path / "parent", tmp_path / "child", at=2)
    for run, source in (("parent", None), ("child", "parent")):
        found = turn(tmp_path / run, 3, 4)
        assert found.reply is not None
        assert found.reply.key == "twitter/4/3/decide/0"
        assert found.reply.matches
        assert found.reply.inherited_from == source
    assert turn(tmp_path / "parent", 3, 4).saw == turn(tmp_path / "child", 3, 4).saw


def test_a_mind_without_outside_calls_has_no_answer_in_the_journal(tmp_path: Path) -> None:
    start(RUMOUR, tmp_path / "run")
    assert turn(tmp_path / "run", 3, 4).reply is None


def test_events_since_the_last_turn_are_listed(tmp_path: Path) -> None:
    start(RUMOUR, tmp_path / "run")
    (post,) = turn(tmp_path / "run", 3, 1).happened
    assert isinstance(post, Event)
    assert post.action_args["content"].startswith("They say")
    assert turn(tmp_path / "run", 3, 2).happened == ()
    (notice,) = turn(tmp_path / "run", 3, 3).happened
    assert isinstance(notice, Notice)
    assert notice.content == "The bridge stays open."


def test_all_worlds_are_explained_unless_one_is_named(tmp_path: Path) -> None:
    start(RUMOUR, tmp_path / "run")
    assert [found.world for found in ask(tmp_path / "run", 0, 2).explanations] == ["twitter", "reddit"]
    assert [found.world for found in ask(tmp_path / "run", 0, 2, "reddit").explanations] == ["reddit"]


def test_an_explanation_changes_nothing_on_disk(tmp_path: Path) -> None:
    start(ASKING, tmp_path / "run")
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.rglob("*") if path.is_file()}
    turn(tmp_path / "run", 3, 4)
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


# People and rounds


def test_an_agent_is_found_by_number_by_name_and_by_name_in_other_letters(tmp_path: Path) -> None:
    start(SCRIPTED, tmp_path / "run")
    assert [ask(tmp_path / "run", who, 1).agent for who in ("1", "Bea", "bEA")] == [1, 1, 1]


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        ("Adda", "did you mean 'Ada'?"),
        ("3", "numbers 0 to 2"),
        ("-1", "numbers 0 to 2"),
        ("x", "there is no agent 'x'"),
    ],
)
def test_an_unknown_person_is_answered_with_the_nearest_or_the_numbers(tmp_path: Path, agent: str, told: str) -> None:
    start(SCRIPTED, tmp_path / "run")
    with pytest.raises(QueryFailed, match=told.replace("?", r"\?")):
        ask(tmp_path / "run", agent, 1)


def test_of_people_who_share_a_name_one_is_asked_for_by_number(tmp_path: Path) -> None:
    start(village(["Ada", "ada"], rounds=2), tmp_path / "run")
    assert ask(tmp_path / "run", "ada", 1).agent == 1
    with pytest.raises(QueryFailed, match="several people are called 'ADA'; name one by number: 0, 1"):
        ask(tmp_path / "run", "ADA", 1)


def test_a_missing_world_or_round_is_refused_with_what_there_is(tmp_path: Path) -> None:
    start(SCRIPTED, tmp_path / "run")
    with pytest.raises(QueryFailed, match="there is no world 'reddit'; there are twitter"):
        ask(tmp_path / "run", 0, 1, "reddit")
    with pytest.raises(QueryFailed, match="round 4 has not been committed; there are rounds 0 to 3"):
        ask(tmp_path / "run", 0, 4)


def test_a_run_that_was_stopped_is_explained_as_far_as_it_is_committed(tmp_path: Path) -> None:
    directory = create_run(validate(ASKING), tmp_path / "run")
    with pytest.raises(QueryFailed, match=r"no round of .* has been committed yet"):
        ask(tmp_path / "run", 0, 1)
    stop_after(directory, 3)
    start(ASKING, tmp_path / "whole")
    # Worlds go at their own pace: only one of them is sure to have come to round 3.
    found = ask(tmp_path / "run", 0, 3).explanations
    assert found
    assert all(one.saw == turn(tmp_path / "whole", 0, 3, one.world).saw for one in found)
    with pytest.raises(QueryFailed, match="has not been committed"):
        ask(tmp_path / "run", 0, 6)


# Agents without a turn


def test_an_agent_asleep_is_reported_with_its_nearest_turns(tmp_path: Path) -> None:
    start(SLEEPY, tmp_path / "run")
    found = absence(tmp_path / "run", "Bea", 2)
    assert (found.why, found.before, found.after) == ("asleep at 09:00", 1, 3)


def test_an_agent_that_is_never_drawn_has_no_nearest_turn(tmp_path: Path) -> None:
    start(SLEEPY, tmp_path / "run")
    found = absence(tmp_path / "run", "Cid", 2)
    assert "activity of 0.00" in found.why
    assert (found.before, found.after) == (None, None)


def test_a_muted_agent_is_reported_with_the_end_of_the_mute(tmp_path: Path) -> None:
    start({**SLEEPY, "events": [{"mute": ["Ada"], "rounds": 2, "round": 2}]}, tmp_path / "run")
    found = absence(tmp_path / "run", "Ada", 3)
    assert (found.why, found.before, found.after) == ("muted until round 4", 1, 4)


def test_no_agent_has_a_turn_in_round_0(tmp_path: Path) -> None:
    start(SLEEPY, tmp_path / "run")
    found = absence(tmp_path / "run", "Ada", 0)
    assert "round 0" in found.why
    assert (found.before, found.after) == (None, 1)


# Other worlds and minds


def test_a_room_is_explained_also_where_people_take_turns_one_by_one(tmp_path: Path) -> None:
    turns = [{"round": 1, "agent": "Ada", "action": "TALK", "args": {"content": "hello there"}}]
    room = {"room": {"kind": "room", "turns": "sequential", "order": "listed"}}
    scenario = {**SCRIPTED, "worlds": room, "mind": {"kind": "scripted", "turns": turns}}
    start(scenario, tmp_path / "run")
    found = turn(tmp_path / "run", "Bea", 1, "room")
    assert [(who, words) for who, words in found.saw.sources()] == [(0, ("hear", "hello there"))]


def test_in_a_dialogue_it_may_be_the_other_ones_turn(tmp_path: Path) -> None:
    scenario = {
        "rounds": 4,
        "population": [{"name": "Ada"}, {"name": "Bea"}],
        "worlds": {"talk": {"kind": "dialogue", "pairs": [["Ada", "Bea"]], "scenes": [{"setting": "a bench"}]}},
    }
    start(scenario, tmp_path / "run")
    first = [ask(tmp_path / "run", who, 1) for who in ("Ada", "Bea")]
    assert sorted(len(why.explanations) for why in first) == [0, 1]
    (waiting,) = next(why.absences for why in first if why.absences)
    assert "the other one's turn" in waiting.why
    assert waiting.after == 2


class Unexplained(Mind):
    """Cannot explain itself."""

    def decide(self, observation: Observation) -> Decision:
        return Decision((Action("DO_NOTHING"),))

    def explain(self, observation: Observation) -> Mapping[str, Any]:
        raise RuntimeError("who knows")


def test_a_mind_that_cannot_explain_itself_is_shown_all_the_same(tmp_path: Path) -> None:
    start({**SCRIPTED, "mind": {"kind": f"{__name__}:Unexplained"}}, tmp_path / "run")
    found = turn(tmp_path / "run", "Ada", 1)
    assert found.rests_on == {"cannot be explained": "RuntimeError: who knows"}
    assert found.decision.actions == (Action("DO_NOTHING"),)
