"""The memory of all agents in one world.

What an agent remembers in a round depends on its turns and on the replies in the journal, never on how fast a reply
came. When a stretch of the past is complete, conclusions are asked for in the background. They count from the agent's
first turn at least `lag_rounds` later, where `settle` waits for them if it must.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.agents.memory.insights import Stretch, format_insight, read_insights
from shoal.agents.memory.past import (
    LATELY,
    LATELY_TOKENS,
    LEARNED,
    LEARNED_TOKENS,
    REMINDED,
    REMINDED_TOKENS,
    Episode,
    Past,
    recent_tokens,
)
from shoal.agents.settings import MemorySettings
from shoal.journal import EMBED, REMEMBER, JournalKey
from shoal.models import Model, ModelFailed, estimate
from shoal.models.openai import Embedder, EmbeddingRequest, StackEmbedder
from shoal.types import Population, Versioned


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of a question in the background: conclusions, or embeddings of episodes."""

    #: `drawn`, `failed` or `malformed` for conclusions; `embedded` or `not embedded` for episodes.
    outcome: str
    insights: tuple[str, ...] | None = None
    #: The number of the first episode that is embedded.
    first: int = 0
    vectors: NDArray[np.float32] | None = None

    def add_to(self, past: Past) -> None:
        if self.insights is not None:
            past.insights = self.insights
        if self.vectors is not None:
            past.add_vectors(self.first, self.vectors)


