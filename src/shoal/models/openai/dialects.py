"""How a question is put to a server, and how its reply is read: chat completions as OpenAI made them, and what others
made of them.

Servers differ in how they can be held to a JSON schema. The best way is tried first; where a server says that it does
not understand, one step is given up. What a server understands is learned once and is no part of the question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec
import orjson

from shoal.models.base import Answer, FailureKind, Message, ModelFailed, ModelFailure, Question, Usage
from shoal.models.openai.errors import allowance, of_error, unreadable

TOOL = "answer"
#: For servers that do not count tokens.
CHARACTERS_PER_TOKEN = 4
#: Schemas are few, one for each world and turn; more than this many means they are made anew each time.
_MAX_SCHEMAS = 256

_THOUGHTS = re.compile(r"\s*<(think|thinking|reasoning|thought)>.*?(</\1>\s*|$)", re.DOTALL)
_FORMAT_WORDS = re.compile(
    r"response_format|json_schema|json_object|json mode|schema|grammar|guided|structured|tool|function|strict"
)
_FINISHES = {"length": "length", "max_tokens": "length", "model_length": "length", "content_filter": "refused"}


class Form(StrEnum):
    """How a server is held to a schema, best first."""

    SCHEMA = "json_schema"
    TOOL = "tool"
    OBJECT = "json_object"
    WORDS = "words"

    @property
    def simpler(self) -> Form | None:
        forms = list(Form)
        later = forms[forms.index(self) + 1 :]
        return later[0] if later else None


class Dialect(msgspec.Struct, frozen=True):
    """What one endpoint understands, as far as it is known."""

    form: Form = Form.SCHEMA
    length_name: str = "max_tokens"
    has_temperature: bool = True
    has_seed: bool = True

    def after(self, failure: ModelFailure, question: Question) -> Dialect | None:
        """The dialect to try next, if the failure is about how the question was put; None: it is not."""
        if failure.kind is not FailureKind.FATAL or failure.status not in (400, 422):
            return None
        words = failure.text.lower()
        if self.length_name == "max_tokens" and "max_completion_tokens" in words:
            return msgspec.structs.replace(self, length_name="max_completion_tokens")
        if self.has_temperature and question.temperature is not None and "temperature" in words:
            return msgspec.structs.replace(self, has_temperature=False)
        if self.has_seed and question.iteration and "seed" in words:
            return msgspec.structs.replace(self, has_seed=False)
        simpler = self.form.simpler
        if question.schema is None or simpler is None or not _FORMAT_WORDS.search(words):
            return None
        return msgspec.structs.replace(self, form=simpler)


class Writer:
    """Writes questions as request bodies; remembers the schemas, as the same few are sent again and again."""

    def __init__(self) -> None:
        self._schemas: dict[tuple[int, Form], tuple[dict[str, Any], dict[str, Any] | str]] = {}

    def body(self, model: str, question: Question, dialect: Dialect) -> bytes:
        body: dict[str, Any] = {"model": model, "messages": question.messages}
        if question.max_tokens is not None:
            body[dialect.length_name] = question.max_tokens
        if question.temperature is not None and dialect.has_temperature:
            body["temperature"] = question.temperature
        if question.iteration and dialect.has_seed:
            body["seed"] = question.iteration
        if question.schema is not None:
            self._hold_to(question.schema, dialect.form, body)
        body["messages"] = [{"role": message.role, "content": message.content} for message in body["messages"]]
        return orjson.dumps(body)

    def _hold_to(self, schema: dict[str, Any], form: Form, body: dict[str, Any]) -> None:
        held = self._prepared(schema, form)
        if isinstance(held, str):
            body["messages"] = _with_words(body["messages"], held)
            if form is Form.OBJECT:
                body["response_format"] = {"type": "json_object"}
        else:
            body.update(held)

    def _prepared(self, schema: dict[str, Any], form: Form) -> dict[str, Any] | str:
        known = self._schemas.get((id(schema), form))
        # The schema is kept too, so that its id cannot become that of another one.
        if known is not None and known[0] is schema:
            return known[1]
        if len(self._schemas) >= _MAX_SCHEMAS:
            self._schemas.clear()
        prepared = _prepare(schema, form)
        self._schemas[id(schema), form] = schema, prepared
        return prepared


def _prepare(schema: dict[str, Any], form: Form) -> dict[str, Any] | str:
    """What is added to the body, already written; or to the messages, in words."""
    if form is Form.SCHEMA:
        wanted = {"name": TOOL, "strict": True, "schema": strict(schema)}
        return {"response_format": orjson.Fragment(orjson.dumps({"type": "json_schema", "json_schema": wanted}))}
    if form is Form.TOOL:
        function = {"name": TOOL, "description": "Gives the answer.", "parameters": strict(schema), "strict": True}
        tool = {"type": "function", "function": function}
        choice = {"type": "function", "function": {"name": TOOL}}
        return {"tools": orjson.Fragment(orjson.dumps([tool])), "tool_choice": choice}
    written = orjson.dumps(schema).decode()
    return f"Answer with one JSON object that fits this JSON schema, and with nothing else:\n{written}"


def _with_words(messages: tuple[Message, ...], words: str) -> tuple[Message, ...]:
    """The words stand at the end of the first part, which all agents share, so that prefix caches still work."""
    if messages and messages[0].role == "system":
        return (Message("system", f"{messages[0].content}\n\n{words}"), *messages[1:])
    return (Message("system", words), *messages)


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as strict servers want it: every property required, no others, `anyOf` for `oneOf`, no defaults.

    A property that was optional may be null instead.
    """
    made = {("anyOf" if key == "oneOf" else key): _strict_part(key, value) for key, value in schema.items()}
    made.pop("default", None)
    made.pop("discriminator", None)
    if "properties" in made:
        required = schema.get("required", ())
        made["properties"] = {
            name: part if name in required else _or_null(part) for name, part in made["properties"].items()
        }
        made["required"] = list(made["properties"])
        made["additionalProperties"] = False
    return made


