from __future__ import annotations

from typing import Any

import orjson
import pytest

from shoal.models.base import Answer, FailureKind, Message, ModelFailed, ModelFailure, Usage
from shoal.models.openai.dialects import (
    Dialect,
    Form,
    RequestWriter,
    list_steps,
    make_strict,
    read_answer,
    strip_thoughts,
)
from shoal.models.tokens import estimate
from tests.models.fakes import SCHEMA, completion, question


def body(dialect: Dialect, **changes: Any) -> dict[str, Any]:
    written: dict[str, Any] = orjson.loads(RequestWriter().write_body("gpt", question(**changes), dialect))
    return written


def answer(reply: Any) -> Answer:
    return read_answer({}, orjson.dumps(reply), question(), 0.0)


def refused(text: str, status: int = 400, kind: FailureKind = FailureKind.FATAL) -> ModelFailure:
    return ModelFailure(kind, text, status)


# asking


def test_a_server_on_this_machine_does_not_indent_json() -> None:
    dialect = Dialect(line_breaks=(13, 198))
    assert body(dialect, schema=SCHEMA)["logit_bias"] == [[13, False], [198, False]]
    assert "logit_bias" not in body(dialect)
    assert "logit_bias" not in body(Dialect(), schema=SCHEMA)


def test_numbers_between_bounds_are_listed_where_a_server_does_not_keep_them() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "topic": {"type": "number", "minimum": -1, "maximum": 1},
            "anger": {"type": "integer", "minimum": 0, "maximum": 10},
            "any": {"type": "number"},
        },
    }
    listed = list_steps(schema)["properties"]
    assert listed["topic"]["enum"][0] == -1
    assert listed["topic"]["enum"][-1] == 1
    assert 0.3 in listed["topic"]["enum"]
    assert (listed["anger"], listed["any"]) == (schema["properties"]["anger"], schema["properties"]["any"])


def test_a_question_without_a_schema_has_only_what_it_says() -> None:
    assert body(Dialect()) == {
        "model": "gpt",
        "messages": [
            {"role": "system", "content": "You are polite."},
            {"role": "user", "content": "Hello, for the 0th time?"},
        ],
    }


def test_samples_of_the_same_question_have_seeds_of_their_own() -> None:
    assert "seed" not in body(Dialect(), iteration=0)
    assert [body(Dialect(), iteration=n)["seed"] for n in (1, 7)] == [1, 7]


def test_a_schema_is_sent_as_response_format_first() -> None:
    sent = body(Dialect(), schema=SCHEMA, temperature=0.5, max_tokens=99)
    assert sent["response_format"]["json_schema"] == {"name": "answer", "strict": True, "schema": make_strict(SCHEMA)}
    assert (sent["temperature"], sent["max_tokens"]) == (0.5, 99)


def test_or_as_the_one_tool_that_must_be_called() -> None:
    sent = body(Dialect(form=Form.TOOL), schema=SCHEMA)
    assert sent["tools"][0]["function"]["parameters"] == make_strict(SCHEMA)
    assert sent["tool_choice"]["function"]["name"] == sent["tools"][0]["function"]["name"]
    assert "response_format" not in sent


@pytest.mark.parametrize("form", [Form.OBJECT, Form.WORDS])
def test_or_as_an_instruction_at_the_end_of_the_system_message(form: Form) -> None:
    sent = body(Dialect(form=form), schema=SCHEMA)
    assert sent["messages"][0]["content"].startswith("You are polite.\n\nAnswer with one JSON object")
    assert orjson.dumps(SCHEMA).decode() in sent["messages"][0]["content"]
    assert len(sent["messages"]) == 2
    assert sent.get("response_format") == ({"type": "json_object"} if form is Form.OBJECT else None)


def test_an_instruction_makes_a_system_message_if_there_is_none() -> None:
    sent = body(Dialect(form=Form.WORDS), schema=SCHEMA, messages=(Message("user", "Hi"),))
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]


