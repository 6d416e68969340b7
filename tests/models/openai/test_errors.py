"""Replies as servers really give them, and what they mean."""

from __future__ import annotations

import ssl
from typing import Any

import orjson
import pytest

from shoal.models.base import FailureKind, ModelFailure, Remedy
from shoal.models.http.errors import MAX_TEXT_CHARS, NotConnected, report_timeout, report_unreachable
from shoal.models.openai.errors import (
    mask_secrets,
    parse_error_object,
    parse_failure,
    read_rate_limits,
)
from shoal.rate_limits import RateLimit, RateLimits

NOON = 1_794_830_400.0  # Mon, 16 Nov 2026 12:00:00 GMT


def said(status: int, body: Any, headers: dict[str, str] | None = None) -> ModelFailure:
    written = body.encode() if isinstance(body, str) else orjson.dumps(body)
    return parse_failure(status, headers or {}, written, NOON)


def openai(message: str, type: str | None = None, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": type, "param": None, "code": code}}


def anthropic(type: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": type, "message": message}}


def vllm(message: str, code: int) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": code}


CASES = [
    # OpenAI
    (401, openai("Incorrect API key provided: sk-abc.", "invalid_request_error", "invalid_api_key"), FailureKind.AUTH),
    (403, openai("Country, region, or territory not supported", "request_forbidden"), FailureKind.AUTH),
    (404, openai("The model `gpt-9` does not exist", "invalid_request_error", "model_not_found"), FailureKind.ADDRESS),
    (
        429,
        openai("Rate limit reached for gpt-4.1 on requests per min (RPM): Limit 3", "requests"),
        FailureKind.REQUEST_RATE,
    ),
    (429, openai("Rate limit reached on tokens per min (TPM): Limit 9, Used 8", "tokens"), FailureKind.TOKEN_RATE),
    (429, openai("Rate limit reached on requests per day (RPD): Limit 200", "requests"), FailureKind.QUOTA),
    (429, openai("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), FailureKind.QUOTA),
    (
        429,
        openai("Request too large on tokens per min (TPM): Limit 9, Requested 10", "tokens"),
        FailureKind.CONTEXT_TOO_LONG,
    ),
    (
        400,
        openai("maximum context length is 8192 tokens", code="context_length_exceeded"),
        FailureKind.CONTEXT_TOO_LONG,
    ),
    (400, openai("Invalid prompt: your prompt was flagged", code="invalid_prompt"), FailureKind.REFUSED),
    (400, openai("Unknown parameter: 'colour'.", "invalid_request_error"), FailureKind.FATAL),
    (500, openai("The server had an error while processing your request", "server_error"), FailureKind.TRANSIENT),
    (503, openai("The engine is currently overloaded, please try again later"), FailureKind.OVERLOAD),
    # Azure
    (429, {"error": {"code": "429", "message": "exceeded token rate limit of your tier"}}, FailureKind.TOKEN_RATE),
    (429, {"statusCode": 429, "message": "Rate limit is exceeded. Try again in 7 seconds."}, FailureKind.LIMITED),
    (400, {"error": {"code": "content_filter", "message": "The response was filtered"}}, FailureKind.REFUSED),
    (400, {"error": {"message": "no", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, FailureKind.REFUSED),
    (401, {"statusCode": 401, "message": "Unauthorized. Access token is missing."}, FailureKind.AUTH),
    # Anthropic
    (529, anthropic("overloaded_error", "Overloaded"), FailureKind.OVERLOAD),
    (
        429,
        anthropic("rate_limit_error", "would exceed your limit of 40,000 input tokens per minute"),
        FailureKind.TOKEN_RATE,
    ),
    (429, anthropic("rate_limit_error", "Number of concurrent connections has exceeded"), FailureKind.CONCURRENCY),
    (
        400,
        anthropic("invalid_request_error", "prompt is too long: 205000 tokens > 200000"),
        FailureKind.CONTEXT_TOO_LONG,
    ),
    (400, anthropic("invalid_request_error", "Your credit balance is too low"), FailureKind.QUOTA),
    (401, anthropic("authentication_error", "invalid x-api-key"), FailureKind.AUTH),
    (403, anthropic("permission_error", "Your API key may not use this"), FailureKind.AUTH),
    # OpenRouter, Groq, Gemini
    (402, {"error": {"code": 402, "message": "Insufficient credits"}}, FailureKind.QUOTA),
    (403, {"error": {"code": 403, "message": "requires moderation and was flagged"}}, FailureKind.REFUSED),
    (429, {"error": {"code": 429, "message": "Rate limit exceeded: free-models-per-day"}}, FailureKind.QUOTA),
    (413, openai("Request too large for model on tokens per minute", "tokens"), FailureKind.CONTEXT_TOO_LONG),
    (429, openai("weekly usage limit reached"), FailureKind.QUOTA),
    (400, [{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}], FailureKind.AUTH),
    # vLLM, Ollama, llama.cpp
    (400, vllm("This model's maximum context length is 4096 tokens", 400), FailureKind.CONTEXT_TOO_LONG),
    (400, vllm("temperature must be non-negative", 400), FailureKind.FATAL),
    (404, vllm("The model `x` does not exist.", 404), FailureKind.ADDRESS),
    (404, {"error": "model 'llama9' not found, try pulling it first"}, FailureKind.ADDRESS),
    (503, {"error": "server busy, please try again. maximum pending requests exceeded"}, FailureKind.OVERLOAD),
    (400, {"error": {"type": "exceed_context_size_error", "message": "request exceeds"}}, FailureKind.CONTEXT_TOO_LONG),
    (503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, FailureKind.OVERLOAD),
    (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, FailureKind.FATAL),
    # whatever stands in between
    (502, "<html><h1>502 Bad Gateway</h1></html>", FailureKind.TRANSIENT),
    (504, "", FailureKind.TRANSIENT),
    (408, "", FailureKind.TRANSIENT),
    (429, "Too Many Requests", FailureKind.LIMITED),
    (429, "too many concurrent requests", FailureKind.CONCURRENCY),
    (429, "model is at capacity", FailureKind.OVERLOAD),
    (500, "model is overloaded", FailureKind.OVERLOAD),
    (301, "moved", FailureKind.ADDRESS),
    (501, "", FailureKind.FATAL),
    (500, "null", FailureKind.TRANSIENT),
]


@pytest.mark.parametrize(
    ("status", "body", "kind"), CASES, ids=[f"{case[0]} as {case[2]}, {n}" for n, case in enumerate(CASES)]
)
def test_a_reply_means(status: int, body: Any, kind: FailureKind) -> None:
    failure = said(status, body)
    assert failure.kind is kind
    assert failure.status == status


def test_every_kind_is_recognised_in_some_reply() -> None:
    assert {kind for _, _, kind in CASES} == set(FailureKind) - {FailureKind.UNREACHABLE, FailureKind.UNREADABLE}


def test_every_kind_has_a_remedy() -> None:
    assert {kind.remedy for kind in FailureKind} == set(Remedy)


def test_headers_tell_tokens_from_requests_where_words_do_not() -> None:
    assert said(429, "", {"x-ratelimit-remaining-tokens": "0"}).kind is FailureKind.TOKEN_RATE
    assert said(429, "", {"x-ratelimit-remaining-requests": "0"}).kind is FailureKind.REQUEST_RATE
    assert said(429, "", {"anthropic-ratelimit-output-tokens-remaining": "0"}).kind is FailureKind.TOKEN_RATE


def test_an_unknown_model_is_named() -> None:
    text = said(404, {"error": "model 'llama9' not found"}).text
    assert "does not know this model or address; check both (model 'llama9' not found)" in text


def test_pages_are_read_as_text_and_long_texts_are_cut() -> None:
    assert said(502, "<html>\n<h1>Bad\tGateway</h1></html>").text == "502: Bad Gateway"
    assert len(said(500, "x" * 10_000).text) == MAX_TEXT_CHARS


def test_an_error_with_status_200_is_read_by_its_code() -> None:
    assert parse_error_object({"code": 429, "message": "slow down"}, {}, NOON).kind is FailureKind.LIMITED
    assert parse_error_object({"message": "upstream broke"}, {}, NOON).kind is FailureKind.TRANSIENT


# when to come back


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Mon, 16 Nov 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "Mon, 16 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "-3"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"x-ratelimit-reset-requests": "850ms"}, 0.85),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-reset-tokens": "1s"}, 360),
        ({"x-ratelimit-reset-requests": "1h2m3.5s"}, 3723.5),
        ({"x-ratelimit-reset-tokens": "2s", "x-ratelimit-remaining-tokens": "0"}, 2),
        ({"anthropic-ratelimit-requests-reset": "2026-11-16T12:00:12Z"}, 12),
        (
            {
                "anthropic-ratelimit-output-tokens-remaining": "0",
                "anthropic-ratelimit-output-tokens-reset": "2026-11-16T12:00:05Z",
                "anthropic-ratelimit-input-tokens-reset": "2026-11-16T12:00:50Z",
            },
            5,
        ),
        ({"x-ratelimit-reset": str(int((NOON + 9) * 1000))}, 9),
        ({}, None),
    ],
)
def test_the_wait_that_headers_ask_for(headers: dict[str, str], seconds: float | None) -> None:
    assert said(429, "", headers).retry_after == pytest.approx(seconds)


def test_the_wait_that_words_ask_for() -> None:
    assert said(429, openai("Rate limit reached. Please try again in 1m20.5s.")).retry_after == pytest.approx(80.5)
    assert said(429, openai("Please try again in 20ms. Visit")).retry_after == pytest.approx(0.02)
    assert said(429, {"message": "Try again in 7 seconds."}).retry_after == pytest.approx(7)


# no reply at all


def test_a_connection_that_was_lost_is_told_from_one_that_never_was() -> None:
    for error in (ConnectionResetError("reset"), OSError("no route")):
        assert report_unreachable(error).kind is FailureKind.TRANSIENT
    for error in (NotConnected("127.0.0.1:9: refused"), ssl.SSLError("version")):
        assert report_unreachable(error).kind is FailureKind.UNREACHABLE
    assert report_timeout(135.0) == ModelFailure(FailureKind.TRANSIENT, "no answer within 135 s")


def test_a_false_certificate_does_not() -> None:
    assert report_unreachable(ssl.SSLCertVerificationError("self-signed")).kind is FailureKind.ADDRESS


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: my-own-key-123.",
        "Incorrect API key provided: sk-proj-abcdef123456.",
        "Incorrect API key provided: my-o****123.",
        "header was Authorization: Bearer my-own-key-123",
    ],
)
def test_a_key_that_a_server_repeats_is_taken_out(text: str) -> None:
    shown = mask_secrets(text, "my-own-key-123")
    assert "[key]" in shown
    assert not any(part in shown for part in ("my-o", "123", "abcdef"))


