"""The language models of a run: where they are, and what stands between them and the minds that ask."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

from shoal.agents.settings import LanguageSettings
from shoal.journal import Journal
from shoal.models.endpoints import Endpoint, endpoint
from shoal.models.spending import Price
from shoal.models.stack import Stack, StackSettings, open_stack, sealed_stack
from shoal.runs.outside import Outside
from shoal.scenario.models import Scenario


def opened(
    scenario: Scenario, journal: Journal, outside: Outside, versions: tuple[str, str]
) -> AbstractAsyncContextManager[Stack]:
    """What answers the questions of language minds, open as long as the run is worked on."""
    mind = scenario.mind
    assert isinstance(mind, LanguageSettings)
    budget = outside.budget or scenario.budget
    settings = StackSettings(
        endpoints=endpoints(mind, outside.environ),
        max_workers=scenario.max_workers,
        cache=outside.cache,
        max_cost=budget.max_cost,
        max_tokens=budget.max_tokens,
        max_calls=budget.max_calls,
        deadline_seconds=scenario.deadline_seconds,
        seed=scenario.seed,
    )
    return open_stack(settings, journal, versions)


def sealed(journal: Journal, versions: tuple[str, str]) -> Stack:
    """What answers from the journal alone."""
    return sealed_stack(journal, versions)


def endpoints(mind: LanguageSettings, environ: Mapping[str, str]) -> dict[str, Endpoint]:
    """Every model that the scenario names, and where it is."""
    return {name: _endpoint(name, mind, environ) for name in mind.models()}


def _endpoint(model: str, mind: LanguageSettings, environ: Mapping[str, str]) -> Endpoint:
    price = None if mind.price is None else Price(mind.price.input, mind.price.output)
    return endpoint(model, base_url=mind.base_url, key_variable=mind.key_variable, environ=environ, price=price)
