"""How much of the prompts repeats the beginning of an earlier one."""

from __future__ import annotations

import pytest

from shoal.agents.language import prefix_stats
from shoal.agents.language.prefix_stats import BLOCK_CHARS, PrefixMeter, PrefixShare, total_share

SHARED = "s" * 1000
MINE = "m" * (2 * BLOCK_CHARS)
YOURS = "y" * (2 * BLOCK_CHARS)
TAIL = "t" * (5 * BLOCK_CHARS)


def test_a_first_prompt_repeats_nothing() -> None:
    prefixes = PrefixMeter()
    prefixes.add(0, SHARED, MINE)
    assert (prefixes.total.own, prefixes.total.any) == (0, 0)
    assert prefixes.total.characters == len(SHARED + MINE)


def test_another_agent_repeats_what_all_share_and_the_same_agent_what_is_its_own_too() -> None:
    prefixes = PrefixMeter()
    prefixes.add(0, SHARED, MINE)
    prefixes.add(1, SHARED, YOURS)
    assert (prefixes.total.own, prefixes.total.any) == (0, len(SHARED))
    prefixes.add(0, SHARED, MINE + TAIL)
    assert (prefixes.total.own, prefixes.total.any) == (len(SHARED + MINE), len(SHARED + SHARED + MINE))


def test_what_comes_after_a_difference_does_not_count() -> None:
    prefixes = PrefixMeter()
    prefixes.add(0, SHARED, TAIL)
    prefixes.add(0, "x" + SHARED[1:], TAIL)
    assert prefixes.total.any == 0


def test_only_whole_blocks_count() -> None:
    prefixes = PrefixMeter()
    prefixes.add(0, SHARED, "abc")
    prefixes.add(0, SHARED, "abc")
    assert prefixes.total.any == len(SHARED)
    assert prefixes.total.any_share == len(SHARED) / (2 * len(SHARED + "abc"))


def test_what_is_used_again_and_again_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_stats, "_MAX_BLOCKS", 10)
    prefixes = PrefixMeter()
    for agent in range(100):
        prefixes.add(agent, SHARED, f"{agent:03}" * BLOCK_CHARS)
    assert prefixes.total.any == 99 * len(SHARED)


def test_there_is_no_share_of_nothing() -> None:
    assert (PrefixMeter().total.own_share, PrefixMeter().total.any_share) == (0.0, 0.0)


def test_worlds_are_added_up_by_their_characters() -> None:
    total = total_share([PrefixShare(1, 100, 50, 60), PrefixShare(2, 300, 50, 140)])
    assert total.as_dict() == {
        "prompts": 3,
        "characters": 400,
        "own": 100,
        "any": 200,
        "own_share": 0.25,
        "any_share": 0.5,
    }
