"""Comparing two runs: where they part, and which agents were reached through which others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import QueryFailed
from shoal.runs.directory import RunDirectory
from shoal.runs.operations import create_run
from shoal.runs.rerun.diff import Diff, WorldDiff, diff_runs
from shoal.scenario.loading import validate
from shoal.types import Event, Notice
from tests.engine.harness import crowd, village
from tests.runs.harness import branch, start, stop_after
from tests.runs.test_fork import PEOPLE, make_scripted, number_post
from tests.runs.test_worker import ASKING, RUMOUR

POST = {"post": "the bridge is closed", "by": "Ada", "round": 3}


def compare(folder: Path, one: str = "parent", other: str = "child", rounds: int | None = None) -> Diff:
    return asyncio.run(diff_runs(RunDirectory(folder / one), RunDirectory(folder / other), rounds))


def world_of(found: Diff) -> WorldDiff:
    (world,) = found.worlds
    return world


def list_reached(world: WorldDiff) -> list[tuple[str, int, str, str | None]]:
    """List name, round, cause and the name of the agent that led to it."""
    names = {who.agent: who.name for who in world.reached}
    return [(who.name, who.round, who.how, None if who.via is None else names[who.via]) for who in world.reached]


# The same


@pytest.mark.parametrize("scenario", [RUMOUR, ASKING], ids=["heuristic", "journaled"])
def test_equal_runs_do_not_part(tmp_path: Path, scenario: dict[str, Any]) -> None:
    start(scenario, tmp_path / "parent")
    start(scenario, tmp_path / "again")
    found = compare(tmp_path, other="again")
    assert found.same
    assert found.declared == ()
    assert [(world.world, world.first, world.by_round) for world in found.worlds] == [
        ("twitter", None, ()),
        ("reddit", None, ()),
    ]
    assert all(world.digests[0] == world.digests[1] != "" for world in found.worlds)


def test_a_run_that_asks_outside_and_one_that_does_not_are_the_same_history(tmp_path: Path) -> None:
    start(RUMOUR, tmp_path / "parent")
    start(ASKING, tmp_path / "child")
    found = compare(tmp_path)
    assert found.same
    assert {field.path for field in found.declared} == {"mind.latency.median_ms", "mind.latency.sigma"}


# One injected post


def test_the_first_difference_is_the_injected_post_and_it_spreads_along_follows(tmp_path: Path) -> None:
    """Bea reads Ada and reposts her post, Cid reads Bea and answers. Dan only reads Cid, and Eve follows no one."""
    turns = [
        {"round": 5, "agent": "Bea", "action": "REPOST", "args": {"post_id": number_post(3, "Ada")}},
        {"round": 6, "agent": "Cid", "action": "CREATE_COMMENT",
         "args": {"post_id": number_post(3, "Ada"), "content": "really?"}},
    ]  # fmt: skip
    start(make_scripted(turns), tmp_path / "parent")
    branch(tmp_path / "parent", tmp_path / "child", at=3, injected=[POST])
    found = compare(tmp_path)
    world = world_of(found)
    assert world.first is not None
    assert world.first.round == 3
    (difference,) = world.first.differences
    assert (difference.what, difference.name, difference.one) == ("happening", "Ada", None)
    assert isinstance(difference.other, Event)
    assert difference.other.action_args["content"] == "the bridge is closed"
    assert list_reached(world) == [
        ("Ada", 3, "happening", None),
        ("Bea", 5, "saw", "Ada"),
        ("Cid", 6, "saw", "Bea"),
    ]
    assert world.deepest == ("Ada", "Bea", "Cid")
    assert [(field.path, field.since, field.one) for field in found.declared] == [("injected", 3, None)]


def test_pictures_change_before_anybody_acts_on_them(tmp_path: Path) -> None:
    start(make_scripted([]), tmp_path / "parent")
    branch(tmp_path / "parent", tmp_path / "child", at=3, injected=[POST])
    world = world_of(compare(tmp_path))
    bea = PEOPLE.index("Bea")
    assert [(row.round, row.pictures, row.acted) for row in world.by_round[:3]] == [
        (3, (), ()),
        (4, (bea,), ()),
        (5, (bea,), ()),
    ]
    assert (world.saw_differently, world.acted_differently) == (1, 0)


@pytest.mark.parametrize("visibility", [1, 2])
def test_in_a_crowd_every_chain_ends_at_the_injected_post(tmp_path: Path, visibility: int) -> None:
    start(crowd(40, visibility, rounds=9), tmp_path / "parent")
    event = {"post": "It is not true, the old bridge stays open!", "by": 0, "round": 3}
    branch(tmp_path / "parent", tmp_path / "child", at=3, injected=[event])
    world = world_of(compare(tmp_path))
    when = {who.agent: who.round for who in world.reached}
    assert {who.agent for who in world.reached if who.how == "happening"} == {0}
    assert not [who for who in world.reached if who.how == "scenario"]
    for who in world.reached:
        if who.via is not None:
            assert when[who.via] <= who.round - visibility
            assert who.depth == next(other.depth for other in world.reached if other.agent == who.via) + 1
    acted = {agent for row in world.by_round for agent in row.acted}
    assert acted <= set(when)
    assert len(acted) > 10
    assert len([who for who in world.reached if who.how in ("saw", "reaction")]) > 0.8 * len(acted)


def test_an_agent_that_sees_only_a_like_is_reached_through_its_giver(tmp_path: Path) -> None:
    """Bea gets a notice and likes Ada's old post. Cid, who reads Ada, sees one like more and does what he sees."""
    scenario = village(["Ada", "Bea", "Cid"], [("Bea", "Ada"), ("Cid", "Ada")], rounds=5)
    scenario["mind"] = {"kind": f"{MINDS}:Liking"}
    start(scenario, tmp_path / "parent")
    branch(tmp_path / "parent", tmp_path / "child", 2, injected=[{"broadcast": "psst", "to": ["Bea"], "round": 2}])
    assert list_reached(world_of(compare(tmp_path))) == [("Bea", 2, "happening", None), ("Cid", 3, "reaction", "Bea")]


