"""The memory of everybody in one world.

What an agent remembers in a round is a pure function of the turns it has had and of the replies in the journal: never
of how fast something was answered. Conclusions are asked for in the background when a stretch of the past is complete,
and count from the agent's first turn at least `lag_rounds` later, where `settle` waits for them if it must.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.agents.memory.budget import (
    LATELY,
    LATELY_TOKENS,
    LEARNED,
    REMINDED,
    REMINDED_TOKENS,
    allowance,
    for_insights,
    for_recent,
    section,
)
from shoal.agents.memory.insights import Stretch, as_line, read_insights
from shoal.agents.memory.past import Episode, Past, Scores
from shoal.agents.memory.settings import MemorySettings
from shoal.journal import EMBED, REMEMBER, JournalKey
from shoal.models.base import Model, ModelFailed
from shoal.models.openai.embeddings import Embedder, EmbeddingRequest, StackEmbedder
from shoal.models.tokens import estimate
from shoal.types import Population, Versioned


class _BackgroundResult(Protocol):
    """What something that was asked for in the background adds to a past."""

    @property
    def outcome(self) -> str:
        """For counting: `drawn`, `failed` or `malformed`; `embedded` or `not embedded`."""
        ...

    def into(self, past: Past) -> None: ...


@dataclass(frozen=True, slots=True)
class _Insights:
    outcome: str
    insights: tuple[str, ...]

    def into(self, past: Past) -> None:
        past.insights = self.insights


@dataclass(frozen=True, slots=True)
class _Vectors:
    outcome: str
    first: int
    vectors: NDArray[np.float32] | None

    def into(self, past: Past) -> None:
        if self.vectors is not None:
            past.add_vectors(self.first, self.vectors)


@dataclass(frozen=True, slots=True)
class _Awaited:
    """Something asked for in the background, and the round from which on it counts."""

    due: int
    task: asyncio.Task[Any]


class Memory:
    """`absorb` after each turn, `settle` before `recall`: in the order of each agent's turns."""

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
        self._world = world
        self._ask = ask
        self._embed = embed or (StackEmbedder(ask) if ask is not None else None)
        if ask is not None and any(s.consolidate_every and s.model is None for s in self._settings.versions()):
            raise ValueError("conclusions need a model: set `model` of the memory's settings, or `ask` to None")
        #: Nobody has a turn after this round, so what would only count then is not asked for; None: it is not known.
        self.last_round: int | None = None
        self._pasts: dict[int, Past] = {}
        self._awaited: dict[int, list[_Awaited]] = {}
        self._latest_insights: dict[int, asyncio.Task[_Insights]] = {}
        self._cues: dict[int, tuple[int, str, NDArray[np.float32] | None]] = {}
        #: What became of what was asked for in the background, as far as it counts already.
        self.tally: Counter[str] = Counter()

    def recall(self, agent: int, round: int, cue: str) -> str:
        """What the agent remembers in view of the cue, within the budget. A pure read, after `settle`.

        What changes least comes first: conclusions, then recent turns, to which one is added at a time, and last what
        the cue brings back. So most of it is what the agent's prompt began with the last time.
        """
        past = self._pasts.get(agent)
        if past is None:
            return ""
        settings = self._settings.at(round)
        learned = section(LEARNED, [as_line(insight) for insight in past.insights])
        lately = section(LATELY, [episode.line for episode in past.recent()])
        taken = estimate(learned) + past.recent_tokens + LATELY_TOKENS + REMINDED_TOKENS
        left = allowance(settings, past.usual_tokens) - taken
        reminded = past.best(self._relevant(past, agent, round, cue), round, left) if past.has_older else []
        return learned + lately + section(REMINDED, [episode.line for episode in reminded])

    def absorb(self, agent: int, round: int, time: str, episode: str, importance: float = 1.0) -> None:
        """Remember a turn: what was seen and done, in words. The more important, the sooner it is recalled."""
        settings = self._settings.at(round)
        past = self._pasts.setdefault(agent, Past())
        recent_from = past.recent_from
        longest = for_recent(settings, settings.total_tokens)
        past.add(Episode.told(round, time, episode.strip(), importance, longest), settings)
        if self.last_round is not None and round + settings.lag_rounds > self.last_round:
            return
        if self._embed is not None and settings.embeddings and past.recent_from > recent_from:
            self._start_embedding(agent, round, recent_from, settings)
        every = settings.consolidate_every
        if self._ask is not None and every and past.next % every == 0:
            self._start_consolidation(agent, round, settings)

    async def settle(self, agent: int, round: int, cue: str = "") -> None:
        """Wait for what counts by this round. With embeddings, find out what the cue of `recall` is about.

        May be cut short and repeated: what was asked for in the background goes on, and is asked for only once.
        """
        while awaited := self._due(agent, round):
            # Not awaited itself: a decision that is cancelled at its deadline must not cancel what others rely on.
            await asyncio.wait({awaited.task})
            self._take_in(agent, awaited)
        settings = self._settings.at(round)
        if self._embed is not None and settings.embeddings and cue and self._has_older(agent):
            key = JournalKey(self._world, round, agent, EMBED, "cue")
            vectors = await self._vectors(EmbeddingRequest(key=key, model=settings.embeddings, texts=(cue,)))
            self._cues[agent] = (round, cue, None if vectors is None else vectors[0])

    async def close(self) -> None:
        """Give up what nobody will wait for any more. A resumed run asks for it again, if it had not come in."""
        tasks = [awaited.task for waiting in self._awaited.values() for awaited in waiting]
        self._awaited.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _due(self, agent: int, round: int) -> _Awaited | None:
        """What must be taken in next, in the order in which it was asked for."""
        return next((awaited for awaited in self._awaited.get(agent, ()) if awaited.due <= round), None)

    def _take_in(self, agent: int, awaited: _Awaited) -> None:
        found: _BackgroundResult = awaited.task.result()
        if awaited in self._awaited.get(agent, ()):
            self._awaited[agent].remove(awaited)
            found.into(self._pasts[agent])
            self.tally[found.outcome] += 1

    def _has_older(self, agent: int) -> bool:
        past = self._pasts.get(agent)
        return past is not None and past.has_older

    def _relevant(self, past: Past, agent: int, round: int, cue: str) -> Scores:
        known = self._cues.get(agent)
        if known is not None and known[:2] == (round, cue) and known[2] is not None:
            return past.like_vector(known[2])
        return past.like_words(cue)

    def _start(self, agent: int, due: int, work: Coroutine[Any, Any, _BackgroundResult]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._awaited.setdefault(agent, []).append(_Awaited(due, task))
        return task

    def _start_consolidation(self, agent: int, round: int, settings: MemorySettings) -> None:
        past, every = self._pasts[agent], settings.consolidate_every or 0
        stretch = Stretch(
            key=JournalKey(self._world, round, agent, REMEMBER, past.next // every - 1),
            model=settings.model or "",
            iteration=self._seed,
            name=self._population.names[agent],
            lines=tuple(episode.line for episode in past.episodes(past.next - every, past.next)),
            tokens=for_insights(settings, allowance(settings, past.usual_tokens)),
        )
        work = self._consolidate(stretch, self._latest_insights.get(agent))
        self._latest_insights[agent] = self._start(agent, round + settings.lag_rounds, work)

    async def _consolidate(self, stretch: Stretch, before: asyncio.Task[_Insights] | None) -> _Insights:
        """One after another, so that each knows what the one before found, however long that took."""
        assert self._ask is not None
        known = (await before).insights if before is not None else ()
        try:
            answer = await self._ask.answer(stretch.question(known))
        except ModelFailed:
            return _Insights("failed", known)
        new = read_insights(answer.text)
        if new is None:
            return _Insights("malformed", known)
        return _Insights("drawn", stretch.joined(known, new))

    def _start_embedding(self, agent: int, round: int, first: int, settings: MemorySettings) -> None:
        """Of the episodes that are recent no more: the others are shown as they are."""
        past = self._pasts[agent]
        first = max(first, past.first)
        texts = tuple(episode.line for episode in past.episodes(first, past.recent_from))
        if texts:
            key = JournalKey(self._world, round, agent, EMBED, first)
            passages = EmbeddingRequest(key=key, model=settings.embeddings or "", texts=texts)
            self._start(agent, round + settings.lag_rounds, self._embed_episodes(first, passages))

    async def _embed_episodes(self, first: int, passages: EmbeddingRequest) -> _Vectors:
        vectors = await self._vectors(passages)
        return _Vectors("not embedded" if vectors is None else "embedded", first, vectors)

    async def _vectors(self, passages: EmbeddingRequest) -> NDArray[np.float32] | None:
        assert self._embed is not None
        try:
            return await self._embed.embed(passages)
        except ModelFailed:
            return None