def _strict_part(key: str, value: Any) -> Any:
    if key in ("properties", "$defs", "definitions"):
        return {name: strict(part) for name, part in value.items()}
    if key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        return [strict(part) for part in value]
    if key in ("items", "not") and isinstance(value, dict):
        return strict(value)
    return value


def _or_null(part: dict[str, Any]) -> dict[str, Any]:
    kind = part.get("type")
    if isinstance(kind, str) and "enum" not in part and "const" not in part:
        return part if kind == "null" else {**part, "type": [kind, "null"]}
    if isinstance(kind, list) and "null" in kind:
        return part
    if {"type": "null"} in part.get("anyOf", ()):
        return part
    return {"anyOf": [part, {"type": "null"}]}


# reading


def read(headers: Mapping[str, str], body: bytes, question: Question, now: float) -> Answer:
    """The answer in a reply with status 200; ModelFailed where there is none."""
    try:
        reply = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ModelFailed(unreadable(body, "is no JSON")) from error
    if not isinstance(reply, dict):
        raise ModelFailed(unreadable(body, "is no JSON object"))
    choices = reply.get("choices")
    if not choices:
        said = reply.get("error")
        raise ModelFailed(of_error(said, headers, now) if isinstance(said, dict) else unreadable(body, "is empty"))
    try:
        text, finish = _choice(choices[0])
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise ModelFailed(unreadable(body, "is no chat completion")) from error
    usage = _usage(reply.get("usage"), question, text)
    return Answer(text, usage, finish, allowance=allowance(headers, now))


def _choice(choice: dict[str, Any]) -> tuple[str, str]:
    message = choice["message"]
    refusal = message.get("refusal")
    if refusal:
        return str(refusal), "refused"
    calls = message.get("tool_calls")
    text = _arguments(calls[0]["function"]["arguments"]) if calls else without_thoughts(_text(message.get("content")))
    return text, _FINISHES.get(choice.get("finish_reason") or "", "stop")


def _arguments(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()


def _text(content: Any) -> str:
    """Content as text; some servers send it in parts, thoughts among them."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if part.get("type", "text") == "text")
    return content or ""


def without_thoughts(text: str) -> str:
    """The text after the model's thoughts, where a server leaves them in. Thoughts that were cut off leave nothing."""
    if "think" not in text and "<reasoning>" not in text and "<thought>" not in text:
        return text
    stripped = text
    while found := _THOUGHTS.match(stripped):
        stripped = stripped[found.end() :]
    if stripped is not text:
        return stripped
    # Some templates open the thoughts in the prompt, so that only their end is in the answer.
    thoughts, end, after = text.partition("</think>")
    return after.lstrip() if end and "<think>" not in thoughts and not thoughts.lstrip().startswith("{") else text


def _usage(usage: Any, question: Question, text: str) -> Usage:
    if not isinstance(usage, dict):
        characters = sum(len(message.content) for message in question.messages)
        return Usage(characters // CHARACTERS_PER_TOKEN + 1, len(text) // CHARACTERS_PER_TOKEN + 1)
    details = usage.get("prompt_tokens_details") or {}
    cached = details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")
    return Usage(
        usage.get("prompt_tokens") or usage.get("input_tokens") or 0,
        usage.get("completion_tokens") or usage.get("output_tokens") or 0,
        cached or usage.get("cache_read_input_tokens") or 0,
    )
