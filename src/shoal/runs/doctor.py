"""Examines this machine and the servers of a scenario's models, and recommends how many runs and calls at once."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec

from shoal.agents import LanguageSettings
from shoal.errors import RunRefused
from shoal.event_loop import run_async
from shoal.machine import (
    THRESHOLDS,
    Advice,
    Disk,
    Machine,
    Need,
    NetworkNeed,
    Pressure,
    PurposeAdvice,
    Sample,
    Sampler,
    ServerProfile,
    advise,
    inspect_disk,
    inspect_machine,
    suit_purposes,
)
from shoal.models.http import Proxies
from shoal.models.local import check_extra, is_table, measure_speed
from shoal.models.openai import Endpoint, ProbeResult, probe, resolve_endpoint
from shoal.rate_limits import RateLimits
from shoal.runs.model_limits import name_pool
from shoal.runs.resources import plan_server, serve_local_models
from shoal.scenario import Scenario, count_people
from shoal.slots import BrokerLocation
from shoal.slots.adaptive import Learned, LimitStore

#: The shortest time over which the use of the CPU is measured.
SAMPLE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class DoctorTarget:
    """The runs to recommend for, and the settings of their language models."""

    name: str
    needs: tuple[Need, ...]
    mind: LanguageSettings | None = None

    @classmethod
    def of_scenario(cls, scenario: Scenario) -> DoctorTarget:
        """Return the run that a scenario describes."""
        mind = scenario.mind if isinstance(scenario.mind, LanguageSettings) else None
        need = Need(
            people=count_people(scenario.population),
            rounds=scenario.rounds,
            worlds=len(scenario.worlds),
            asks=mind is not None,
            max_workers=scenario.max_workers,
        )
        return cls(scenario.name, (need,), mind)

    @classmethod
    def of_usual_runs(cls, model: str | None) -> DoctorTarget:
        """Return runs of a usual size: with this model, or (None) without a model and with any."""
        if model is None:
            return cls("", (Need(asks=False), Need()))
        # Not checked: what is wrong with the name is part of the report.
        return cls("", (Need(),), LanguageSettings.model_construct(model=model))

    def find_endpoint(self, model: str) -> Endpoint:
        assert self.mind is not None
        url, variable = self.mind.addresses()[model]
        return resolve_endpoint(model, base_url=url, key_variable=variable, environ=os.environ)


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """What was found, and what is recommended."""

    machine: Machine
    disk: Disk | None
    sample: Sample
    endpoints: tuple[ProbeResult, ...]
    needs: tuple[Need, ...]
    #: One for each of the needs.
    advice: tuple[Advice, ...]
    seconds_per_call: float
    problems: tuple[str, ...]
    changes: tuple[str, ...]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return everything, with the two recommended numbers of each need first."""
        recommended = [
            {
                "need": need,
                "simulations": advice.simulations[0].count if advice.simulations else 1,
                "purposes": {each.purpose: each.simulations for each in self.suit_purposes(advice)},
                "calls": (advice.calls[0].count if advice.calls else 1) if need.asks else None,
                "shards": advice.shards.count if advice.shards else None,
                "network_mbit": network._asdict() if (network := self.measure_network(advice)) else None,
            }
            for need, advice in zip(self.needs, self.advice, strict=True)
        ]
        whole = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "needs"}
        whole["sample"] = {"cpu": self.sample.cpu, "memory": self.sample.memory}
        whole["endpoints"] = [
            {**msgspec.structs.asdict(each), "allowance": list_limits(each.allowance)} for each in self.endpoints
        ]
        return {"recommended": recommended, **whole}

    @staticmethod
    def suit_purposes(advice: Advice) -> tuple[PurposeAdvice, ...]:
        """Recommend simulations for each purpose; none where nothing bounds them."""
        return suit_purposes(advice.simulations[0].count) if advice.simulations else ()

    def measure_network(self, advice: Advice) -> NetworkNeed | None:
        """Return what the recommended calls need of the network; None without calls, or with a server here."""
        if not advice.calls or (self.endpoints and self.endpoints[0].is_here):
            return None
        return NetworkNeed.of_calls(advice.calls[0].count, self.seconds_per_call)