def test_a_schema_that_is_used_again_is_the_same_and_another_is_not() -> None:
    writer, other = RequestWriter(), {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    first, second, third = (
        orjson.loads(writer.write_body("gpt", question(schema=schema), Dialect())) for schema in (SCHEMA, other, SCHEMA)
    )
    assert first == third != second


# giving something up


def test_one_step_is_given_up_at_a_time() -> None:
    dialect: Dialect | None = Dialect()
    forms = []
    while dialect is not None:
        forms.append(dialect.form)
        dialect = dialect.simplify_after(refused("response_format is not supported"), question(schema=SCHEMA))
    assert forms == [Form.SCHEMA, Form.TOOL, Form.OBJECT, Form.WORDS]


@pytest.mark.parametrize(
    "failure",
    [
        refused("maximum context length of the schema", kind=FailureKind.CONTEXT_TOO_LONG),
        refused("unknown model", status=404),
        refused("the price of tea is wrong"),
        refused("json_schema broke me", status=500, kind=FailureKind.TRANSIENT),
    ],
)
def test_nothing_is_given_up_for_other_failures(failure: ModelFailure) -> None:
    assert Dialect().simplify_after(failure, question(schema=SCHEMA)) is None


def test_nothing_is_given_up_for_a_question_without_a_schema() -> None:
    assert Dialect().simplify_after(refused("response_format is not supported"), question()) is None


def test_newer_models_want_another_name_for_the_length_and_no_temperature() -> None:
    asked = question(temperature=1.5, max_tokens=10)
    dialect = Dialect().simplify_after(refused("'max_tokens' is not supported, use 'max_completion_tokens'"), asked)
    assert dialect is not None
    dialect = dialect.simplify_after(refused("'temperature' does not support 1.5"), asked)
    assert dialect is not None
    sent = body(dialect, temperature=1.5, max_tokens=10)
    assert sent["max_completion_tokens"] == 10
    assert not {"max_tokens", "temperature"} & set(sent)


def test_a_server_that_knows_no_seeds_is_sent_none() -> None:
    dialect = Dialect().simplify_after(
        refused("seed: extra inputs are not permitted", status=422), question(iteration=3)
    )
    assert dialect is not None
    assert "seed" not in body(dialect, iteration=3)
    assert Dialect().simplify_after(refused("seed: extra inputs are not permitted"), question()) is None


# strict schemas


def test_a_strict_schema_requires_everything_and_allows_nothing_else_at_every_depth() -> None:
    deep = {
        "type": "object",
        "properties": {
            "acts": {"type": "array", "items": {"oneOf": [{"$ref": "#/$defs/like"}, SCHEMA]}},
        },
        "$defs": {"like": {"type": "object", "properties": {"post": {"type": "integer", "default": 1}}}},
    }
    made = make_strict(deep)

    def objects(part: Any) -> list[dict[str, Any]]:
        if isinstance(part, list):
            return [found for each in part for found in objects(each)]
        if not isinstance(part, dict):
            return []
        own = [part] if "properties" in part else []
        return own + [found for each in part.values() for found in objects(each)]

    assert len(objects(made)) == 3
    for found in objects(made):
        assert found["required"] == list(found["properties"])
        assert found["additionalProperties"] is False
    assert b"oneOf" not in orjson.dumps(made)
    assert b"default" not in orjson.dumps(made)


def test_what_was_optional_may_be_null_instead() -> None:
    made = make_strict(SCHEMA)["properties"]
    assert made == {"mood": {"type": "string"}, "why": {"type": ["string", "null"]}}
    choice = {"type": "object", "properties": {"side": {"type": "string", "enum": ["a", "b"]}}}
    assert make_strict(choice)["properties"]["side"]["anyOf"][1] == {"type": "null"}


def test_a_schema_that_is_strict_already_stays_as_it_is() -> None:
    assert make_strict(make_strict(SCHEMA)) == make_strict(SCHEMA)
    assert "additionalProperties" not in SCHEMA


# reading


def test_an_answer_has_its_text_its_usage_and_how_it_ended() -> None:
    assert answer(completion("hi", "length")) == Answer("hi", Usage(50, 5, 30), "length")


@pytest.mark.parametrize(
    ("reply", "text", "finish"),
    [
        (completion(None, "stop", refusal="I cannot help with that."), "I cannot help with that.", "refused"),
        (completion("", "content_filter"), "", "refused"),
        (completion("cut", "max_tokens"), "cut", "length"),
        (completion("whole", "end_turn"), "whole", "stop"),
        (completion(None, "tool_calls", tool_calls=[{"function": {"arguments": '{"a":1}'}}]), '{"a":1}', "stop"),
        (completion(None, "stop", tool_calls=[{"function": {"arguments": {"a": 1}}}]), '{"a":1}', "stop"),
        (completion("out", reasoning_content="hidden thoughts"), "out", "stop"),
        (completion([{"type": "thinking"}, {"type": "text", "text": "out"}]), "out", "stop"),  # type: ignore[arg-type]
        (completion("", "length", reasoning_content="too long a thought"), "", "length"),
    ],
)
def test_answers_of_many_shapes_are_read(reply: Any, text: str, finish: str) -> None:
    found = answer(reply)
    assert (found.text, found.finish) == (text, finish)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, Usage(9, 2, 4)),
        ({"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 4}, Usage(9, 2, 4)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None}, Usage(9, 2)),
    ],
)
def test_usage_of_many_shapes_is_read(usage: Any, expected: Usage) -> None:
    assert answer({**completion(), "usage": usage}).usage == expected


