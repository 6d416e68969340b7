"""Providers in virtual time: as the rehearsal server is, and what a client that knows everything can get from them."""

from __future__ import annotations

from typing import Any

import pytest

from bench.loads import flood
from bench.providers import KnownLimits, ProvenLimits, Provider, Reply
from bench.virtual import Alone, drive
from shoal.rehearsal.settings import PlannedOutage, RehearsalSettings, SettingChange
from shoal.seeds import Draws, derive
from tests.rehearsal import virtual_server


def provider(**settings: Any) -> Provider:
    return Provider(RehearsalSettings(**settings))


def arrivals(moments: list[float], **settings: Any) -> list[Reply]:
    player = provider(**settings)
    return [player.arrive(moment, call_id, 100) for call_id, moment in enumerate(moments)]


# the same as over sockets

TOKENS = 500
#: What the server counts for a prompt of three letters.
PROMPT_TOKENS = 3
PLAYED: dict[str, dict[str, Any]] = {
    "a cap that changes": {
        "cap": 9,
        "changes": (SettingChange("cap", 3, after_answers=40), SettingChange("cap", 12, after_seconds=12)),
    },
    "rates": {"requests_per_minute": 400, "tokens_per_minute": 150_000, "burst_seconds": 2, "starts_empty": True},
    "rates that change": {
        "requests_per_minute": 600,
        "burst_seconds": 1,
        "changes": (
            SettingChange("requests_per_minute", 120, after_seconds=6),
            SettingChange("tokens_per_minute", 9000, 11),
        ),
    },
    "a queue, and a rate": {"cap": 9, "queue": True, "requests_per_minute": 540, "burst_seconds": 2},
    "windows": {"requests_per_minute": 300, "window_seconds": 5},
    "no words": {"cap": 5, "requests_per_minute": 300, "labelled": False, "refusal_seconds": 0.05},
    "outage, knee and slowness": {
        "outages": (PlannedOutage(3, 2),),
        "knee": 4,
        "changes": (SettingChange("latency_seconds", 2, after_seconds=8),),
    },
}
STATUS_TYPES = {"server_error": "overload", "rate_limit_error": "limited"}


def drawn_arrivals(count: int) -> list[float]:
    """Ten a second on average, for a while; the first at 0."""
    draws = Draws(derive(5, "arrivals"))
    moments = [0.0]
    for _ in range(count - 1):
        moments.append(moments[-1] + draws.random() * 0.2)
    return moments


@pytest.mark.parametrize("settings", PLAYED.values(), ids=list(PLAYED))
def test_the_server_and_its_model_do_the_same(settings: dict[str, Any]) -> None:
    moments = drawn_arrivals(200)
    stage, model = virtual_server.Stage(latency_seconds=1.0, **settings), provider(latency_seconds=1.0, **settings)
    heard: dict[int, virtual_server.Reply] = {}
    expected = []
    for call_id, moment in enumerate(moments):
        stage.until(moment)
        stage.ask(f"{call_id:03}", lambda reply, call_id=call_id: heard.update({call_id: reply}), TOKENS)  # type: ignore[misc]
        expected.append(model.arrive(moment, call_id, TOKENS + PROMPT_TOKENS))
    stage.until(1000)
    kinds = {reply.kind for reply in expected}
    assert len(kinds) > 1, "nothing was refused, so nothing was compared"
    for call_id, reply in enumerate(expected):
        said = heard[call_id]
        kind = "ok" if said.status == 200 else STATUS_TYPES.get(said.type, said.type)
        assert kind == reply.kind, f"call {call_id} at {moments[call_id]}"
        assert said.at_seconds == pytest.approx(reply.at_seconds, abs=1e-5)
        if reply.retry_after is not None:
            assert int(said.headers["retry-after-ms"]) == pytest.approx(reply.retry_after * 1000, abs=1)
    assert stage.server.stats.in_flight_peak == model.peak


# replies


def test_a_call_that_is_sent_again_takes_as_long_as_it_would_have() -> None:
    settings = {"latency_seconds": 1.0, "latency_sigma": 0.8, "seed": 3}
    once, again = provider(**settings), provider(cap=1, **settings)
    first = again.arrive(0.0, 1, 10)
    assert again.arrive(0.0, 2, 10).kind == "concurrency"
    later = again.arrive(first.at_seconds, 2, 10)
    assert later.at_seconds - first.at_seconds == pytest.approx(once.arrive(0.0, 2, 10).at_seconds)


def test_room_is_there_at_the_moment_of_an_answer() -> None:
    assert [reply.kind for reply in arrivals([0, 0.5, 1.0], cap=1, latency_seconds=1)] == ["ok", "concurrency", "ok"]


