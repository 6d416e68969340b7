"""The client against a real server on this machine."""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import Any

import pytest

from shoal.models.base import Answer, FailureKind, ModelFailed, Question, Usage
from shoal.models.http.messages import HttpReply
from shoal.models.http.pool import FakeTransport, open_transport, raise_file_limit
from shoal.models.openai.client import ModelClient
from shoal.rehearsal.http import ServerRequest
from tests.models.fakes import KEY, MODEL, SCHEMA, completion, endpoints, question, reply_with
from tests.models.servers import ChatReply, Handler, serve_chat

NO_SCHEMA = (400, {"error": {"message": "response_format json_schema is not supported by this model"}})
NO_TOOLS = (422, {"detail": "extra fields not permitted: tools"})
NO_OBJECT = (400, {"error": {"message": "json_object is not available"}})
DONE = (200, completion('{"mood": "fine"}'))


async def ask(handler: Handler, *questions: Question, seconds: float = 30.0) -> list[Any]:
    """Ask a client these questions in turn, and return answers and failures."""
    ends: list[Any] = []
    async with serve_chat(handler) as base_url, open_transport() as transport:
        client = ModelClient(transport, endpoints(base_url), seconds)
        for each in questions:
            try:
                ends.append(await client.answer(each))
            except ModelFailed as failed:
                ends.append(failed.failure)
    return ends


async def test_a_question_is_answered() -> None:
    handler, seen = reply_with((200, completion("hello")))
    [answer] = await ask(handler, question())
    assert (answer.text, answer.usage, answer.finish) == ("hello", Usage(50, 5, 30), "stop")
    assert seen[0]["model"] == "gpt-4.1-mini"


