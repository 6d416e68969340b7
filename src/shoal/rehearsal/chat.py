"""Chat completions: the request of a client, and an invented reply in the form of the protocol."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import msgspec

from shoal.rehearsal.conversation import ConversationContext
from shoal.rehearsal.faults import Flaw, corrupt_reply
from shoal.rehearsal.generation import CHARACTERS_PER_TOKEN, Inventor
from shoal.rehearsal.schema import Schema
from shoal.rehearsal.settings import RehearsalSettings
from shoal.seeds import Draws, derive

_TOOL_CHANCE = 0.9
_NULL = msgspec.Raw(b"null")
_REFUSAL = "I'm sorry, but I can't help with that."
#: The share of a truncated answer that is left.
_CUT_FROM, _CUT_TO = 0.3, 0.95
_DELTA_CHARACTERS = 16
#: Where a client wants any JSON object.
_ANSWER_SCHEMA = Schema({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]})


def estimate_tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


# requests


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
    #: Kept as bytes, so that a schema that is sent a thousand times is parsed once.
    response_format: msgspec.Raw = _NULL
    tools: msgspec.Raw = _NULL
    tool_choice: str | dict[str, Any] | None = None
    seed: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None

    @property
    def reply_limit(self) -> int | None:
        """The number of tokens that the answer may have."""
        return self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens

    @property
    def features(self) -> set[str]:
        """The features that the request uses; words of `REFUSABLE`."""
        names = ("seed", "temperature", "max_tokens", "max_completion_tokens")
        used = {name for name in names if getattr(self, name) is not None}
        used.add(parse_format(bytes(self.response_format))[0])
        if parse_tools(bytes(self.tools)):
            used.add("tools")
        if self.stream:
            used.add("stream")
        return used

    def join_prompt(self) -> str:
        return "\n".join(f"{message.role}: {message.text}" for message in self.messages)

    @property
    def form(self) -> str:
        """The response format and the tools, which servers put before the messages."""
        raw = (bytes(part) for part in (self.response_format, self.tools))
        return b"".join(part for part in raw if part != b"null").decode(errors="replace")

    def count_tokens(self, prompt: str) -> int:
        """Estimate the tokens of the prompt, the response format and the tools."""
        return estimate_tokens(prompt) + len(self.form.encode()) // CHARACTERS_PER_TOKEN

    def choose_tool(self, draws: Draws) -> Tool | None:
        """Choose the tool that the answer calls; None means that it is a text."""
        tools = parse_tools(bytes(self.tools))
        if not tools or self.tool_choice == "none":
            return None
        if isinstance(self.tool_choice, dict):
            name = self.tool_choice.get("function", {}).get("name")
            return next((tool for tool in tools if tool.name == name), tools[0])
        # A model that may also answer in text mostly uses a tool all the same.
        if self.tool_choice != "required" and not draws.chance(_TOOL_CHANCE):
            return None
        return draws.choice(tools)

    def find_schema(self) -> Schema | None:
        """Find the schema in the response format, or in a message, where clients put it for servers without formats."""
        kind, schema = parse_format(bytes(self.response_format))
        if schema is not None:
            return schema
        for message in self.messages:
            if found := find_schema_in(message.text):
                return found
        return _ANSWER_SCHEMA if kind == "json_object" else None


class Tool(msgspec.Struct, frozen=True):
    name: str
    schema: Any


@lru_cache(maxsize=256)
def parse_format(raw: bytes) -> tuple[str, Schema | None]:
    """Parse the `response_format` of a request: its kind, and its schema if it has one."""
    wanted = msgspec.json.decode(raw) or {}
    kind = str(wanted.get("type", "text"))
    return kind, Schema(wanted["json_schema"].get("schema", True)) if kind == "json_schema" else None


@lru_cache(maxsize=256)
def parse_tools(raw: bytes) -> tuple[Tool, ...]:
    found = [tool["function"] for tool in msgspec.json.decode(raw) or () if "function" in tool]
    return tuple(Tool(one["name"], Schema(one.get("parameters") or {"type": "object"})) for one in found)


# replies


class InventedReply(msgspec.Struct, frozen=True, gc=False):
    """What the model says, before it is put into the form of the protocol."""

    text: str | None
    #: Name of a tool that is called, with `arguments`.
    tool: str | None = None
    arguments: str = ""
    refusal: str | None = None
    finish: str = "stop"

    @property
    def tokens(self) -> int:
        return estimate_tokens((self.text or "") + self.arguments + (self.tool or "") + (self.refusal or ""))

    def replace_text(self, text: str, finish: str) -> InventedReply:
        """Return the reply with another text, or with other arguments where it calls a tool."""
        if self.tool is not None:
            return msgspec.structs.replace(self, arguments=text, finish=finish)
        return msgspec.structs.replace(self, text=text, finish=finish)

    def truncate(self, share: float) -> InventedReply:
        """Return the beginning of the reply, as when it reached its limit."""
        text = self.text or self.arguments
        return self.replace_text(text[: int(len(text) * share)], "length")


def invent_reply(request: ChatRequest, content: int, flaw: Flaw, settings: RehearsalSettings) -> InventedReply:
    """Invent the answer to a request. It depends only on the content of the request and on the seed."""
    draws = Draws(derive(settings.seed, content, "reply"))
    if flaw is Flaw.REFUSED:
        # Some providers have a field for refusals, others a reason why the answer ends.
        has_field = draws.chance(0.5)
        return InventedReply(None, refusal=_REFUSAL) if has_field else InventedReply("", finish="content_filter")

    # The system message is the same for all agents, so it is taken up only if there is nothing else.
    own = "\n".join(message.text for message in request.messages if message.role != "system")
    context = ConversationContext(own or request.join_prompt())
    tool = request.choose_tool(draws)
    schema = request.find_schema() if tool is None else tool.schema
    if schema is None:
        reply = InventedReply(context.write_text(draws, settings.reply_tokens * CHARACTERS_PER_TOKEN))
    else:
        text = msgspec.json.encode(Inventor(schema, context, draws, settings.reply_tokens).invent()).decode()
        reply = InventedReply(text) if tool is None else InventedReply(None, tool.name, text, finish="tool_calls")

    if flaw is Flaw.MALFORMED:
        reply = reply.replace_text(corrupt_reply(reply.text or reply.arguments, draws), reply.finish)
    elif flaw is Flaw.TRUNCATED:
        reply = reply.truncate(_CUT_FROM + (_CUT_TO - _CUT_FROM) * draws.random())
    if request.reply_limit is not None and reply.tokens > request.reply_limit:
        reply = reply.truncate(request.reply_limit / reply.tokens)
    return reply


def find_schema_in(text: str) -> Schema | None:
    """Find the first JSON schema in a text."""
    if '"properties"' not in text and '"anyOf"' not in text:
        return None
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except ValueError:
            at += 1
            continue
        if isinstance(found, dict) and ({"properties", "anyOf", "oneOf", "$ref"} & found.keys()):
            return _parse_schema(text[at:end])
        at = end
    return None


@lru_cache(maxsize=256)
def _parse_schema(text: str) -> Schema:
    return Schema(json.loads(text))


# responses


def build_completion(request: ChatRequest, reply: InventedReply, content: int, usage: dict[str, Any]) -> dict[str, Any]:
    """Build the body of a response. Its time is always 0, so that the same request has the same answer."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    if reply.tool is not None:
        message["tool_calls"] = [_build_tool_call(reply, content)]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
    return {**_build_head(request, content, "chat.completion"), "choices": [choice], "usage": usage}


def build_stream(request: ChatRequest, reply: InventedReply, content: int, usage: dict[str, Any]) -> bytes:
    """Build the same answer as server-sent events."""
    head = _build_head(request, content, "chat.completion.chunk")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if reply.tool is not None:
        deltas.append({"tool_calls": [{"index": 0, **_build_tool_call(reply, content)}]})
    if reply.refusal is not None:
        deltas.append({"refusal": reply.refusal})
    text, size = reply.text or "", _DELTA_CHARACTERS
    deltas += [{"content": text[at : at + size]} for at in range(0, len(text), size)]
    events = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish}]})
    if request.stream_options is not None and request.stream_options.include_usage:
        events.append({**head, "choices": [], "usage": usage})
    lines = [b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events]
    return b"".join([*lines, b"data: [DONE]\n\n"])


def _build_head(request: ChatRequest, content: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{content:016x}", "object": kind, "created": 0, "model": request.model}


def _build_tool_call(reply: InventedReply, content: int) -> dict[str, Any]:
    function = {"name": reply.tool, "arguments": reply.arguments}
    return {"id": f"call_{content:016x}", "type": "function", "function": function}
