"""What a run may use of the world outside."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.agents.human import AskPerson
from shoal.agents.settings import LanguageSettings
from shoal.journal import Journal
from shoal.models.base import Model
from shoal.models.costs import Spending
from shoal.scenario.scenario import BudgetSettings, Scenario
from shoal.slots.location import BrokerLocation

if TYPE_CHECKING:
    from shoal.runs.model_limits import RunLimits

#: The code that speaks to servers is loaded by those who do.
_LANGUAGE = "shoal.runs.model_session"


@dataclass(frozen=True, slots=True)
class RunResources:
    """Whoever plays somebody, the environment with its keys and addresses, a cache of replies, and money."""

    answer: AskPerson | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    #: Where replies are shared between runs; None: nowhere.
    cache: Path | None = None
    #: In place of what the scenario says.
    budget: BudgetSettings | None = None
    #: Told once where the run keeps count of what it spends, to look at whenever one likes.
    show_spending: Callable[[Spending], None] | None = None
    #: The same for what limits it.
    show_limits: Callable[[RunLimits], None] | None = None
    #: Where all runs of this user share their limits; None: this run keeps to itself.
    slots: BrokerLocation | None = None
    #: How many agents act at once, over all runs that say so.
    parallel: int | None = None
    #: By which others that share its limits know the run; else by that of its scenario.
    name: str = ""

    @classmethod
    def of_user(cls, environ: Mapping[str, str]) -> RunResources:
        """What a user's runs have in common: keys, replies and limits."""
        return cls(environ=environ, cache=cache_of(environ), slots=BrokerLocation.of_user(environ))


@asynccontextmanager
async def language_models(scenario: Scenario, journal: Journal, outside: RunResources) -> AsyncIterator[Any]:
    """What answers the questions of language minds, and what limits it; None where nobody asks any."""
    if not isinstance(scenario.mind, LanguageSettings):
        yield None
        return
    async with import_module(_LANGUAGE).open_models(scenario, journal, outside) as opened:
        if outside.show_spending is not None:
            outside.show_spending(opened.model.spending)
        if outside.show_limits is not None:
            outside.show_limits(opened.limits)
        yield opened


def check_models(scenario: Scenario, outside: RunResources) -> None:
    """Refuse a run that could not ask anybody, before anything is made of it."""
    if isinstance(scenario.mind, LanguageSettings):
        import_module(_LANGUAGE).endpoints(scenario.mind, outside.environ)


def sealed_models(scenario: Scenario, journal: Journal) -> Model | None:
    """The same for a run that is run again: everything is in its journal."""
    if not isinstance(scenario.mind, LanguageSettings):
        return None
    found: Model = import_module(_LANGUAGE).replay_models(journal)
    return found


def cache_of(environ: Mapping[str, str]) -> Path:
    """Where this user's replies are kept for other runs to use."""
    base = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "."), ".cache")
    return Path(base) / "shoal" / "replies.db"
