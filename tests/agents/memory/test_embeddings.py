"""Remembering by what things are about, where an embedding model can be asked."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shoal.agents.settings import MemorySettings
from shoal.journal import EMBED, JournalKey
from shoal.models.base import FailureKind, ModelFailed, ModelFailure
from shoal.models.openai.embeddings import EmbeddingRequest
from tests.agents.memory.turns import absorb_turns, memory, time, turn

SETTINGS = MemorySettings(embeddings="openai/text-embedding-3-small", lag_rounds=2)
#: Words that mean the same, and have no letters in common.
MEANINGS = (("fire", "blaze"), ("ship", "vessel"), ("money", "coins"))


@dataclass
class MeaningEmbedder:
    """Embeds a few words by their meaning."""

    fails: tuple[str, ...] = ()
    asked: list[EmbeddingRequest] = field(default_factory=list)

    async def embed(self, passages: EmbeddingRequest) -> NDArray[np.float32]:
        self.asked.append(passages)
        if passages.key in self.fails:
            raise ModelFailed(ModelFailure(FailureKind.TRANSIENT, "gone"))
        rows = [[float(any(word in text for word in words)) for words in MEANINGS] for text in passages.texts]
        return np.asarray([[*row, 0.2] for row in rows], np.float32)


async def recall_after_many_turns(embed: MeaningEmbedder) -> str:
    """Return what is recalled, after many turns, for a cue in other words."""
    mine = memory(SETTINGS, embed=embed)
    mine.absorb(0, 1, time(1), "A blaze took the mill.")
    mine.absorb(0, 2, time(2), "The vessel sank.")
    for round in range(3, 60):
        await mine.settle(0, round, "")
        absorb_turns(mine, range(round, round + 1))
    await mine.settle(0, 60, "Was there a fire?")
    return mine.recall(0, 60, "Was there a fire?")


async def test_what_is_meant_is_found_whatever_the_words() -> None:
    found = await recall_after_many_turns(MeaningEmbedder())
    assert "A blaze took the mill." in found
    assert "vessel" not in found


async def test_each_turn_is_embedded_once_and_when_it_is_not_recent_any_more() -> None:
    embed = MeaningEmbedder()
    text = await recall_after_many_turns(embed)
    episodes = [line for passages in embed.asked[:-1] for line in passages.texts]
    assert len(set(episodes)) == len(episodes)
    assert not any(line in text.partition("From longer ago")[0] for line in episodes)
    assert embed.asked[-1] == EmbeddingRequest(
        key=JournalKey("town", 60, 0, EMBED, "cue"), model=SETTINGS.embeddings or "", texts=("Was there a fire?",)
    )
    assert len({passages.key for passages in embed.asked}) == len(embed.asked)


async def test_words_decide_where_the_cue_cannot_be_embedded() -> None:
    found = await recall_after_many_turns(MeaningEmbedder(fails=("town/60/0/embed/cue",)))
    assert "blaze" not in found


async def test_what_could_not_be_embedded_is_counted_and_the_rest_found() -> None:
    whole = MeaningEmbedder()
    await recall_after_many_turns(whole)
    embed = MeaningEmbedder(fails=(whole.asked[1].key,))
    assert "A blaze took the mill." in await recall_after_many_turns(embed)


async def test_forgotten_turns_are_not_found() -> None:
    mine = memory(SETTINGS.model_copy(update={"episodes_kept": 30}), embed=MeaningEmbedder())
    mine.absorb(0, 1, time(1), "A blaze took the mill.")
    for round in range(2, 80):
        await mine.settle(0, round, "Was there a fire?")
        assert ("blaze" in mine.recall(0, round, "Was there a fire?")) == (round <= 31), round
        mine.absorb(0, round, time(round), turn(round))
