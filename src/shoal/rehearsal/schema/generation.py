"""Invents values that fit a JSON schema and take up the conversation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from shoal.rehearsal.schema.context import ConversationContext
from shoal.rehearsal.schema.model import ASKED_FOR, NEVER, UNLIKELY, Plain, Schema, action_weight
from shoal.rehearsal.schema.patterns import invent_match
from shoal.rehearsal.schema.validation import Node, find_schemas, is_same, type_names
from shoal.seeds import Draws

#: Below this depth, values hold only what they must.
_MAX_OPTIONAL_DEPTH = 6
_MAX_TRIES = 40
CHARACTERS_PER_TOKEN = 4
_ALL_TYPES = ("string", "number", "boolean", "object", "array", "null")
#: Keywords that imply a type where a schema names none.
_IMPLIED_TYPES = {
    "object": ("properties", "required", "additionalProperties", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "contains"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_OPTIONAL_CHANCE = 0.75
#: The weight of an action about something that the conversation does not show.
_UNSEEN = 0.01
#: How far numbers spread, how many names are tried, and how long names may be.
_SPAN = 100
_SHORT_TEXTS = tuple("name title query topic keyword tag mood emotion location place relation label".split())
_TEXT = {"type": "string"}
_PEOPLE = ("target", "to", "user", "username", "person", "agent", "recipient", "followee", "mention", "who")
_FORMATS = {
    "date": "2026-03-{:02d}",
    "date-time": "2026-03-{:02d}T18:00:00Z",
    "time": "{:02d}:30:00Z",
    "email": "reader{}@example.org",
    "uri": "https://example.org/{}",
    "hostname": "host{}.example.org",
    "ipv4": "192.0.2.{}",
    "ipv6": "2001:db8::{}",
    "uuid": "00000000-0000-4000-8000-0000000000{:02d}",
    "duration": "PT{}H",
}


class Inventor:
    """Invents values for one request: `Inventor(schema, context, draws, 24).invent()`."""

    def __init__(self, schema: Schema, context: ConversationContext, draws: Draws, reply_tokens: int) -> None:
        self._schema = schema
        self._context = context
        self._draws = draws
        self._characters = reply_tokens * CHARACTERS_PER_TOKEN

    def invent(self) -> Any:
        return self._invent(self._schema.root, "", 0)

    def _invent(self, node: Node, hint: str, depth: int) -> Any:
        """Invent a value for a node. `hint` is the name of the property that holds it."""
        plain = self._schema.simplify(node)
        if not plain["checks"]:
            return self._invent_plain(plain, hint, depth)
        value = None
        for _ in range(_MAX_TRIES):
            value = self._invent_plain(plain, hint, depth)
            if self._schema.fits(value, node):
                break
        return value

    def _invent_plain(self, plain: Plain, hint: str, depth: int) -> Any:
        while plain["choices"] and "enum" not in plain:
            plain = self._choose_branch(plain, depth)
        if "enum" in plain:
            options = plain["enum"]
            if len(options) < 2:
                return options[0] if options else None
            likely = [
                UNLIKELY if one is None else action_weight(one) if isinstance(one, str) else 1.0 for one in options
            ]
            return self._draw_weighted(options, likely)
        kind = self._choose_type(plain, depth)
        if kind == "object":
            return self._invent_object(plain, depth)
        if kind == "array":
            return self._invent_array(plain, hint, depth)
        if kind == "string":
            return self._invent_string(plain, hint)
        if kind in ("integer", "number"):
            return self._invent_number(plain, kind == "integer", hint)
        return self._draws.chance(0.5) if kind == "boolean" else None

    # choices

    def _choose_branch(self, plain: Plain, depth: int) -> Plain:
        """Choose an alternative. An action on a post makes little sense where the conversation shows no post."""
        branches = self._schema.list_branches(plain)
        if not branches:
            return NEVER
        if depth > _MAX_OPTIONAL_DEPTH:
            return branches[0].plain
        weights = []
        for branch in branches:
            weight = branch.weight
            if len(branch.words) == 1 and self._context.asks_for(branch.words[0]):
                weight = ASKED_FOR
            else:
                for name in branch.ids:
                    if not self._context.find_numbers(name.removesuffix("_id")):
                        weight *= _UNSEEN
            weights.append(weight)
        chosen: Plain = self._draw_weighted(branches, weights).plain
        return chosen

    def _choose_type(self, plain: Plain, depth: int) -> str:
        names: Sequence[str] = type_names(plain)
        if not names:
            implied = (name for name, keys in _IMPLIED_TYPES.items() if any(key in plain for key in keys))
            if found := next(implied, None):
                return found
            names = _ALL_TYPES if plain["checks"] else ("string",)
        if len(names) == 1:
            return names[0]
        if depth > _MAX_OPTIONAL_DEPTH:
            return next((name for name in names if name not in ("object", "array")), names[0])
        possible = [name for name in names if self._schema.measure_depth_as(name, plain) < math.inf] or names
        return str(self._draw_weighted(possible, [UNLIKELY if name == "null" else 1.0 for name in possible]))

    def _draw_weighted(self, options: Sequence[Any], weights: Sequence[float]) -> Any:
        drawn = self._draws.random() * sum(weights)
        for option, weight in zip(options, weights, strict=True):
            drawn -= weight
            if drawn < 0:
                return option
        return options[-1]

    # members

    def _invent_object(self, plain: Plain, depth: int) -> dict[str, Any]:
        properties, required = plain.get("properties", {}), plain.get("required", ())
        is_deep = depth > _MAX_OPTIONAL_DEPTH

        def is_wanted(name: str) -> bool:
            return not is_deep and self._draws.chance(_OPTIONAL_CHANCE) and self._is_possible(name, plain)

        names = [name for name in properties if name in required or is_wanted(name)]
        names += [name for name in required if name not in properties]
        for name in names if "dependentRequired" in plain else ():
            # The list grows while it is walked: a needed property may need others.
            names += [other for other in plain["dependentRequired"].get(name, ()) if other not in names]
        if "maxProperties" in plain:
            spare = [name for name in names if name not in required]
            names = [name for name in names if name not in spare[max(0, plain["maxProperties"] - len(required)) :]]
        if len(names) < plain.get("minProperties", 0):
            self._add_names(names, plain)
        return {name: self._invent(self._schema.combine(*find_schemas(name, plain)), name, depth + 1) for name in names}

    def _is_possible(self, name: str, plain: Plain) -> bool:
        nodes = map(self._schema.simplify, find_schemas(name, plain))
        return all(self._schema.measure_depth(node) < math.inf for node in nodes)

    def _add_names(self, names: list[str], plain: Plain) -> None:
        """Add names up to `minProperties`: first those that the schema names, then others that it allows."""
        least = plain["minProperties"]
        optional = [
            name for name in plain.get("properties", ()) if name not in names and self._is_possible(name, plain)
        ]
        names += optional[: least - len(names)]
        patterns = list(plain.get("patternProperties", ()))
        for at in range(_SPAN):
            if len(names) >= least:
                break
            name: str | None = None
            if "propertyNames" in plain:
                node = self._schema.combine(_TEXT, plain["propertyNames"])
                name = str(self._invent(node, "", _MAX_OPTIONAL_DEPTH))
            elif patterns:
                name = invent_match(patterns[at % len(patterns)], self._draws, 1, _SPAN)
            name = name or f"more_{at}"
            if name not in names and self._is_possible(name, plain):
                names.append(name)

    def _invent_array(self, plain: Plain, hint: str, depth: int) -> list[Any]:
        first, rest = plain.get("prefixItems", []), plain.get("items", True)
        least, most = plain.get("minItems", 0), plain.get("maxItems", math.inf)
        if rest is False or not self._schema.measure_depth(self._schema.simplify(rest)) < math.inf:
            most = min(most, len(first))
        is_deep = depth > _MAX_OPTIONAL_DEPTH
        length = least if is_deep else min(most, max(least, len(first), 1 + self._draws.below(2)))
        nodes = [first[at] if at < len(first) else rest for at in range(int(length))]
        if "contains" in plain and len(nodes) >= len(first):
            some = plain.get("minContains", 1)
            nodes[len(first) : len(first) + some] = [self._schema.combine(rest, plain["contains"])] * some
        if not plain.get("uniqueItems"):
            return [self._invent(node, hint.removesuffix("s"), depth + 1) for node in nodes]
        items: list[Any] = []
        for node in nodes:
            item = self._invent(node, hint.removesuffix("s"), depth + 1)
            for at in range(_MAX_TRIES):
                if not _contains(items, item):
                    break
                # A hint leads to the same few words again and again.
                item = self._invent(node, hint.removesuffix("s") if at < 2 else "", depth + 1)
            items.append(item)
        return [item for at, item in enumerate(items) if at < least or not _contains(items[:at], item)]

    # leaves

    def _invent_string(self, plain: Plain, hint: str) -> str:
        context, draws = self._context, self._draws
        low, high = plain.get("minLength", 0), plain.get("maxLength", math.inf)
        if "pattern" in plain:
            found = invent_match(plain["pattern"], draws, low, high if high < math.inf else 10_000)
            if found is not None:
                return found
        if plain.get("format") in _FORMATS:
            return _FORMATS[plain["format"]].format(10 + draws.below(18))
        last = hint.lower().rpartition("_")[2]
        name = context.draw_name(draws) if last in _PEOPLE or hint == "name" else None
        if name:
            text = name
        elif last in _SHORT_TEXTS:
            text = context.draw_word(draws)
        elif not hint:
            text = f"{context.draw_word(draws)} {draws.below(_SPAN)}"
        else:
            text = context.write_text(draws, self._characters)
        if len(text) > high:
            cut = text[: int(high)]
            text = cut.rpartition(" ")[0] or cut
        while len(text) < low:
            text = (text + " and so on" if text else "and so on")[: int(min(max(high, low), len(text) + 10))]
        return text

    def _invent_number(self, plain: Plain, whole: bool, hint: str) -> float:
        if hint.endswith("_id") or hint in ("id", "to", "target", "user", "agent"):
            seen = self._context.find_numbers(hint.removesuffix("_id"))
            if known := [one for one in seen if self._schema.fits(one, plain)]:
                return self._draws.choice(known)
        step = Decimal(str(plain.get("multipleOf", 1)))
        if whole and step % 1:
            step *= step.as_integer_ratio()[1]
        low, high = _find_bounds(plain, step)
        if low > high and not whole and "multipleOf" not in plain:
            # There is no whole number between the bounds.
            least = max(float(plain.get(name, -math.inf)) for name in ("minimum", "exclusiveMinimum"))
            most = min(float(plain.get(name, math.inf)) for name in ("maximum", "exclusiveMaximum"))
            return least if least == most else least + (most - least) * (0.25 + 0.5 * self._draws.random())
        value = step * (low + int(self._draws.below(min(int(high - low) + 1, 2**53)) if high > low else 0))
        return int(value) if value == int(value) else float(value)


def _find_bounds(plain: Plain, step: Decimal) -> tuple[int, int]:
    """Return the least and the greatest allowed multiple of the step; a missing bound is a span away."""
    lows, highs = [], []
    if "minimum" in plain:
        lows.append(math.ceil(Decimal(str(plain["minimum"])) / step))
    if "exclusiveMinimum" in plain:
        lows.append(math.floor(Decimal(str(plain["exclusiveMinimum"])) / step) + 1)
    if "maximum" in plain:
        highs.append(math.floor(Decimal(str(plain["maximum"])) / step))
    if "exclusiveMaximum" in plain:
        highs.append(math.ceil(Decimal(str(plain["exclusiveMaximum"])) / step) - 1)
    if not lows and not highs:
        return 0, _SPAN
    low = max(lows) if lows else min(highs) - _SPAN
    return low, min(highs) if highs else low + _SPAN


def _contains(items: list[Any], item: Any) -> bool:
    return any(is_same(item, other) for other in items)
