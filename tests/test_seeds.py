"""Derived randomness: the same everywhere, for ever, and in any order."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.seeds import Draws, derive, extend, hashes, uniforms

seeds = st.integers(-(2**63), 2**64 - 1)
numbers = st.integers(-(2**63), 2**63 - 1)
paths = st.lists(numbers | st.text(max_size=8), max_size=4)


@given(seeds, paths, paths)
def test_extending_a_path_is_deriving_the_longer_one(seed: int, first: list[int | str], more: list[int | str]) -> None:
    assert extend(derive(seed, *first), *more) == derive(seed, *first, *more)


@given(seeds, paths, st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8))
def test_arrays_of_hashes_are_what_derive_gives_one_by_one(
    seed: int, path: list[int | str], rows: list[tuple[int, int]]
) -> None:
    left, right = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    key = derive(seed, *path)
    assert hashes(key, left, right).tolist() == [derive(seed, *path, a, b) for a, b in rows]
    assert hashes(key, left).tolist() == [derive(seed, *path, a) for a, _ in rows]
    assert hashes(key, left, 5).tolist() == [derive(seed, *path, a, 5) for a, _ in rows]
    assert hashes(key, left[:, None], right[None, :])[0].tolist() == [
        derive(seed, *path, rows[0][0], b) for _, b in rows
    ]


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_the_width_of_the_numbers_does_not_matter(kind: type[np.integer]) -> None:
    assert hashes(9, np.arange(5, dtype=kind)).tolist() == [extend(9, n) for n in range(5)]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        # The first number that the published splitmix64 gives for seed 0.
        ((0,), 0xE220A8397B1DCDAF),
        ((7,), 7191089600892374487),
        ((7, "twitter", 12, 345, "decide"), 5108978142781755203),
        ((-1, -5), 14471453991991058856),
        ((2**64 - 1, ""), 9425609345220561043),
        ((7, "Straße"), 8829469607882085102),
    ],
)
def test_what_belongs_to_a_path_never_changes(path: tuple[int | str, ...], expected: int) -> None:
    """A run of an older version can be resumed only as long as this holds."""
    seed, *rest = path
    assert isinstance(seed, int)
    assert derive(seed, *rest) == expected


def test_arrays_and_sequences_of_draws_never_change() -> None:
    key = derive(7, "twitter")
    assert hashes(key, np.arange(3)).tolist() == [10134358215052039928, 16131975197225726041, 669712023488674259]
    assert uniforms(key, np.arange(3)).tolist() == [0.5493846596752869, 0.8745161277657203, 0.036305161540304165]
    draws = Draws(derive(7))
    assert [draws.below(100) for _ in range(5)] == [72, 64, 54, 60, 34]
    assert Draws(derive(7)).random() == 0.7215081806049702


def test_a_number_differs_from_its_text_and_order_counts() -> None:
    paths: list[tuple[int | str, ...]] = [
        (),
        (1,),
        ("1",),
        (1, 2),
        (2, 1),
        (12,),
        ("1", "2"),
        ("12",),
        (1, 2, 0),
        ("",),
    ]
    assert len({derive(7, *path) for path in paths}) == len(paths)


def test_drawing_for_one_agent_does_not_depend_on_the_others() -> None:
    key = derive(3, "twitter", 12)
    some, all_of_them = np.array([5, 90, 17]), np.arange(100)
    assert uniforms(key, some).tolist() == uniforms(key, all_of_them)[some].tolist()
    assert uniforms(key, all_of_them[::-1]).tolist() == uniforms(key, all_of_them)[::-1].tolist()


@pytest.mark.parametrize("seed", [0, 1, 2**40])
def test_numbers_are_spread_evenly_and_neighbours_are_unrelated(seed: int) -> None:
    drawn = uniforms(derive(seed, "evenly"), np.arange(100_000))
    assert 0 <= drawn.min() < drawn.max() < 1
    tenths = np.bincount((drawn * 10).astype(int), minlength=10)
    # Chi-square with 9 degrees of freedom: above 33.7 once in ten thousand.
    assert ((tenths - 10_000) ** 2 / 10_000).sum() < 33.7
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 0.015
    other = uniforms(derive(seed + 1, "evenly"), np.arange(100_000))
    assert abs(np.corrcoef(drawn, other)[0, 1]) < 0.015


def test_every_bit_of_a_hash_is_a_fair_coin() -> None:
    bits = (hashes(1, np.arange(20_000))[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    assert (np.abs(bits.mean(axis=0) - 0.5) < 0.02).all()


@given(st.integers(0, 2**64 - 1), st.integers(1, 1000))
def test_draws_stay_within_their_bounds(key: int, bound: int) -> None:
    draws = Draws(key)
    assert all(0 <= draws.random() < 1 for _ in range(10))
    assert all(0 <= draws.below(bound) < bound for _ in range(10))
    assert not draws.chance(0.0)
    assert draws.chance(1.0)
    assert draws.choice("abc") in "abc"


def test_a_sequence_of_draws_is_spread_evenly_and_can_be_repeated() -> None:
    first, again = Draws(5), Draws(5)
    drawn = [first.choice("abcd") for _ in range(8000)]
    assert [again.choice("abcd") for _ in range(8000)] == drawn
    assert all(abs(count - 2000) < 150 for count in Counter(drawn).values())
