"""Interventions: their events, when they happen, and that they are deterministic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.errors import EveryTurnFailed, ScenarioInvalid
from shoal.journal import Journal
from shoal.runs.directory import RunDirectory, read_outcome
from shoal.runs.operations import create_run
from shoal.runs.state import Status
from shoal.runs.worker import build_from
from shoal.scenario.declared.interventions import Intervention
from shoal.scenario.loading import validate
from shoal.scenario.validation.report import check
from tests.engine.harness import crowd, village
from tests.runs.harness import branch, check_consistency, go_on, list_asked, read_lines, repeat, start, stop_after

PEOPLE = ["Ada", "Ben", "Cid"]


def make_turn(round: int, who: str, words: str) -> dict[str, Any]:
    return {"round": round, "agent": who, "action": "CREATE_POST", "args": {"content": words}}


#: Ada speaks of the bridge in round 2, Ben in every round.
TURNS = [make_turn(2, "Ada", "the bridge"), *(make_turn(round, "Ben", "hello") for round in range(1, 7))]


def make_scenario(*interventions: dict[str, Any], **more: Any) -> dict[str, Any]:
    edges = [("Ben", "Ada"), ("Cid", "Ada")]
    mind = {"kind": "scripted", "turns": TURNS}
    return village(PEOPLE, edges, rounds=6, mind=mind, interventions=list(interventions), **more)


def run_with(path: Path, *interventions: dict[str, Any], world: str = "twitter", **more: Any) -> list[dict[str, Any]]:
    """Run a scenario with these interventions, and return the lines of a world's stream."""
    start(make_scenario(*interventions, **more), path)
    check_consistency(path, finished=True)
    return read_lines(path / world / "actions.jsonl")


def list_notices(lines: list[dict[str, Any]]) -> list[tuple[int, str, str]]:
    """Return round, kind and content of every notice of an event or intervention."""
    markers = ("simulation_start", "simulation_end", "round_start", "round_end")
    return [
        (line["round"], line["event_type"], line["content"])
        for line in lines
        if "event_type" in line and line["event_type"] not in markers
    ]


# Each effect


def test_a_broadcast_comes_in_the_round_after_the_condition_holds(tmp_path: Path) -> None:
    rule = {"when": 'said("bridge") > 0', "do": {"broadcast": "Calm down.", "to": ["Cid"]}, "name": "calming"}
    lines = run_with(tmp_path / "run", rule)
    assert list_notices(lines) == [(3, "intervention", "calming"), (3, "broadcast", "Calm down.")]
    assert next(line["to"] for line in lines if line.get("event_type") == "broadcast") == [2]


def test_an_intervention_without_a_name_is_named_by_its_condition(tmp_path: Path) -> None:
    rule = {"when": 'said("bridge") > 0', "do": {"broadcast": "Calm down."}}
    assert list_notices(run_with(tmp_path / "run", rule))[0] == (3, "intervention", 'said("bridge") > 0')


def test_a_post_has_the_author_that_the_event_names(tmp_path: Path) -> None:
    rule = {"when": "round >= 3", "do": {"post": "Now I speak.", "by": "Cid"}}
    lines = run_with(tmp_path / "run", rule)
    posts = [(line["round"], line["agent_name"]) for line in lines
             if line.get("action_args", {}).get("content") == "Now I speak."]  # fmt: skip
    assert posts == [(4, "Cid")]


def test_a_mute_lasts_for_the_given_number_of_rounds(tmp_path: Path) -> None:
    lines = run_with(tmp_path / "run", {"when": "round >= 2", "do": {"mute": ["Ben"], "rounds": 2}})
    assert [line["round"] for line in lines if line.get("agent_name") == "Ben"] == [1, 2, 5, 6]
    assert (3, "mute", "for 2 rounds") in list_notices(lines)


