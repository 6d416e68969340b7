"""The rehearsal server: answers as a provider words them, limits that hold, faults as often as was chosen."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from shoal.rehearsal.embeddings import PrefixCache
from shoal.rehearsal.faults import Fate, draw_fate, draw_latency
from shoal.rehearsal.limits import Bucket, ProviderLimits, format_reset
from shoal.rehearsal.server import start
from shoal.rehearsal.settings import PlannedOutage, RehearsalSettings
from tests.rehearsal.client import FORMAT, SCHEMA, Client, start_rehearsal
from tests.rehearsal.schemas import problems
from tests.rehearsal.virtual_server import Reply, Stage

TOOLS = [
    {"type": "function", "function": {"name": "score", "parameters": SCHEMA}},
    {"type": "function", "function": {"name": "leave"}},
]


# answers


async def test_a_text_is_answered_with_text_and_usage() -> None:
    async with start_rehearsal() as client:
        reply = await client.chat("Tell me about the harbour")
    assert reply.status == 200
    assert reply.body["object"] == "chat.completion"
    assert "harbour" in reply.text.lower()
    assert reply.choice["finish_reason"] == "stop"
    usage = reply.body["usage"]
    assert usage["prompt_tokens"] == pytest.approx(len("user: Tell me about the harbour") / 4, abs=2)
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


async def test_a_schema_is_answered_with_json_that_fits() -> None:
    async with start_rehearsal() as client:
        replies = await client.chats(20, response_format=FORMAT)
    assert all(problems(json.loads(reply.text), SCHEMA) == [] for reply in replies)
    assert len({reply.text for reply in replies}) > 10


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "score"}}])
async def test_tools_are_called_with_valid_arguments(choice: Any) -> None:
    async with start_rehearsal() as client:
        replies = await client.chats(20, tools=TOOLS, tool_choice=choice)
    calls = [reply.choice["message"]["tool_calls"][0]["function"] for reply in replies]
    assert {reply.choice["finish_reason"] for reply in replies} == {"tool_calls"}
    assert {call["name"] for call in calls} == ({"score", "leave"} if choice == "required" else {"score"})
    scores = [json.loads(call["arguments"]) for call in calls if call["name"] == "score"]
    assert all(problems(arguments, SCHEMA) == [] for arguments in scores)


async def test_tools_may_be_left_alone_or_forbidden() -> None:
    async with start_rehearsal() as client:
        free = await client.chats(60, tools=TOOLS)
        forbidden = await client.chats(5, tools=TOOLS, tool_choice="none")
    called = sum("tool_calls" in reply.choice["message"] for reply in free)
    assert 40 <= called < 60
    assert all("tool_calls" not in reply.choice["message"] for reply in forbidden)


@pytest.mark.parametrize("format", [{"type": "json_object"}, None])
async def test_a_schema_in_the_words_of_the_prompt_is_followed(format: Any) -> None:
    prompt = f"Here is {{something}} else. Reply in JSON that fits this schema:\n{json.dumps(SCHEMA)}\nNow go."
    async with start_rehearsal() as client:
        reply = await client.chat(prompt, response_format=format)
        bare = await client.chat("Reply in JSON", response_format={"type": "json_object"})
    assert problems(json.loads(reply.text), SCHEMA) == []
    assert isinstance(json.loads(bare.text), dict)


async def test_a_longest_answer_is_kept_to() -> None:
    async with start_rehearsal(reply_tokens=100) as client:
        cut = await client.chat(response_format=FORMAT, max_tokens=5)
        whole = await client.chat(response_format=FORMAT, max_completion_tokens=500)
    assert (cut.choice["finish_reason"], whole.choice["finish_reason"]) == ("length", "stop")
    assert cut.body["usage"]["completion_tokens"] == 5
    assert whole.body["usage"]["completion_tokens"] > 100


async def test_an_answer_can_be_streamed() -> None:
    async with start_rehearsal() as client:
        reply = await client.chat(stream=True, stream_options={"include_usage": True})
    *events, last = [line.removeprefix("data: ") for line in reply.body.strip().split("\n\n")]
    assert last == "[DONE]"
    chunks = [json.loads(event) for event in events]
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks if chunk["choices"])
    assert len(text) > 20
    assert chunks[-1]["usage"]["completion_tokens"] == -(-len(text) // 4)


async def test_contents_in_parts_are_read() -> None:
    parts = [{"type": "text", "text": "the lighthouse"}, {"type": "image_url", "image_url": {"url": "x"}}]
    async with start_rehearsal() as client:
        reply = await client.chat(parts)  # type: ignore[arg-type]
    assert "lighthouse" in reply.text.lower()


async def test_a_prefix_that_was_seen_is_reported_as_cached() -> None:
    rules = "These rules are the same for everybody. " * 200
    async with start_rehearsal() as client:
        first = await client.chat(rules + "You are Ada.")
        second = await client.chat(rules + "You are Ben.")
        short = await client.chat("Short")
    cached = [reply.body["usage"]["prompt_tokens_details"]["cached_tokens"] for reply in (first, second, short)]
    assert cached[0] == cached[2] == 0
    assert 1800 <= cached[1] <= 2000
    assert cached[1] % 128 == 0


def test_a_prefix_counts_only_from_the_beginning() -> None:
    prefixes = PrefixCache(0)
    assert prefixes.count_cached("a" * 512 + "b" * 512) == 0
    assert prefixes.count_cached("a" * 512 + "c" * 512) == 128
    assert prefixes.count_cached("c" * 512 + "b" * 512) == 0


async def test_texts_with_common_words_have_near_vectors() -> None:
    texts = ["the old bridge is closed", "the old bridge was closed", "sourdough needs patience"]
    async with start_rehearsal() as client:
        reply = await client.post("/v1/embeddings", {"model": "e", "input": texts})
        one = await client.post("/v1/embeddings", {"model": "e", "input": texts[0], "dimensions": 64})
        packed = await client.post("/v1/embeddings", {"model": "e", "input": "a", "encoding_format": "base64"})
    first, second, third = (item["embedding"] for item in reply.body["data"])
    near, far = (sum(a * b for a, b in zip(first, other, strict=True)) for other in (second, third))
    assert near > 0.6 > 0.3 > far
    assert sum(value * value for value in first) == pytest.approx(1, abs=1e-3)
    assert len(one.body["data"][0]["embedding"]) == 64
    assert isinstance(packed.body["data"][0]["embedding"], str)


async def test_the_models_are_listed() -> None:
    async with start_rehearsal(models=("a", "b")) as client:
        reply = await client.get("/v1/models")
    assert [model["id"] for model in reply.body["data"]] == ["a", "b"]


# determinism

FAULTS: dict[str, Any] = {
    "errors": 0.1,
    "limits": 0.1,
    "malformed": 0.1,
    "truncated": 0.1,
    "refused": 0.1,
    "latency_seconds": 0.002,
    "latency_sigma": 1.0,
}


async def test_the_same_request_has_the_same_answer_in_any_order() -> None:
    async with start_rehearsal(seed=3, **FAULTS) as client:
        at_once = await client.chats(60, response_format=FORMAT)
    async with start_rehearsal(seed=3, **FAULTS) as client:
        backwards = [await client.chat(f"Question {number}", response_format=FORMAT) for number in reversed(range(60))]
    assert [reply.status for reply in at_once] == [reply.status for reply in reversed(backwards)]
    for one, other in zip(at_once, reversed(backwards), strict=True):
        assert one.body.get("choices") == other.body.get("choices")


async def test_another_seed_and_another_iteration_are_answered_otherwise() -> None:
    async with start_rehearsal(seed=1) as client:
        one = [(await client.chat(seed=number)).text for number in range(4)]
    async with start_rehearsal(seed=2) as client:
        other = [(await client.chat(seed=number)).text for number in range(4)]
    assert len({*one, *other}) > 5


async def test_sending_a_failed_request_again_can_help_and_its_answer_is_the_same_as_ever() -> None:
    texts = set()
    statuses = []
    async with start_rehearsal(seed=5, errors=0.4, malformed=0.5) as client:
        for _ in range(40):
            reply = await client.chat(response_format=FORMAT)
            statuses.append(reply.status)
            if reply.status == 200:
                texts.add(reply.text)
    assert 8 <= statuses.count(500) <= 24
    assert len(texts) == 1


# faults


async def test_faults_are_as_frequent_as_was_chosen() -> None:
    shares = {"errors": 0.05, "limits": 0.1, "malformed": 0.08, "truncated": 0.04, "refused": 0.06}
    async with start_rehearsal(seed=7, **shares) as client:
        replies = await client.chats(1500, response_format=FORMAT)
        stats = await client.stats()
    statuses = [reply.status for reply in replies]
    answered = [reply for reply in replies if reply.status == 200]
    assert statuses.count(500) == stats["faults"]["error"] == pytest.approx(75, abs=30)
    assert statuses.count(429) == stats["faults"]["limit"] == pytest.approx(150, abs=40)
    assert len(answered) == pytest.approx(1275, abs=50)
    refused = [reply for reply in answered if not reply.choice["message"]["content"]]
    truncated = [reply for reply in answered if reply.choice["finish_reason"] == "length"]
    assert len(refused) == stats["faults"]["refused"] == pytest.approx(77, abs=30)
    assert len(truncated) == stats["faults"]["truncated"] == pytest.approx(51, abs=25)
    broken = [reply for reply in answered if reply not in refused and not is_valid(reply.text)]
    assert len(broken) - len(truncated) == stats["faults"]["malformed"] == pytest.approx(102, abs=35)


def is_valid(text: str) -> bool:
    try:
        return problems(json.loads(text), SCHEMA) == []
    except ValueError:
        return False


async def test_a_request_that_hangs_is_in_flight_until_its_client_goes() -> None:
    async with start_rehearsal(hangs=1.0) as client:
        hanging = asyncio.create_task(client.chat())
        while not (await client.stats())["in_flight"]:
            continue
        hanging.cancel()
        while (stats := await client.stats())["in_flight"]:
            continue
    assert (stats["abandoned"], stats["faults"], stats["answered"]) == (1, {"hang": 1}, {})


async def test_a_dropped_answer_breaks_the_connection_and_is_not_paid_for() -> None:
    async with start_rehearsal(dropped=1.0) as client:
        with pytest.raises(asyncio.IncompleteReadError):
            await client.chat()
        stats = await client.stats()
    assert (stats["faults"], stats["answered"], stats["in_flight"]) == ({"dropped": 1}, {}, 0)


def test_an_outage_ends() -> None:
    stage = Stage(outages=(PlannedOutage(0.0, 0.1),))
    statuses = []
    for moment in (0, 0.05, 0.09, 0.1, 0.2):
        stage.until(moment)
        statuses += [reply.status for reply in stage.asks(1)]
    assert statuses == [503, 503, 503, 200, 200]


def test_an_outage_covers_its_time_and_no_more() -> None:
    outage = PlannedOutage(60, 20)
    assert [outage.covers(second) for second in (0, 59.9, 60, 79.9, 80)] == [False, False, True, True, False]


def test_latencies_have_the_chosen_median_and_spread() -> None:
    settings = RehearsalSettings(latency_seconds=2.0, latency_sigma=0.5)
    drawn = sorted(draw_latency(settings, content, 0) for content in range(4000))
    assert drawn[2000] == pytest.approx(2.0, rel=0.05)
    assert drawn[int(4000 * 0.841)] == pytest.approx(2.0 * 2.718**0.5, rel=0.08)
    assert {draw_latency(RehearsalSettings(latency_seconds=0.3), content, 0) for content in range(9)} == {0.3}


def test_a_retry_draws_its_fate_again() -> None:
    settings = RehearsalSettings(errors=0.5)
    fates = [draw_fate(settings, 7, attempt) for attempt in range(100)]
    assert 30 <= fates.count(Fate.ERROR) <= 70
    assert fates == [draw_fate(settings, 7, attempt) for attempt in range(100)]


# limits


def test_no_more_than_the_cap_are_worked_on_at_once() -> None:
    stage = Stage(cap=5, latency_seconds=0.05)
    replies = stage.asks(20)
    stage.until(1)
    refused = [reply for reply in replies if reply.status == 429]
    assert (len(replies), len(refused), stage.server.stats.in_flight_peak) == (20, 15, 5)
    assert {reply.type for reply in refused} == {"concurrency"}
    assert refused[0].headers["retry-after"] == "1"


def test_five_hundred_at_once_take_as_long_as_one() -> None:
    stage = Stage(latency_seconds=0.5)
    replies = stage.asks(500)
    stage.until(10)
    assert {(reply.status, reply.at_seconds) for reply in replies} == {(200, 0.5)}
    assert len(replies) == stage.server.stats.in_flight_peak == 500


async def test_five_hundred_at_once_are_answered_over_real_sockets() -> None:
    async with start_rehearsal(latency_seconds=0.5) as client:
        replies = await client.chats(500, response_format=FORMAT)
    assert [reply.status for reply in replies] == [200] * 500


@pytest.mark.parametrize("latency", [0.0, 0.005])
async def test_with_a_queue_requests_are_answered_in_turn(latency: float) -> None:
    async with start_rehearsal(cap=3, queue=True, latency_seconds=latency) as client:
        replies = await client.chats(40)
        stats = await client.stats()
    assert {reply.status for reply in replies} == {200}
    assert stats["in_flight_peak"] <= 3
    assert (stats["waiting"], stats["in_flight"]) == (0, 0)


def test_a_request_that_leaves_the_queue_is_not_worked_on() -> None:
    stage, replies = Stage(cap=1, queue=True, latency_seconds=1), list[Reply]()
    stage.ask("first", replies.append)
    leaving = stage.ask("second", replies.append)
    assert stage.server.stats.waiting == 1
    leaving.connection_lost(None)
    stage.until(10)
    stats = stage.server.stats.as_json()
    assert [reply.status for reply in replies] == [200]
    assert (stats["abandoned"], stats["waiting"], stats["distinct"]) == (1, 0, 1)


def test_refusals_above_the_rate_say_how_long_to_wait() -> None:
    replies = Stage(requests_per_minute=60, burst_seconds=10).asks(15)
    taken, refused = ([reply for reply in replies if reply.status == status] for status in (200, 429))
    assert len(taken) == 10
    assert taken[0].headers["x-ratelimit-limit-requests"] == "60"
    assert {int(reply.headers["x-ratelimit-remaining-requests"]) for reply in taken} == set(range(10))
    assert all(reply.type == "requests" for reply in refused)
    assert all(0 < int(reply.headers["retry-after-ms"]) <= 1000 for reply in refused)


async def test_tokens_are_charged_before_the_call_with_the_longest_answer() -> None:
    async with start_rehearsal(tokens_per_minute=1000) as client:
        first = await client.chat(max_tokens=700)
        second = await client.chat(max_tokens=700)
    assert (first.status, second.status) == (200, 429)
    assert second.error["type"] == "tokens"
    assert int(first.headers["x-ratelimit-remaining-tokens"]) < 300
    assert 15 <= int(second.headers["retry-after"]) <= 30


async def test_headers_follow_the_style_that_was_chosen() -> None:
    async with start_rehearsal(requests_per_minute=1, headers="anthropic") as client:
        one, refused = await client.chat(), await client.chat()
    assert one.headers["anthropic-ratelimit-requests-limit"] == "1"
    assert one.headers["anthropic-ratelimit-requests-reset"].endswith("Z")
    assert "retry-after" in refused.headers
    async with start_rehearsal(requests_per_minute=1, headers="none") as client:
        one, refused = await client.chat(), await client.chat()
    assert refused.status == 429
    assert not [name for name in (*one.headers, *refused.headers) if "ratelimit" in name or "retry" in name]


def test_a_bucket_fills_up_steadily_and_never_above_its_size() -> None:
    bucket = Bucket(60, 10)
    bucket.take(10, 100.0)
    assert bucket.wait(1, 100.0) == pytest.approx(1)
    assert bucket.wait(3, 101.0) == pytest.approx(2)
    assert bucket.level(1000.0) == 10
    assert bucket.wait(50, 1000.0) == 0, "more than it holds is let through when it is full"


def test_a_refusal_for_tokens_costs_no_request() -> None:
    limits = ProviderLimits(RehearsalSettings(requests_per_minute=60, tokens_per_minute=100))
    assert limits.find_lacking(0, 100, 0.0) is None
    limits.take(100, 0.0)
    what, seconds = limits.find_lacking(1, 50, 0.0) or ("nothing", 0.0)
    assert (what, round(seconds, 6)) == ("tokens", 30)
    assert limits.buckets["requests"].level(0.0) == 59


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, "0ms"), (0.0121, "13ms"), (7.66, "7.66s"), (60, "1m0s"), (90, "1m30s")]
)
def test_durations_are_written_as_openai_does(seconds: float, expected: str) -> None:
    assert format_reset(seconds) == expected


# refusals


async def test_a_refusal_takes_the_time_it_was_given() -> None:
    async with start_rehearsal(errors=1.0, refusal_seconds=0.05) as client:
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert (await client.chat()).status == 500
        assert loop.time() - began >= 0.05
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.chat(), 0.01)
        assert (await client.chat()).status == 500, "a client that went away harms nobody"


@pytest.mark.parametrize(
    ("word", "more"),
    [
        ("json_schema", {"response_format": FORMAT}),
        ("json_object", {"response_format": {"type": "json_object"}}),
        ("tools", {"tools": TOOLS}),
        ("seed", {"seed": 1}),
        ("max_completion_tokens", {"max_completion_tokens": 9}),
        ("stream", {"stream": True}),
    ],
)
async def test_unsupported_features_are_refused_by_name(word: str, more: Any) -> None:
    async with start_rehearsal(unsupported=frozenset({word})) as client:
        refused, plain = await client.chat(**more), await client.chat()
    assert (refused.status, plain.status) == (400, 200)
    assert word in refused.error["message"]


async def test_keys_quotas_and_long_prompts_are_refused_in_the_words_of_the_protocol() -> None:
    async with start_rehearsal(key="right") as client:
        assert (await client.chat()).status == 401
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        right = await client.post("/v1/chat/completions", body, Authorization="Bearer right")
        assert right.status == 200
    async with start_rehearsal(quota=2) as client:
        replies = [await client.chat() for _ in range(3)]
        assert [reply.status for reply in replies] == [200, 200, 429]
        assert replies[2].error["code"] == "insufficient_quota"
    async with start_rehearsal(context_tokens=50) as client:
        assert (await client.chat("x" * 1000)).error["code"] == "context_length_exceeded"
        assert (await client.chat(max_tokens=60)).error["code"] == "context_length_exceeded"
        assert (await client.chat()).status == 200


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"model": "m", "messages": "hello"},
        {"model": "m", "messages": [], "response_format": {"type": "json_schema"}},
        {"model": "m", "messages": [], "response_format": 7},
        {"model": "m", "messages": [], "tools": [{"function": {}}]},
        {"model": "m", "messages": [], "response_format": {"type": "json_schema", "json_schema": {"schema": 7}}},
    ],
)
async def test_a_wrong_request_is_answered_with_400_and_the_server_lives_on(body: Any) -> None:
    async with start_rehearsal() as client:
        reply = await client.post("/v1/chat/completions", body)
        assert reply.status == 400
        assert (await client.chat()).status == 200
        assert (await client.stats())["in_flight"] == 0


async def test_an_unknown_path_is_answered_with_the_known_ones() -> None:
    async with start_rehearsal() as client:
        assert "/v1/chat/completions" in (await client.get("/v2/chat")).error["message"]
        assert (await client.get("/v1/chat/completions")).status == 405


@pytest.mark.parametrize(
    "wrong",
    [
        {"errors": 1.2},
        {"errors": 0.6, "hangs": 0.6},
        {"malformed": 0.6, "refused": 0.6},
        {"latency_seconds": -1},
        {"cap": 0},
        {"unsupported": frozenset({"magic"})},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"must|add up|none of"):
        RehearsalSettings(**wrong)


# counting


async def test_repeated_answers_are_counted() -> None:
    async with start_rehearsal() as client:
        for text in ("a", "b", "a", "a"):
            await client.chat(text)
        stats = await client.stats()
        assert (stats["requests"], stats["distinct"], stats["repeated"]) == (4, 2, 2)
        assert sorted(stats["answered"].values()) == [1, 3]
        assert stats["by_status"] == {"200": 4}
        assert stats["tokens"]["input"] > 0 < stats["tokens"]["output"]
        await client.post("/rehearsal/reset", {})
        assert (await client.stats())["requests"] == 0


async def test_two_servers_live_side_by_side_and_end_with_their_block() -> None:
    async with start(RehearsalSettings()) as one, start(RehearsalSettings()) as other:
        assert one.base_url != other.base_url
    with pytest.raises(ConnectionRefusedError):
        await Client(one).get("/v1/models")
