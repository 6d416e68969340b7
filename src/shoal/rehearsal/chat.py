"""A chat completion: the request as clients send it, and the answer as a provider words it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from shoal.rehearsal.faults import Flaw, corrupt_reply
from shoal.rehearsal.schema.context import ConversationContext
from shoal.rehearsal.schema.generation import CHARACTERS_PER_TOKEN, Inventor
from shoal.rehearsal.schema.model import Schema
from shoal.rehearsal.settings import RehearsalSettings
from shoal.seeds import Draws, derive

_TOOL_CHANCE = 0.9
_NOTHING = msgspec.Raw(b"null")
_REFUSAL = "I'm sorry, but I can't help with that."
#: What is left of an answer that is cut off.
_CUT_FROM, _CUT_TO = 0.3, 0.95


class ContentPart(msgspec.Struct, gc=False):
    type: str = "text"
    text: str = ""


class ChatMessage(msgspec.Struct, gc=False):
    role: str
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(msgspec.Struct, gc=False):
    include_usage: bool = False


class ChatRequest(msgspec.Struct, gc=False):
    """The fields that an answer depends on; others are accepted and ignored, as providers do."""

    model: str
    messages: list[ChatMessage]
    #: Kept as they came, so that a schema that comes a thousand times is read once.
    response_format: msgspec.Raw = _NOTHING
    tools: msgspec.Raw = _NOTHING
    tool_choice: str | dict[str, Any] | None = None
    seed: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None

    def uses(self) -> set[str]:
        """What the request needs the server to know; words of `REFUSABLE`."""
        names = ("seed", "temperature", "max_tokens", "max_completion_tokens")
        used = {name for name in names if getattr(self, name) is not None}
        used.add(format_of(bytes(self.response_format)).kind)
        if tools_of(bytes(self.tools)):
            used.add("tools")
        return used | ({"stream"} if self.stream else set())

    @property
    def most(self) -> int | None:
        """Tokens that the answer may have."""
        return self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens

    def prompt(self) -> str:
        return "\n".join(f"{message.role}: {message.text}" for message in self.messages)

    def told(self) -> str:
        """What is told to this one only; all of it where there is nothing but rules."""
        return "\n".join(message.text for message in self.messages if message.role != "system") or self.prompt()


class ResponseFormat(msgspec.Struct, frozen=True):
    kind: str = "text"
    schema: Any = None


class Tool(msgspec.Struct, frozen=True):
    name: str
    schema: Any


@lru_cache(maxsize=256)
def format_of(raw: bytes) -> ResponseFormat:
    """What a `response_format` asks for."""
    wanted = msgspec.json.decode(raw) or {}
    kind = str(wanted.get("type", "text"))
    if kind != "json_schema":
        return ResponseFormat(kind)
    return ResponseFormat(kind, Schema(wanted["json_schema"].get("schema", True)))


@lru_cache(maxsize=256)
def tools_of(raw: bytes) -> tuple[Tool, ...]:
    found = [tool["function"] for tool in msgspec.json.decode(raw) or () if "function" in tool]
    return tuple(Tool(one["name"], Schema(one.get("parameters") or {"type": "object"})) for one in found)


class InventedReply(msgspec.Struct, frozen=True, gc=False):
    """What the model says, before it is put into the words of the protocol."""

    text: str | None
    #: Name of a tool that is called, with `arguments`.
    tool: str | None = None
    arguments: str = ""
    refusal: str | None = None
    finish: str = "stop"

    @property
    def tokens(self) -> int:
        return tokens_of((self.text or "") + self.arguments + (self.tool or "") + (self.refusal or ""))


def tokens_of(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def reply_to(request: ChatRequest, content: int, flaw: Flaw, settings: RehearsalSettings) -> InventedReply:
    """The answer to a request: a function of what it says and of the seed."""
    draws = Draws(derive(settings.seed, content, "reply"))
    if flaw is Flaw.REFUSED:
        return _refusal(draws)
    reply = _sound(request, ConversationContext(request.told()), draws, settings)
    if flaw is Flaw.MALFORMED:
        reply = _changed(reply, corrupt_reply(reply.text or reply.arguments, draws))
    elif flaw is Flaw.TRUNCATED:
        reply = _cut(reply, _CUT_FROM + (_CUT_TO - _CUT_FROM) * draws.random())
    if request.most is not None and reply.tokens > request.most:
        reply = _cut(reply, request.most / reply.tokens)
    return reply


def _refusal(draws: Draws) -> InventedReply:
    """Some providers say it in a field of its own, some by how the answer ends."""
    if draws.chance(0.5):
        return InventedReply(None, refusal=_REFUSAL)
    return InventedReply("", finish="content_filter")


def _sound(
    request: ChatRequest, reading: ConversationContext, draws: Draws, settings: RehearsalSettings
) -> InventedReply:
    tool = _tool(request, draws)
    if tool is not None:
        arguments = Inventor(tool.schema, reading, draws, settings.reply_tokens).value()
        return InventedReply(None, tool.name, _json(arguments), finish="tool_calls")
    schema = _schema(request)
    if schema is not None:
        return InventedReply(_json(Inventor(schema, reading, draws, settings.reply_tokens).value()))
    return InventedReply(reading.text(draws, settings.reply_tokens * CHARACTERS_PER_TOKEN))


def _tool(request: ChatRequest, draws: Draws) -> Tool | None:
    tools = tools_of(bytes(request.tools))
    if not tools or request.tool_choice == "none":
        return None
    if isinstance(request.tool_choice, dict):
        wanted = request.tool_choice.get("function", {}).get("name")
        return next((tool for tool in tools if tool.name == wanted), tools[0])
    # Somebody who may also answer in words mostly uses the tool all the same.
    if request.tool_choice != "required" and not draws.chance(_TOOL_CHANCE):
        return None
    return draws.choice(tools)


def _schema(request: ChatRequest) -> Schema | None:
    """The schema that is asked for: as a format, or in words, as clients do where a server knows no formats."""
    wanted = format_of(bytes(request.response_format))
    if isinstance(wanted.schema, Schema):
        return wanted.schema
    for message in request.messages:
        if '"properties"' in message.text or '"anyOf"' in message.text:
            for found in schemas_in(message.text):
                return found
    return _object() if wanted.kind == "json_object" else None


@lru_cache(maxsize=1)
def _object() -> Schema:
    return Schema({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]})


def schemas_in(text: str) -> Iterator[Schema]:
    """JSON schemas that stand in a text."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except ValueError:
            at += 1
            continue
        if isinstance(found, dict) and ({"properties", "anyOf", "oneOf", "$ref"} & found.keys()):
            yield _schema_from(text[at:end])
        at = end