def test_tokens_are_estimated_where_a_server_does_not_count_them() -> None:
    usage = answer({"choices": completion("x" * 400)["choices"]}).usage
    assert usage.input > 5
    assert usage.output == 100


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>Should I? {}</think>\n{}", "{}"),
        ("  <thinking>a</thinking><think>b</think>yes", "yes"),
        ("I opened this in the prompt.</think>\n\nyes", "yes"),
        ("<think>cut off in the middle of", ""),
        ('{"text": "I think so"}', '{"text": "I think so"}'),
        ('{"text": "it ends with </think>"}', '{"text": "it ends with </think>"}'),
        ("I think <think>this</think> is not at the start", "I think <think>this</think> is not at the start"),
    ],
)
def test_thoughts_are_taken_out(text: str, rest: str) -> None:
    assert strip_thoughts(text) == rest


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"<html>",
        b'{"choices": [{"mess',
        b"[]",
        b"{}",
        b'{"choices": [{}]}',
        b'{"choices": {"a": 1}}',
        b'{"choices": [{"message": "no"}]}',
        b'{"choices": [{"message": {"content": {"a": 1}}}]}',
        b'{"choices": [{"message": {"content": [7]}}]}',
        b'{"choices": [{"message": {"content": null}}]}',
        b'{"choices": [{"message": {"role": "assistant"}, "finish_reason": "length"}]}',
        b"[" * 50_000,
        b"{" * 50_000,
        b'data: {"choices": []}\n\ndata: [DONE]\n\n',
    ],
)
def test_a_reply_that_is_none_was_paid_for(reply: bytes) -> None:
    with pytest.raises(ModelFailed) as caught:
        read_answer({}, reply, question(max_tokens=100), 0.0)
    failure = caught.value.failure
    assert failure.kind is FailureKind.UNREADABLE
    assert failure.usage is not None
    assert failure.usage.input > 0
    assert failure.usage.output <= 100


def test_a_byte_order_mark_is_skipped() -> None:
    body = b"\xef\xbb\xbf" + orjson.dumps(completion("hello"))
    assert read_answer({}, body, question(), 0.0).text == "hello"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"cut here: \\ud83d", "cut here: \ufffd"),
        (b"\\udc00\\ud83d\\ude00", "\ufffd\U0001f600"),
        (b"\xff\xc3(", "\ufffd\ufffd("),
        (b"a\\u0000b", "a\0b"),
    ],
)
def test_half_a_character_becomes_one_that_can_be_stored(content: bytes, text: str) -> None:
    body = b'{"choices": [{"message": {"content": "%b"}, "finish_reason": ["stop"]}]}' % content
    assert read_answer({}, body, question(), 0.0).text == text


@pytest.mark.parametrize("odd", [-1, 1.5, "12", True, None, [], {}, 10**12, 0])
def test_a_count_of_tokens_that_cannot_be_true_is_estimated(odd: Any) -> None:
    usage = {"prompt_tokens": odd, "completion_tokens": 5, "prompt_tokens_details": odd}
    found = answer({**completion("hello"), "usage": usage})
    assert found.is_estimated
    expected = sum(estimate(message.content) for message in question().messages)
    assert found.usage == Usage(expected, 5, 0)
    assert not answer(completion("hello")).is_estimated


def test_an_error_inside_a_reply_is_what_it_says() -> None:
    with pytest.raises(ModelFailed) as caught:
        answer({"error": {"code": 402, "message": "no credits"}})
    assert caught.value.failure.kind is FailureKind.QUOTA


def test_a_server_that_takes_no_bounds_is_asked_without_them() -> None:
    bounded = {"type": "object", "properties": {"maxLength": {"type": "string", "maxLength": 9}}, "required": []}
    asked = question(schema=bounded)
    dialect = Dialect().simplify_after(refused("Invalid schema: 'maxLength' is not permitted."), asked)
    assert dialect == Dialect(has_bounds=False)
    sent = [body(each, schema=bounded)["response_format"]["json_schema"]["schema"] for each in (Dialect(), dialect)]
    assert "9" in str(sent[0])
    assert "9" not in str(sent[1])
    assert list(sent[1]["properties"]) == ["maxLength"]
    simpler = dialect.simplify_after(refused("Invalid schema"), asked)
    assert simpler == Dialect(form=Form.TOOL, has_bounds=False)
