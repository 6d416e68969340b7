"""What a run may use of the world outside: a player at the keyboard, keys, a cache, a budget, and language models."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from shoal.agents import AskPerson, LanguageSettings
from shoal.engine import Gate
from shoal.errors import RunRefused
from shoal.journal import Journal
from shoal.machine import inspect_machine
from shoal.models import (
    PATIENCE_SECONDS,
    Funds,
    Price,
    ReplyCache,
    Stack,
    StackSettings,
    build_replay_stack,
    open_stack,
)
from shoal.models.http import Proxies, raise_file_limit
from shoal.models.local import (
    LOCAL,
    TABLE,
    ModelHeader,
    ModelSpeed,
    ModelStore,
    ServerSize,
    WordTable,
    check_extra,
    is_local,
    is_table,
    open_server,
)
from shoal.models.openai import Endpoint, resolve_endpoint
from shoal.runs.config import LimitSettings
from shoal.runs.model_limits import RunLimits, name_pool, open_limits
from shoal.runs.store import InterviewLog, RoundPlans, Store
from shoal.scenario import Scenario
from shoal.slots import BrokerLocation, RemoteBroker
from shoal.slots.adaptive import Learned, LimitStore
from shoal.types import WorldProtocol

#: Files that a run has open beside its connections.
OTHER_FILES = 128


class RunCopy(Protocol):
    """Sends what a session writes to another machine, which keeps the run."""

    async def keep_lines(self, text: bytes) -> None:
        """Make lines of the journal durable there."""
        ...

    def open_store(self, directory: Path, world: WorldProtocol, plans: RoundPlans, agents: int, by: str) -> Store:
        """Open a store whose rounds are committed there as well."""
        ...

    def open_interviews(self, directory: Path) -> InterviewLog:
        """Open a log whose interviews are kept there as well."""
        ...

    def slow_down(self, gate: Gate) -> None:
        """Hold the gate while more was written than could be sent."""
        ...


@dataclass(frozen=True, slots=True)
class RunResources:
    """What one run may use."""

    #: Asks the person who plays an agent.
    answer: AskPerson | None = None
    #: Keys and addresses of models.
    environ: Mapping[str, str] = field(default_factory=dict)
    #: The file in which runs share replies, or what stands for it on another machine; None: this run shares none.
    cache: Path | ReplyCache | None = None
    #: Limits beside the scenario's.
    limits: LimitSettings = field(default_factory=LimitSettings)
    #: Where all runs of this user share their limits; None: this run has its own.
    slots: BrokerLocation | RemoteBroker | None = None
    #: The name under which other runs see this one in the shared limits; the scenario's name where it is empty.
    name: str = ""
    #: Where all that is written is kept as well, where that is another machine.
    copy: RunCopy | None = None
    #: How many calls this process makes at once, at most; None: what the scenario says.
    ceiling: int | None = None
    #: The budget, where several processes of the run share it; None: this one has all of it.
    funds: Funds | None = None

    @classmethod
    def of_user(cls, environ: Mapping[str, str]) -> RunResources:
        """Return what all runs of a user share: keys, replies and limits."""
        base = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME", "."), ".cache")
        cache = Path(base) / "shoal" / "replies.db"
        return cls(environ=environ, cache=cache, slots=BrokerLocation.of_user(environ))


class ModelSession(NamedTuple):
    """The open language models of a run, and what limits them."""

    model: Stack
    limits: RunLimits


@asynccontextmanager
async def open_models(scenario: Scenario, journal: Journal, resources: RunResources) -> AsyncIterator[ModelSession]:
    """Open the language models that the scenario names."""
    assert isinstance(scenario.mind, LanguageSettings)
    endpoints = find_endpoints(scenario.mind, resources.environ)
    ceiling = min(resources.ceiling or scenario.max_workers or sys.maxsize, max(raise_file_limit() - OTHER_FILES, 1))
    budget, parallel = resources.limits.apply_to(scenario.budget), resources.limits.parallel
    patience = resources.limits.patience
    async with (
        serve_local_models(endpoints, resources.environ) as served,
        open_limits(
            resources.name or scenario.name, served, place=resources.slots, parallel=parallel, ceiling=ceiling
        ) as limits,
    ):
        settings = StackSettings(
            endpoints=served,
            tables=find_tables(scenario.mind, resources.environ),
            limit=limits.limit,
            cache=resources.cache,
            max_cost=budget.max_cost,
            max_tokens=budget.max_tokens,
            max_calls=budget.max_calls,
            funds=resources.funds,
            deadline_seconds=scenario.deadline_seconds,
            patience_seconds=PATIENCE_SECONDS if patience is None else patience,
            seed=scenario.seed,
            proxies=Proxies.of(resources.environ),
        )
        async with open_stack(settings, journal) as stack:
            yield ModelSession(stack, limits)


@asynccontextmanager
async def open_models_if_needed(
    scenario: Scenario, journal: Journal, resources: RunResources
) -> AsyncIterator[ModelSession | None]:
    """Open the language models of a scenario; None where its mind is no language mind."""
    if not isinstance(scenario.mind, LanguageSettings):
        yield None
        return
    async with open_models(scenario, journal, resources) as session:
        yield session


def build_replay_models(scenario: Scenario, journal: Journal) -> Stack | None:
    """Return a model that answers from the journal alone; None where the mind is no language mind."""
    return build_replay_stack(journal) if isinstance(scenario.mind, LanguageSettings) else None


def check_models(scenario: Scenario, resources: RunResources) -> None:
    """Refuse a scenario whose models cannot be asked, such as for want of a key, before a run is made of it."""
    if any(world.compares_meaning for world in scenario.worlds.values()):
        WordTable.of_user(ModelStore.of_user(resources.environ))
    if isinstance(scenario.mind, LanguageSettings):
        find_endpoints(scenario.mind, resources.environ)
        check_local_models(scenario, resources.environ)
        find_tables(scenario.mind, resources.environ)


def check_local_models(scenario: Scenario, environ: Mapping[str, str]) -> None:
    """Refuse a scenario whose models on this machine are not there, or cannot be served."""
    names = scenario.mind.models() if isinstance(scenario.mind, LanguageSettings) else ()
    for name in names:
        if is_local(name) and not is_table(name):
            endpoint = resolve_endpoint(name, base_url=None, key_variable=None, environ=environ)
            check_extra()
            plan_server(endpoint)


def find_endpoints(mind: LanguageSettings, environ: Mapping[str, str]) -> dict[str, Endpoint]:
    """Find the endpoint of every model that the scenario names, except tables, which need none."""
    price = None if mind.price is None else Price(mind.price.input, mind.price.output)
    return {
        name: resolve_endpoint(name, base_url=url, key_variable=variable, environ=environ, price=price)
        for name, (url, variable) in mind.addresses().items()
        if not is_table(name)
    }


class KnownServer(NamedTuple):
    """What is known about the server of a model before it is asked anything."""

    price: Price | None
    #: What earlier runs or `tune` found out.
    learned: Learned | None
    #: How fast a model is that Shoal serves on this machine itself.
    speed: ModelSpeed | None = None


def describe_servers(scenario: Scenario, environ: Mapping[str, str]) -> dict[str, KnownServer]:
    """Return what is known about the server of each model; of one without a key or an address, nothing is."""
    known: dict[str, KnownServer] = {}
    if not isinstance(scenario.mind, LanguageSettings):
        return known
    limits = LimitStore(BrokerLocation.of_user(environ).memory, time.time())
    for name, (url, variable) in scenario.mind.addresses().items():
        with suppress(RunRefused):
            endpoint = resolve_endpoint(name, base_url=url, key_variable=variable, environ=environ)
            learned, speed = limits.of(name_pool(endpoint), Learned), None
            if endpoint.file is not None:
                speed = plan_server(endpoint).estimate_speed(ModelHeader.read(endpoint.file))
            known[name] = KnownServer(endpoint.find_price(name), learned, speed)
    return known


def describe_free_models(scenario: Scenario, limits: LimitSettings, environ: Mapping[str, str]) -> list[str]:
    """Say which models a limit of the cost cannot hold, as they count as $0 because of where their servers are."""
    if limits.apply_to(scenario.budget).max_cost is None or not isinstance(scenario.mind, LanguageSettings):
        return []
    endpoints = find_endpoints(scenario.mind, environ).items()
    return [
        f"{name} counts as $0, as its server is on this machine or in the private network, so max_cost cannot stop "
        "it; where that server passes calls on to a paid one, give the price as mind.price, or limit calls or tokens"
        for name, endpoint in endpoints
        if endpoint.is_taken_to_be_free(name)
    ]


def find_tables(mind: LanguageSettings, environ: Mapping[str, str]) -> dict[str, WordTable]:
    """Open the table on this machine that embeds the memories of agents, if the scenario names it."""
    name = mind.memory.embeddings
    if name is None or not is_local(name):
        return {}
    if not is_table(name):
        raise RunRefused(f"{name} does not embed texts: `embeddings: {LOCAL}/{TABLE}` does, on this machine")
    return {name: WordTable.of_user(ModelStore.of_user(environ))}


@asynccontextmanager
async def serve_local_models(
    endpoints: Mapping[str, Endpoint], environ: Mapping[str, str]
) -> AsyncIterator[dict[str, Endpoint]]:
    """Make sure that models on this machine are served; yield all endpoints, these with their addresses."""
    folder = BrokerLocation.of_user(environ).socket.parent
    async with AsyncExitStack() as opened:
        served = dict(endpoints)
        for name, endpoint in endpoints.items():
            if endpoint.file is not None:
                server = await opened.enter_async_context(open_server(endpoint.file, folder, plan_server(endpoint)))
                slots = None if server.size is None else server.size.slots
                served[name] = msgspec.structs.replace(
                    endpoint, base_url=server.base_url, key=server.key, slots=slots, line_breaks=server.line_breaks
                )
        yield served


def plan_server(endpoint: Endpoint) -> ServerSize:
    """Choose how a model on this machine is served; raise RunRefused where it cannot be."""
    assert endpoint.file is not None
    machine = inspect_machine()
    space = machine.memory.tightest
    header = ModelHeader.read(endpoint.file)
    free = None if space is None else space.free
    return ServerSize.choose(header, endpoint.model, machine.cores.usable, free, os.getloadavg()[0])