def test_a_stop_ends_the_world_in_a_round_without_actions(tmp_path: Path) -> None:
    lines = run_with(tmp_path / "run", {"when": 'total("CREATE_POST") >= 4', "do": {"stop": "enough was said"}})
    assert [line["round"] for line in lines if line.get("event_type") == "round_end"] == [0, 1, 2, 3, 4]
    assert list_notices(lines)[-1] == (4, "stop", "enough was said")
    assert not [line for line in lines if line.get("round") == 4 and "agent_id" in line]
    assert (lines[-1]["event_type"], lines[-1]["total_rounds"]) == ("simulation_end", 4)
    state = RunDirectory(tmp_path / "run").read_state()
    assert (state.runner_status, state.progress_percent) == (Status.COMPLETED, 100.0)


def test_the_mind_uses_a_changed_stance(tmp_path: Path) -> None:
    rule = {"when": "round >= 2", "do": {"change": {"stance": 1.0}}, "name": "turn"}
    watch = {"when": "round >= 3 and mean_opinion > 0.9", "do": {"broadcast": "All agree."}}
    scenario = crowd(8, rounds=6)
    scenario["population"]["stance"] = -0.8
    start({**scenario, "interventions": [rule, watch]}, tmp_path / "run")
    lines = read_lines(tmp_path / "run/twitter/actions.jsonl")
    made = list_notices(lines)
    assert [line["to"] for line in lines if line.get("event_type") == "change"] == [[]], "empty means everybody"
    assert made[:2] == [(3, "intervention", "turn"), (3, "change", "stance = 1.0")]
    assert (4, "broadcast", "All agree.") in made


def test_the_world_uses_a_changed_activity(tmp_path: Path) -> None:
    lines = run_with(tmp_path / "run", {"when": "round >= 2", "do": {"change": {"activity": 0.0}, "to": ["Ben", 2]}})
    assert [line["round"] for line in lines if line.get("agent_name") == "Ben"] == [1, 2]
    assert [line["round"] for line in lines if line.get("agent_name") == "Cid"] == [1, 2]
    assert [line["round"] for line in lines if line.get("agent_name") == "Ada"] == [1, 2, 3, 4, 5, 6]


def test_one_intervention_can_have_several_events_in_order(tmp_path: Path) -> None:
    doings = [{"broadcast": "One."}, {"mute": ["Ada"]}, {"broadcast": "Two."}]
    made = list_notices(run_with(tmp_path / "run", {"when": "round >= 1", "do": doings, "name": "all"}))
    assert [content for _, _, content in made] == ["all", "One.", "for 1 round", "Two."]


def test_a_condition_can_count_failures_of_minds(tmp_path: Path) -> None:
    """Outcomes are journaled, so that conditions on them are as repeatable as any other."""
    rule = {"when": "total_timeouts >= 4", "do": {"stop": "nobody answers"}}
    scenario = make_scenario(rule, deadline_seconds=0.02)
    scenario["mind"] = {"latency": {"median_ms": 5000, "sigma": 0}}
    with pytest.raises(EveryTurnFailed, match="all 6 turns"):
        start(scenario, tmp_path / "run")
    outcome = read_outcome(RunDirectory(tmp_path / "run"))
    assert (outcome.status, outcome.rounds, outcome.timeouts) == (Status.FAILED, 3, 6)
    assert repeat(RunDirectory(tmp_path / "run")).digest == outcome.digest


# How often, where


def test_times_and_pause_limit_how_often_an_intervention_happens(tmp_path: Path) -> None:
    rule = {"when": "round >= 1", "do": {"broadcast": "Again."}, "times": 2, "pause": 2}
    made = list_notices(run_with(tmp_path / "run", rule))
    assert [round for round, kind, _ in made if kind == "intervention"] == [2, 5]


