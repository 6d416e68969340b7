"""Limits as providers have them: those that change, that do not say what they are about, and what is counted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from shoal.models.base import FailureKind
from shoal.models.openai.errors import parse_failure
from shoal.rehearsal.limits import Bucket, ProviderLimits, WindowAllowance
from shoal.rehearsal.settings import RehearsalSettings, SettingChange
from tests.rehearsal.client import start_rehearsal
from tests.rehearsal.virtual_server import Reply, Stage


def statuses(replies: list[Reply]) -> dict[int, int]:
    return dict(Counter(reply.status for reply in replies))


def kind_of(reply: Reply) -> tuple[FailureKind, float | None]:
    failure = parse_failure(reply.status, reply.headers, reply.raw, 0.0)
    return failure.kind, failure.retry_after


# changes


def test_a_cap_falls_and_rises_at_its_moments() -> None:
    changes = (SettingChange("cap", 8, after_seconds=30), SettingChange("cap", 2, after_seconds=10))
    stage = Stage(cap=5, latency_seconds=1, changes=changes)
    taken = {}
    for moment in (0, 8.9, 10, 20, 29.9, 31, 60):
        stage.until(moment)
        replies = stage.asks(10)
        stage.until(moment + 1)
        taken[moment] = statuses(replies)[200]
    assert taken == {0: 5, 8.9: 5, 10: 2, 20: 2, 29.9: 2, 31: 8, 60: 8}


def test_a_cap_falls_after_some_answers_and_requests_in_work_stay() -> None:
    stage = Stage(cap=6, latency_seconds=1, changes=(SettingChange("cap", 2, after_answers=3),))
    early = stage.asks(3)
    stage.until(0.5)
    late = stage.asks(3)
    assert statuses(stage.asks(1)) == {429: 1}
    stage.until(1)
    assert statuses(early) == {200: 3}
    assert statuses(stage.asks(1)) == {429: 1}, "three are in work, and two may be"
    stage.until(1.5)
    assert statuses(late) == {200: 3}
    assert statuses(stage.asks(5)) == {429: 3}, "the first reply is a refusal; two are in work"


def test_changes_count_from_the_first_request_and_again_after_a_reset() -> None:
    stage = Stage(cap=1, latency_seconds=1, changes=(SettingChange("cap", 3, after_seconds=5),))
    stage.until(100)
    for _ in range(2):
        assert len(stage.asks(3)) == 2
        stage.until(stage.now + 5)
        assert len(stage.asks(3)) == 0
        stage.until(stage.now + 1)
        stage.server.reset()


def test_a_provider_turns_slow() -> None:
    stage = Stage(latency_seconds=1, changes=(SettingChange("latency_seconds", 3, after_seconds=2),))
    first = stage.asks(1)
    stage.until(2)
    second = stage.asks(1)
    stage.until(10)
    assert [first[0].at_seconds, second[0].at_seconds] == [1, 5]


def test_waiting_requests_start_when_the_cap_rises() -> None:
    stage = Stage(cap=1, queue=True, latency_seconds=10, changes=(SettingChange("cap", 3, after_seconds=2),))
    replies = stage.asks(4)
    stage.until(30)
    assert [reply.at_seconds for reply in replies] == [10, 12, 12, 20]


def test_a_rate_changes_at_its_moment_and_not_at_the_next_request() -> None:
    changes = (
        SettingChange("requests_per_minute", 600, after_seconds=10),
        SettingChange("tokens_per_minute", 60, after_seconds=99),
    )
    limits = ProviderLimits(RehearsalSettings(requests_per_minute=60, burst_seconds=20, changes=changes))
    for _ in range(20):
        limits.take(1, 0.0)
    limits.apply_changes(11.0, 0)
    assert limits.buckets["requests"].level(11.0) == pytest.approx(10 + 10)
    assert (limits.settings.requests_per_minute, limits.settings.tokens_per_minute) == (600, None)
    limits.apply_changes(99.0, 0)
    assert limits.find_lacking(0, 30, 99.0) is None
    limits.take(30, 99.0)
    assert (limits.find_lacking(0, 1, 99.0) or ("nothing",))[0] == "tokens", "a limit that was not there before"


def test_changes_without_requests_between_come_in_the_order_of_their_moments() -> None:
    changes = (SettingChange("cap", 8, after_seconds=30), SettingChange("cap", 2, after_seconds=10))
    limits = ProviderLimits(RehearsalSettings(cap=5, changes=changes))
    limits.apply_changes(40.0, 0)
    assert limits.settings.cap == 8


def test_a_bucket_that_shrinks_keeps_the_level_that_fits() -> None:
    bucket = Bucket(600, 10)
    bucket.change(60, 5.0)
    assert (bucket.size, bucket.level(5.0)) == (10, 10)
    bucket.change(600, 5.0)
    assert bucket.level(6.0) == pytest.approx(20)


@pytest.mark.parametrize(
    "wrong",
    [
        {"what": "speed", "to": 3},
        {"what": "cap", "to": 0},
        {"what": "cap", "to": 2.5},
        {"what": "latency_seconds", "to": -1},
        {"what": "requests_per_minute", "to": float("nan")},
        {"what": "cap", "to": 3, "after_seconds": -1},
        {"what": "cap", "to": 3, "after_seconds": 1, "after_answers": 1},
    ],
)
def test_a_change_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a change"):
        SettingChange(**wrong)


# how much at once


def test_a_burst_is_an_amount() -> None:
    """40 a second, of which 40 at once."""
    stage = Stage(requests_per_minute=2400, burst_seconds=1)
    assert statuses(stage.asks(100)) == {200: 40, 429: 60}
    stage.until(0.5)
    assert statuses(stage.asks(100)) == {200: 20, 429: 80}
    stage.until(60)
    assert statuses(stage.asks(100)) == {200: 40, 429: 60}


def test_allowances_that_start_empty_fill_up_from_the_first_request() -> None:
    stage = Stage(requests_per_minute=60, burst_seconds=10, starts_empty=True)
    stage.until(100)
    assert statuses(stage.asks(5)) == {429: 5}
    stage.until(103)
    assert statuses(stage.asks(5)) == {200: 3, 429: 2}


def test_a_window_gives_everything_at_its_beginning_and_nothing_later() -> None:
    stage = Stage(requests_per_minute=60, window_seconds=10)
    first = stage.asks(15)
    assert statuses(first) == {200: 10, 429: 5}
    assert (first[0].headers["x-ratelimit-limit-requests"], first[-1].headers["retry-after"]) == ("10", "10")
    stage.until(9.5)
    assert kind_of(stage.asks(1)[0]) == (FailureKind.REQUEST_RATE, 0.5)
    stage.until(10)
    assert statuses(stage.asks(15)) == {200: 10, 429: 5}


def test_a_new_window_lets_through_a_request_larger_than_itself() -> None:
    window = WindowAllowance(600, 10)
    assert window.wait(500, 3.0) == 0
    window.take(500, 3.0)
    assert window.wait(1, 4.0) == pytest.approx(6)
    window.change(6000, 4.0)
    assert (window.size, window.wait(500, 5.0), window.wait(501, 5.0)) == (1000, 0, 5)


def test_a_client_that_waits_as_asked_is_not_refused_again() -> None:
    for per_minute in (7, 60, 601, 2399):
        bucket = Bucket(per_minute, 1)
        now = 0.1
        for _ in range(50):
            now += bucket.wait(1, now)
            assert bucket.wait(1, now) == 0
            bucket.take(1, now)


def test_answers_take_longer_the_more_there_are_above_the_knee() -> None:
    stage = Stage(latency_seconds=1, knee=4)
    replies = stage.asks(8)
    stage.until(10)
    assert [reply.at_seconds for reply in replies] == [1, 1, 1, 1, 1.25, 1.5, 1.75, 2]


# what a refusal says

LIMITS: dict[str, dict[str, Any]] = {
    "concurrency": {"cap": 1, "latency_seconds": 1},
    "requests": {"requests_per_minute": 1, "latency_seconds": 1},
    "tokens": {"tokens_per_minute": 10, "latency_seconds": 1},
}


@pytest.mark.parametrize(
    ("what", "kind", "seconds"),
    [
        ("concurrency", FailureKind.CONCURRENCY, 2.5),
        ("requests", FailureKind.REQUEST_RATE, 60.0),
        ("tokens", FailureKind.TOKEN_RATE, None),
    ],
)
@pytest.mark.parametrize("headers", ["openai", "anthropic", "retry-after", "none"])
def test_a_labelled_refusal_is_understood(what: str, kind: FailureKind, seconds: float | None, headers: Any) -> None:
    stage = Stage(**LIMITS[what], headers=headers, retry_after_seconds=2.5)
    refused = stage.asks(2)[0]
    found, after = kind_of(refused)
    assert (refused.status, refused.type, found) == (429, what, kind)
    assert after is not None
    assert seconds is None or seconds <= after <= seconds + 0.5
    assert ("retry-after" in refused.headers) == (headers != "none")


@pytest.mark.parametrize("what", LIMITS)
def test_an_unlabelled_refusal_says_when_and_not_of_what(what: str) -> None:
    labelled = Stage(**LIMITS[what]).asks(2)[0]
    refused = Stage(**LIMITS[what], labelled=False).asks(2)[0]
    assert b"Too many requests" in refused.raw
    assert not [name for name in refused.headers if "ratelimit" in name]
    assert not [word for word in ("token", "concurren", "per min", "rpm") if word in refused.raw.decode().lower()]
    assert kind_of(refused) == (FailureKind.LIMITED, kind_of(labelled)[1])


def test_unlabelled_refusals_of_every_limit_are_the_same_bytes() -> None:
    assert len({Stage(**limit, labelled=False).asks(2)[0].raw for limit in LIMITS.values()}) == 1


def test_without_headers_an_unlabelled_refusal_says_nothing() -> None:
    assert kind_of(Stage(cap=1, latency_seconds=1, labelled=False, headers="none").asks(2)[0]) == (
        FailureKind.LIMITED,
        None,
    )


def test_a_refusal_above_the_cap_takes_its_time_and_holds_no_room() -> None:
    stage = Stage(cap=1, latency_seconds=1, refusal_seconds=0.2)
    stage.asks(1)
    stage.until(0.9)
    refused = stage.asks(3)
    stage.until(1)
    taken = stage.asks(1)
    stage.until(3)
    assert [(reply.status, reply.at_seconds) for reply in (*refused, *taken)] == [(429, 1.1)] * 3 + [(200, 2)]


# accounting


def test_a_client_that_asks_again_at_once_always_finds_room() -> None:
    stage = Stage(cap=4, latency_seconds=0.5, latency_sigma=0.7, changes=(SettingChange("cap", 6, after_answers=50),))
    replies: list[Reply] = []

    def again(reply: Reply) -> None:
        replies.append(reply)
        if len(replies) <= 100:
            stage.ask(f"again {len(replies)}", again)

    for number in range(4):
        stage.ask(f"first {number}", again)
    stage.until(1000)
    assert statuses(replies) == {200: 104}
    assert stage.server.stats.in_flight_peak == 4


async def test_a_client_that_asks_again_at_once_finds_room_over_real_sockets() -> None:
    async with start_rehearsal(cap=1, latency_seconds=0.001) as client:
        assert {(await client.chat(f"Question {number}")).status for number in range(200)} == {200}


def test_refusals_moments_and_clients_are_counted() -> None:
    stage = Stage(cap=2, requests_per_minute=3, latency_seconds=1)
    stage.until(7)
    stage.asks(3, client="a")
    stage.until(8.5)
    stage.asks(2, client="b")
    stage.asks(1)
    stage.until(20)
    stats = stage.server.stats.as_json()
    assert (stats["answers"], stats["in_flight_peak"]) == (3, 2)
    assert stats["refusals"] == {"concurrency": 1, "requests": 2}
    assert stats["clients"] == {
        "a": {"requests": 3, "answered": 2, "refused": 1},
        "b": {"requests": 2, "answered": 1, "refused": 1},
    }
    assert stats["last_answer_at"] - stats["first_request_at"] == pytest.approx(2.5, abs=1e-5)


async def test_the_counts_can_be_requested() -> None:
    async with start_rehearsal(quota=1) as client:
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        for name in ("a", "b"):
            await client.post("/v1/chat/completions", body, **{"X-Client": name})
        stats = await client.stats()
    assert stats["refusals"] == {"quota": 1}
    assert stats["clients"]["a"] == {"requests": 1, "answered": 1, "refused": 0}
    assert stats["clients"]["b"] == {"requests": 1, "answered": 0, "refused": 1}
    assert stats["last_answer_at"] >= stats["first_request_at"] > 1.7e9
