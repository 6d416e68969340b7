"""Drawing conclusions: off the critical path, and the same at any speed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from shoal.agents.memory.past import LEARNED
from shoal.agents.settings import MemorySettings
from shoal.errors import Diverged, JournalIncomplete, Stopped
from shoal.journal import Journal, read_journal, write_lines
from shoal.models.base import Answer, FailureKind, Model, ModelFailed, ModelFailure, Question
from shoal.models.middleware.journaled import Journaled
from shoal.models.tokens import estimate
from tests.agents.memory.turns import (
    ASKING,
    InsightModel,
    SilentModel,
    absorb_turns,
    insights,
    memory,
    notes_of,
    recall_each_round,
    turn,
)

REFUSAL = ModelFailed(ModelFailure(FailureKind.OVERLOAD, "come back later"))
ROUNDS = range(1, 25)


def learned_lines(text: str) -> list[str]:
    return text.partition(LEARNED)[2].partition("What happened")[0].splitlines()


async def test_conclusions_are_drawn_from_each_stretch_of_turns() -> None:
    thinker = InsightModel()
    mine = memory(ask=thinker)
    absorb_turns(mine, range(1, 9), agent=2)
    await mine.settle(2, 10)
    assert [question.key for question in thinker.asked] == ["town/4/2/remember/0", "town/8/2/remember/1"]
    assert [f"Turn {n}." in notes_of(thinker.asked[1]) for n in range(1, 9)] == [False] * 4 + [True] * 4
    assert "Cyd" in thinker.asked[0].messages[-1].content.splitlines()[0]


async def test_questions_of_all_agents_begin_alike() -> None:
    thinker = InsightModel()
    mine = memory(ask=thinker)
    for agent in (0, 1):
        absorb_turns(mine, range(1, 5), agent)
        await mine.settle(agent, 6)
    assert thinker.asked[0].messages[0] == thinker.asked[1].messages[0]


async def test_conclusions_count_from_the_first_turn_after_the_lag() -> None:
    texts = await recall_each_round(memory(ask=InsightModel()), ROUNDS)
    assert [bool(learned_lines(text)) for text in texts[:7]] == [False] * 5 + [True] * 2


async def test_each_conclusion_knows_the_ones_before() -> None:
    thinker = InsightModel(
        instead={0: insights("Ada is to be trusted."), 1: insights("Ben is not.", "Ada is to be trusted.")}
    )
    mine = memory(ask=thinker)
    absorb_turns(mine, range(1, 9))
    await mine.settle(0, 10)
    assert "- Ada is to be trusted.\n" in thinker.asked[1].messages[-1].content
    assert learned_lines(mine.recall(0, 10, "")) == ["- Ada is to be trusted.", "- Ben is not."]


async def test_conclusions_stay_within_their_budget_and_the_oldest_go() -> None:
    thinker = InsightModel(instead={n: insights(f"Conclusion {n}: " + "so much was said. " * 4) for n in range(60)})
    mine = memory(ask=thinker)
    texts = await recall_each_round(mine, range(1, 200))
    assert mine.tally["drawn"] == 49
    assert all(estimate(text.partition("What happened")[0]) <= ASKING.insights_tokens for text in texts)
    assert all(estimate(text) <= ASKING.total_tokens for text in texts)
    assert learned_lines(texts[-1])[-1].startswith("- Conclusion 48")


async def test_nobody_waits_before_conclusions_are_due() -> None:
    silent = SilentModel()
    mine = memory(ask=silent)
    for round in range(1, 6):
        await asyncio.wait_for(mine.settle(0, round), 1)
        absorb_turns(mine, range(round, round + 1))
    late = asyncio.create_task(mine.settle(0, 6))
    await asyncio.wait({late}, timeout=0.01)
    assert not late.done()
    late.cancel()
    await mine.close()
    assert silent.cancelled == 1


@pytest.mark.parametrize("never", [0, None])
async def test_conclusions_can_be_done_without(never: int | None) -> None:
    thinker = InsightModel()
    mine = memory(MemorySettings(consolidate_every=never), thinker)
    await recall_each_round(mine, ROUNDS)
    assert thinker.asked == []


def test_conclusions_without_a_model_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="need a model"):
        memory(MemorySettings(), InsightModel())


async def test_runs_with_other_seeds_are_answered_anew() -> None:
    asked = []
    for seed in (1, 2):
        thinker = InsightModel()
        mine = memory(ask=thinker, seed=seed)
        absorb_turns(mine, range(1, 5))
        await mine.settle(0, 6)
        asked += [question.digest for question in thinker.asked]
    assert asked[0] != asked[1]


# what can go wrong


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (REFUSAL, "failed"),
        ("I would rather not.", "malformed"),
        ('{"insights": "one"}', "malformed"),
        ("{", "malformed"),
    ],
)
async def test_what_was_remembered_stays_when_no_conclusion_comes(said: str | ModelFailed, outcome: str) -> None:
    mine, other = memory(ask=InsightModel(instead={0: said})), memory()
    absorb_turns(mine, range(1, 5))
    absorb_turns(other, range(1, 5))
    await mine.settle(0, 6)
    assert mine.recall(0, 6, turn(2)) == other.recall(0, 6, turn(2))
    assert mine.tally == {outcome: 1}


async def test_conclusions_are_found_in_chatter_cleaned_and_cut() -> None:
    said = f"Sure!\n```json\n{insights(' Ada  lies. ', '', 'Ada lies.', 'x' * 900, 'Ben left.', 'Too many.')}\n```"
    mine = memory(ask=InsightModel(instead={0: said}))
    absorb_turns(mine, range(1, 5))
    await mine.settle(0, 6)
    assert [line[:12] for line in learned_lines(mine.recall(0, 6, ""))][-1] == "- Ben left."
    assert "Too many" not in mine.recall(0, 6, "")


async def test_a_stop_of_the_run_is_raised_where_the_result_is_awaited() -> None:
    class Spent:
        async def answer(self, question: Question) -> Answer:
            raise Stopped("the budget is reached")

    mine = memory(ask=Spent())
    absorb_turns(mine, range(1, 5))
    await mine.settle(0, 5)
    with pytest.raises(Stopped):
        await mine.settle(0, 6)
    await mine.close()


async def test_a_decision_that_is_cut_short_while_waiting_leaves_the_question_under_way() -> None:
    thinker = InsightModel(pauses={0: 20})
    mine = memory(ask=thinker)
    absorb_turns(mine, range(1, 5))
    cut = asyncio.create_task(mine.settle(0, 6))
    await asyncio.sleep(0)
    cut.cancel()
    await asyncio.wait({cut})
    await mine.settle(0, 7)
    assert len(learned_lines(mine.recall(0, 7, ""))) == 1
    assert len(thinker.asked) == 1


# the same at any speed


@pytest.mark.parametrize("pauses", [{0: 40}, {1: 40, 3: 9}, {0: 5, 1: 50, 2: 1}, dict.fromkeys(range(12), 17)])
async def test_the_same_is_remembered_however_long_conclusions_take(pauses: dict[int, int]) -> None:
    everybody = [await recall_each_round(memory(ask=InsightModel()), ROUNDS, agent) for agent in (0, 1)]
    mine = memory(ask=InsightModel(pauses=pauses))
    found = await asyncio.gather(*(recall_each_round(mine, ROUNDS, agent) for agent in (0, 1)))
    assert found == everybody


async def test_a_failed_turn_makes_no_difference_to_later_ones() -> None:
    """Whether it was cut short before or after its conclusions were taken in is not known when a run is replayed."""

    async def recall_after(settled: bool) -> list[str]:
        mine = memory(ask=InsightModel())
        await recall_each_round(mine, range(1, 6))
        if settled:
            await mine.settle(0, 6)
        absorb_turns(mine, range(6, 7))
        return await recall_each_round(mine, range(7, 25))

    assert await recall_after(settled=True) == await recall_after(settled=False)


# the journal


async def run(path: Path, model: Model, rounds: range = ROUNDS) -> list[str]:
    """Live with a journal until the end of these rounds, and stop there."""
    async with Journal.open(path) as journal:
        mine = memory(ask=Journaled(model, journal))
        texts = await recall_each_round(mine, rounds)
        await mine.close()
    return texts


async def replay(path: Path, rounds: range = ROUNDS) -> list[str]:
    journal = Journal.sealed(path)
    mine = memory(ask=Journaled(None, journal))
    try:
        return await recall_each_round(mine, rounds)
    finally:
        await mine.close()


@pytest.fixture
def journal_path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


async def test_a_replay_remembers_the_same_and_asks_nobody(journal_path: Path) -> None:
    first = await run(journal_path, InsightModel(instead={1: REFUSAL, 2: "no JSON"}))
    assert await replay(journal_path) == first


async def test_a_question_that_failed_is_not_asked_again(journal_path: Path) -> None:
    first = await run(journal_path, InsightModel(instead={1: REFUSAL}))
    again = InsightModel()
    assert await run(journal_path, again) == first
    assert again.asked == []


@pytest.mark.parametrize("killed_after", [4, 5, 6, 11, 13, 20])
async def test_a_run_killed_and_resumed_remembers_what_one_never_killed_does(
    killed_after: int, journal_path: Path, tmp_path: Path
) -> None:
    whole = await run(tmp_path / "whole.jsonl", InsightModel())
    before, after = InsightModel(pauses=dict.fromkeys(range(9), 30)), InsightModel()
    await run(journal_path, before, range(1, killed_after))
    held = {line.key for line in read_journal(journal_path)[0]}
    assert await run(journal_path, after) == whole
    assert not held & {question.key for question in after.asked}


async def test_a_replay_does_not_miss_conclusions_that_never_came_to_count(journal_path: Path) -> None:
    """Killed before they were due, the run did without them: so does its replay, as far as it went."""
    rounds = range(1, 6)
    first = await run(journal_path, SilentModel(), rounds)
    assert read_journal(journal_path)[0] == []
    assert await replay(journal_path, rounds) == first


async def test_a_replay_says_so_where_conclusions_are_missing_that_counted(journal_path: Path) -> None:
    await run(journal_path, InsightModel())
    lines = read_journal(journal_path)[0]
    journal_path.unlink()
    write_lines(journal_path, lines[:1] + lines[2:])
    with pytest.raises(JournalIncomplete, match="town/8/0/remember/1"):
        await replay(journal_path)


async def test_a_fork_takes_over_what_was_concluded_from_the_same_past(journal_path: Path, tmp_path: Path) -> None:
    first = await run(journal_path, InsightModel(instead={1: REFUSAL}))
    inherited = [msgspec.structs.replace(line, inherited="parent") for line in read_journal(journal_path)[0]]
    write_lines(tmp_path / "fork.jsonl", inherited)
    thinker = InsightModel()
    assert await run(tmp_path / "fork.jsonl", thinker) == first
    assert thinker.asked == []


async def test_a_past_that_is_no_longer_the_same_is_noticed(journal_path: Path) -> None:
    await run(journal_path, InsightModel())
    async with Journal.open(journal_path) as journal:
        mine = memory(ask=Journaled(InsightModel(), journal))
        mine.absorb(0, 1, "", "Something else happened.")
        absorb_turns(mine, range(2, 5))
        with pytest.raises(Diverged):
            await mine.settle(0, 6)
        await mine.close()