def test_each_world_intervenes_by_itself_with_the_events_it_accepts(tmp_path: Path) -> None:
    rule = {"when": "actions > 0", "do": [{"broadcast": "Hear!"}, {"hear": "A bell."}, {"post": "Hm.", "by": "Ada"}]}
    worlds = {"twitter": None, "room": None}
    start({**village(PEOPLE, rounds=3, worlds=worlds, interventions=[rule])}, tmp_path / "run")
    kinds = {
        world: {kind for _, kind, _ in list_notices(read_lines(tmp_path / "run" / world / "actions.jsonl"))}
        for world in worlds
    }
    assert kinds["room"] == {"intervention", "broadcast", "hear"}
    assert kinds["twitter"] <= {"intervention", "broadcast"}


def test_an_intervention_can_be_limited_to_one_world(tmp_path: Path) -> None:
    rule = {"when": "round >= 1", "do": {"broadcast": "Hear!"}, "world": "room"}
    worlds = {"twitter": None, "room": None}
    start({**village(PEOPLE, rounds=3, worlds=worlds, interventions=[rule])}, tmp_path / "run")
    made = {world: list_notices(read_lines(tmp_path / "run" / world / "actions.jsonl")) for world in worlds}
    assert made["twitter"] == []
    assert [round for round, _, _ in made["room"]] == [2, 2]


def test_with_visibility_a_condition_sees_only_committed_rounds(tmp_path: Path) -> None:
    worlds = {"twitter": {"visibility": 3, "feed": {"recommendation": "none", "recommended": 0}}}
    rule = {"when": 'said("bridge") > 0', "do": {"broadcast": "Calm down."}}
    made = list_notices(run_with(tmp_path / "run", rule, worlds=worlds))
    assert [round for round, _, _ in made] == [5, 5]
    assert repeat(RunDirectory(tmp_path / "run")).status is Status.COMPLETED


@pytest.mark.parametrize("fact", ["mean_opinion", "opinion_spread"])
def test_conditions_on_opinions_are_refused_where_rounds_overlap(fact: str) -> None:
    rule = {"when": f"{fact} > 0", "do": {"broadcast": "Calm down."}}
    worlds = {"twitter": {"visibility": 2}, "reddit": {}}
    with pytest.raises(ScenarioInvalid, match=r"interventions\.0\.when: opinions are only known where visibility is 1"):
        validate(village(PEOPLE, worlds=worlds, interventions=[rule]))
    validate(village(PEOPLE, worlds=worlds, interventions=[{**rule, "world": "reddit"}]))


# The same, whatever happens to the run

#: Something of everything, on worlds whose rounds overlap and do not, with decisions that take time.
EVERYTHING: dict[str, Any] = {
    **crowd(12, rounds=8),
    "worlds": {"twitter": {"visibility": 3}, "reddit": None},
    "mind": {"latency": {"median_ms": 1, "sigma": 0.8}},
    "interventions": [
        {"when": 'total("CREATE_POST") > 4', "do": [{"post": "A rule!"}, {"change": {"stance": 1, "activity": 0.5}}]},
        {"when": "actions < 40", "do": {"mute": [0, 1, 2], "rounds": 2}, "times": 2, "pause": 1},
        {"when": "mean_opinion > -1", "do": {"broadcast": "We measured."}, "world": "reddit"},
        {"when": "round >= 6", "do": {"stop": "long enough"}, "world": "twitter"},
    ],
}


def test_interventions_do_not_depend_on_concurrency(tmp_path: Path) -> None:
    digests = {start({**EVERYTHING, "max_workers": n}, tmp_path / f"{n}").digest for n in (1, 5, 64)}
    assert len(digests) == 1
    made = list_notices(read_lines(tmp_path / "5/reddit/actions.jsonl"))
    assert {kind for _, kind, _ in made} == {"intervention", "change", "mute", "broadcast"}


def test_interventions_are_the_same_after_resume_and_replay(tmp_path: Path) -> None:
    whole = start(EVERYTHING, tmp_path / "whole")
    directory = create_run(validate(EVERYTHING), tmp_path / "stopped")
    for round in (2, 5):
        stop_after(directory, round)
        check_consistency(directory.path, finished=False)
    assert go_on(directory).digest == whole.digest
    check_consistency(directory.path, finished=True)
    assert repeat(directory).digest == whole.digest
    assert go_on(directory) == go_on(directory)


