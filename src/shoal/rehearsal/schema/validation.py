"""JSON schema validation, as far as invented values need it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

Node = Any
Resolve = Callable[[str], Node]

_TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: _TYPES["number"](value) and value == int(value),
}


def type_names(node: Mapping[str, Any]) -> list[str]:
    """Return the types that a schema names; empty means any type."""
    names = node.get("type", [])
    return [names] if isinstance(names, str) else list(names)


def find_schemas(name: str, node: Mapping[str, Any]) -> list[Node]:
    """Return the schemas that the value of a property must fit."""
    found = [node["properties"][name]] if name in node.get("properties", {}) else []
    found += [one for pattern, one in node.get("patternProperties", {}).items() if re.search(pattern, name)]
    return found or [node.get("additionalProperties", True)]


def is_same(one: Any, other: Any) -> bool:
    """Compare as JSON does: true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[name], other[name]) for name in one)
    return bool(one == other)


def is_valid(value: Any, node: Node, resolve: Resolve) -> bool:
    """Return whether a value fits a schema; `resolve` finds the target of a `$ref`."""
    if isinstance(node, bool):
        return node
    if "$ref" in node and not is_valid(value, resolve(node["$ref"]), resolve):
        return False
    names = type_names(node)
    if names and not any(_TYPES[name](value) for name in names if name in _TYPES):
        return False
    if "const" in node and not is_same(value, node["const"]):
        return False
    if "enum" in node and not any(is_same(value, one) for one in node["enum"]):
        return False
    if not _fits_subschemas(value, node, resolve):
        return False
    if isinstance(value, str):
        return _fits_string(value, node)
    if isinstance(value, list):
        return _fits_array(value, node, resolve)
    if isinstance(value, dict):
        return _fits_object(value, node, resolve)
    return _fits_number(value, node) if _TYPES["number"](value) else True


def _fits_subschemas(value: Any, node: Mapping[str, Any], resolve: Resolve) -> bool:
    if not all(is_valid(value, one, resolve) for one in node.get("allOf", ())):
        return False
    if "anyOf" in node and not any(is_valid(value, one, resolve) for one in node["anyOf"]):
        return False
    if "oneOf" in node and sum(is_valid(value, one, resolve) for one in node["oneOf"]) != 1:
        return False
    if "not" in node and is_valid(value, node["not"], resolve):
        return False
    if "if" in node:
        return is_valid(value, node.get("then" if is_valid(value, node["if"], resolve) else "else", True), resolve)
    return True


def _is_between(count: int, node: Mapping[str, Any], what: str) -> bool:
    return bool(node.get(f"min{what}", 0) <= count <= node.get(f"max{what}", count))


def _fits_string(value: str, node: Mapping[str, Any]) -> bool:
    pattern = node.get("pattern", "")
    # In JSON schema `$` does not match before a final newline, as it does in Python.
    if pattern.endswith("$") and not pattern.endswith(r"\$"):
        pattern = pattern[:-1] + r"\Z"
    return _is_between(len(value), node, "Length") and re.search(pattern, value) is not None


def _fits_number(value: float, node: Mapping[str, Any]) -> bool:
    if value < node.get("minimum", value) or value > node.get("maximum", value):
        return False
    if "exclusiveMinimum" in node and value <= node["exclusiveMinimum"]:
        return False
    if "exclusiveMaximum" in node and value >= node["exclusiveMaximum"]:
        return False
    return "multipleOf" not in node or Decimal(str(value)) % Decimal(str(node["multipleOf"])) == 0


def _fits_array(value: list[Any], node: Mapping[str, Any], resolve: Resolve) -> bool:
    first, rest = node.get("prefixItems", []), node.get("items", True)
    if not _is_between(len(value), node, "Items"):
        return False
    if not all(is_valid(item, first[at] if at < len(first) else rest, resolve) for at, item in enumerate(value)):
        return False
    if node.get("uniqueItems") and any(is_same(a, b) for at, a in enumerate(value) for b in value[:at]):
        return False
    if "contains" in node:
        found = sum(is_valid(item, node["contains"], resolve) for item in value)
        return bool(node.get("minContains", 1) <= found <= node.get("maxContains", found))
    return True


def _fits_object(value: dict[str, Any], node: Mapping[str, Any], resolve: Resolve) -> bool:
    if not _is_between(len(value), node, "Properties") or any(name not in value for name in node.get("required", ())):
        return False
    if not all(is_valid(name, node.get("propertyNames", True), resolve) for name in value):
        return False
    for name, needed in node.get("dependentRequired", {}).items():
        if name in value and any(other not in value for other in needed):
            return False
    return all(is_valid(item, one, resolve) for name, item in value.items() for one in find_schemas(name, node))
