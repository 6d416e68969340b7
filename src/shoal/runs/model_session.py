"""The language models of a run: where they are, and what stands between them and the minds that ask."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from shoal.agents.settings import LanguageSettings
from shoal.journal import Journal
from shoal.models.costs import Price
from shoal.models.http.pool import raise_file_limit
from shoal.models.http.routes import Proxies
from shoal.models.openai.endpoints import Endpoint, resolve_endpoint
from shoal.models.stack import Stack, StackSettings, build_replay_stack, open_stack
from shoal.runs.model_limits import RunLimits, open_limits
from shoal.runs.resources import RunResources
from shoal.scenario.scenario import Scenario

#: Files that a run has open beside its connections.
OTHER_FILES = 128


class ModelSession(NamedTuple):
    model: Stack
    limits: RunLimits


@asynccontextmanager
async def open_models(scenario: Scenario, journal: Journal, outside: RunResources) -> AsyncIterator[ModelSession]:
    """What answers the questions of language minds, open as long as the run is worked on."""
    mind = scenario.mind
    assert isinstance(mind, LanguageSettings)
    served = endpoints(mind, outside.environ)
    ceiling = min(scenario.max_workers or sys.maxsize, max(raise_file_limit() - OTHER_FILES, 1))
    name = outside.name or scenario.name
    async with open_limits(name, served, place=outside.slots, parallel=outside.parallel, ceiling=ceiling) as limits:
        settings = _settings(scenario, served, limits, outside)
        async with open_stack(settings, journal) as stack:
            yield ModelSession(stack, limits)


def _settings(
    scenario: Scenario, served: Mapping[str, Endpoint], limits: RunLimits, outside: RunResources
) -> StackSettings:
    budget = outside.budget or scenario.budget
    return StackSettings(
        endpoints=served,
        limit=limits.limit,
        cache=outside.cache,
        max_cost=budget.max_cost,
        max_tokens=budget.max_tokens,
        max_calls=budget.max_calls,
        deadline_seconds=scenario.deadline_seconds,
        seed=scenario.seed,
        proxies=Proxies.of(outside.environ),
    )


def replay_models(journal: Journal) -> Stack:
    """What answers from the journal alone."""
    return build_replay_stack(journal)


def endpoints(mind: LanguageSettings, environ: Mapping[str, str]) -> dict[str, Endpoint]:
    """Every model that the scenario names, and where it is."""
    return {name: _endpoint(name, mind, environ) for name in mind.models()}


def _endpoint(model: str, mind: LanguageSettings, environ: Mapping[str, str]) -> Endpoint:
    price = None if mind.price is None else Price(mind.price.input, mind.price.output)
    return resolve_endpoint(model, base_url=mind.base_url, key_variable=mind.key_variable, environ=environ, price=price)
