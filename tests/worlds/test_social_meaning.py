"""Recommendation and search by what posts mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.models.local import WordTable
from tests.models.local.small_table import write_small_table
from tests.worlds.drivers import PlatformDriver, ids, make_feed


@pytest.fixture
def table(tmp_path: Path) -> WordTable:
    return write_small_table(tmp_path)


def make_platform(table: WordTable | None) -> PlatformDriver:
    feed = make_feed(recommended=2, recommendation="meaning", relevance=1)
    return PlatformDriver(feed=feed, search="meaning", embed=None if table is None else table.embed)


def test_people_are_recommended_what_is_like_their_own_posts(table: WordTable) -> None:
    platform = make_platform(table)
    cake, river = platform.post(0, "the cake"), platform.post(1, "the river")
    platform.post(4, "bread")
    platform.post(5, "the bridge")

    assert ids(platform.look(4).recommended)[0] == cake
    assert ids(platform.look(5).recommended)[0] == river


def test_what_is_recommended_is_kept_in_the_table_of_oasis(table: WordTable) -> None:
    platform = make_platform(table)
    cake = platform.post(0, "the cake")
    platform.post(4, "bread")

    kept = platform.rows("SELECT user_id, post_id FROM rec")

    assert (4, cake) in kept
    assert (0, cake) not in kept
    assert all(len([post for user, post in kept if user == agent]) <= 2 for agent in range(6))


def test_a_search_by_meaning_finds_other_words(table: WordTable) -> None:
    platform = make_platform(table)
    cake = platform.post(0, "the cake")
    platform.post(1, "the bridge")
    platform.succeed(3, "SEARCH_POSTS", query="bread")

    assert ids(platform.answer(3).posts) == [cake]


def test_a_search_by_meaning_finds_nothing_where_nothing_is_alike(table: WordTable) -> None:
    platform = make_platform(table)
    platform.succeed(3, "SEARCH_POSTS", query="bread")
    assert not platform.answer(3).posts
    platform.post(1, "the bridge")
    platform.succeed(3, "SEARCH_POSTS", query="cake")
    assert not platform.answer(3).posts


def test_where_meaning_cannot_be_compared_interests_and_words_stand_in() -> None:
    platform = make_platform(None)
    cake = platform.post(0, "the cake")
    platform.succeed(3, "SEARCH_POSTS", query="cake")

    assert ids(platform.answer(3).posts) == [cake]
    assert ids(platform.look(4).recommended) == [cake]
    assert platform.rows("SELECT * FROM rec") == []