# Other causes


def test_a_difference_begins_with_the_agent_that_gets_a_notice(tmp_path: Path) -> None:
    start(crowd(20, rounds=6), tmp_path / "parent")
    event = {"broadcast": "The old bridge stays open, they lied!", "to": [4], "round": 3}
    branch(tmp_path / "parent", tmp_path / "child", at=3, injected=[event])
    world = world_of(compare(tmp_path))
    assert world.first is not None
    assert isinstance(world.first.differences[0].other, Notice)
    assert [(difference.what, difference.agent) for difference in world.first.differences[:2]] == [
        ("happening", None),
        ("picture", 4),
    ]
    assert [who.agent for who in world.reached if who.depth == 0 and who.how != "totals"] in ([4], [])


def test_a_changed_scenario_is_named_field_by_field_and_is_the_cause(tmp_path: Path) -> None:
    start(crowd(20, rounds=6), tmp_path / "parent")
    branch(tmp_path / "parent", tmp_path / "child", 3, ["mind.talkativeness=5", "worlds.twitter.feed.followed=1"])
    found = compare(tmp_path)
    assert {(field.path, field.since, field.other) for field in found.declared} == {
        ("mind.talkativeness", 3, 5.0),
        ("worlds.twitter.feed.followed", 3, 1),
    }
    world = world_of(found)
    assert world.first is not None
    assert world.first.round == 3
    assert {who.how for who in world.reached if who.round == 3} == {"scenario"}


def test_a_fork_that_only_goes_on_for_longer_is_not_the_cause_of_anything(tmp_path: Path) -> None:
    start(crowd(20, rounds=6), tmp_path / "parent")
    event = {"post": "It is not true, the old bridge stays open!", "by": 0, "round": 3}
    branch(tmp_path / "parent", tmp_path / "child", 3, ["rounds=8", "max_workers=3"], [event])
    found = compare(tmp_path)
    assert {field.path for field in found.declared} == {"rounds", "max_workers", "injected"}
    assert {who.how for who in world_of(found).reached} <= {"happening", "saw", "reaction", "totals"}


def test_populations_of_different_size_are_compared_by_number(tmp_path: Path) -> None:
    start(crowd(4, rounds=3), tmp_path / "parent")
    start(crowd(6, rounds=3), tmp_path / "child")
    for one, other in (("parent", "child"), ("child", "parent")):
        world = world_of(compare(tmp_path, one, other))
        assert {who.agent for who in world.reached} == set(range(6))
        assert {row.acting for row in world.by_round if row.round} == {(4, 6) if one == "parent" else (6, 4)}


