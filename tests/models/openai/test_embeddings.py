"""Embeddings: asked for like any other question, and kept small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shoal.journal import EMBED, Journal, JournalKey, read_journal
from shoal.models.base import Answer, FailureKind, ModelFailed, ModelFailure, Usage
from shoal.models.http.messages import HttpReply, HttpRequest
from shoal.models.http.pool import FakeTransport
from shoal.models.openai.client import ModelClient
from shoal.models.openai.embeddings import EmbeddingRequest, StackEmbedder, pack, unpack
from shoal.models.stack import StackSettings, build_replay_stack, open_stack
from tests.models.fakes import KEY, MODEL, completion, endpoints, question

CONTENT_FILTER = HttpReply(400, {}, b'{"error": {"code": "content_filter", "message": "no"}}')


def passages(*texts: str) -> EmbeddingRequest:
    return EmbeddingRequest(key=JournalKey("town", 3, 0, EMBED), model=MODEL, texts=texts)


def reply(*rows: list[float], status: int = 200, **more: Any) -> HttpReply:
    data = [{"index": n, "embedding": row} for n, row in enumerate(rows)]
    return HttpReply(status, {}, json.dumps({"data": data[::-1], "usage": {"prompt_tokens": 9}, **more}).encode())


def client(transport: FakeTransport, base_url: str = "http://127.0.0.1:9/v1") -> ModelClient:
    return ModelClient(transport, endpoints(base_url), 10)


def said_hello() -> HttpReply:
    return HttpReply(200, {}, json.dumps(completion("hello")).encode())


def letters(request: HttpRequest) -> HttpReply:
    """A server for which texts are about their letters."""
    texts = json.loads(request.body)["input"]
    return reply(*([float(text.count(letter)) for letter in "abcdef"] for text in texts))


async def test_texts_are_put_to_the_server_and_come_back_in_their_order() -> None:
    transport = FakeTransport(lambda _: reply([3.0, 4.0], [0.0, 2.0]))
    found = await StackEmbedder(client(transport)).embed(passages("one", "two"))
    assert np.allclose(found, [[0.6, 0.8], [0.0, 1.0]], atol=1e-3)
    [sent] = transport.requests
    assert sent.url == "http://127.0.0.1:9/v1/embeddings"
    assert sent.headers["Authorization"] == f"Bearer {KEY}"
    assert json.loads(sent.body) == {"model": "gpt-4.1-mini", "input": ["one", "two"]}


async def test_tokens_are_counted() -> None:
    answer = await client(FakeTransport(lambda _: reply([1.0]))).answer(passages("one").question())
    assert answer.usage == Usage(input=9)


@pytest.mark.parametrize(
    ("base_url", "expected"), [("https://shoal.openai.azure.com/openai/v1", KEY), ("http://127.0.0.1:9/v1", None)]
)
async def test_azure_is_sent_its_own_header_for_chat_and_for_embeddings(base_url: str, expected: str | None) -> None:
    transport = FakeTransport(lambda request: letters(request) if b'"input"' in request.body else said_hello())
    model = client(transport, base_url)
    await model.answer(passages("one").question())
    await model.answer(question())
    assert [request.url.rpartition("/v1")[2] for request in transport.requests] == ["/embeddings", "/chat/completions"]
    assert [request.headers.get("api-key") for request in transport.requests] == [expected, expected]


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (
            HttpReply(429, {}, b'{"error": {"message": "too many requests per minute"}}'),
            FailureKind.REQUEST_RATE,
            "too many",
        ),
        (HttpReply(401, {}, f'{{"error": {{"message": "bad key {KEY}"}}}}'.encode()), FailureKind.AUTH, "[key]"),
        (HttpReply(200, {}, b"<html>"), FailureKind.UNREADABLE, "holds no embeddings"),
        (reply([1.0]), FailureKind.UNREADABLE, "does not hold 2 embeddings"),
        (reply([1.0], [1.0, 2.0]), FailureKind.UNREADABLE, "does not hold 2 embeddings"),
        (reply([], []), FailureKind.UNREADABLE, "does not hold 2 embeddings"),
    ],
)
async def test_a_failure_is_raised_as_what_it_is(said: HttpReply, kind: FailureKind, words: str) -> None:
    with pytest.raises(ModelFailed) as caught:
        await client(FakeTransport(lambda _: said)).answer(passages("one", "two").question())
    assert caught.value.failure.kind is kind
    assert words in caught.value.failure.text
    assert KEY not in caught.value.failure.text


async def test_a_model_without_a_server_fails() -> None:
    with pytest.raises(ModelFailed, match="no server"):
        await client(FakeTransport(letters)).answer(
            EmbeddingRequest(key=JournalKey("t", 1, 0, EMBED), model="?", texts=("a",)).question()
        )


@pytest.mark.parametrize("text", ["no base64!", "", "AAA=", pack([[1.0, 2.0, 3.0]])])
def test_what_holds_no_embeddings_is_a_failure(text: str) -> None:
    with pytest.raises(ModelFailed):
        unpack(Answer(text), 2)


def test_an_embedding_of_nothing_points_nowhere() -> None:
    assert unpack(Answer(pack([[0.0, 0.0]])), 1).tolist() == [[0.0, 0.0]]


# through the whole stack


async def test_embeddings_are_journaled_compactly_and_replayed_to_the_last_digit(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    transport = FakeTransport(lambda _: reply([float(n % 7) / 3 for n in range(1536)]))
    async with (
        Journal.open(path) as journal,
        open_stack(StackSettings(endpoints=endpoints()), journal, transport) as stack,
    ):
        first = await StackEmbedder(stack).embed(passages("one"))
        again = await StackEmbedder(stack).embed(passages("one"))
    assert len(transport.requests) == 1
    assert path.stat().st_size < 4500
    replayed = await StackEmbedder(build_replay_stack(Journal.sealed(path))).embed(passages("one"))
    assert np.array_equal(first, again)
    assert np.array_equal(first, replayed)


async def test_a_failure_besides_the_turns_is_history(tmp_path: Path) -> None:
    """It would otherwise be made good when the run is resumed, and the run would not be the same."""
    path = tmp_path / "journal.jsonl"
    refusing, willing = FakeTransport(lambda _: CONTENT_FILTER), FakeTransport(letters)
    failures = []
    for transport in (refusing, willing):
        async with (
            Journal.open(path) as journal,
            open_stack(StackSettings(endpoints=endpoints()), journal, transport) as stack,
        ):
            with pytest.raises(ModelFailed) as caught:
                await StackEmbedder(stack).embed(passages("one"))
            failures.append(caught.value.failure)
    assert failures[1] == ModelFailure(failures[0].kind, failures[0].text)
    assert willing.requests == []
    assert [line.outcome for line in read_journal(path)[0]] == ["error"]


async def test_a_failed_turn_is_left_to_the_engine(tmp_path: Path) -> None:
    async with (
        Journal.open(tmp_path / "journal.jsonl") as journal,
        open_stack(StackSettings(endpoints=endpoints()), journal, FakeTransport(lambda _: CONTENT_FILTER)) as stack,
    ):
        with pytest.raises(ModelFailed):
            await stack.answer(question())
        assert list(journal) == []
