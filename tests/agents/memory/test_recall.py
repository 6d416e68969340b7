"""What an agent is shown of its past."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.memory.memory import Memory
from shoal.agents.memory.past import LATELY, REMINDED
from shoal.agents.settings import MemorySettings
from shoal.models.tokens import estimate
from shoal.types import Versioned
from tests.agents.memory.turns import absorb_turns, memory, recall_each_round, shared_prefix, time, turn

#: What a prompt holds besides memory, at least: the rules of the world, who one is, what one sees.
REST_TOKENS = 1200


def recent_lines(text: str) -> list[str]:
    return text.partition(LATELY)[2].partition(REMINDED)[0].splitlines()


def reminded_lines(text: str) -> list[str]:
    return text.partition(REMINDED)[2].splitlines()


def test_memory_is_empty_before_the_first_turn() -> None:
    assert memory().recall(0, 1, "the bridge") == ""


def test_a_turn_is_remembered_word_for_word_with_its_time() -> None:
    mine = memory()
    mine.absorb(0, 3, "2026-01-02T14:30:00+00:00", "Ada said the bridge closes. You laughed.")
    assert mine.recall(0, 4, "") == f"{LATELY}- 2026-01-02 14:30 Ada said the bridge closes. You laughed.\n"


def test_agents_do_not_share_memories() -> None:
    mine = memory()
    mine.absorb(0, 1, time(1), "You found the key.")
    assert mine.recall(1, 2, "the key") == ""


def test_recent_turns_come_oldest_first_and_older_ones_after_them_in_order() -> None:
    mine = memory()
    absorb_turns(mine, range(1, 60))
    text = mine.recall(0, 60, turn(5))
    for lines in (recent_lines(text), reminded_lines(text)):
        turns = [int(line.split("Turn ")[1].split(".")[0]) for line in lines]
        assert len(turns) > 1
        assert turns == sorted(turns)
    assert recent_lines(text)[-1].endswith(turn(59))


def test_an_older_turn_counts_as_much_whether_or_not_anything_was_recalled_before() -> None:
    early, late = memory(), memory()
    absorb_turns(early, range(1, 30))
    early.recall(0, 30, turn(5))
    absorb_turns(early, range(30, 90))
    absorb_turns(late, range(1, 90))
    assert reminded_lines(early.recall(0, 90, turn(5))) == reminded_lines(late.recall(0, 90, turn(5)))


def test_nothing_is_left_out_as_long_as_everything_fits() -> None:
    mine = memory()
    for count in range(1, 7):
        mine.absorb(0, count, time(count), "You left.")
        assert mine.recall(0, count + 1, "the bridge").count("You left.") == count


def test_recalling_changes_nothing() -> None:
    mine, other = memory(), memory()
    for round in range(1, 40):
        for cue in range(3):
            mine.recall(0, round, turn(cue))
        absorb_turns(mine, range(round, round + 1))
        absorb_turns(other, range(round, round + 1))
    assert mine.recall(0, 40, turn(7)) == other.recall(0, 40, turn(7))


# bounded


@pytest.mark.parametrize("sentences", [1, 3, 8, 25])
async def test_memory_stops_growing_after_ten_turns(sentences: int) -> None:
    mine = memory()
    sizes = {}
    for round in range(1, 202):
        sizes[round] = estimate(mine.recall(0, round, turn(round + 1000, sentences)))
        absorb_turns(mine, range(round, round + 1), sentences=sentences)
    assert sizes[100] <= 1.1 * sizes[10]
    assert max(sizes.values()) <= 1.15 * sizes[10]


@pytest.mark.parametrize("every", [2, 3])
async def test_the_prompt_of_an_agent_that_seldom_acts_stays_bounded_too(every: int) -> None:
    mine = memory()
    sizes = {}
    for round in range(1, 202):
        sizes[round] = REST_TOKENS + estimate(mine.recall(0, round, turn(round + 1000)))
        if round % every == 0:
            absorb_turns(mine, range(round, round + 1))
    assert sizes[100] <= 1.1 * sizes[10]
    assert max(sizes.values()) <= 1.02 * sizes[100]


episodes = st.lists(st.tuples(st.text(max_size=400), st.floats(0, 3)), min_size=1, max_size=40)
budgets = st.builds(
    MemorySettings,
    recent_tokens=st.integers(50, 300),
    recalled_tokens=st.integers(0, 200),
    insights_tokens=st.integers(0, 100),
    episodes_kept=st.integers(1, 30),
    episodes_shown=st.integers(1, 20),
)


@given(budgets, episodes, st.text(max_size=100))
def test_memory_never_exceeds_its_budget_and_never_loses_the_newest_turn(
    settings: MemorySettings, lived: list[tuple[str, float]], cue: str
) -> None:
    mine = memory(settings)
    for round, (text, importance) in enumerate(lived, 1):
        mine.absorb(0, round, time(round), f"N{round} {text}", importance)
        remembered = mine.recall(0, round + 1, cue)
        assert estimate(remembered) <= settings.total_tokens
        assert f"{time(round)[:16].replace('T', ' ')} N{round}" in remembered


def test_a_turn_longer_than_the_budget_is_cut() -> None:
    mine = memory(MemorySettings(recent_tokens=50))
    mine.absorb(0, 1, time(1), "once upon a time " * 100)
    assert estimate(mine.recall(0, 2, "")) <= 50
    assert mine.recall(0, 2, "").endswith("…\n")


def test_the_oldest_turns_are_forgotten() -> None:
    mine = memory(MemorySettings(episodes_kept=20))
    mine.absorb(0, 1, time(1), "Zebedee hid the key.")
    absorb_turns(mine, range(2, 21))
    assert "Zebedee" in mine.recall(0, 21, "Where did Zebedee hide it?")
    absorb_turns(mine, range(21, 22))
    assert "Zebedee" not in mine.recall(0, 22, "Where did Zebedee hide it?")


def test_budgets_may_change_on_the_way() -> None:
    small = MemorySettings(recent_tokens=60, recalled_tokens=40, insights_tokens=0)
    settings = Versioned(MemorySettings(), ((30, small),))
    mine = Memory(settings, memory()._population, 7, "town", None)
    absorb_turns(mine, range(1, 30))
    assert mine.recall(0, 29, turn(3)) == _memory_after(29).recall(0, 29, turn(3))
    absorb_turns(mine, range(30, 31))
    assert estimate(mine.recall(0, 31, turn(3))) <= small.total_tokens


def _memory_after(rounds: int) -> Memory:
    mine = memory()
    absorb_turns(mine, range(1, rounds + 1))
    return mine


# prefixes


async def test_most_turns_begin_with_what_the_one_before_began_with() -> None:
    """Recent turns are added to, and the window moves only now and then."""
    texts = await recall_each_round(memory(), range(1, 200))
    kept = [shared_prefix(one, other) >= len(LATELY) + 20 for one, other in pairwise(texts[20:])]
    assert sum(kept) / len(kept) >= 0.45


async def test_between_two_moves_of_the_window_all_recent_turns_are_a_prefix() -> None:
    texts = await recall_each_round(memory(), range(1, 200))
    for one, other in pairwise(texts):
        before, after = recent_lines(one), recent_lines(other)
        if before and after[0] == before[0]:
            assert after[:-1] == before
            assert other.startswith(one.partition(REMINDED)[0])
        else:
            assert len(after) <= max(len(before), 1)


# relevance


def test_the_right_one_of_300_turns_is_found() -> None:
    mine = memory()
    places = random.Random(1).sample(range(1, 280), 20)
    secrets = {round: f"Ben whispered that box {round} of the lighthouse keeper holds item{round}." for round in places}
    for round in range(1, 301):
        mine.absorb(0, round, time(round), secrets.get(round) or turn(round))
    for round, secret in secrets.items():
        assert secret in mine.recall(0, 301, f"Somebody asks you: what about item{round}, in the box?")


def test_the_rare_words_of_a_long_cue_count_wherever_they_stand() -> None:
    mine = memory()
    mine.absorb(0, 1, time(1), "Zebedee hid the key.")
    common = [f"thing{number}" for number in range(40)]
    for round in range(2, 100):
        mine.absorb(0, round, time(round), f"You saw {common[round % 40]}.")
    assert "Zebedee" in mine.recall(0, 100, f"{' '.join(common)} and where Zebedee hid the key")


@pytest.mark.parametrize(
    ("episode", "cue"),
    [
        ("李明说他看见港口在夜里着火了。", "你听说过港口着火的事吗？"),
        ("田中さんは橋が閉鎖されると言った。", "橋の閉鎖について知っていますか"),
        ("민수가 시장이 다리를 닫는다고 말했다.", "다리를 왜 닫나요?"),
        ("Ольга сказала, что ратуша сгорела.", "Правда, что ратуша сгорела?"),
    ],
)
def test_turns_are_found_in_any_language(episode: str, cue: str) -> None:
    mine = memory()
    mine.absorb(0, 1, time(1), episode)
    fillers = ["今天天气很好。", "今日は何もなかった。", "오늘은 조용했다.", "Сегодня было тихо."]
    for round in range(2, 200):
        mine.absorb(0, round, time(round), fillers[round % 4] + turn(round, 1))
    assert episode in mine.recall(0, 200, cue)


def test_what_mattered_is_recalled_before_what_did_not() -> None:
    mine = memory()
    names = "Ada Ben Cyd Dov Eva Finn Gil Hana".split()
    for round in range(1, 41):
        name, importance = names[round % 8], 3.0 if round % 8 == 5 else 0.5
        mine.absorb(0, round, time(round), f"{name} spoke of the lighthouse on the pier.", importance)
    absorb_turns(mine, range(41, 60))
    found = [line for line in reminded_lines(mine.recall(0, 60, "the lighthouse")) if "lighthouse" in line]
    assert len(found) >= 4
    assert all("Finn spoke" in line for line in found[:4])


def test_of_equals_the_latest_is_recalled() -> None:
    mine = memory(MemorySettings(recalled_tokens=60, episodes_shown=4, insights_tokens=0))
    for round in range(1, 7):
        mine.absorb(0, round, time(round), f"Somebody spoke of the lighthouse at length, {round} times.")
    absorb_turns(mine, range(7, 30))
    found = [line for line in reminded_lines(mine.recall(0, 30, "the lighthouse")) if "lighthouse" in line]
    assert found[-1].endswith("6 times.")
    assert not any(line.endswith(" 1 times.") for line in found)


def test_the_time_in_a_cue_brings_nothing_back() -> None:
    """What happened at the same hour of another day has nothing to do with it."""
    mine = memory(MemorySettings(recalled_tokens=60, episodes_shown=4, insights_tokens=0))
    mine.absorb(0, 1, "2031-07-09T11:13", "Nothing.")
    absorb_turns(mine, range(2, 30))
    assert "2031" not in mine.recall(0, 30, "It is 2031-07-09 11:13.")


def test_without_tokens_for_it_nothing_from_longer_ago_is_recalled() -> None:
    mine = memory(MemorySettings(recalled_tokens=0, episodes_shown=4, insights_tokens=0))
    absorb_turns(mine, range(1, 30))
    assert mine.needs_cue(0)
    assert not reminded_lines(mine.recall(0, 30, "the lighthouse"))
