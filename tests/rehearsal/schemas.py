"""A small checker of JSON schemas, written apart from the one it checks; and schemas to try things on."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

Json = Any


def kind(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def problems(value: Json, schema: Json, root: Json = None) -> list[str]:
    """What is wrong with the value; nothing if it is valid."""
    root = schema if root is None else root
    if isinstance(schema, bool):
        return [] if schema else [f"{value!r}: nothing is allowed here"]
    found = [f"{value!r}: {name} {wanted!r}" for name, wanted in schema.items() if not holds(name, wanted, value, root)]
    return found + members(value, schema, root)


def holds(name: str, wanted: Json, value: Json, root: Json) -> bool:
    """Whether one keyword holds; those about members are another function's."""

    def valid(other: Json) -> bool:
        return not problems(value, other, root)

    match name:
        case "type":
            names = [wanted] if isinstance(wanted, str) else wanted
            whole = kind(value) == "number" and value == int(value)
            return kind(value) in names or (whole and "integer" in names)
        case "enum":
            return any(kind(one) == kind(value) and one == value for one in wanted)
        case "const":
            return kind(wanted) == kind(value) and bool(wanted == value)
        case "$ref":
            return not problems(value, root["$defs"][wanted.removeprefix("#/$defs/")], root)
        case "allOf":
            return all(map(valid, wanted))
        case "anyOf":
            return any(map(valid, wanted))
        case "oneOf":
            return sum(map(valid, wanted)) == 1
        case "not":
            return not valid(wanted)
    return bounded(name, wanted, value)


def bounded(name: str, wanted: Json, value: Json) -> bool:
    sizes = {"Length": "string", "Items": "array", "Properties": "object"}
    if name[:3] in ("min", "max") and name[3:] in sizes:
        if kind(value) != sizes[name[3:]]:
            return True
        return bool(len(value) >= wanted if name[:3] == "min" else len(value) <= wanted)
    if kind(value) == "string" and name == "pattern":
        return re.search(wanted, value) is not None
    if kind(value) == "array" and name == "uniqueItems":
        return not wanted or len({repr(one) for one in value}) == len(value)
    if kind(value) == "object" and name == "required":
        return set(wanted) <= set(value)
    return kind(value) != "number" or within(name, wanted, value)


def within(name: str, wanted: Json, value: float) -> bool:
    match name:
        case "minimum":
            return bool(value >= wanted)
        case "maximum":
            return bool(value <= wanted)
        case "exclusiveMinimum":
            return bool(value > wanted)
        case "exclusiveMaximum":
            return bool(value < wanted)
        case "multipleOf":
            return Fraction(str(value)) % Fraction(str(wanted)) == 0
    return True


def members(value: Json, schema: dict[str, Json], root: Json) -> list[str]:
    found = []
    if kind(value) == "array":
        first = schema.get("prefixItems", [])
        for at, one in enumerate(value):
            found += problems(one, first[at] if at < len(first) else schema.get("items", True), root)
    if kind(value) == "object":
        for name, one in value.items():
            known = schema.get("properties", {})
            found += problems(one, known[name] if name in known else schema.get("additionalProperties", True), root)
    return found


# schemas that can be met

small = st.integers(-50, 50)


@st.composite
def numbers(draw: st.DrawFn) -> Json:
    low = draw(small)
    schema: Json = {"type": draw(st.sampled_from(["integer", "number"]))}
    if draw(st.booleans()):
        schema[draw(st.sampled_from(["minimum", "exclusiveMinimum"]))] = low
    if draw(st.booleans()):
        schema[draw(st.sampled_from(["maximum", "exclusiveMaximum"]))] = low + draw(st.integers(12, 60))
    if draw(st.booleans()):
        schema["multipleOf"] = draw(st.sampled_from([1, 2, 5, 0.5, 0.25]))
    return schema


@st.composite
def texts(draw: st.DrawFn) -> Json:
    schema: Json = {"type": "string"}
    low = draw(st.integers(0, 60))
    schema |= draw(st.sampled_from([{}, {"minLength": low}, {"maxLength": low}, {"minLength": low, "maxLength": low}]))
    return schema


patterns = st.sampled_from(
    ["^[a-z]{2,5}$", r"^\d{3}-\d{4}$", "^(yes|no)$", "a+b?", r"^[^x]\w*$", "^#[0-9A-F]{6}$", r"^.{3}$", r"\.py$"]
).map(lambda pattern: {"type": "string", "pattern": pattern})
leaves = st.one_of(
    numbers(),
    texts(),
    patterns,
    st.sampled_from([True, {}, {"type": "boolean"}, {"type": "null"}, {"type": ["string", "null"]}]),
    st.sampled_from([{"const": 7}, {"const": None}, {"enum": ["a", 1, None, False]}, {"enum": [[1], {"x": 2}]}]),
    st.just({"$ref": "#/$defs/tree"}),
    st.just({"$ref": "#/$defs/pair"}),
)
names = st.sampled_from(["name", "content", "post_id", "actions", "reason", "score", "tags", "to", "Ünï"])


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Json]) -> Json:
    properties = draw(st.dictionaries(names, inner, max_size=4))
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
    schema: Json = {"type": "object", "properties": properties, "required": required}
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(st.booleans())
    if schema.get("additionalProperties", True) and draw(st.booleans()):
        schema["minProperties"] = draw(st.integers(0, 6))
    return schema


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[Json]) -> Json:
    schema: Json = {"type": "array", "items": draw(inner)}
    low = draw(st.integers(0, 3))
    if draw(st.booleans()):
        schema["minItems"] = low
    if draw(st.booleans()):
        schema["maxItems"] = low + draw(st.integers(0, 3))
    if draw(st.booleans()):
        schema["prefixItems"] = draw(st.lists(inner, max_size=2))
    return schema


def branches(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    some = st.lists(inner, min_size=1, max_size=3)
    closed = st.sampled_from(["LIKE", "SAY", "GO"]).flatmap(
        lambda word: st.builds(
            lambda args: {
                "type": "object",
                "properties": {"action": {"const": word}, "args": args},
                "required": ["action"],
            },
            inner,
        )
    )
    return st.one_of(
        some.map(lambda found: {"anyOf": [*found, False]}),
        closed.map(lambda one: {"oneOf": [one, {"type": "null"}, {"type": "integer", "minimum": 3}]}),
        inner.map(lambda one: {"allOf": [one, True], "description": "the same"}),
    )


DEFINITIONS = {
    "tree": {
        "type": "object",
        "properties": {"value": {"type": "integer"}, "below": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
        "required": ["value", "below"],
        "additionalProperties": False,
    },
    "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "minItems": 2, "items": False},
}
schemas = st.recursive(
    leaves, lambda inner: st.one_of(objects(inner), arrays(inner), branches(inner)), max_leaves=12
).map(lambda schema: {"allOf": [schema], "$defs": DEFINITIONS})
