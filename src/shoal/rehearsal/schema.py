"""A JSON schema prepared for inventing values: references followed, `allOf` merged, dead ends found.

Known are the keywords that programs send to models. `oneOf` is taken as `anyOf`. A condition that is not known makes a
schema unanswerable, as it does at providers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

#: A schema as it was sent: an object, or true or false.
Node = Any

_UNKNOWN = ("not", "if", "contains", "dependentRequired", "dependentSchemas")
_TIGHTER: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}
#: Keywords that imply a type where a schema names none.
_IMPLIED_TYPES = {
    "object": ("properties", "required", "additionalProperties", "minProperties"),
    "array": ("items", "prefixItems", "minItems"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_MAX_DEPTH = 40

RARE, UNLIKELY, LIKELY, ASKED_FOR = 0.01, 0.25, 3.0, 100.0
#: Actions that end something, or have their own time.
_RARE = ("LEAVE", "RATE", "QUIT", "EXIT")
#: Actions that are seldom taken, and ways not to act.
_IDLE = ("NOTHING", "DONE", "REFRESH", "MUTE", "REPORT")
_UNDOING = ("UN", "DIS")
_LIVELY = ("CREATE_POST", "LIKE_POST", "CREATE_COMMENT", "QUOTE", "TALK", "SAY", "SPEAK", "REACH_OUT")


class SchemaUnanswerable(ValueError):
    """A schema for which no value can be invented. The text says why."""


@dataclass(slots=True, eq=False)
class Shape:
    """A schema without `$ref`, `allOf` and `const`, and what was found out about it."""

    keywords: Mapping[str, Any]
    #: Groups of alternatives; one of each group must hold.
    choices: list[list[Node]] = field(default_factory=list)
    alternatives: list[Shape] | None = None
    branches: list[Branch] | None = None
    endings: dict[int, bool] = field(default_factory=dict)
    depth: float | None = None

    @property
    def types(self) -> list[str]:
        """The types that a value may have; where the schema names none, the one that its keywords imply."""
        if named := self.keywords.get("type"):
            return [named] if isinstance(named, str) else list(named)
        return [
            next((name for name, keys in _IMPLIED_TYPES.items() if any(key in self.keywords for key in keys)), "string")
        ]

    def list_members(self) -> list[Node]:
        """List the schemas of the members that every value has."""
        keywords = self.keywords
        if self.types == ["object"]:
            return [find_member(name, keywords) for name in keywords.get("required", ())]
        if self.types == ["array"]:
            first, least = keywords.get("prefixItems", []), keywords.get("minItems", 0)
            return [*first[:least], *([keywords.get("items", True)] if least > len(first) else [])]
        return []


@dataclass(frozen=True, slots=True)
class Branch:
    """One alternative, and what helps to judge whether it makes sense."""

    shape: Shape
    #: How likely the alternative is, by the names of its actions.
    weight: float
    #: Members that hold the number of something.
    ids: tuple[str, ...]
    #: The names of its actions.
    words: tuple[str, ...]


class Schema:
    """One schema. What is found out about its nodes is kept, by their identity."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self._shapes: dict[int, Shape] = {}

    def simplify(self, node: Node) -> Shape:
        """Return the shape of a node of this schema, or of one that a shape holds."""
        found = self._shapes.get(id(node))
        if found is None:
            found = self._shapes[id(node)] = self._simplify(node, 0)
        return found

    def _simplify(self, node: Node, depth: int) -> Shape:
        if isinstance(node, bool) or depth > _MAX_DEPTH:
            return Shape({} if node is True else {"enum": []})
        for name in _UNKNOWN:
            if name in node:
                raise SchemaUnanswerable(f"the keyword {name!r} is not supported")
        keywords = {name: value for name, value in node.items() if name not in ("$ref", "allOf", "anyOf", "oneOf")}
        if "const" in node:
            keywords["enum"] = [node["const"]]
        shape = Shape(keywords, [node[name] for name in ("anyOf", "oneOf") if name in node])
        parts = [self._resolve(node["$ref"])] if "$ref" in node else []
        for part in [*parts, *node.get("allOf", ())]:
            shape = merge_shapes(shape, self._simplify(part, depth + 1))
        return shape

    def _resolve(self, reference: str) -> Node:
        """Return the target of a `$ref`, such as `#/$defs/person`."""
        node = self.root
        try:
            for part in filter(None, reference.removeprefix("#").split("/")):
                part = part.replace("~1", "/").replace("~0", "~")
                node = node[int(part)] if isinstance(node, list) else node[part]
        except (LookupError, TypeError, ValueError):
            raise SchemaUnanswerable(f"there is no {reference!r} in it") from None
        return node

    def list_branches(self, shape: Shape) -> list[Branch]:
        """List the alternatives that some value fits, the simplest first; none if there is nothing to choose."""
        if shape.branches is None:
            ranked = [(self.measure_depth(one), one) for one in self._list_alternatives(shape)]
            ranked.sort(key=lambda pair: pair[0])
            shape.branches = [self._judge(one) for depth, one in ranked if depth < math.inf]
        return shape.branches

    def _list_alternatives(self, shape: Shape) -> list[Shape]:
        """List the alternatives of the first group, or else the types, if there are several."""
        if shape.alternatives is None:
            if "enum" in shape.keywords:
                shape.alternatives = []
            elif shape.choices:
                rest = Shape(shape.keywords, shape.choices[1:])
                shape.alternatives = [merge_shapes(rest, self.simplify(one)) for one in shape.choices[0]]
            else:
                types = shape.types if len(shape.types) > 1 else ()
                shape.alternatives = [Shape({**shape.keywords, "type": one}) for one in types]
        return shape.alternatives

    def _judge(self, shape: Shape) -> Branch:
        required = shape.keywords.get("required", ())
        members = {name: self.simplify(find_member(name, shape.keywords)).keywords for name in required}
        options = [one["enum"] for one in members.values() if "enum" in one]
        words: list[str] = next((few for few in options if few and all(isinstance(one, str) for one in few)), [])
        ids = [name for name, one in members.items() if name.endswith("_id") and "enum" not in one]
        is_null = shape.types == ["null"] or shape.keywords.get("enum") == [None]
        weight = UNLIKELY if is_null else sum(map(weigh_action, words)) or 1.0
        return Branch(shape, weight, tuple(ids), tuple(words))

    def measure_depth(self, shape: Shape) -> float:
        """Return the depth of the simplest value; infinite if there is none. An alternative counts as a step.

        One depth is tried after another, so that the result for a recursive schema never depends on which of its
        nodes was measured first.
        """
        if shape.depth is None:
            depths = (depth for depth in range(_MAX_DEPTH) if self._ends_within(shape, depth))
            shape.depth = next(depths, math.inf)
        return shape.depth

    def _ends_within(self, shape: Shape, depth: int) -> bool:
        if depth not in shape.endings:
            if "enum" in shape.keywords:
                ends = bool(shape.keywords["enum"])
            elif alternatives := self._list_alternatives(shape):
                # To choose a type is no step.
                left = depth - 1 if shape.choices else depth
                ends = left >= 0 and any(self._ends_within(one, left) for one in alternatives)
            else:
                members = map(self.simplify, shape.list_members())
                ends = all(depth > 0 and self._ends_within(one, depth - 1) for one in members)
            shape.endings[depth] = ends
        return shape.endings[depth]