def test_a_fork_keeps_the_interventions_and_counters_of_its_parent(tmp_path: Path) -> None:
    rule = {"when": "round >= 1", "do": {"broadcast": "Again."}, "times": 3, "pause": 1}
    start(make_scenario(rule), tmp_path / "parent")
    branch(tmp_path / "parent", tmp_path / "child", 4, ["worlds.twitter.feed.followed=1"])
    made = [list_notices(read_lines(tmp_path / run / "twitter/actions.jsonl")) for run in ("parent", "child")]
    assert made[0] == made[1]
    assert [round for round, kind, _ in made[1] if kind == "broadcast"] == [2, 4, 6]


def test_a_fork_can_remove_or_add_an_intervention(tmp_path: Path) -> None:
    rule = {"when": "round >= 1", "do": {"broadcast": "Again."}, "times": 9}
    start(make_scenario(rule), tmp_path / "parent")
    branch(tmp_path / "parent", tmp_path / "less", 4, ["interventions=[]"])
    made = list_notices(read_lines(tmp_path / "less/twitter/actions.jsonl"))
    assert [round for round, kind, _ in made if kind == "broadcast"] == [2, 3]
    new = 'interventions=[{"when": "total_said(\\"bridge\\") > 0", "do": {"broadcast": "Late."}}]'
    branch(tmp_path / "parent", tmp_path / "other", 5, [new])
    made = list_notices(read_lines(tmp_path / "other/twitter/actions.jsonl"))
    assert [(round, content) for round, kind, content in made if kind == "broadcast"][-1] == (5, "Late.")
    assert all(int(key.split("/")[1]) >= 5 for key in list_asked(tmp_path / "other"))


def test_a_random_author_of_an_intervention_is_drawn_once(tmp_path: Path) -> None:
    rule = {"when": "round >= 2", "do": {"post": "By somebody."}}
    authors = []
    for n in (1, 2):
        lines = run_with(tmp_path / f"{n}", rule)
        authors += [line["agent_id"] for line in lines
                    if line.get("action_args", {}).get("content") == "By somebody."]  # fmt: skip
    assert len(authors) == 2
    assert authors[0] == authors[1]


async def test_a_run_without_interventions_watches_nothing(tmp_path: Path) -> None:
    directory = create_run(validate(make_scenario()), tmp_path / "run")
    async with Journal.open(directory.journal) as journal:
        assert not build_from(directory, journal).schedules["twitter"].watches


@pytest.mark.parametrize(
    ("declared", "title"),
    [
        ({"when": "round > 3", "do": {"stop": "x"}}, "round > 3"),
        ({"check": "my:fine", "do": {"stop": "x"}}, "my:fine"),
        (
            {"when": "round > 3", "check": "my:fine", "judge": "All agree.", "call": "my:news"},
            "round > 3 and my:fine and All agree.",
        ),
        ({"when": "round > 3", "do": {"stop": "x"}, "name": "end"}, "end"),
    ],
)
def test_an_intervention_is_called_by_its_condition_unless_it_has_a_name(declared: dict[str, Any], title: str) -> None:
    assert Intervention.model_validate(declared).title == title


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({"when": "round > 3"}, "nothing happens"),
        ({"do": {"stop": "x"}}, "it needs `when`"),
        ({"check": "fine", "do": {"stop": "x"}}, "a function as module:function"),
        ({"judge": {"claim": "x", "at_least": 10}, "do": {"stop": "x"}}, "at_least"),
        ({"judge": {"claim": "x", "every": 0}, "do": {"stop": "x"}}, "every"),
    ],
)
def test_an_intervention_needs_a_condition_and_something_that_happens(declared: dict[str, Any], problem: str) -> None:
    _, problems = check({"population": {"count": 3}, "interventions": [declared]})
    assert problem in " ".join(map(str, problems))
