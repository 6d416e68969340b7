"""Every wrapper forwards all of `Mind`; a delayed mind takes its time."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pkgutil
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import log
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Any, ClassVar

import msgspec
import pytest

import shoal
from shoal.agents.human import HumanMind, PlayedMind
from shoal.agents.scripted import ScriptedMind
from shoal.agents.settings import Latency
from shoal.agents.wrappers import DelayedMind, SplitMind, WrapperMind, unwrap
from shoal.engine.decisions import Decider, DecisionLimits
from shoal.journal import Journal
from shoal.runs.planning.dry_run import DryRunMind, DryRunModel, IdleMind, Measurements, SampledAgents
from shoal.runs.rerun.rerun import ObservedMind, TurnObserver
from shoal.types import Action, Decision, Mind, MindMode, Observation
from tests.agents.people import FOR, Feed, look, mind_of, people, post

QUICK = Latency(median_ms=0.01)

METHODS = [name for name, member in vars(Mind).items() if inspect.isfunction(member) and not name.startswith("_")]
ARGUMENTS: dict[str, Any] = {
    "agent": 0,
    "seconds": 5.0,
    "observation": look(),
    "decision": Decision((Action("TREND"),)),
    "traits": {"stance": 0.5},
    "round": 1,
    "events": (),
    "happened": (),
}


class RecordingMind(Mind):
    """Keeps the name and arguments of every call."""

    outside: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__("the context", {"key": "value"})
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        return partial(self.record, name, found) if name in METHODS else found

    def record(self, name: str, method: Callable[..., Any], *values: Any) -> Any:
        self.calls.append((name, inspect.signature(method).bind(*values).arguments))
        return method(*values)

    def mode(self, agent: int) -> MindMode:
        return MindMode.SELF_JOURNALING

    def deadline(self, agent: int, seconds: float) -> float | None:
        return None

    def request(self, observation: Observation) -> object:
        return "the request"

    async def decide(self, observation: Observation) -> Decision:
        return Decision((Action("TREND"),))

    def opinions(self) -> list[float]:
        return [0.25]

    def explain(self, observation: Observation) -> dict[str, Any]:
        return {"mind": "recording"}

    def memory(self, agent: int) -> object:
        return "the memory"


def wrap_for_dry_run(inner: Mind) -> DryRunMind:
    whom = SampledAgents(frozenset({0}), frozenset(), lambda agent: "a model")
    return DryRunMind(inner, IdleMind(), whom, Measurements(), DryRunModel(Measurements()))


async def answer_as_person(observation: Observation) -> Decision:
    return Decision()


@dataclass(frozen=True)
class Wrapper:
    """How to build a wrapper; which methods it forwards with another result; and which it does not forward."""

    wrap: Callable[[Mind], WrapperMind]
    changed: frozenset[str] = frozenset()
    not_forwarded: frozenset[str] = frozenset()


WRAPPERS = {
    "WrapperMind": Wrapper(WrapperMind),
    "SplitMind": Wrapper(lambda inner: SplitMind(inner, Mind(), {7})),
    "PlayedMind": Wrapper(lambda inner: PlayedMind(inner, HumanMind(answer_as_person), {7})),
    "DelayedMind": Wrapper(lambda inner: DelayedMind(inner, QUICK, 1), frozenset({"request"})),
    "ObservedMind": Wrapper(lambda inner: ObservedMind(inner, TurnObserver())),
    "DryRunMind": Wrapper(wrap_for_dry_run, frozenset({"decide"}), frozenset({"mode", "measure"})),
}


async def call(mind: Mind, name: str) -> Any:
    _, *parameters = inspect.signature(getattr(Mind, name)).parameters
    result = getattr(mind, name)(*(ARGUMENTS[parameter] for parameter in parameters))
    return await result if isinstance(result, Awaitable) else result


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", WRAPPERS)
async def test_a_wrapper_forwards_every_method_of_a_mind(name: str, method: str) -> None:
    wrapper, inner, alone = WRAPPERS[name], RecordingMind(), RecordingMind()
    expected = await call(alone, method)
    result = await call(wrapper.wrap(inner), method)
    assert (alone.calls[0] in inner.calls) is (method not in wrapper.not_forwarded)
    assert result == expected or method in wrapper.changed


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapper_has_the_attributes_and_the_memory_of_the_mind_inside(name: str) -> None:
    inner = RecordingMind()
    mind = WRAPPERS[name].wrap(inner)
    assert mind.outside
    assert (mind.given, mind.settings) == ("the context", {"key": "value"})
    assert mind.memory(0) == "the memory"
    assert unwrap(mind, 0) is inner


def test_every_wrapper_of_the_package_keeps_the_contract() -> None:
    for module in pkgutil.walk_packages(shoal.__path__, "shoal."):
        importlib.import_module(module.name)

    def subclasses(kind: type[WrapperMind]) -> Iterator[type[WrapperMind]]:
        for each in kind.__subclasses__():
            yield each
            yield from subclasses(each)

    shipped = {kind.__name__ for kind in subclasses(WrapperMind) if kind.__module__.startswith("shoal.")}
    assert {name for name in shipped if not name.startswith("_")} == WRAPPERS.keys() - {"WrapperMind"}


def test_a_played_agent_is_unwrapped_to_the_person() -> None:
    inner, human = RecordingMind(), HumanMind(answer_as_person)
    mind = ObservedMind(PlayedMind(DelayedMind(inner, QUICK, 1), human, {1}), TurnObserver())
    assert (unwrap(mind, 0), unwrap(mind, 1)) == (inner, human)


async def test_observing_a_mind_leaves_it_its_own_deadline(tmp_path: Path) -> None:
    class Patient(RecordingMind):
        async def decide(self, observation: Observation) -> Decision:
            for _ in range(5):
                await asyncio.sleep(0)
            return await super().decide(observation)

    async with Journal.open(tmp_path / "journal.jsonl") as journal:
        mind = ObservedMind(Patient(), TurnObserver())
        decider = Decider(mind, journal, DecisionLimits(deadline_seconds=0.0))
        assert await decider.ask(look()) == Decision((Action("TREND"),))


# A mind that takes its time


async def test_it_decides_what_the_inner_mind_decides() -> None:
    inner = mind_of(people(0.4))
    mind = DelayedMind(inner, QUICK, seed=1)
    for round in range(1, 20):
        seen = Feed().look(0, round)
        assert await mind.decide(seen) == inner.decide(seen)


async def test_it_waits_for_an_inner_mind_that_is_outside_too() -> None:
    mind = DelayedMind(ScriptedMind(lambda seen: [Action("TREND")]), QUICK, seed=1)
    assert await mind.decide(look()) == Decision((Action("TREND"),))


def test_its_request_covers_what_the_agent_remembers() -> None:
    mind = DelayedMind(mind_of(people(0.4)), QUICK, seed=1)
    seen = look(posts=[post(1, FOR)])
    before = msgspec.json.encode(mind.request(seen))
    assert msgspec.json.encode(mind.request(seen)) == before
    mind.absorb(seen, Decision())
    assert msgspec.json.encode(mind.request(seen)) != before


def test_a_mind_without_memory_is_asked_for_its_request_alone() -> None:
    seen = look()
    assert DelayedMind(ScriptedMind(lambda seen: []), QUICK, seed=1).request(seen) == [seen, None]


def test_times_are_lognormal_and_the_same_for_the_same_seed() -> None:
    latency = Latency(median_ms=500, sigma=0.8)
    mind = DelayedMind(mind_of(people(0.0)), latency, seed=1)
    times = [mind.seconds(look(agent, round)) for agent in range(40) for round in range(100)]
    assert times[:3] == [DelayedMind(mind_of(people(0.0)), latency, seed=1).seconds(look(0, r)) for r in range(3)]
    assert median(times) == pytest.approx(0.5, rel=0.1)
    assert pstdev(map(log, times)) == pytest.approx(0.8, rel=0.1)
    assert fmean(times) > median(times)


def test_without_spread_all_decisions_take_the_same_time() -> None:
    mind = DelayedMind(mind_of(people(0.0)), Latency(median_ms=200, sigma=0), seed=1)
    assert {mind.seconds(look(agent)) for agent in range(20)} == {0.2}


def test_it_counts_as_outside() -> None:
    assert DelayedMind.outside


def test_changes_opinions_and_explanations_are_those_of_the_mind_within() -> None:
    inner = mind_of(people(0.2))
    mind = DelayedMind(inner, QUICK, seed=1)
    mind.change(0, {"stance": -0.5})
    assert mind.opinions() == inner.opinions() == [-0.5]
    assert mind.explain(look()) == inner.explain(look())