async def test_the_key_is_sent_as_a_bearer_and_nothing_else_is() -> None:
    seen: list[ServerRequest] = []
    handler, _ = reply_with((200, completion()))
    async with serve_chat(handler, seen) as base_url, open_transport() as transport:
        await ModelClient(transport, endpoints(base_url), 30).answer(question())
    headers = seen[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["content-type"] == "application/json"
    assert set(headers) == {"host", "authorization", "content-type", "content-length", "user-agent"}


async def test_a_connection_is_used_again() -> None:
    ports = set()

    async def handle(_: dict[str, Any], writer: asyncio.StreamWriter) -> ChatReply:
        ports.add(writer.get_extra_info("peername"))
        return ChatReply(completion())

    await ask(handle, *map(question, range(5)))
    assert len(ports) == 1


async def test_what_a_server_does_not_understand_is_given_up_step_by_step_and_remembered() -> None:
    handler, seen = reply_with(NO_SCHEMA, NO_TOOLS, NO_OBJECT, DONE)
    first, second = await ask(handler, question(1, schema=SCHEMA), question(2, schema=SCHEMA))
    assert first.text == second.text == '{"mood": "fine"}'
    assert [sorted({"response_format", "tools"} & set(body)) for body in seen] == [
        ["response_format"],
        ["tools"],
        ["response_format"],
        [],
        [],
    ]


async def test_questions_in_flight_together_give_up_only_one_step() -> None:
    arrived: list[dict[str, Any]] = []
    all_here = asyncio.Event()

    async def handle(body: dict[str, Any], _: asyncio.StreamWriter) -> ChatReply:
        if "response_format" not in body:
            return ChatReply(completion(None, tool_calls=[{"function": {"arguments": "{}"}}]))
        arrived.append(body)
        if len(arrived) == 8:
            all_here.set()
        await all_here.wait()
        return ChatReply(NO_SCHEMA[1], 400)

    async with serve_chat(handle) as base_url, open_transport() as transport:
        client = ModelClient(transport, endpoints(base_url), 30)
        answers = await asyncio.gather(*(client.answer(question(n, schema=SCHEMA)) for n in range(8)))
    assert [answer.text for answer in answers] == ["{}"] * 8


async def test_what_is_learned_about_a_server_does_not_change_the_question() -> None:
    asked = question(schema=SCHEMA)
    before = asked.digest
    await ask(reply_with(NO_SCHEMA, DONE)[0], asked)
    assert asked.digest == before


async def test_a_hung_connection_is_cut() -> None:
    async def handle(_: dict[str, Any], __: asyncio.StreamWriter) -> ChatReply:
        await asyncio.Event().wait()
        raise AssertionError

    async with asyncio.timeout(60):
        [failure] = await ask(handle, question(), seconds=0.05)
    assert (failure.kind, failure.text) == (FailureKind.TRANSIENT, f"{MODEL}: no answer within 0.05 s")


async def test_a_reply_that_stops_in_the_middle_is_cut_too() -> None:
    async def handle(_: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"choices": [')
        await asyncio.Event().wait()

    async with asyncio.timeout(60):
        [failure] = await ask(handle, question(), seconds=0.05)
    assert failure.kind is FailureKind.TRANSIENT


async def test_a_connection_that_breaks_may_be_better_the_next_time() -> None:
    async def handle(_: dict[str, Any], __: asyncio.StreamWriter) -> None:
        return None

    [failure] = await ask(handle, question())
    assert failure.kind is FailureKind.TRANSIENT
    assert "cannot be reached" in failure.text


async def test_a_closed_port_is_said_to_be_unreachable() -> None:
    async with serve_chat(reply_with(DONE)[0]) as base_url:
        pass
    async with open_transport() as transport:
        with pytest.raises(ModelFailed, match="cannot be reached") as caught:
            await ModelClient(transport, endpoints(base_url), 5).answer(question())
    assert caught.value.failure.kind is FailureKind.UNREACHABLE


async def test_a_redirect_is_not_followed_as_it_would_take_the_key_along() -> None:
    async def handle(_: dict[str, Any], __: asyncio.StreamWriter) -> ChatReply:
        return ChatReply(b"", 307, "Location: http://127.0.0.1:9/elsewhere\r\n")

    [failure] = await ask(handle, question())
    assert (failure.kind, failure.status) == (FailureKind.ADDRESS, 307)


@pytest.mark.parametrize("limit", ["3", "Mon, 16 Nov 2099 12:00:00 GMT"])
async def test_headers_of_a_real_reply_are_heard_in_any_case(limit: str) -> None:
    async def handle(_: dict[str, Any], __: asyncio.StreamWriter) -> ChatReply:
        return ChatReply(b"slow down", 429, f"RETRY-AFTER: {limit}\r\n")

    [failure] = await ask(handle, question())
    assert failure.retry_after >= 3


async def test_a_failure_names_the_model_and_the_variable_but_not_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    handler, _ = reply_with(
        (401, {"error": {"message": f"Incorrect API key provided: {KEY}. Or {KEY[:6]}****{KEY[-4:]}"}})
    )
    [failure] = await ask(handler, question())
    assert failure.kind is FailureKind.AUTH
    assert failure.text.startswith(MODEL)
    assert "the key is that in OPENAI_API_KEY" in failure.text
    for shown in (failure.text, caplog.text):
        assert KEY not in shown
        assert KEY[-4:] not in shown


async def test_a_model_without_a_server_is_named() -> None:
    client = ModelClient(FakeTransport(lambda _: HttpReply(200, {}, b"")), {}, 1)
    with pytest.raises(ModelFailed, match="this run has no server with this model"):
        await client.answer(question())


async def test_a_request_shows_neither_key_nor_prompt() -> None:
    fake = FakeTransport(lambda _: HttpReply(200, {}, b'{"choices":[{"message":{"content":"hi"}}]}'))
    answer = await ModelClient(fake, endpoints(), 1).answer(question())
    assert isinstance(answer, Answer)
    assert KEY in fake.requests[0].headers["Authorization"]
    assert KEY not in repr(fake.requests)
    assert "polite" not in repr(fake.requests)


async def test_hundreds_of_calls_wait_side_by_side() -> None:
    waiting, all_here = [], asyncio.Event()

    async def handle(body: dict[str, Any], _: asyncio.StreamWriter) -> ChatReply:
        waiting.append(body)
        if len(waiting) == 300:
            all_here.set()
        await all_here.wait()
        return ChatReply(completion())

    async with serve_chat(handle) as base_url, open_transport() as transport:
        client = ModelClient(transport, endpoints(base_url), 60)
        answers = await asyncio.gather(*(client.answer(question(n)) for n in range(300)))
    assert len(answers) == 300


def test_as_many_files_may_be_open_as_the_machine_allows() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, before[1]), before[1]))
    try:
        assert raise_file_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] == before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
