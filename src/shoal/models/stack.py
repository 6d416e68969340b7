"""The whole model stack, composed in one place. Read it from the outside in.

An answer from the journal or the cache takes no slot and no money, and makes no call. A backoff, or waiting for a
server that does not answer, holds no slot, but keeps its money reserved. The limit sees how each attempt ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from shoal.journal import Journal
from shoal.models.base import Answer, Model, Question
from shoal.models.costs import Price, Spending
from shoal.models.http.pool import Transport, open_transport
from shoal.models.http.routes import Proxies
from shoal.models.local import WordTable
from shoal.models.middleware.availability import PATIENCE_SECONDS, Availability
from shoal.models.middleware.available import Available, Watched
from shoal.models.middleware.budget import Budget, Budgeted, Funds, Purse
from shoal.models.middleware.cached import Cached, ReplyCache, open_cache
from shoal.models.middleware.journaled import Journaled
from shoal.models.middleware.limited import Limit, Limited
from shoal.models.middleware.retrying import ATTEMPT_SHARE, Retrying
from shoal.models.middleware.tabled import Tabled
from shoal.models.openai.client import ModelClient
from shoal.models.openai.endpoints import Endpoint

#: Attempts that take too long are cut by the gate of their model, which knows how long answers take.
LONGEST_ATTEMPT_SECONDS = 24 * 3600.0


@dataclass(frozen=True, kw_only=True)
class StackSettings:
    """Which servers are asked, and within which limits."""

    #: Model, as questions name it -> its endpoint.
    endpoints: Mapping[str, Endpoint]
    #: Model -> the table on this machine that embeds texts for it.
    tables: Mapping[str, WordTable] = field(default_factory=dict)
    #: Limits calls at once; None means no limit.
    limit: Limit | None = None
    #: The response cache, or its file; None means no cache.
    cache: Path | ReplyCache | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    max_calls: int | None = None
    #: The budget where several processes share it; None: the limits above are for this one.
    funds: Funds | None = None
    #: How long a question may take, with all its attempts.
    deadline_seconds: float = 300.0
    #: How long a server may not answer before the run stops.
    patience_seconds: float = PATIENCE_SECONDS
    seed: int = 0
    proxies: Proxies = field(default_factory=Proxies)

    @property
    def budget(self) -> Budget:
        return Budget(self.max_cost, self.max_tokens, self.max_calls)

    def prices(self) -> dict[str, Price | None]:
        """Return each model's price, from the scenario or else from the table."""
        return {name: at.find_price(name) for name, at in self.endpoints.items()}


class Stack:
    """A model, what was spent on it so far and may be spent, and whether its servers answer."""

    def __init__(self, model: Model, spending: Spending, availability: Availability, funds: Funds) -> None:
        self._model = model
        self.spending = spending
        self.availability = availability
        self.funds = funds

    async def answer(self, question: Question) -> Answer:
        return await self._model.answer(question)


@asynccontextmanager
async def open_stack(
    settings: StackSettings, journal: Journal, transport: Transport | None = None
) -> AsyncIterator[Stack]:
    """Open everything between a question and its server."""
    prices = settings.prices()
    settings.budget.check(prices)
    spending = Spending(prices, journal)
    attempt_seconds = settings.deadline_seconds * ATTEMPT_SHARE
    availability = Availability(spending, settings.patience_seconds, attempt_seconds=attempt_seconds)
    async with AsyncExitStack() as opened:
        if transport is None:
            transport = await opened.enter_async_context(open_transport(settings.proxies))
        model: Model = ModelClient(transport, settings.endpoints, LONGEST_ATTEMPT_SECONDS)
        model = Watched(model, availability, spending)
        if settings.limit is not None:
            model = Limited(model, settings.limit)
        model = Retrying(model, settings.deadline_seconds, settings.seed, spending, limit=settings.limit)
        model = Available(model, availability, spending)
        funds = settings.funds or Purse(settings.budget, spending)
        model = Budgeted(model, settings.budget, spending, funds)
        if settings.cache is not None:
            cache: ReplyCache
            if isinstance(settings.cache, Path):
                cache = await opened.enter_async_context(open_cache(settings.cache))
            else:
                cache = settings.cache
            model = Cached(model, cache, settings.endpoints, spending)
        if settings.tables:
            model = Tabled(model, settings.tables)
        following = asyncio.create_task(availability.follow())
        try:
            yield Stack(Journaled(model, journal), spending, availability, funds)
        finally:
            following.cancel()


def build_replay_stack(journal: Journal) -> Stack:
    """Build the stack of a replay: the journal and nothing else."""
    spending = Spending({}, journal)
    return Stack(Journaled(None, journal), spending, Availability(spending), Purse(Budget(), spending))
