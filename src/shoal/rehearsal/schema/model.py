"""A JSON schema prepared for inventing values: references followed, `allOf` merged, dead ends found.

`Schema.simplify` returns a node without `$ref`, `allOf` and `const`. Its `choices` are groups of alternatives; one of
each group must hold. Its `checks` are schemas that merging cannot promise, to be tried on the invented value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from shoal.rehearsal.schema.validation import Node, find_schemas, is_valid, type_names

RARE, UNLIKELY, LIKELY, ASKED_FOR = 0.01, 0.25, 3.0, 100.0
#: Actions that end something, or have their own time.
_RARE = ("LEAVE", "RATE", "QUIT", "EXIT")
#: Actions that are seldom taken, and ways not to act.
_IDLE = ("NOTHING", "DONE", "REFRESH", "MUTE", "REPORT")
_UNDOING = ("UN", "DIS")
_LIVELY = ("CREATE_POST", "LIKE_POST", "CREATE_COMMENT", "QUOTE", "TALK", "SAY", "SPEAK", "REACH_OUT")

_TIGHTER: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"), min),
}
#: Keywords for which values are invented by trying.
_TRIED = ("oneOf", "not", "if", "pattern", "contains", "propertyNames", "patternProperties", "minProperties", "allOf")
Plain = dict[str, Any]

#: The node that no value fits.
NEVER: Plain = {"enum": [], "choices": [], "checks": []}
_MAX_DEPTH = 40


@lru_cache(maxsize=4096)
def action_weight(word: str) -> float:
    """Return how likely an action is, judged by its name."""
    upper = word.upper()
    if upper.startswith(_RARE):
        return RARE
    if upper.startswith(_UNDOING) or any(idle in upper for idle in _IDLE):
        return UNLIKELY
    return LIKELY if any(lively in upper for lively in _LIVELY) else 1.0


@dataclass(frozen=True, slots=True)
class Branch:
    """One alternative, and what helps to judge whether it makes sense."""

    plain: Plain
    #: How likely the alternative is, by the names of its actions.
    weight: float
    #: Members that hold the number of something.
    ids: tuple[str, ...]
    #: The names of its actions.
    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, plain: Plain, simplify: Callable[[Node], Plain]) -> Branch:
        required = [(name, one) for name in plain.get("required", ()) for one in find_schemas(name, plain)]
        members = {name: simplify(one) for name, one in required}
        options = [one["enum"] for one in members.values() if "enum" in one]
        words: list[str] = next((few for few in options if few and all(isinstance(one, str) for one in few)), [])
        ids = [name for name, one in members.items() if name.endswith("_id") and "enum" not in one]
        is_null = type_names(plain) == ["null"] or plain.get("enum") == [None]
        weight = UNLIKELY if is_null else sum(map(action_weight, words)) or 1.0
        return cls(plain, weight, tuple(ids), tuple(words))


class Schema:
    """One schema, and what was found out about its nodes.

    Results are kept by the identity of their nodes. The nodes are kept beside them, so that no identity is reused.
    """

    def __init__(self, root: Node) -> None:
        self.root = root
        self._plain: dict[int, tuple[Node, Plain]] = {}
        self._chosen: dict[tuple[int, int], tuple[Plain, Node, Plain]] = {}
        self._depths: dict[int, tuple[Plain, float]] = {}
        self._endings: dict[tuple[int, int], tuple[Plain, bool]] = {}
        self._branches: dict[int, tuple[Plain, list[Branch]]] = {}
        self._combined: dict[tuple[int, ...], tuple[tuple[Node, ...], Node]] = {}

    def resolve(self, reference: str) -> Node:
        """Return the target of a `$ref` within this schema; a missing target fits anything."""
        node = self.root
        for part in reference.removeprefix("#").strip("/").split("/"):
            part = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and part.isdigit() and int(part) < len(node):
                node = node[int(part)]
            elif part:
                node = node.get(part, True) if isinstance(node, dict) else True
        return node

    def fits(self, value: Any, node: Node) -> bool:
        return is_valid(value, node, self.resolve)

    def simplify(self, node: Node) -> Plain:
        """Return the node without `$ref`, `allOf` and `const`."""
        found = self._plain.get(id(node))
        if found is None:
            found = self._plain[id(node)] = (node, self._simplify(node, 0))
        return found[1]

    def choose(self, plain: Plain, alternative: Node) -> Plain:
        """Return the node with one alternative of its first group taken."""
        found = self._chosen.get((id(plain), id(alternative)))
        if found is None:
            rest = {**plain, "choices": plain["choices"][1:], "checks": []}
            merged = self._merge(rest, self.simplify(alternative))
            found = self._chosen[id(plain), id(alternative)] = (plain, alternative, merged)
        return found[2]

    def combine(self, *nodes: Node) -> Node:
        """Return a node that stands for all of these; the same node each time."""
        key = tuple(map(id, nodes))
        found = self._combined.get(key)
        if found is None:
            found = self._combined[key] = (nodes, {"allOf": list(nodes)} if len(nodes) != 1 else nodes[0])
        return found[1]

    def list_branches(self, plain: Plain) -> list[Branch]:
        """List the alternatives of the first group that some value fits, the simplest first."""
        found = self._branches.get(id(plain))
        if found is None:
            chosen = [self.choose(plain, one) for one in plain["choices"][0]]
            ranked = sorted((self.measure_depth(one), at) for at, one in enumerate(chosen))
            possible = [Branch.of(chosen[at], self.simplify) for depth, at in ranked if depth < math.inf]
            found = self._branches[id(plain)] = (plain, possible)
        return found[1]

    def measure_depth(self, plain: Plain) -> float:
        """Return the depth of the simplest value; infinite if there is none. An alternative counts as a step.

        One depth is tried after another, so that the result for a recursive schema never depends on which of its
        nodes was measured first.
        """
        known = self._depths.get(id(plain))
        if known is None:
            depths = (depth for depth in range(_MAX_DEPTH) if self._ends_within(plain, depth))
            known = self._depths[id(plain)] = (plain, next(depths, math.inf))
        return known[1]

    def measure_depth_as(self, name: str, plain: Plain) -> float:
        """Return the depth of the simplest value of one type."""
        return max((1 + self.measure_depth(self.simplify(one)) for one in _list_members(name, plain)), default=0)

    def _ends_within(self, plain: Plain, depth: int) -> bool:
        known = self._endings.get((id(plain), depth))
        if known is not None:
            return known[1]
        if "enum" in plain:
            ends = bool(plain["enum"])
        elif plain["choices"]:
            first = plain["choices"][0]
            ends = depth > 0 and any(self._ends_within(self.choose(plain, one), depth - 1) for one in first)
        else:
            needs = [_list_members(name, plain) for name in type_names(plain)] or [[]]
            ends = any(
                not need or (depth > 0 and all(self._ends_within(self.simplify(one), depth - 1) for one in need))
                for need in needs
            )
        self._endings[id(plain), depth] = (plain, ends)
        return ends

    def _simplify(self, node: Node, depth: int) -> Plain:
        if isinstance(node, bool) or depth > _MAX_DEPTH:
            return {"choices": [], "checks": []} if node is True else NEVER
        if "enum" in node or "const" in node:
            options = node["enum"] if "enum" in node else [node["const"]]
            return {"enum": [one for one in options if self.fits(one, node)], "choices": [], "checks": []}
        plain = {name: value for name, value in node.items() if name not in ("$ref", "allOf", "anyOf", "oneOf")}
        plain["checks"] = [node] if any(name in node for name in _TRIED) else []
        plain["choices"] = [node[name] for name in ("anyOf", "oneOf") if name in node]
        if "if" in node:
            met = {"allOf": [node["if"], node.get("then", True)]}
            plain["choices"].append([met, {"allOf": [{"not": node["if"]}, node.get("else", True)]}])
        parts = [self.resolve(node["$ref"])] if "$ref" in node else []
        for part in [*parts, *node.get("allOf", ())]:
            plain = self._merge(plain, self._simplify(part, depth + 1))
        return plain

    def _merge(self, one: Plain, other: Plain) -> Plain:
        """Return the node that fits what both nodes fit."""
        if "enum" in one or "enum" in other:
            few, many = (one, other) if "enum" in one else (other, one)
            options = [
                value
                for value in few["enum"]
                if all(any(self.fits(value, each) for each in group) for group in many["choices"])
                and all(self.fits(value, each) for each in (many, *many["checks"]))
            ]
            return {"enum": options, "choices": [], "checks": []}
        merged = {**one, **other}
        shared = one.keys() & other.keys()
        for name in shared & _TIGHTER.keys():
            merged[name] = _TIGHTER[name](one[name], other[name])
        if "type" in shared:
            ones, others = type_names(one), type_names(other)
            merged["type"] = [name for name in ones if name in others]
            if not {"integer", "number"} & {*merged["type"]}:
                # An integer is also a number.
                pairs = ((ones, others), (others, ones))
                merged["type"] += ["integer"] * any("integer" in a and "number" in b for a, b in pairs)
            if not merged["type"]:
                return NEVER
        merged["choices"] = [*one["choices"], *other["choices"]]
        merged["checks"] = [*one["checks"], *other["checks"]]
        if "multipleOf" in shared and one["multipleOf"] != other["multipleOf"]:
            merged["checks"].append({"multipleOf": one["multipleOf"]})
        _merge_members(merged, one, other)
        return merged


def _list_members(name: str, plain: Plain) -> list[Node]:
    """List the schemas of the members that every value of this type has."""
    if name == "object":
        return [one for key in plain.get("required", ()) for one in find_schemas(key, plain)]
    if name == "array":
        first, least = plain.get("prefixItems", []), plain.get("minItems", 0)
        return [*first[:least], *([plain.get("items", True)] if least > len(first) else [])]
    return []


def _merge_members(merged: Plain, one: Plain, other: Plain) -> None:
    """Merge what two nodes say about members: about properties by name, about items by place."""
    shared = one.keys() & other.keys()
    for name in shared & {"items", "additionalProperties", "propertyNames"}:
        merged[name] = {"allOf": [one[name], other[name]]}
    if "required" in shared:
        merged["required"] = list(dict.fromkeys([*one["required"], *other["required"]]))
    if "properties" in merged:
        merged["properties"] = {}
        for name in dict.fromkeys([*one.get("properties", ()), *other.get("properties", ())]):
            parts = [part for node in (one, other) for part in find_schemas(name, node) if part is not True]
            merged["properties"][name] = {"allOf": parts} if len(parts) > 1 else parts[0] if parts else True
    if "patternProperties" in shared:
        merged["patternProperties"] = {**one["patternProperties"], **other["patternProperties"]}
    if "prefixItems" in shared:
        longer, shorter = sorted((one["prefixItems"], other["prefixItems"]), key=len, reverse=True)
        both = [{"allOf": list(pair)} for pair in zip(longer, shorter, strict=False)]
        merged["prefixItems"] = [*both, *longer[len(shorter) :]]
