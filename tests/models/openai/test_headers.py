from __future__ import annotations

import pytest

from shoal.models.openai.errors import read_rate_limits
from shoal.rate_limits import RateLimit, RateLimits

NOON = 1_793_620_800.0


def test_openai_publishes_what_is_left_and_when_it_is_full_again() -> None:
    headers = {
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-reset-requests": "120ms",
        "x-ratelimit-limit-tokens": "200000",
        "x-ratelimit-remaining-tokens": "198500",
        "x-ratelimit-reset-tokens": "1m30s",
    }
    assert read_rate_limits(headers, NOON) == RateLimits(RateLimit(500, 499, 0.12), RateLimit(200_000, 198_500, 90))


def test_anthropic_publishes_a_moment() -> None:
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2026-11-02T12:00:30Z",
    }
    assert read_rate_limits(headers, NOON) == RateLimits(RateLimit(50, 0, 30.0))


@pytest.mark.parametrize("limit", ["", "unlimited", "0", "-1"])
def test_a_limit_that_is_no_number_is_no_limit(limit: str) -> None:
    found = read_rate_limits({"x-ratelimit-limit-requests": limit, "x-ratelimit-limit-tokens": "100"}, NOON)
    assert found == RateLimits(None, RateLimit(100))


def test_a_limit_of_a_day_is_nothing_to_pace_calls_by() -> None:
    headers = {"x-ratelimit-limit-requests": "14400", "x-ratelimit-reset-requests": "23h59m"}
    assert read_rate_limits(headers, NOON) is None


def test_most_servers_publish_nothing() -> None:
    assert read_rate_limits({"content-type": "application/json", "retry-after": "3"}, NOON) is None
