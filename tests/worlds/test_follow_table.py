"""The follow graph against a plain set of pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.seeds import Draws, derive
from shoal.worlds.social.follow_table import FollowTable
from tests.worlds.context import graph

PEOPLE = 3
Pair = tuple[int, int]

pairs = st.tuples(st.integers(0, PEOPLE - 1), st.integers(0, PEOPLE - 1))
#: A pair changes sides; None stands for merging.
changes = st.lists(pairs | st.none(), max_size=60)


def everything_agrees(follows: FollowTable, truth: set[Pair], people: int) -> None:
    who, whom = (axis.ravel() for axis in np.divmod(np.arange(people * people), people))
    expected = [(int(a), int(b)) in truth for a, b in zip(who, whom, strict=True)]
    assert follows.are(who, whom).tolist() == expected
    assert [follows.has(int(a), int(b)) for a, b in zip(who, whom, strict=True)] == expected
    assert follows.followings.tolist() == [sum(a == agent for a, _ in truth) for agent in range(people)]
    assert follows.followers.tolist() == [sum(b == agent for _, b in truth) for agent in range(people)]
    assert table_and_changes(follows, people) == truth


def table_and_changes(follows: FollowTable, people: int) -> set[Pair]:
    starts, targets = follows.starts, follows.targets
    table = {
        (agent, int(target))
        for agent in range(people)
        for target in targets[int(starts[agent]) : int(starts[agent + 1])]
    }
    added, removed = ({divmod(int(key), people) for key in keys} for keys in follows.changes())
    assert not added & table
    assert removed <= table
    return (table | added) - removed


def toggle(follows: FollowTable, truth: set[Pair], pair: Pair) -> None:
    if pair in truth:
        truth.remove(pair)
        follows.remove(*pair)
    else:
        truth.add(pair)
        follows.add(*pair)


@given(st.sets(pairs), changes)
def test_changes_and_merges_in_any_order_leave_the_same_graph(start: set[Pair], steps: list[Pair | None]) -> None:
    follows, truth = FollowTable(graph(PEOPLE, start)), set(start)
    for step in steps:
        if step is None:
            follows.merge()
            assert [len(keys) for keys in follows.changes()] == [0, 0]
        else:
            toggle(follows, truth, step)
        everything_agrees(follows, truth, PEOPLE)
    follows.merge()
    everything_agrees(follows, truth, PEOPLE)


def test_what_was_taken_away_and_given_back_is_no_change() -> None:
    follows, truth = FollowTable(graph(3, [(0, 1)])), {(0, 1)}
    for pair in ((0, 1), (0, 1), (1, 2), (1, 2)):
        toggle(follows, truth, pair)
        everything_agrees(follows, truth, 3)
    assert [len(keys) for keys in follows.changes()] == [0, 0]


def test_rows_stay_sorted_when_merged() -> None:
    follows = FollowTable(graph(4, [(0, 2), (1, 0)]))
    for followed in (3, 1):
        follows.add(0, followed)
    follows.merge()
    starts, targets = follows.starts, follows.targets
    assert (starts.tolist(), targets.tolist()) == ([0, 3, 4, 4, 4], [1, 2, 3, 0])


def test_many_changes_are_merged_when_settling_and_few_are_not() -> None:
    people = 150
    draws = Draws(derive(1, "follows"))
    follows, truth = FollowTable(graph(people, ())), set[Pair]()
    for _ in range(4096):
        toggle(follows, truth, (draws.below(people), draws.below(people)))
    before = len(follows.changes()[0])
    follows.settle()
    assert len(follows.changes()[0]) == before == len(truth)
    while len(truth) <= 4096:
        toggle(follows, truth, (draws.below(people), draws.below(people)))
    follows.settle()
    assert len(follows.changes()[0]) == 0
    everything_agrees(follows, truth, people)


def test_a_graph_that_is_shared_is_not_changed() -> None:
    shared = graph(3, [(0, 1), (1, 2)])
    one, other = FollowTable(shared), FollowTable(shared)
    one.remove(0, 1)
    one.add(2, 0)
    one.merge()
    everything_agrees(other, {(0, 1), (1, 2)}, 3)
    assert shared.targets.tolist() == [1, 2]


def test_a_graph_may_have_no_edges() -> None:
    everything_agrees(FollowTable(graph(3, ())), set(), 3)