def find_member(name: str, keywords: Mapping[str, Any]) -> Node:
    """Return the schema of a property."""
    found = keywords.get("properties", {}).get(name)
    return keywords.get("additionalProperties", True) if found is None else found


def merge_shapes(one: Shape, other: Shape) -> Shape:
    """Return the shape of the values that fit both. Constants are taken as they are."""
    a, b = one.keywords, other.keywords
    if "enum" in a or "enum" in b:
        allowed = [keywords["enum"] for keywords in (a, b) if "enum" in keywords]
        return Shape({"enum": [value for value in allowed[0] if value in allowed[-1]]})
    merged = {**a, **b}
    for name in a.keys() & b.keys():
        if name in _TIGHTER:
            merged[name] = _TIGHTER[name](a[name], b[name])
        elif name == "type":
            merged[name] = _merge_types(one.types, other.types)
        elif name == "required":
            merged[name] = list(dict.fromkeys([*a[name], *b[name]]))
        elif name in ("items", "additionalProperties"):
            merged[name] = {"allOf": [a[name], b[name]]}
        elif name in ("pattern", "multipleOf", "prefixItems") and a[name] != b[name]:
            raise SchemaUnanswerable(f"two values of {name!r} are not supported")
    if "properties" in merged:
        merged["properties"] = {}
        for name in dict.fromkeys([*a.get("properties", ()), *b.get("properties", ())]):
            parts = [part for part in (find_member(name, a), find_member(name, b)) if part is not True]
            merged["properties"][name] = {"allOf": parts} if len(parts) > 1 else parts[0] if parts else True
    return Shape(merged if merged.get("type") != [] else {"enum": []}, [*one.choices, *other.choices])


def _merge_types(ones: list[str], others: list[str]) -> list[str]:
    both = [name for name in ones if name in others]
    if not {"integer", "number"} & {*both}:
        # An integer is also a number.
        pairs = ((ones, others), (others, ones))
        both += ["integer"] * any("integer" in a and "number" in b for a, b in pairs)
    return both


@lru_cache(maxsize=4096)
def weigh_action(word: str) -> float:
    """Return how likely an action is, judged by its name."""
    upper = word.upper()
    if upper.startswith(_RARE):
        return RARE
    if upper.startswith(_UNDOING) or any(idle in upper for idle in _IDLE):
        return UNLIKELY
    return LIKELY if any(lively in upper for lively in _LIVELY) else 1.0
