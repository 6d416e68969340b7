"""A JSON schema made easy to invent for: references followed, `allOf` merged, dead ends known.

`Schema.plain` gives a node without `$ref`, `allOf` and `const`. What stands to choice in it is under `choices`: groups
of alternatives, of each of which one must hold. What merging cannot promise is under `checks`, to be tried afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from shoal.rehearsal.schema.validation import Node, is_valid, schemas_of, type_names

RARE, UNLIKELY, LIKELY, ASKED_FOR = 0.01, 0.25, 3.0, 100.0
#: What ends something, or has its own time.
_RARE = ("LEAVE", "RATE", "QUIT", "EXIT")
#: What nobody does all day, and what is a way out rather than an action.
_IDLE = ("NOTHING", "DONE", "REFRESH", "MUTE", "REPORT")
_UNDOING = ("UN", "DIS")
_LIVELY = ("CREATE_POST", "LIKE_POST", "CREATE_COMMENT", "QUOTE", "TALK", "SAY", "SPEAK", "REACH_OUT")


@lru_cache(maxsize=4096)
def action_preference(word: str) -> float:
    upper = word.upper()
    if upper.startswith(_RARE):
        return RARE
    if upper.startswith(_UNDOING) or any(idle in upper for idle in _IDLE):
        return UNLIKELY
    return LIKELY if any(lively in upper for lively in _LIVELY) else 1.0


_TIGHTER: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"), min),
}
#: Inventing for these is a matter of trying.
_TRIED = ("oneOf", "not", "if", "pattern", "contains", "propertyNames", "patternProperties", "minProperties", "allOf")
Plain = dict[str, Any]

#: What nothing fits.
NEVER: Plain = {"enum": [], "choices": [], "checks": []}
_MAX_UNROLLED = 40


@dataclass(frozen=True, slots=True)
class Branch:
    """One way to go on, and what helps to tell whether it makes sense."""

    plain: Plain
    #: How likely somebody is to go this way, by the names of the actions that it is for.
    weight: float
    #: Members that name something by its number.
    ids: tuple[str, ...]
    #: The names of the actions that it is for.
    words: tuple[str, ...] = ()


class Schema:
    """One schema and what was found out about it."""

    def __init__(self, root: Node) -> None:
        self.root = root
        # By identity; the node is kept beside what was made of it, so that its identity stays its own.
        self._plain: dict[int, tuple[Node, Plain]] = {}
        self._chosen: dict[tuple[int, int], tuple[Plain, Node, Plain]] = {}
        self._heights: dict[int, tuple[Plain, float]] = {}
        self._depths: dict[tuple[int, int], tuple[Plain, bool]] = {}
        self._branches: dict[int, tuple[Plain, list[Branch]]] = {}
        self._together: dict[tuple[int, ...], tuple[tuple[Node, ...], Node]] = {}

    def resolve(self, reference: str) -> Node:
        """What a `$ref` within this schema names; anything, where it leads nowhere."""
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

    def plain(self, node: Node) -> Plain:
        found = self._plain.get(id(node))
        if found is None:
            found = self._plain[id(node)] = (node, self._made_plain(node, 0))
        return found[1]

    def choose(self, plain: Plain, branch: Node) -> Plain:
        """The node with one alternative of its first group taken."""
        found = self._chosen.get((id(plain), id(branch)))
        if found is None:
            rest = {**plain, "choices": plain["choices"][1:], "checks": []}
            merged = self._merged(rest, self.plain(branch))
            found = self._chosen[id(plain), id(branch)] = (plain, branch, merged)
        return found[2]

    def together(self, *nodes: Node) -> Node:
        """The node that stands for all of them; the same one each time."""
        key = tuple(map(id, nodes))
        found = self._together.get(key)
        if found is None:
            found = self._together[key] = (nodes, {"allOf": list(nodes)} if len(nodes) != 1 else nodes[0])
        return found[1]

    def branches(self, plain: Plain) -> list[Branch]:
        """The alternatives of the first group that can be met, the simplest first."""
        found = self._branches.get(id(plain))
        if found is None:
            chosen = [self.choose(plain, one) for one in plain["choices"][0]]
            ranked = sorted((self.height(one), at) for at, one in enumerate(chosen))
            possible = [self._branch(chosen[at]) for height, at in ranked if height < math.inf]
            found = self._branches[id(plain)] = (plain, possible)
        return found[1]

    def _branch(self, plain: Plain) -> Branch:
        members = {name: self.plain(one) for name in plain.get("required", ()) for one in schemas_of(name, plain)}
        options = [one["enum"] for one in members.values() if "enum" in one]
        words: list[str] = next((few for few in options if few and all(isinstance(one, str) for one in few)), [])
        ids = [name for name, one in members.items() if name.endswith("_id") and "enum" not in one]
        null = type_names(plain) == ["null"] or plain.get("enum") == [None]
        return Branch(plain, UNLIKELY if null else sum(map(action_preference, words)) or 1.0, tuple(ids), tuple(words))

    def height(self, plain: Plain) -> float:
        """How deep the simplest value goes; infinite if there is none. Alternatives count as a step too.

        Found by trying one depth after another, so that what is known of a recursive schema never depends on which of
        its nodes was asked about first.
        """
        known = self._heights.get(id(plain))
        if known is None:
            depths = (depth for depth in range(_MAX_UNROLLED) if self._within(plain, depth))
            known = self._heights[id(plain)] = (plain, next(depths, math.inf))
        return known[1]

    def height_as(self, name: str, plain: Plain) -> float:
        """The same, of values of one type."""
        return max((1 + self.height(self.plain(one)) for one in _needed(name, plain)), default=0)

    def _within(self, plain: Plain, depth: int) -> bool:
        known = self._depths.get((id(plain), depth))
        if known is None:
            known = self._depths[id(plain), depth] = (plain, self._ends_within(plain, depth))
        return known[1]

    def _ends_within(self, plain: Plain, depth: int) -> bool:
        if "enum" in plain:
            return bool(plain["enum"])
        if plain["choices"]:
            return depth > 0 and any(self._within(self.choose(plain, one), depth - 1) for one in plain["choices"][0])
        needs = [_needed(name, plain) for name in type_names(plain)] or [[]]
        return any(
            not need or (depth > 0 and all(self._within(self.plain(one), depth - 1) for one in need)) for need in needs
        )

    def _made_plain(self, node: Node, depth: int) -> Plain:
        if isinstance(node, bool) or depth > _MAX_UNROLLED:
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
            plain = self._merged(plain, self._made_plain(part, depth + 1))
        return plain

    def _merged(self, one: Plain, other: Plain) -> Plain:
        """What fits both."""
        if "enum" in one or "enum" in other:
            few, many = (one, other) if "enum" in one else (other, one)
            return {
                "enum": [value for value in few["enum"] if self._fits_plain(value, many)],
                "choices": [],
                "checks": [],
            }
        merged = {**one, **other}
        for name in merged.keys() & _TIGHTER.keys():
            if name in one and name in other:
                merged[name] = _TIGHTER[name](one[name], other[name])
        if "type" in one and "type" in other:
            merged["type"] = _common(type_names(one), type_names(other))
            if not merged["type"]:
                return NEVER
        merged["choices"] = [*one["choices"], *other["choices"]]
        merged["checks"] = [*one["checks"], *other["checks"]]
        if "multipleOf" in one and "multipleOf" in other and one["multipleOf"] != other["multipleOf"]:
            merged["checks"] = [*merged["checks"], {"multipleOf": one["multipleOf"]}]
        return _merge_members(merged, one, other)

    def _fits_plain(self, value: Any, plain: Plain) -> bool:
        groups = all(any(self.fits(value, one) for one in group) for group in plain["choices"])
        return groups and all(self.fits(value, one) for one in (plain, *plain["checks"]))


def _needed(name: str, plain: Plain) -> list[Node]:
    """What every value of this type has in it."""
    if name == "object":
        return [one for key in plain.get("required", ()) for one in schemas_of(key, plain)]
    if name == "array":
        first, least = plain.get("prefixItems", []), plain.get("minItems", 0)
        return [*first[:least], *([plain.get("items", True)] if least > len(first) else [])]
    return []


def _common(ones: list[str], others: list[str]) -> list[str]:
    common = [name for name in ones if name in others]
    for names, rest in ((ones, others), (others, ones)):
        if "integer" in names and "number" in rest and "number" not in common and "integer" not in common:
            common.append("integer")
    return common


def _both(one: Node, other: Node) -> Node:
    return {"allOf": [one, other]}


def _merge_members(merged: Plain, one: Plain, other: Plain) -> Plain:
    """What is said of members holds together: of properties by name, of items by place."""
    for name in ("items", "additionalProperties", "propertyNames"):
        if name in one and name in other:
            merged[name] = _both(one[name], other[name])
    if "required" in one and "required" in other:
        merged["required"] = list(dict.fromkeys([*one["required"], *other["required"]]))
    if "properties" in merged:
        names = dict.fromkeys([*one.get("properties", ()), *other.get("properties", ())])
        merged["properties"] = {name: _member(name, one, other) for name in names}
    if "patternProperties" in one and "patternProperties" in other:
        merged["patternProperties"] = {**one["patternProperties"], **other["patternProperties"]}
    if "prefixItems" in one and "prefixItems" in other:
        longer, shorter = sorted((one["prefixItems"], other["prefixItems"]), key=len, reverse=True)
        merged["prefixItems"] = [*map(_both, longer, shorter), *longer[len(shorter) :]]
    return merged


def _member(name: str, one: Plain, other: Plain) -> Node:
    parts = [part for node in (one, other) for part in schemas_of(name, node) if part is not True]
    if not parts:
        return True
    return parts[0] if len(parts) == 1 else {"allOf": parts}