@pytest.mark.parametrize(("moment", "taken"), [(1, 2), (2.5, 5)])
def test_what_comes_last_holds_though_nobody_asked_in_between(moment: float, taken: int) -> None:
    """An answer at 2 s makes it two at once, the clock makes it five."""
    settings: dict[str, Any] = {
        "cap": 1,
        "latency_seconds": 2,
        "changes": (SettingChange("cap", 5, after_seconds=moment), SettingChange("cap", 2, after_answers=1)),
    }
    replies = arrivals([0, *[3] * 9], **settings)[1:]
    assert sum(reply.ok for reply in replies) == taken
    stage = virtual_server.Stage(**settings)
    stage.asks(1)
    stage.until(3)
    assert len(stage.asks(9)) == 9 - taken


def test_a_refusal_says_when_and_of_what_if_it_is_labelled() -> None:
    rates: dict[str, Any] = {"requests_per_minute": 60, "burst_seconds": 1, "refusal_seconds": 0.1}
    labelled = arrivals([0, 0.25], **rates)[1]
    assert (labelled.ok, labelled.kind, labelled.at_seconds, labelled.retry_after) == (False, "requests", 0.35, 0.75)
    unlabelled = arrivals([0, 0.25], labelled=False, **rates)[1]
    assert (unlabelled.kind, unlabelled.retry_after, unlabelled.limits) == ("limited", 0.75, None)
    whole = arrivals([0, 0.25], headers="retry-after", **rates)[1]
    assert (whole.retry_after, whole.limits) == (1.0, None)
    assert arrivals([0, 0.25], headers="none", **rates)[1].retry_after is None


def test_limits_are_told_with_each_reply() -> None:
    told = arrivals([0, 0], requests_per_minute=60, tokens_per_minute=6000)[1].limits
    assert told == {"requests": (60, 58, 2), "tokens": (6000, 5800, 2)}


def test_an_outage_is_an_overload() -> None:
    kinds = [reply.kind for reply in arrivals([0, 5, 6.9, 7], outages=(PlannedOutage(5, 2),))]
    assert kinds == ["ok", "overload", "overload", "ok"]


@pytest.mark.parametrize("name", ["quota", "errors", "hangs"])
def test_what_is_not_played_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        provider(**{name: 1})


# the oracle


@pytest.mark.parametrize(
    ("settings", "count", "seconds"),
    [
        pytest.param({"cap": 10}, 100, 10, id="cap"),
        pytest.param({}, 100, 1, id="no limit"),
        pytest.param({"requests_per_minute": 600, "burst_seconds": 1}, 110, 11, id="ten a second, ten at once"),
        pytest.param(
            {"requests_per_minute": 600, "burst_seconds": 1, "starts_empty": True}, 100, 11, id="from nothing"
        ),
        pytest.param({"tokens_per_minute": 600_000, "burst_seconds": 1}, 110, 11, id="ten thousand tokens a second"),
        pytest.param({"requests_per_minute": 60, "window_seconds": 10}, 35, 31, id="ten in each ten seconds"),
        pytest.param(
            {"cap": 10, "changes": (SettingChange("cap", 5, after_answers=50),)}, 100, 15, id="a cap that falls"
        ),
        pytest.param(
            {"cap": 5, "changes": (SettingChange("cap", 10, after_seconds=10),)}, 100, 15, id="a cap that rises"
        ),
        pytest.param({"cap": 10, "outages": (PlannedOutage(5, 20),)}, 100, 30, id="an outage"),
        pytest.param({"outages": (PlannedOutage(0, 20),)}, 100, 21, id="an outage at the beginning"),
        pytest.param({"knee": 10}, 100, 10, id="a knee"),
    ],
)
def test_the_oracle_takes_as_long_as_the_limits_demand(settings: Any, count: int, seconds: float) -> None:
    player = provider(latency_seconds=1, **settings)
    went = drive(player, Alone(KnownLimits(player)), flood(count), seed=0)
    assert went.seconds == pytest.approx(seconds, abs=0.05)
    assert went.sends == count


@pytest.mark.parametrize("workers", [4, 9])
def test_the_floor_of_a_cold_start_never_fills_a_queue_and_comes_up_to_a_cap(workers: int) -> None:
    queue = provider(cap=workers, queue=True, latency_seconds=0.4, latency_sigma=0.6)
    # It knows of no limit, so that only what is proven holds it back.
    assert drive(queue, Alone(ProvenLimits(provider(), 8, 2.5)), flood(300), 0).peak <= max(8, 2.5 * workers)
    capped = provider(cap=4 * workers, latency_seconds=0.4, latency_sigma=0.6)
    went = drive(capped, Alone(ProvenLimits(capped, 8, 2.5)), flood(600), 0)
    assert (went.peak, went.sends) == (4 * workers, 600)