class Memory:
    """The memory of all agents. Call `absorb` after each turn of an agent, and `settle` before `recall`."""

    def __init__(
        self,
        settings: MemorySettings | Versioned[MemorySettings],
        population: Population,
        seed: int,
        world: str,
        ask: Model | None,
        embed: Embedder | None = None,
    ) -> None:
        self._settings = settings if isinstance(settings, Versioned) else Versioned(settings)
        self._population = population
        self._seed = seed
        self.world = world
        self._ask = ask
        self._embed = embed or (StackEmbedder(ask) if ask is not None else None)
        if ask is not None and any(s.consolidate_every and s.model is None for s in self._settings.versions()):
            raise ValueError("conclusions need a model: set `model` of the memory's settings, or `ask` to None")
        #: The last round of the run, if known: what would count only after it is not asked for.
        self.last_round: int | None = None
        self._pasts: dict[int, Past] = {}
        #: Questions in the background, each with the first round in which its result counts.
        self._awaited: dict[int, list[tuple[int, asyncio.Task[_Result]]]] = {}
        self._latest_insights: dict[int, asyncio.Task[_Result]] = {}
        self._cues: dict[int, tuple[int, str, NDArray[np.float32] | None]] = {}
        #: Outcomes of the questions in the background whose results count already.
        self.tally: Counter[str] = Counter()

    def recall(self, agent: int, round: int, cue: str) -> str:
        """Return what the agent remembers in view of the cue, within the budget. A pure read, after `settle`.

        What changes least comes first: conclusions, then recent turns, then what the cue brings back. So most of it is
        what the agent's last prompt began with, too.
        """
        past = self._pasts.get(agent)
        if past is None:
            return ""
        learned = _section(LEARNED, [format_insight(insight) for insight in past.insights])
        lately = _section(LATELY, [episode.line for episode in past.recent()])
        settings = self._settings.at(round)
        if not past.has_older or not settings.recalled_tokens:
            return learned + lately
        taken = estimate(learned) + past.recent_tokens + LATELY_TOKENS + REMINDED_TOKENS
        left = past.token_budget(settings) - taken
        older = past.find_older(left)
        if older is None:
            known = self._cues.get(agent)
            if known is not None and known[:2] == (round, cue) and known[2] is not None:
                scores = past.score_by_vector(known[2])
            else:
                scores = past.score_by_words(cue)
            older = past.select(scores, round, left)
        return learned + lately + _section(REMINDED, [episode.line for episode in older])

    def needs_cue(self, agent: int) -> bool:
        """Return whether what the agent recalls depends on the cue."""
        past = self._pasts.get(agent)
        return past is not None and past.has_older

    def absorb(self, agent: int, round: int, time: str, episode: str, importance: float = 1.0) -> None:
        """Remember a turn, told as a text. The more important it is, the sooner it is recalled."""
        settings = self._settings.at(round)
        past = self._pasts.setdefault(agent, Past())
        recent_from = past.recent_from
        max_tokens = recent_tokens(settings, settings.total_tokens)
        past.add(Episode.of_turn(round, time, episode.strip(), importance, max_tokens), settings)
        if self.last_round is not None and round + settings.lag_rounds > self.last_round:
            return
        if self._embed is not None and settings.embeddings and past.recent_from > recent_from:
            self._start_embedding(agent, round, recent_from, settings)
        every = settings.consolidate_every
        if self._ask is not None and every and past.next % every == 0:
            self._start_consolidation(agent, round, settings)

    async def settle(self, agent: int, round: int, cue: str = "") -> None:
        """Wait for the results that count by this round. With embeddings, embed the cue of the next `recall`.

        Safe to cancel and repeat: questions in the background go on, and are asked only once.
        """
        # In the order in which they were asked. Another call may have added the result meanwhile.
        while awaited := next((each for each in self._awaited.get(agent, ()) if each[0] <= round), None):
            _, task = awaited
            # Not awaited itself: a decision that is cancelled at its deadline must not cancel what others rely on.
            await asyncio.wait({task})
            result = task.result()
            if awaited in self._awaited.get(agent, ()):
                self._awaited[agent].remove(awaited)
                result.add_to(self._pasts[agent])
                self.tally[result.outcome] += 1
        settings, past = self._settings.at(round), self._pasts.get(agent)
        if self._embed is not None and settings.embeddings and cue and past is not None and past.has_older:
            key = JournalKey(self.world, round, agent, EMBED, "cue")
            vectors = await self._vectors(EmbeddingRequest(key=key, model=settings.embeddings, texts=(cue,)))
            self._cues[agent] = (round, cue, None if vectors is None else vectors[0])

    async def close(self) -> None:
        """Cancel the questions in the background. A resumed run asks those again that had no answer."""
        tasks = [task for waiting in self._awaited.values() for _, task in waiting]
        self._awaited.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Questions in the background

    def _start(self, agent: int, due: int, work: Coroutine[Any, Any, _Result]) -> asyncio.Task[_Result]:
        task = asyncio.create_task(work)
        self._awaited.setdefault(agent, []).append((due, task))
        return task

    def _start_consolidation(self, agent: int, round: int, settings: MemorySettings) -> None:
        past, every = self._pasts[agent], settings.consolidate_every or 0
        share = past.token_budget(settings) * settings.insights_tokens // settings.total_tokens
        stretch = Stretch(
            key=JournalKey(self.world, round, agent, REMEMBER, past.next // every - 1),
            model=settings.model or "",
            iteration=self._seed,
            name=self._population.names[agent],
            lines=tuple(episode.line for episode in past.episodes(past.next - every, past.next)),
            tokens=share - LEARNED_TOKENS,
        )
        work = self._consolidate(stretch, self._latest_insights.get(agent))
        self._latest_insights[agent] = self._start(agent, round + settings.lag_rounds, work)

    async def _consolidate(self, stretch: Stretch, before: asyncio.Task[_Result] | None) -> _Result:
        """Draw conclusions, one stretch after another, so that each knows what the one before found."""
        assert self._ask is not None
        known = (await before).insights or () if before is not None else ()
        try:
            answer = await self._ask.answer(stretch.build_question(known))
        except ModelFailed:
            return _Result("failed", known)
        new = read_insights(answer.text)
        return _Result("malformed", known) if new is None else _Result("drawn", stretch.merge(known, new))

    def _start_embedding(self, agent: int, round: int, first: int, settings: MemorySettings) -> None:
        """Embed the episodes that have just left the window of recent ones."""
        past = self._pasts[agent]
        first = max(first, past.first)
        texts = tuple(episode.line for episode in past.episodes(first, past.recent_from))
        if texts:
            key = JournalKey(self.world, round, agent, EMBED, first)
            request = EmbeddingRequest(key=key, model=settings.embeddings or "", texts=texts)
            self._start(agent, round + settings.lag_rounds, self._embed_episodes(first, request))

    async def _embed_episodes(self, first: int, request: EmbeddingRequest) -> _Result:
        vectors = await self._vectors(request)
        return _Result("not embedded" if vectors is None else "embedded", first=first, vectors=vectors)

    async def _vectors(self, request: EmbeddingRequest) -> NDArray[np.float32] | None:
        """Return the vectors of the texts, or None where the model failed, which is no reason to stop."""
        assert self._embed is not None
        try:
            return await self._embed.embed(request)
        except ModelFailed:
            return None


def _section(heading: str, lines: list[str]) -> str:
    return heading + "".join(lines) if lines else ""
