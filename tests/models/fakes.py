"""A scripted model, a clock that does not wait, and replies of servers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from shoal.journal import DECIDE, JournalKey
from shoal.models.base import Answer, FailureKind, Message, ModelFailed, ModelFailure, Question, Usage
from shoal.models.openai.endpoints import Endpoint
from tests.models.servers import ChatReply, Handler

MODEL = "openai/gpt-4.1-mini"
KEY = "sk-very-secret-0123456789"
SCHEMA = {
    "type": "object",
    "properties": {"mood": {"type": "string"}, "why": {"type": "string"}},
    "required": ["mood"],
}


def question(number: int = 0, **changes: Any) -> Question:
    messages = (Message("system", "You are polite."), Message("user", f"Hello, for the {number}th time?"))
    return Question(**{"key": JournalKey("town", 1, number, DECIDE), "model": MODEL, "messages": messages, **changes})


def make_failure(kind: FailureKind, retry_after: float | None = None) -> ModelFailed:
    return ModelFailed(ModelFailure(kind, f"a {kind} failure", retry_after=retry_after))


class Scripted:
    """Answers from a script, in order, and then repeats its last entry. Waits for the gate, if there is one."""

    def __init__(self, *script: Answer | ModelFailed, gate: asyncio.Event | None = None) -> None:
        self._script = list(script) or [Answer("yes", Usage(10, 2))]
        self._gate = gate
        self.asked: list[Question] = []
        self.at_once = 0
        self.most_at_once = 0

    async def answer(self, question: Question) -> Answer:
        self.asked.append(question)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await (asyncio.sleep(0) if self._gate is None else self._gate.wait())
            said = self._script.pop(0) if len(self._script) > 1 else self._script[0]
            if isinstance(said, ModelFailed):
                raise said
            return said
        finally:
            self.at_once -= 1


class FakeClock:
    """A clock whose sleeps take no time and are recorded."""

    def __init__(self) -> None:
        self._now = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._now += seconds


def completion(content: str | None = "hello", finish: str = "stop", **message: Any) -> dict[str, Any]:
    return {
        "choices": [{"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 30}},
    }


def reply_with(*replies: tuple[int, Any]) -> tuple[Handler, list[dict[str, Any]]]:
    """Make a handler that gives these replies in order and repeats the last; and the list of bodies it receives."""
    left, seen = list(replies), []

    async def handle(body: dict[str, Any], _: asyncio.StreamWriter) -> ChatReply:
        seen.append(body)
        status, reply = left.pop(0) if len(left) > 1 else left[0]
        return ChatReply(reply, status)

    return handle, seen


def endpoints(base_url: str = "http://127.0.0.1:9/v1", names: Iterable[str] = (MODEL,)) -> dict[str, Endpoint]:
    return {
        name: Endpoint(model="gpt-4.1-mini", base_url=base_url, key=KEY, key_variable="OPENAI_API_KEY")
        for name in names
    }
