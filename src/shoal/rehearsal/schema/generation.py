"""Invents a valid value for any JSON schema, and as sensible a one as can be had without a mind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from shoal.rehearsal.schema.context import ConversationContext
from shoal.rehearsal.schema.model import ASKED_FOR, NEVER, UNLIKELY, Branch, Plain, Schema, action_preference
from shoal.rehearsal.schema.patterns import matching
from shoal.rehearsal.schema.validation import Node, same, schemas_of, type_names
from shoal.seeds import Draws

#: Below this, only what must be there is.
_DEEP = 6
_TRIES = 40
CHARACTERS_PER_TOKEN = 4
_KINDS = ("string", "number", "boolean", "object", "array", "null")
_OPTIONAL = 0.75
_UNSEEN = 0.01
_SPAN = 100
_TEXT = {"type": "string"}
_SHORT = tuple("name title query topic keyword tag mood emotion location place relation label".split())
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
    """Makes values for one request: `Inventor(schema, reading, draws, 24).value()`."""

    def __init__(self, schema: Schema, reading: ConversationContext, draws: Draws, reply_tokens: int) -> None:
        self._schema = schema
        self._reading = reading
        self._draws = draws
        self._characters = reply_tokens * CHARACTERS_PER_TOKEN

    def value(self) -> Any:
        return self._invent(self._schema.root, "", 0)

    def _invent(self, node: Node, hint: str, depth: int) -> Any:
        plain = self._schema.plain(node)
        if not plain["checks"]:
            return self._make(plain, hint, depth)
        value = None
        for _ in range(_TRIES):
            value = self._make(plain, hint, depth)
            if self._schema.fits(value, node):
                break
        return value

    def _make(self, plain: Plain, hint: str, depth: int) -> Any:
        while plain["choices"] and "enum" not in plain:
            plain = self._branch(plain, depth)
        if "enum" in plain:
            return self._option(plain["enum"])
        kind = self._kind(type_names(plain) or _implied(plain), plain, depth)
        if kind == "object":
            return self._object(plain, depth)
        if kind == "array":
            return self._array(plain, hint, depth)
        if kind == "string":
            return self._string(plain, hint)
        if kind in ("integer", "number"):
            return self._number(plain, kind == "integer", hint)
        return self._draws.chance(0.5) if kind == "boolean" else None

    # choices

    def _branch(self, plain: Plain, depth: int) -> Plain:
        branches = self._schema.branches(plain)
        if not branches:
            return NEVER
        if depth > _DEEP:
            return branches[0].plain
        chosen: Branch = self._weighted(branches, [self._weight(one) for one in branches])
        return chosen.plain

    def _weight(self, branch: Branch) -> float:
        """How much sense an alternative makes here: nothing can be said of a post where none is in sight."""
        if len(branch.words) == 1 and self._reading.asks_for(branch.words[0]):
            return ASKED_FOR
        weight = branch.weight
        for name in branch.ids:
            if not self._reading.numbers(name.removesuffix("_id")):
                weight *= _UNSEEN
        return weight

    def _option(self, options: Sequence[Any]) -> Any:
        if len(options) < 2:
            return options[0] if options else None
        weights = [
            UNLIKELY if one is None else action_preference(one) if isinstance(one, str) else 1.0 for one in options
        ]
        return self._weighted(options, weights)

    def _weighted(self, options: Sequence[Any], weights: Sequence[float]) -> Any:
        drawn = self._draws.random() * sum(weights)
        for option, weight in zip(options, weights, strict=True):
            drawn -= weight
            if drawn < 0:
                return option
        return options[-1]

    def _kind(self, names: Sequence[str], plain: Plain, depth: int) -> str:
        if len(names) == 1:
            return names[0]
        if depth > _DEEP:
            simple = [name for name in names if name not in ("object", "array")]
            return simple[0] if simple else names[0]
        possible = [name for name in names if self._schema.height_as(name, plain) < math.inf] or names
        return str(self._weighted(possible, [UNLIKELY if name == "null" else 1.0 for name in possible]))

    # members

    def _object(self, plain: Plain, depth: int) -> dict[str, Any]:
        properties, required = plain.get("properties", {}), plain.get("required", ())
        names = [name for name in properties if name in required or self._wanted(name, plain, depth)]
        names += [name for name in required if name not in properties]
        if "dependentRequired" in plain:
            for name in names:
                # A list that grows while it is walked: what is needed may need something in its turn.
                names += [other for other in plain["dependentRequired"].get(name, ()) if other not in names]
        if "maxProperties" in plain:
            spare = [name for name in names if name not in required]
            names = [name for name in names if name not in spare[max(0, plain["maxProperties"] - len(required)) :]]
        if len(names) < plain.get("minProperties", 0):
            self._add_names(names, plain)
        return {name: self._member(name, plain, depth + 1) for name in names}

    def _add_names(self, names: list[str], plain: Plain) -> None:
        """As many more as there must be: of those that the schema names, then of others that it allows."""
        least = plain["minProperties"]
        optional = [name for name in plain.get("properties", ()) if name not in names and self._meetable(name, plain)]
        names += optional[: least - len(names)]
        for at in range(_SPAN):
            if len(names) >= least:
                break
            names += [name for name in [self._new_name(plain, at)] if name not in names and self._meetable(name, plain)]

    def _wanted(self, name: str, plain: Plain, depth: int) -> bool:
        return depth <= _DEEP and self._draws.chance(_OPTIONAL) and self._meetable(name, plain)

    def _meetable(self, name: str, plain: Plain) -> bool:
        return all(self._schema.height(self._schema.plain(one)) < math.inf for one in schemas_of(name, plain))

    def _member(self, name: str, plain: Plain, depth: int) -> Any:
        return self._invent(self._schema.together(*schemas_of(name, plain)), name, depth)

    def _new_name(self, plain: Plain, at: int) -> str:
        """A name for a property that the schema does not name itself."""
        if "propertyNames" in plain:
            return str(self._invent(self._schema.together(_TEXT, plain["propertyNames"]), "", _DEEP))
        patterns = list(plain.get("patternProperties", ()))
        found = matching(patterns[at % len(patterns)], self._draws, 1, _SPAN) if patterns else None
        return found or f"more_{at}"

    def _array(self, plain: Plain, hint: str, depth: int) -> list[Any]:
        first, rest = plain.get("prefixItems", []), plain.get("items", True)
        least, most = plain.get("minItems", 0), plain.get("maxItems", math.inf)
        if rest is False or not self._schema.height(self._schema.plain(rest)) < math.inf:
            most = min(most, len(first))
        length = least if depth > _DEEP else min(most, max(least, len(first), 1 + self._draws.below(2)))
        wanted = [first[at] if at < len(first) else rest for at in range(int(length))]
        if "contains" in plain and len(wanted) >= len(first):
            some = plain.get("minContains", 1)
            wanted[len(first) : len(first) + some] = [self._schema.together(rest, plain["contains"])] * some
        items: list[Any] = []
        for one in wanted:
            items.append(self._item(one, items if plain.get("uniqueItems") else [], hint.removesuffix("s"), depth + 1))
        if plain.get("uniqueItems"):
            items = [item for at, item in enumerate(items) if at < least or not _among(item, items[:at])]
        return items

    def _item(self, node: Node, others: list[Any], hint: str, depth: int) -> Any:
        """An item, unlike the others if that can be had."""
        item = self._invent(node, hint, depth)
        for at in range(_TRIES):
            if not _among(item, others):
                break
            # A hint leads to the same few words again and again.
            item = self._invent(node, hint if at < 2 else "", depth)
        return item

    # leaves

    def _string(self, plain: Plain, hint: str) -> str:
        low, high = plain.get("minLength", 0), plain.get("maxLength", math.inf)
        if "pattern" in plain:
            found = matching(plain["pattern"], self._draws, low, high if high < math.inf else 10_000)
            if found is not None:
                return found
        if plain.get("format") in _FORMATS:
            return _FORMATS[plain["format"]].format(10 + self._draws.below(18))
        return _sized(self._words_for(hint), low, high)

    def _words_for(self, hint: str) -> str:
        reading, draws = self._reading, self._draws
        last = hint.lower().rpartition("_")[2]
        if (last in _PEOPLE or hint == "name") and (name := reading.name(draws)):
            return name
        if last in _SHORT:
            return reading.word(draws)
        if not hint:
            return f"{reading.word(draws)} {draws.below(_SPAN)}"
        return reading.text(draws, self._characters)

    def _number(self, plain: Plain, whole: bool, hint: str) -> float:
        if hint.endswith("_id") or hint in ("id", "to", "target", "user", "agent"):
            known = [one for one in self._reading.numbers(hint.removesuffix("_id")) if self._schema.fits(one, plain)]
            if known:
                return self._draws.choice(known)
        step = Decimal(str(plain.get("multipleOf", 1)))
        if whole and step % 1:
            step *= step.as_integer_ratio()[1]
        low, high = _bounds(plain, step)
        if low > high and not whole and "multipleOf" not in plain:
            return self._between(plain)
        value = step * (low + int(self._draws.below(min(int(high - low) + 1, 2**53)) if high > low else 0))
        return int(value) if value == int(value) else float(value)

    def _between(self, plain: Plain) -> float:
        """A number between two bounds that have no whole number between them."""
        low = max(float(plain.get(name, -math.inf)) for name in ("minimum", "exclusiveMinimum"))
        high = min(float(plain.get(name, math.inf)) for name in ("maximum", "exclusiveMaximum"))
        return float(low if low == high else low + (high - low) * (0.25 + 0.5 * self._draws.random()))


def _implied(plain: Plain) -> Sequence[str]:
    """The type of a schema that names none, from what it speaks of."""
    if any(name in plain for name in ("properties", "required", "additionalProperties", "minProperties")):
        return ("object",)
    if any(name in plain for name in ("items", "prefixItems", "minItems", "contains")):
        return ("array",)
    if any(name in plain for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")):
        return ("number",)
    return ("string",) if not plain["checks"] else _KINDS


def _bounds(plain: Plain, step: Decimal) -> tuple[int, int]:
    """The least and the largest multiple of the step that is allowed; where nothing is said, some span."""
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


def _sized(text: str, low: int, high: float) -> str:
    """The text with the length it must have, cut between words where that is possible."""
    if len(text) > high:
        cut = text[: int(high)]
        text = cut.rpartition(" ")[0] or cut
    while len(text) < low:
        text = (text + " and so on" if text else "and so on")[: int(min(max(high, low), len(text) + 10))]
    return text


def _among(item: Any, others: list[Any]) -> bool:
    return any(same(item, other) for other in others)
