"""What can be found out about this machine and the servers that a scenario asks, and what follows from it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import RunRefused
from shoal.machine.advice import Advice, Bound, Need, Served, advise
from shoal.machine.hardware import Disk, Machine, inspect_disk, inspect_machine
from shoal.machine.pressure import THRESHOLDS, Pressure
from shoal.machine.sampling import Sample, Sampler
from shoal.models.http.routes import Proxies
from shoal.models.openai.endpoints import Endpoint, endpoint
from shoal.models.openai.probe import ProbeResult, probe
from shoal.rate_limits import RateLimits
from shoal.runs.model_limits import name_pool
from shoal.slots.adaptive.limiter import Learned
from shoal.slots.adaptive.store import LimitStore
from shoal.slots.location import BrokerLocation

#: Over how long the CPU is looked at.
SAMPLE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A model, as a scenario names it."""

    model: str
    base_url: str | None = None
    key_variable: str | None = None
    #: Whether it answers questions; those that embed texts do not.
    chats: bool = True


@dataclass(frozen=True, slots=True)
class DoctorTarget:
    """What is to be run, and the models that it asks; the one that is asked most comes first."""

    name: str
    needs: tuple[Need, ...]
    models: tuple[ModelRef, ...] = ()


@dataclass(frozen=True, slots=True)
class DoctorReport:
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


def examine(subject: DoctorTarget, out: Path, seconds_per_call: float, *, call: bool) -> DoctorReport:
    """Everything there is to find out, which takes as long as the server does."""
    sampler, began = Sampler(), time.monotonic()
    machine, place = inspect_machine(), inspect_disk(out)
    endpoints = asyncio.run(_probe(subject.models, call))
    time.sleep(max(SAMPLE_SECONDS - (time.monotonic() - began), 0.0))
    sample = sampler.take()
    served = _served(subject.models, endpoints, seconds_per_call)
    advice = tuple(advise(machine, place, need, served) for need in subject.needs)
    refused = [_named(each, each.problem) for each in endpoints if each.problem]
    doubts = [_named(each, each.warning) for each in endpoints if each.warning]
    return DoctorReport(
        machine=machine,
        disk=place,
        sample=sample,
        endpoints=endpoints,
        needs=subject.needs,
        advice=advice,
        seconds_per_call=seconds_per_call,
        problems=_once(refused, *(each.problems for each in advice)),
        changes=_once(*(each.changes for each in advice)),
        warnings=_once(doubts, _busy(sample), *(each.warnings for each in advice)),
    )


def as_dict(found: DoctorReport) -> dict[str, Any]:
    """Everything, and the two numbers that are wanted most at its beginning."""
    recommended = [
        {"need": need, "simulations": least(advice.simulations), "calls": least(advice.calls) if need.asks else None}
        for need, advice in zip(found.needs, found.advice, strict=True)
    ]
    whole = {field.name: getattr(found, field.name) for field in fields(found) if field.name != "needs"}
    whole["sample"] = {"cpu": found.sample.cpu, "memory": found.sample.memory}
    whole["endpoints"] = [
        {**msgspec.structs.asdict(each), "allowance": limits(each.allowance)} for each in found.endpoints
    ]
    return {"recommended": recommended, **whole}


def limits(allowance: RateLimits | None) -> dict[str, float]:
    """What a server allows in a minute, by what it is."""
    told = {"requests": allowance.requests, "tokens": allowance.tokens} if allowance else {}
    return {name: limit.limit for name, limit in told.items() if limit is not None}


def least(bounds: tuple[Bound, ...]) -> int:
    """What holds; one where nothing is known."""
    return bounds[0].count if bounds else 1


def _once(*groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for group in groups for text in group))


# What is to be run


def anything(model: str | None) -> DoctorTarget:
    """No scenario in particular: runs of a usual size, with this model, or without one and with any."""
    if model is not None:
        return DoctorTarget("", (Need(),), (ModelRef(model),))
    return DoctorTarget("", (Need(asks=False), Need()))


# The servers


async def _probe(models: Iterable[ModelRef], call: bool) -> tuple[ProbeResult, ...]:
    return tuple(await asyncio.gather(*(_probed(asked, call) for asked in models)))


def _endpoint(asked: ModelRef) -> Endpoint:
    return endpoint(asked.model, base_url=asked.base_url, key_variable=asked.key_variable, environ=os.environ)


async def _probed(asked: ModelRef, call: bool) -> ProbeResult:
    try:
        return await probe(asked.model, _endpoint(asked), Proxies.of(os.environ), call=call and asked.chats)
    except RunRefused as refused:
        return ProbeResult(model=asked.model, base_url=asked.base_url or "", problem=str(refused))


def _named(each: ProbeResult, text: str) -> str:
    return text if text.startswith(each.model) else f"{each.model}: {text}"


def _served(models: Sequence[ModelRef], endpoints: tuple[ProbeResult, ...], seconds_per_call: float) -> Served:
    """The server of the model that is asked most."""
    if not endpoints:
        return Served(seconds_per_call)
    main = endpoints[0]
    return Served(
        seconds_per_call=seconds_per_call,
        allowance=main.allowance,
        at_once=_learned(models[0]),
        is_here=main.is_here,
    )


def _learned(asked: ModelRef) -> int | None:
    """How many calls at once earlier runs found that this server bears; None: its limit was not met yet."""
    try:
        pool = name_pool(_endpoint(asked))
    except RunRefused:
        return None
    learned = LimitStore(BrokerLocation.of_user(os.environ).memory, time.time()).of(pool, Learned)
    return learned.in_flight if learned is not None and learned.is_wall else None


def _busy(sample: Sample) -> list[str]:
    most = THRESHOLDS[Pressure.CPU].above
    if sample.cpu is None or sample.cpu <= most:
        return []
    return [f"the CPU is {sample.cpu:.0%} busy already; when it stays above {most:.0%}, runs hold back"]
