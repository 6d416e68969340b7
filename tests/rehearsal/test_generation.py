"""Invented answers: valid for their schema, sensible where that can be had, the same for the same request."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.rehearsal.conversation import ConversationContext
from shoal.rehearsal.generation import Inventor
from shoal.rehearsal.schema import Schema, SchemaUnanswerable
from shoal.seeds import Draws
from tests.rehearsal.schemas import problems, schemas

FEED = """You are Cleo, a baker.

Posts by people you follow:
[17] Ada, 3 hours ago, 2 likes: "The old bridge will be closed!"
  comment [5] Ben: "Who says so?"
[23] Dora Lee, 1 hour ago: "Nobody asked the harbour."
"""


def invent(schema: Any, seed: int = 0, text: str = FEED, reply_tokens: int = 24) -> Any:
    return Inventor(Schema(schema), ConversationContext(text), Draws(seed), reply_tokens).invent()


@settings(max_examples=300)
@given(schemas, st.integers(0, 2**32))
def test_invented_values_are_valid(schema: Any, seed: int) -> None:
    value = invent(schema, seed)
    assert problems(value, schema) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 3, "maximum": 3},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "number", "minimum": 0.25, "maximum": 0.25},
        {"type": "number", "multipleOf": 0.1, "minimum": 0.65, "maximum": 0.75},
        {"type": "string", "maxLength": 3},
        {"type": "string", "minLength": 500, "maxLength": 500},
        {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3},
        {"type": "array", "items": {"type": "boolean"}, "minItems": 9},
        {"type": "object", "minProperties": 3, "additionalProperties": {"type": "integer"}},
        {"allOf": [{"type": ["string", "integer"]}, {"type": ["number", "null"]}, {"minimum": 5}]},
        {"allOf": [{"properties": {"a": {"minimum": 4}}}, {"properties": {"a": {"maximum": 4}}, "required": ["a"]}]},
        {"anyOf": [False, {"allOf": [{"type": "string"}, {"type": "null"}]}, {"const": "the only way"}]},
    ],
)
def test_narrow_schemas_are_met_whatever_is_drawn(schema: Any) -> None:
    for seed in range(40):
        value = invent(schema, seed)
        assert problems(value, schema) == []


@pytest.mark.parametrize(
    "pattern",
    [
        r"^\d{4}-\d{2}-\d{2}$",
        "^(?:red|green)-[0-9]+$",
        r"^@\w{3,}$",
        r"^(ab){2}c?$",
        r"^\(\d+\)$",
        "^a|b$",
        "ü{2}",
        "^$",
    ],
)
def test_simple_patterns_are_matched(pattern: str) -> None:
    for seed in range(20):
        assert re.search(pattern, invent({"type": "string", "pattern": pattern}, seed))


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"not": {"type": "string"}}, "'not' is not supported"),
        ({"properties": {"a": {"if": True}}, "required": ["a"]}, "'if' is not supported"),
        ({"type": "string", "pattern": "^(?=b)a$"}, "no text was found for the pattern"),
        ({"type": "string", "pattern": "(["}, "no text was found for the pattern"),
        ({"type": "string", "pattern": "^a{9}$", "maxLength": 3}, "no text was found for the pattern"),
        ({"type": "object", "propertyNames": {"pattern": "^x"}, "minProperties": 2}, "beside rules for names"),
        ({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "minItems": 3}, "3 different items"),
        ({"allOf": [{"pattern": "a"}, {"pattern": "b"}]}, "two values of 'pattern'"),
        ({"allOf": [{"type": "string"}, {"type": "null"}]}, "no finite value"),
        ({"type": "object", "minProperties": 2, "additionalProperties": False}, "no value fits"),
        ({"$ref": "#/$defs/none"}, "there is no '#/$defs/none'"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "no finite value"),
    ],
)
def test_a_schema_that_cannot_be_met_is_refused_with_the_reason(schema: Any, why: str) -> None:
    with pytest.raises(SchemaUnanswerable, match=re.escape(why)):
        invent(schema)


def test_a_schema_that_contains_itself_is_answered_with_a_finite_value() -> None:
    node = {
        "type": "object",
        "properties": {"left": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "right": {"$ref": "#/properties/left"}},
        "required": ["left", "right"],
    }
    for seed in range(30):
        value = invent(node, seed)
        assert set(value) == {"left", "right"}


def action(word: str, **fields: Any) -> dict[str, Any]:
    properties = {"action": {"type": "string", "enum": [word]}, **fields}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


TURN = {
    "anyOf": [
        action("LIKE_POST", post_id={"type": "integer"}),
        action("LIKE_COMMENT", comment_id={"type": "integer"}),
        action("JOIN_GROUP", group_id={"type": "integer"}),
        action("FOLLOW", user={"type": "string"}),
        action("CREATE_POST", content={"type": "string"}),
        action("DO_NOTHING"),
    ]
}


def test_a_turn_takes_up_the_conversation() -> None:
    turns = [invent(TURN, seed) for seed in range(300)]
    by_kind = {kind: [turn for turn in turns if turn["action"] == kind] for kind in {turn["action"] for turn in turns}}
    assert {turn["post_id"] for turn in by_kind["LIKE_POST"]} == {17, 23}
    assert {turn["comment_id"] for turn in by_kind["LIKE_COMMENT"]} == {5}
    assert {turn["user"] for turn in by_kind["FOLLOW"]} <= {"Ada", "Ben", "Dora Lee"}
    assert len(by_kind["DO_NOTHING"]) < len(by_kind["CREATE_POST"])
    assert len(by_kind.get("JOIN_GROUP", [])) < 10, "there is no group in sight"
    assert any("bridge" in turn["content"].lower() for turn in by_kind["CREATE_POST"])


def test_texts_are_about_as_long_as_wanted() -> None:
    schema = {"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]}
    short, long = (len(invent(schema, 1, reply_tokens=tokens)["content"]) for tokens in (5, 200))
    assert 10 <= short <= 100
    assert 780 <= long <= 900


def test_the_same_draws_give_the_same_answer_and_others_another() -> None:
    assert invent(TURN, 3) == invent(TURN, 3)
    assert len({str(invent(TURN, seed)) for seed in range(30)}) > 15


@settings(max_examples=60)
@given(schemas, st.lists(st.integers(0, 9), max_size=6), st.text(max_size=40))
def test_earlier_inventions_make_no_difference(schema: Any, before: list[int], text: str) -> None:
    used = Schema(schema)
    for seed in before:
        Inventor(used, ConversationContext(text), Draws(seed), 24).invent()
    assert Inventor(used, ConversationContext(FEED), Draws(77), 24).invent() == invent(schema, 77)


def test_endless_mutual_recursion_is_distinguished_from_one_that_ends() -> None:
    one = {"type": "object", "properties": {"next": {"$ref": "#/$defs/b"}}, "required": ["next"]}
    other = {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1}]}
    endless = {"$ref": "#/$defs/a", "$defs": {"a": one, "b": other}}
    with pytest.raises(SchemaUnanswerable, match="no finite value"):
        invent(endless)
    ending = {"$ref": "#/$defs/a", "$defs": {"a": one, "b": {"anyOf": [*other["anyOf"], {"const": "end"}]}}}
    for seed in range(20):
        assert "end" in str(invent(ending, seed))


ROOM = """You are Cleo Dahl. Cleo Dahl is a baker.

# What you remember
- 2026-04-14 18:03 You said «Really, Ada? I have my doubts.» You thought: Good.

# Now
It is Tuesday 14 April 2026, 18:15.
Within hearing: Ada Lund, Ben Okoye, Dora Lee
Ada Lund: «You know what I keep thinking? Thank you: it is late.»
Announced: «Who comes to the meeting?»
"""


def test_a_name_is_taken_from_the_conversation() -> None:
    """And not any word that begins with a capital letter, such as You."""
    schema = {"type": "object", "properties": {"target": {"type": "string"}}, "required": ["target"]}
    named = {invent(schema, seed, ROOM)["target"] for seed in range(200)}
    assert named == {"Ada Lund", "Ben Okoye", "Dora Lee"}
    assert {invent(schema, seed)["target"] for seed in range(200)} == {"Ada", "Ben", "Dora Lee"}