@lru_cache(maxsize=256)
def _schema_from(text: str) -> Schema:
    return Schema(json.loads(text))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _changed(reply: InventedReply, text: str) -> InventedReply:
    if reply.tool is not None:
        return msgspec.structs.replace(reply, arguments=text)
    return msgspec.structs.replace(reply, text=text)


def _cut(reply: InventedReply, share: float) -> InventedReply:
    text = reply.text or reply.arguments
    return msgspec.structs.replace(_changed(reply, text[: int(len(text) * share)]), finish="length")


def completion(request: ChatRequest, reply: InventedReply, content: int, usage: dict[str, Any]) -> dict[str, Any]:
    """The body of a response. Its time is always 0: the same request has the same answer."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    if reply.tool is not None:
        message["tool_calls"] = [_tool_call(reply, content)]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
    return {**_head(request, content, "chat.completion"), "choices": [choice], "usage": usage}


def stream(request: ChatRequest, reply: InventedReply, content: int, usage: dict[str, Any]) -> bytes:
    """The same answer as server-sent events."""
    head = _head(request, content, "chat.completion.chunk")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if reply.tool is not None:
        deltas.append({"tool_calls": [{"index": 0, **_tool_call(reply, content)}]})
    deltas += _pieces(reply)
    events = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish}]})
    if request.stream_options is not None and request.stream_options.include_usage:
        events.append({**head, "choices": [], "usage": usage})
    lines = [b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events]
    return b"".join([*lines, b"data: [DONE]\n\n"])


def _pieces(reply: InventedReply) -> list[dict[str, Any]]:
    if reply.refusal is not None:
        return [{"refusal": reply.refusal}]
    text, size = reply.text or "", 16
    return [{"content": text[at : at + size]} for at in range(0, len(text), size)]


def _head(request: ChatRequest, content: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{content:016x}", "object": kind, "created": 0, "model": request.model}


def _tool_call(reply: InventedReply, content: int) -> dict[str, Any]:
    function = {"name": reply.tool, "arguments": reply.arguments}
    return {"id": f"call_{content:016x}", "type": "function", "function": function}