def list_limits(allowance: RateLimits | None) -> dict[str, float]:
    """Return what a server allows in a minute, by unit."""
    limits = {"requests": allowance.requests, "tokens": allowance.tokens} if allowance else {}
    return {name: limit.limit for name, limit in limits.items() if limit is not None}


def examine(target: DoctorTarget, out: Path, seconds_per_call: float, *, call: bool) -> DoctorReport:
    """Examine machine and servers; with `call`, ask each model for one token. Takes as long as the servers do."""
    sampler, began = Sampler(), time.monotonic()
    machine, disk = inspect_machine(), inspect_disk(out)
    endpoints = run_async(_probe_all(target, call))
    time.sleep(max(SAMPLE_SECONDS - (time.monotonic() - began), 0.0))
    sample = sampler.take()
    server = _describe_server(target, endpoints, seconds_per_call)
    advice = tuple(advise(machine, disk, need, server) for need in target.needs)
    most_busy = THRESHOLDS[Pressure.CPU].above
    busy = f"the CPU is {sample.cpu or 0:.0%} busy already; when it stays above {most_busy:.0%}, runs hold back"
    return DoctorReport(
        machine=machine,
        disk=disk,
        sample=sample,
        endpoints=endpoints,
        needs=target.needs,
        advice=advice,
        seconds_per_call=seconds_per_call,
        problems=_join_once(
            (_name_model(each, each.problem) for each in endpoints if each.problem), *(each.problems for each in advice)
        ),
        changes=_join_once(*(each.changes for each in advice)),
        warnings=_join_once(
            (_name_model(each, each.warning) for each in endpoints if each.warning),
            [busy] if sample.cpu is not None and sample.cpu > most_busy else [],
            *(each.warnings for each in advice),
        ),
    )


async def _probe_all(target: DoctorTarget, call: bool) -> tuple[ProbeResult, ...]:
    if (mind := target.mind) is None:
        return ()

    async def probe_one(model: str) -> ProbeResult:
        # Models that embed texts for memories are not asked questions.
        chats = model != mind.memory.embeddings
        try:
            endpoint = target.find_endpoint(model)
            if endpoint.file is not None:
                check_extra()
                size = plan_server(endpoint)
                found = ProbeResult(model=model, base_url="", local=size)
                if not call:
                    return found
                async with serve_local_models({model: endpoint}, os.environ) as served:
                    called = await probe(model, served[model], call=True)
                    speed = await asyncio.to_thread(
                        measure_speed, served[model].base_url, served[model].key or "", size
                    )
                return msgspec.structs.replace(called, base_url="", key_variable=None, local=size, speed=speed)
            return await probe(model, endpoint, Proxies.of(os.environ), call=call and chats)
        except RunRefused as refused:
            return ProbeResult(model=model, base_url=mind.base_url or "", problem=str(refused))

    return tuple(await asyncio.gather(*map(probe_one, (model for model in mind.models() if not is_table(model)))))


def _describe_server(target: DoctorTarget, endpoints: Sequence[ProbeResult], seconds_per_call: float) -> ServerProfile:
    """Return what is known about the server of the model that is asked most, also from earlier runs."""
    if not endpoints:
        return ServerProfile(seconds_per_call)
    try:
        pool = name_pool(target.find_endpoint(endpoints[0].model))
        learned = LimitStore(BrokerLocation.of_user(os.environ).memory, time.time()).of(pool, Learned)
    except RunRefused:
        learned = None
    # Without a wall the limit of the server was not met yet.
    at_once = learned.in_flight if learned is not None and learned.is_wall else None
    main = endpoints[0]
    slots = None if main.local is None else main.local.slots
    return ServerProfile(seconds_per_call, allowance=main.allowance, at_once=at_once, is_here=main.is_here, slots=slots)


def _name_model(each: ProbeResult, text: str) -> str:
    return text if text.startswith(each.model) else f"{each.model}: {text}"


def _join_once(*groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for group in groups for text in group))