def test_other_words_stay() -> None:
    assert mask_secrets("the task-based model asks why", None) == "the task-based model asks why"


# published limits

THEN = 1_793_620_800.0  # Mon, 2 Nov 2026 12:00:00 GMT


def test_openai_publishes_what_is_left_and_when_it_is_full_again() -> None:
    headers = {
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-reset-requests": "120ms",
        "x-ratelimit-limit-tokens": "200000",
        "x-ratelimit-remaining-tokens": "198500",
        "x-ratelimit-reset-tokens": "1m30s",
    }
    assert read_rate_limits(headers, THEN) == RateLimits(RateLimit(500, 499, 0.12), RateLimit(200_000, 198_500, 90))


def test_anthropic_publishes_a_moment() -> None:
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2026-11-02T12:00:30Z",
    }
    assert read_rate_limits(headers, THEN) == RateLimits(RateLimit(50, 0, 30.0))


@pytest.mark.parametrize("limit", ["", "unlimited", "0", "-1"])
def test_a_limit_that_is_no_number_is_no_limit(limit: str) -> None:
    found = read_rate_limits({"x-ratelimit-limit-requests": limit, "x-ratelimit-limit-tokens": "100"}, THEN)
    assert found == RateLimits(None, RateLimit(100))


def test_a_limit_of_a_day_is_nothing_to_pace_calls_by() -> None:
    headers = {"x-ratelimit-limit-requests": "14400", "x-ratelimit-reset-requests": "23h59m"}
    assert read_rate_limits(headers, THEN) is None


def test_most_servers_publish_nothing() -> None:
    assert read_rate_limits({"content-type": "application/json", "retry-after": "3"}, THEN) is None


@pytest.mark.parametrize("key", ["a", "no", "none", "1234567"])
def test_a_short_key_is_masked_only_where_it_stands_alone(key: str) -> None:
    text = f"a word like x{key}x stays, but {key!r} and Bearer {key} do not"
    masked = mask_secrets(text, key)
    assert f"x{key}x" in masked
    assert "'[key]' and Bearer [key] do not" in masked


def test_a_long_key_is_masked_wherever_it_stands() -> None:
    assert mask_secrets("url?key=0123456789abc&x", "0123456789abc") == "url?key=[key]&x"
