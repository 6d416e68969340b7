"""A limit that learns, against providers that do not say what they allow."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.rate_limits import RateLimit, RateLimits
from shoal.rehearsal.settings import PlannedOutage, SettingChange
from shoal.slots.adaptive.attempts import Attempt
from shoal.slots.adaptive.limiter import Adaptive, Learned, LearnedRate
from shoal.slots.adaptive.window import PROBES, START
from shoal.slots.leases import CallEnd, CallOutcome
from tests.slots.simulated_calls import TOKENS, simulate

PER_SECOND: dict[str, Any] = {"requests_per_minute": 40 * 60, "burst_seconds": 1.0}


# a cap


@pytest.mark.parametrize("cap", [3, 20, 64, 150])
def test_a_cap_is_found_and_used(cap: int) -> None:
    played = simulate(40 * cap, cap=cap)
    assert played.learned.in_flight == cap
    assert played.times < 1.08


def test_a_cap_that_was_found_is_held_with_few_refusals() -> None:
    watched = simulate(3000, cap=64).watched
    assert watched.refusals(first=2.0) < 0.003 * 3000
    assert watched.peak < 64 * 1.2


def test_probes_come_ever_more_seldom() -> None:
    """Where an answer on its way makes room for one, the next is refused, with a call that lost its place to it.

    Raising the limit only after three in a row would waste one call instead of two here, and twice as many as now
    where ways take long: three at the same level are accepted by chance more often than three with one more each time.
    """
    refused = Counter(
        round(each.at) for each in simulate(5000, cap=64).watched.ended if each.end is not CallEnd.OK and each.at > 2
    )
    gaps = [later - earlier for earlier, later in pairwise(sorted(refused))]
    assert len(gaps) >= 2
    assert min(gaps) > 5
    assert max(refused.values()) <= 2


def test_never_more_is_in_flight_than_the_limit_and_its_probes() -> None:
    adaptive = Adaptive(Learned(in_flight=20, is_wall=True, answer_seconds=0.4, refusal_seconds=0.02))
    assert simulate(1000, control=adaptive, cap=20).watched.peak <= 20 + PROBES


def test_a_cap_that_rose_is_found() -> None:
    played = simulate(3000, cap=24, changes=(SettingChange("cap", 96, after_answers=600),))
    assert played.learned.in_flight == 96
    assert played.times < 1.25


def test_a_cap_that_fell_costs_a_few_refusals_beyond_what_was_under_way() -> None:
    played = simulate(2500, cap=96, changes=(SettingChange("cap", 24, after_answers=800),))
    assert played.learned.in_flight == pytest.approx(24, abs=1)
    assert played.refusals < 80
    assert played.times < 1.1


def test_a_provider_without_limits_gets_twice_as_many_with_each_round_trip() -> None:
    played = simulate(4000, latency_seconds=1.0, latency_sigma=0.0)
    assert played.seconds <= 10.2  # 8 + 16 + ... + 2048 are 4088, and the first waves prove less
    assert not played.learned.is_wall


def test_nothing_rises_where_little_is_asked_for() -> None:
    adaptive, now = Adaptive(), 0.0
    for _ in range(500):
        sent = adaptive.begin(now, TOKENS)
        now += 0.1
        adaptive.end(now, sent, CallOutcome(CallEnd.OK, 0.1))
    assert adaptive.describe(now)["size"] == START


def test_a_slow_provider_is_not_mistaken_for_a_full_one() -> None:
    played = simulate(1500, cap=64, changes=(SettingChange("latency_seconds", 4.0, after_answers=500),))
    assert played.learned.in_flight == 64


def test_answers_of_very_different_length_are_not_taken_for_a_full_server() -> None:
    assert simulate(8000, latency_sigma=1.0).watched.peak > 1000


# rates


def test_a_rate_is_told_from_a_window_and_measured_precisely() -> None:
    played = simulate(2000, **PER_SECOND)
    rate = played.learned.requests
    assert rate is not None
    assert rate.per_minute == pytest.approx(40 * 60, rel=0.06)
    assert played.learned.tokens is None
    assert played.times < 1.05
    assert played.refusals <= 0.025 * 2000


@pytest.mark.parametrize("end", [CallEnd.LIMITED, CallEnd.REQUESTS, CallEnd.CONCURRENCY])
@pytest.mark.parametrize("retry_after", [None, 0.5])
def test_first_calls_that_are_refused_alone_say_nothing_about_a_rate(end: CallEnd, retry_after: float | None) -> None:
    """The first call of a run goes out alone, and others may have used up what the provider allows."""
    adaptive, now = Adaptive(), 0.0
    for _ in range(3):
        attempt = adaptive.begin(now, 1000)
        now += 0.02
        adaptive.end(now, attempt, CallOutcome(end, 0.02, 0, retry_after, None))
        wait = adaptive.wait(now, 1000, 1)
        assert wait == pytest.approx(retry_after) if retry_after else wait < 0.1
        now += wait
    attempt = adaptive.begin(now, 1000)
    adaptive.end(now + 0.4, attempt, CallOutcome(CallEnd.OK, 0.4, 1000, None, None))
    assert adaptive.describe(now)["requests_per_minute"] is None
    assert adaptive.wait(now + 0.4, 1000, 20) == 0.0


def test_a_cap_is_not_taken_for_a_rate() -> None:
    learned = simulate(3000, cap=64, changes=(SettingChange("cap", 24, after_answers=800),)).learned
    assert learned.requests is None
    assert learned.tokens is None


@pytest.mark.parametrize("jitter", [0.001, 0.005])
def test_calls_that_overtake_one_another_do_not_make_a_cap_a_rate(jitter: float) -> None:
    played = simulate(2000, cap=64, jitter_seconds=jitter)
    assert played.learned.requests is None
    assert played.learned.in_flight == pytest.approx(64, abs=3)
    assert played.times < 1.1


def test_what_was_taken_for_a_rate_is_seen_to_be_a_cap_after_all() -> None:
    wrong = Learned(in_flight=200, refusal_seconds=0.02, answer_seconds=0.4, requests=LearnedRate(60 * 500.0, 100.0))
    played = simulate(4000, control=Adaptive(wrong), cap=40)
    assert played.learned.requests is None
    assert played.learned.in_flight == pytest.approx(40, abs=1)


def test_a_token_rate_is_told_from_a_request_rate() -> None:
    played = simulate(2000, uneven=True, tokens_per_minute=30_000 * 60, burst_seconds=1.0)
    rate = played.learned.tokens
    assert rate is not None
    assert rate.per_minute == pytest.approx(30_000 * 60, rel=0.1)
    assert played.learned.requests is None
    assert played.times < 1.1
    assert played.refusals <= 0.015 * 2000


def test_large_calls_do_not_make_a_request_rate_a_token_rate() -> None:
    learned = simulate(1500, uneven=True, **PER_SECOND).learned
    assert learned.requests is not None
    assert learned.tokens is None


@pytest.mark.parametrize("what", ["requests", "tokens"])
def test_refusals_that_say_what_they_are_about_are_believed(what: str) -> None:
    limit: dict[str, Any] = {f"{what}_per_minute": 2400 * (1 if what == "requests" else TOKENS)}
    learned = simulate(1000, labelled=True, burst_seconds=1.0, **limit).learned
    assert getattr(learned, what).per_minute == pytest.approx(limit[f"{what}_per_minute"], rel=0.1)
    assert not learned.is_wall


def test_a_rate_that_fell_is_followed() -> None:
    played = simulate(1500, **PER_SECOND, changes=(SettingChange("requests_per_minute", 600, after_seconds=15),))
    assert played.learned.requests is not None
    assert played.learned.requests.per_minute == pytest.approx(600, rel=0.15)
    assert played.times < 1.05


def test_a_rate_that_rose_is_found() -> None:
    played = simulate(4000, **PER_SECOND, changes=(SettingChange("requests_per_minute", 90 * 60, after_seconds=15),))
    assert played.watched.answers(played.seconds - 15, played.seconds - 5) > 10 * 80


def test_a_remembered_rate_costs_few_refusals() -> None:
    """A full bucket gives more than flows in at first, so that the rate has crept up when it is empty."""
    known = simulate(2000, **PER_SECOND).learned
    played = simulate(2000, control=Adaptive(known), **PER_SECOND)
    assert played.refusals <= 0.01 * 2000
    assert played.times < 1.03


@pytest.mark.parametrize("headers", ["openai", "anthropic"])
def test_a_published_rate_is_followed_without_refusals(headers: str) -> None:
    played = simulate(1500, headers=headers, **PER_SECOND)
    assert played.refusals == 0
    assert played.times < 1.02
    assert played.learned.requests is not None
    assert played.learned.requests.is_published


def test_what_is_published_is_not_believed_against_the_evidence() -> None:
    """Some servers publish a limit per day under the name of one per minute."""
    adaptive, now, allowed, refused = Adaptive(), 0.0, 10.0, 0
    daily = RateLimits(RateLimit(14_400, 14_000, 180.0))
    for _ in range(600):
        now += 0.05  # 20 a second at most; 4 a second are allowed
        allowed = min(allowed + 0.2, 10.0)
        if adaptive.wait(now, TOKENS, 100) > 0:
            continue
        sent = adaptive.begin(now, TOKENS)
        if allowed >= 1:
            allowed -= 1
            adaptive.end(now + 0.01, sent, CallOutcome(CallEnd.OK, 0.01, allowance=daily))
        else:
            refused += 1
            adaptive.end(now + 0.01, sent, CallOutcome(CallEnd.REQUESTS, 0.01, retry_after=0.2, allowance=daily))
    assert refused < 40
    assert adaptive.describe(now)["requests_per_minute"] == pytest.approx(240, rel=0.3)


def test_an_allowance_given_out_minute_by_minute_is_not_hammered() -> None:
    played = simulate(400, requests_per_minute=100, window_seconds=60.0)
    assert played.refusals < 80
    assert played.times < 1.3


def test_a_refused_first_call_is_tried_again_soon() -> None:
    """Even if the allowance was used up by somebody else, and nothing is known."""
    for end in (CallEnd.REQUESTS, CallEnd.TOKENS, CallEnd.LIMITED, CallEnd.CONCURRENCY):
        adaptive = Adaptive()
        adaptive.end(0.1, adaptive.begin(0.0, TOKENS), CallOutcome(end, 0.1))
        assert adaptive.wait(0.2, TOKENS, 1) <= 10.0, end


# outages, and servers that queue


@pytest.mark.parametrize("lasting", [5.0, 60.0])
def test_an_outage_gets_a_handful_of_calls_and_is_over_soon_after_it_ends(lasting: float) -> None:
    played = simulate(3000, cap=64, outages=(PlannedOutage(5.0, lasting),))
    watched = played.watched
    assert watched.refusals(first=6.0, last=5.0 + lasting) <= 2 * (lasting - 1)
    assert watched.answers(first=5.0 + lasting, last=5.0 + lasting + 6.0) > 100
    assert played.learned.in_flight == 64


def test_an_overloaded_server_is_asked_for_less_and_then_for_as_much_as_before() -> None:
    adaptive = Adaptive(Learned(in_flight=100, is_wall=True))
    under_way = [adaptive.begin(0.0, TOKENS) for _ in range(100)]
    adaptive.end(0.5, under_way.pop(), CallOutcome(CallEnd.OVERLOAD, 0.5))
    assert adaptive.describe(0.5)["size"] == 80
    for at in range(200):
        adaptive.end(1 + at / 100, under_way.pop(0), CallOutcome(CallEnd.OK, 1.0))
        while adaptive.wait(1 + at / 100, TOKENS, 50) == 0:
            under_way.append(adaptive.begin(1 + at / 100, TOKENS))
    assert adaptive.describe(3.0)["size"] == 100


def test_a_server_that_queues_is_not_filled_without_end() -> None:
    played = simulate(6000, knee=40, latency_sigma=0.4)
    assert played.learned.in_flight < 120
    assert played.watched.peak < 600
    assert played.times < 1.2


# what is remembered


def test_what_was_learned_is_continued() -> None:
    learned = simulate(1000, cap=64).learned
    again = simulate(1000, control=Adaptive(learned), cap=64)
    assert again.refusals <= 5
    assert again.times < 1.03


def test_a_rate_that_was_learned_is_continued_whatever_the_clock_says() -> None:
    adaptive = Adaptive(Learned(in_flight=64, requests=LearnedRate(2400.0, 5.0)))
    begun = 0
    for tick in range(200):
        now = 1e6 + tick / 100
        while adaptive.wait(now, TOKENS, 100) == 0:
            adaptive.end(now, adaptive.begin(now, TOKENS), CallOutcome(CallEnd.OK, 0.001))
            begun += 1
    assert begun == pytest.approx(5 + 2 * 40, rel=0.1)


def test_what_was_learned_survives_json() -> None:
    adaptive = Adaptive()
    told = RateLimits(RateLimit(600.0), RateLimit(60_000.0, 100.0, 3.0))
    adaptive.end(1.0, adaptive.begin(0.0, TOKENS), CallOutcome(CallEnd.OK, 1.0, allowance=told))
    learned = adaptive.get_learned()
    assert msgspec.json.decode(msgspec.json.encode(learned), type=Learned) == learned


def test_nothing_is_remembered_of_nothing() -> None:
    assert Adaptive().get_learned() is None


def test_calls_from_before_count_and_teach_nothing() -> None:
    adaptive = Adaptive(Learned(in_flight=2, is_wall=True))
    sent = [adaptive.resume(5.0, TOKENS) for _ in range(3)]
    assert adaptive.wait(5.0, TOKENS, 1) == math.inf
    for each in sent:
        adaptive.end(6.0, each, CallOutcome(CallEnd.OK, 1.0))
    assert adaptive.describe(6.0)["size"] == 2
    assert adaptive.wait(6.0, TOKENS, 1) == 0


# whatever happens

MOMENTS = st.floats(min_value=0.0, max_value=3.0)


def draw_limits(least: float) -> st.SearchStrategy[RateLimit | None]:
    left, reset = st.floats(min_value=0.0, max_value=1e6), st.floats(min_value=0.0, max_value=600.0)
    limit = st.floats(min_value=least, max_value=1e7)
    return st.none() | st.builds(RateLimit, limit, st.none() | left, st.none() | reset)


OUTCOMES = st.builds(
    CallOutcome,
    st.sampled_from(CallEnd),
    st.floats(min_value=0.0, max_value=10.0),
    st.integers(min_value=0, max_value=10_000),
    st.none() | st.floats(min_value=0.0, max_value=120.0),
    st.none() | st.builds(RateLimits, draw_limits(30.0), draw_limits(30_000.0)),
)
STEPS = st.lists(st.tuples(MOMENTS, st.integers(0, 5), st.integers(1, 5000), OUTCOMES), max_size=60)
LEARNED = st.none() | st.builds(
    Learned,
    in_flight=st.integers(1, 500),
    is_wall=st.booleans(),
    # Of a limit that is known to be lower, one would have to wait longer.
    requests=st.none() | st.builds(LearnedRate, st.floats(6.0, 1e5), st.floats(1.0, 1e5)),
)


@dataclass
class Chaos:
    """Begins and ends calls in any order, with any outcome."""

    adaptive: Adaptive
    now: float = 1000.0
    under_way: list[Attempt] = field(default_factory=list)

    def step(self, seconds: float, ends: int, tokens: int, outcome: CallOutcome) -> None:
        self.now += seconds
        for _ in range(min(ends, len(self.under_way))):
            self.adaptive.end(self.now, self.under_way.pop(tokens % len(self.under_way)), outcome)
        for _ in range(8):
            if self.wait(tokens):
                break
            self.under_way.append(self.adaptive.begin(self.now, tokens))
        assert self.adaptive.describe(self.now)["size"] >= 1

    def wait(self, tokens: int) -> float:
        wait = self.adaptive.wait(self.now, tokens, 20)
        assert wait >= 0
        return wait


@settings(max_examples=300)
@given(LEARNED, STEPS)
def test_after_whatever_happened_something_may_begin_before_long(
    learned: Learned | None, steps: list[tuple[float, int, int, CallOutcome]]
) -> None:
    chaos = Chaos(Adaptive(learned))
    for step in steps:
        chaos.step(*step)
    for sent in chaos.under_way:
        chaos.adaptive.end(chaos.now, sent, CallOutcome(CallEnd.OK, 1.0))
    waited = 0.0
    while (wait := chaos.wait(1)) > 0:
        assert wait < math.inf
        waited += wait
        chaos.now += wait
        assert waited <= 30, chaos.adaptive.describe(chaos.now)