def test_runs_of_two_seeds_part_at_once(tmp_path: Path) -> None:
    start(crowd(10, rounds=3), tmp_path / "parent")
    start(crowd(10, rounds=3, seed=5), tmp_path / "child")
    found = compare(tmp_path)
    assert not found.same
    assert [(field.path, field.other) for field in found.declared] == [("seed", 5)]
    first = world_of(found).first
    assert first is not None
    assert first.round <= 1


def test_a_turn_that_only_one_run_has_is_a_difference(tmp_path: Path) -> None:
    start(make_scripted([]), tmp_path / "parent")
    branch(tmp_path / "parent", tmp_path / "child", 3, injected=[{"mute": ["Dan"], "rounds": 1, "round": 3}])
    world = world_of(compare(tmp_path))
    assert world.first is not None
    muted = world.first.differences[1]
    assert (muted.what, muted.name, muted.one, muted.other) == ("turn", "Dan", True, False)
    assert list_reached(world) == [("Dan", 3, "happening", None)]


def test_where_people_take_turns_one_by_one_it_spreads_within_a_round(tmp_path: Path) -> None:
    scenario = village(["Ada", "Bea", "Cid"], rounds=3) | {
        "worlds": {"room": {"kind": "room", "turns": "sequential", "order": "listed"}},
        "mind": {"kind": f"{MINDS}:Echoing"},
    }
    start(scenario, tmp_path / "parent")
    branch(tmp_path / "parent", tmp_path / "child", 2, injected=[{"think": "fire!", "to": ["Ada"], "round": 2}])
    assert list_reached(world_of(compare(tmp_path)))[:2] == [("Ada", 2, "happening", None), ("Bea", 2, "saw", "Ada")]


def test_in_a_dialogue_it_goes_from_one_to_the_other(tmp_path: Path) -> None:
    scenario = {
        "topic": "the old bridge",
        "rounds": 8,
        "population": [{"name": "Ada"}, {"name": "Bea"}, {"name": "Cid"}, {"name": "Dan"}],
        "worlds": {"talk": {"kind": "dialogue", "pairs": [["Ada", "Bea"], ["Cid", "Dan"]], "turns": 8}},
    }
    start(scenario, tmp_path / "parent")
    event = {"change": {"stance": -1}, "to": ["Ada"], "round": 2}
    branch(tmp_path / "parent", tmp_path / "child", 2, injected=[event])
    assert [(name, via) for name, _, _, via in list_reached(world_of(compare(tmp_path)))] == [
        ("Ada", None),
        ("Bea", "Ada"),
    ]


# How far


def test_runs_of_different_length_are_compared_as_far_as_both_go(tmp_path: Path) -> None:
    directory = create_run(validate(ASKING), tmp_path / "child")
    with pytest.raises(QueryFailed, match="has been committed yet"):
        compare(tmp_path, "child", "child")
    stop_after(directory, 3)
    start(ASKING, tmp_path / "parent")
    found = compare(tmp_path)
    assert not found.same
    for world in found.worlds:
        assert world.first is None
        assert world.has[0] == ASKING["rounds"]
        assert world.rounds == world.has[1] < world.has[0]


def test_a_limit_ends_the_comparison_before_the_runs_part(tmp_path: Path) -> None:
    start(make_scripted([]), tmp_path / "parent")
    branch(tmp_path / "parent", tmp_path / "child", at=3, injected=[POST])
    assert world_of(compare(tmp_path, rounds=2)).first is None
    assert world_of(compare(tmp_path, rounds=3)).first is not None


def test_worlds_that_only_one_run_has_are_named(tmp_path: Path) -> None:
    start({**RUMOUR, "rounds": 3}, tmp_path / "parent")
    start({**RUMOUR, "rounds": 3, "worlds": ["reddit"]}, tmp_path / "child")
    found = compare(tmp_path)
    assert (found.only_one, found.only_other, found.same) == (("twitter",), (), False)
    assert [world.world for world in found.worlds] == ["reddit"]


def test_a_comparison_changes_nothing_on_disk(tmp_path: Path) -> None:
    start(make_scripted([]), tmp_path / "parent")
    branch(tmp_path / "parent", tmp_path / "child", at=3, injected=[POST])
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    compare(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


MINDS = "tests.runs.minds"
