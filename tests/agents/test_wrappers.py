"""Minds that take their time."""

from __future__ import annotations

from math import log
from statistics import fmean, median, pstdev

import msgspec
import pytest

from shoal.agents.scripted import ScriptedMind
from shoal.agents.settings import Latency
from shoal.agents.wrappers import DelayedMind
from shoal.types import Action, Decision
from tests.agents.people import FOR, Feed, look, mind_of, people, post

QUICK = Latency(median_ms=0.01)


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
