"""Chat completions as OpenAI and compatible servers speak them: writes request bodies and reads replies.

Servers differ in how they can be held to a JSON schema. The best form is tried first; where a server rejects it, the
next simpler one is tried. What a server accepts is learned once and is no part of the question.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec
import orjson

from shoal.models.base import Answer, FailureKind, Message, ModelFailed, ModelFailure, Question, Usage
from shoal.models.openai.errors import parse_error_object, read_rate_limits, report_unreadable
from shoal.models.tokens import estimate
from shoal.text import make_storable

TOOL = "answer"
#: There are few schemas, one for each world and turn. More than this many means that they are made anew each time.
_MAX_SCHEMAS = 256
#: The steps from one bound of a number to the other, where a server does not keep bounds of numbers.
_STEPS = 20

_THOUGHTS = re.compile(r"\s*<(think|thinking|reasoning|thought)>.*?(</\1>\s*|$)", re.DOTALL)
_FORMAT_WORDS = re.compile(
    r"response_format|json_schema|json_object|json mode|schema|grammar|guided|structured|tool|function|strict"
    r"|maxlength|maxitems|maximum"
)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: More tokens than any model takes or gives in one call.
_ABSURD_TOKENS = 100_000_000
_FINISHES = {"length": "length", "max_tokens": "length", "model_length": "length", "content_filter": "refused"}


class Form(StrEnum):
    """Ways to hold a server to a schema, best first."""

    SCHEMA = "json_schema"
    TOOL = "tool"
    OBJECT = "json_object"
    WORDS = "words"

    @property
    def simpler(self) -> Form | None:
        forms: list[Form | None] = [*Form, None]
        return forms[forms.index(self) + 1]


class Dialect(msgspec.Struct, frozen=True):
    """What one endpoint accepts, as far as it is known."""

    form: Form = Form.SCHEMA
    length_name: str = "max_tokens"
    has_temperature: bool = True
    has_seed: bool = True
    #: Whether a schema may bound texts, lists and numbers. Where it may not, whoever reads the answer does it.
    has_bounds: bool = True
    #: Whether bounds of numbers are kept: llama.cpp keeps those of whole numbers only, and writes any other.
    has_number_bounds: bool = True
    #: Tokens that llama.cpp is told to leave out of JSON: small models indent it, which takes a fifth of their tokens.
    line_breaks: tuple[int, ...] = ()

    def simplify_after(self, failure: ModelFailure, question: Question) -> Dialect | None:
        """Return the dialect to try next, or None if the failure is not about the form of the request."""
        if failure.kind is not FailureKind.FATAL or failure.status not in (400, 422):
            return None
        words = failure.text.lower()
        if self.length_name == "max_tokens" and "max_completion_tokens" in words:
            return msgspec.structs.replace(self, length_name="max_completion_tokens")
        if self.has_temperature and question.temperature is not None and "temperature" in words:
            return msgspec.structs.replace(self, has_temperature=False)
        if self.has_seed and question.iteration and "seed" in words:
            return msgspec.structs.replace(self, has_seed=False)
        if question.schema is None or not _FORMAT_WORDS.search(words):
            return None
        if self.has_bounds and strip_bounds(question.schema) != question.schema:
            return msgspec.structs.replace(self, has_bounds=False)
        simpler = self.form.simpler
        if simpler is None:
            return None
        return msgspec.structs.replace(self, form=simpler)


class RequestWriter:
    """Writes questions as request bodies. Remembers prepared schemas, as the same few are sent again and again."""

    def __init__(self) -> None:
        self._schemas: dict[tuple[int, Dialect], tuple[dict[str, Any], dict[str, Any] | str]] = {}

    def write_body(self, model: str, question: Question, dialect: Dialect) -> bytes:
        messages = question.messages
        body: dict[str, Any] = {"model": model, "messages": ()}
        if question.max_tokens is not None:
            body[dialect.length_name] = question.max_tokens
        if question.temperature is not None and dialect.has_temperature:
            body["temperature"] = question.temperature
        if question.iteration and dialect.has_seed:
            body["seed"] = question.iteration
        if question.schema is not None:
            if dialect.line_breaks:
                body["logit_bias"] = [(token, False) for token in dialect.line_breaks]
            prepared = self._prepare(question.schema, dialect)
            if isinstance(prepared, dict):
                body.update(prepared)
            else:
                # At the end of the system message, which all agents share, so that prefix caches still work.
                if messages and messages[0].role == "system":
                    messages = (Message("system", f"{messages[0].content}\n\n{prepared}"), *messages[1:])
                else:
                    messages = (Message("system", prepared), *messages)
                if dialect.form is Form.OBJECT:
                    body["response_format"] = {"type": "json_object"}
        body["messages"] = [{"role": message.role, "content": message.content} for message in messages]
        return orjson.dumps(body)

    def _prepare(self, schema: dict[str, Any], dialect: Dialect) -> dict[str, Any] | str:
        """Return what to add to the body, already encoded; or an instruction to add to the messages."""
        key, form = (id(schema), dialect), dialect.form
        known = self._schemas.get(key)
        # The schema is kept too, so that its id cannot become that of another one.
        if known is not None and known[0] is schema:
            return known[1]
        prepared: dict[str, Any] | str
        whole, schema = schema, schema if dialect.has_number_bounds else list_steps(schema)
        schema = schema if dialect.has_bounds else strip_bounds(schema)
        if form is Form.SCHEMA:
            wanted = {"name": TOOL, "strict": True, "schema": make_strict(schema)}
            encoded = orjson.dumps({"type": "json_schema", "json_schema": wanted})
            prepared = {"response_format": orjson.Fragment(encoded)}
        elif form is Form.TOOL:
            parameters = make_strict(schema)
            function = {"name": TOOL, "description": "Gives the answer.", "parameters": parameters, "strict": True}
            tools = orjson.dumps([{"type": "function", "function": function}])
            choice = {"type": "function", "function": {"name": TOOL}}
            prepared = {"tools": orjson.Fragment(tools), "tool_choice": choice}
        else:
            written = orjson.dumps(schema).decode()
            prepared = f"Answer with one JSON object that fits this JSON schema, and with nothing else:\n{written}"
        if len(self._schemas) >= _MAX_SCHEMAS:
            self._schemas.clear()
        self._schemas[key] = whole, prepared
        return prepared


def make_strict(schema: dict[str, Any]) -> dict[str, Any]:
    """Rewrite a schema for strict servers: every property required, no others, `anyOf` for `oneOf`, no defaults.

    A property that was optional may be null instead.
    """
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs", "definitions"):
            made[key] = {name: make_strict(part) for name, part in value.items()}
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            made["anyOf" if key == "oneOf" else key] = [make_strict(part) for part in value]
        elif key not in ("default", "discriminator"):
            made[key] = make_strict(value) if key in ("items", "not") and isinstance(value, dict) else value
    if "properties" in made:
        required = schema.get("required", ())
        made["properties"] = {
            name: part if name in required else _allow_null(part) for name, part in made["properties"].items()
        }
        made["required"] = list(made["properties"])
        made["additionalProperties"] = False
    return made


_BOUNDS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"})


def strip_bounds(schema: Any) -> Any:
    """Return a schema without bounds of texts, lists and numbers, which strict servers refuse."""
    if isinstance(schema, list):
        return [strip_bounds(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    # A property may be called like a bound; only its own schema is searched.
    return {
        key: {name: strip_bounds(part) for name, part in value.items()} if key == "properties" else strip_bounds(value)
        for key, value in schema.items()
        if key not in _BOUNDS
    }


def list_steps(schema: Any) -> Any:
    """Return a schema in which a number between two bounds is one of those in a list, at equal distances."""
    if isinstance(schema, list):
        return [list_steps(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "number" and {"minimum", "maximum"} <= schema.keys():
        low, high = schema["minimum"], schema["maximum"]
        return {"enum": [round(low + (high - low) * n / _STEPS, 6) for n in range(_STEPS + 1)]}
    return {key: list_steps(part) for key, part in schema.items()}


def _allow_null(part: dict[str, Any]) -> dict[str, Any]:
    kind = part.get("type")
    if isinstance(kind, str) and "enum" not in part and "const" not in part:
        return part if kind == "null" else {**part, "type": [kind, "null"]}
    if isinstance(kind, list) and "null" in kind:
        return part
    if {"type": "null"} in part.get("anyOf", ()):
        return part
    return {"anyOf": [part, {"type": "null"}]}


# reading


def read_answer(headers: Mapping[str, str], body: bytes, question: Question, now: float) -> Answer:
    """Read the answer in a reply with status 200; raise ModelFailed if it holds none."""
    try:
        reply = decode_body(body)
    except ValueError as error:
        is_stream = body.lstrip().startswith((b"data:", b"event:"))
        why = "is a stream of events, which nobody asked for" if is_stream else "is no JSON"
        raise ModelFailed(report_unreadable(body, why, question)) from error
    if not isinstance(reply, dict):
        raise ModelFailed(report_unreadable(body, "is no JSON object", question))
    choices = reply.get("choices")
    if not choices:
        error_object = reply.get("error")
        if isinstance(error_object, dict):
            raise ModelFailed(parse_error_object(error_object, headers, now))
        raise ModelFailed(report_unreadable(body, "is empty", question))
    try:
        message = choices[0]["message"]
        is_refused = _FINISHES.get(str(choices[0].get("finish_reason"))) == "refused"
        # Where the server sent nothing at all, it failed. A text without letters is the model's own.
        if not is_refused and all(message.get(part) in (None, []) for part in ("content", "tool_calls", "refusal")):
            raise ModelFailed(report_unreadable(body, "holds no text", question))
        text, finish = _read_choice(choices[0])
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise ModelFailed(report_unreadable(body, "is no chat completion", question)) from error
    usage, is_estimated = read_usage(reply.get("usage"), question, text)
    return Answer(text, usage, finish, is_estimated=is_estimated, allowance=read_rate_limits(headers, now))


def decode_body(body: bytes) -> Any:
    """Decode the JSON of a reply; ValueError if it is none.

    A byte order mark is skipped. Bytes that are no UTF-8 and halves of characters, as in a text that was cut between
    them, become U+FFFD.
    """
    body = body.removeprefix(BYTE_ORDER_MARK)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        try:
            return make_storable(json.loads(body.decode(errors="replace")))
        except RecursionError as error:
            raise ValueError("nested too deep") from error


def _read_choice(choice: dict[str, Any]) -> tuple[str, str]:
    """Return the text, and how it ended."""
    message = choice["message"]
    if refusal := message.get("refusal"):
        return str(refusal), "refused"
    if calls := message.get("tool_calls"):
        arguments = calls[0]["function"]["arguments"]
        text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
    else:
        content = message.get("content") or ""
        if isinstance(content, list):
            # Some servers send the content in parts, thoughts among them.
            content = "".join(part.get("text") or "" for part in content if part.get("type", "text") == "text")
        if not isinstance(content, str):
            raise TypeError("the content is no text")
        text = strip_thoughts(content)
    return text, _FINISHES.get(str(choice.get("finish_reason")), "stop")


def strip_thoughts(text: str) -> str:
    """Remove the model's thoughts, where a server leaves them in. Of thoughts that were cut off, nothing is left."""
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


def read_usage(usage: Any, question: Question, text: str) -> tuple[Usage, bool]:
    """Read what a call took, and whether some of it is estimated: it is missing, or cannot be true."""

    def find(part: Any, *names: str) -> int | None:
        values = [part.get(name) for name in names] if isinstance(part, dict) else []
        return next((value for value in values if type(value) is int and 0 <= value <= _ABSURD_TOKENS), None)

    sent, made = find(usage, "prompt_tokens", "input_tokens"), find(usage, "completion_tokens", "output_tokens")
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    cached = find(details, "cached_tokens") or find(usage, "prompt_cache_hit_tokens", "cache_read_input_tokens") or 0
    is_estimated = not sent or made is None
    sent = sent or sum(estimate(message.content) for message in question.messages)
    return Usage(sent, estimate(text) if made is None else made, min(cached, sent)), is_estimated
