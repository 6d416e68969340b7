"""What a run may use of the world outside."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from shoal.agents.human import Answer
from shoal.agents.settings import LanguageSettings
from shoal.journal import Journal
from shoal.models.question import Model
from shoal.models.spending import Spending
from shoal.scenario.models import BudgetSettings, Scenario

#: The code that speaks to servers is loaded by those who do.
_LANGUAGE = "shoal.runs.language"


@dataclass(frozen=True, slots=True)
class Outside:
    """Whoever plays somebody, the environment with its keys and addresses, a cache of replies, and money."""

    answer: Answer | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    #: Where replies are shared between runs; None: nowhere.
    cache: Path | None = None
    #: In place of what the scenario says.
    budget: BudgetSettings | None = None
    #: Told once where the run keeps count of what it spends, to look at whenever one likes.
    show_spending: Callable[[Spending], None] | None = None


@asynccontextmanager
async def language_models(
    scenario: Scenario, journal: Journal, outside: Outside, versions: tuple[str, str]
) -> AsyncIterator[Any]:
    """What answers the questions of language minds; None where nobody asks any."""
    if not isinstance(scenario.mind, LanguageSettings):
        yield None
        return
    async with import_module(_LANGUAGE).opened(scenario, journal, outside, versions) as stack:
        if outside.show_spending is not None:
            outside.show_spending(stack.spending)
        yield stack


def check_models(scenario: Scenario, outside: Outside) -> None:
    """Refuse a run that could not ask anybody, before anything is made of it."""
    if isinstance(scenario.mind, LanguageSettings):
        import_module(_LANGUAGE).endpoints(scenario.mind, outside.environ)


def sealed_models(scenario: Scenario, journal: Journal, versions: tuple[str, str]) -> Model | None:
    """The same for a run that is run again: everything is in its journal."""
    if not isinstance(scenario.mind, LanguageSettings):
        return None
    found: Model = import_module(_LANGUAGE).sealed(journal, versions)
    return found


def cache_of(environ: Mapping[str, str]) -> Path:
    """Where this user's replies are kept for other runs to use."""
    base = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "."), ".cache")
    return Path(base) / "shoal" / "replies.db"
