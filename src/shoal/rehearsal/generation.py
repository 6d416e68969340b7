"""Invents values that fit a JSON schema and take up the conversation."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from shoal.rehearsal.conversation import ConversationContext
from shoal.rehearsal.schema import (
    ASKED_FOR,
    UNLIKELY,
    Branch,
    Node,
    Schema,
    SchemaUnanswerable,
    Shape,
    find_member,
    weigh_action,
)
from shoal.seeds import Draws

#: Below this depth, values hold only what they must.
_MAX_OPTIONAL_DEPTH = 6
_MAX_TRIES = 40
CHARACTERS_PER_TOKEN = 4
_OPTIONAL_CHANCE = 0.75
#: The weight of an action about something that the conversation does not show.
_UNSEEN = 0.01
#: How far numbers spread where a bound is missing.
_SPAN = 100
_SHORT_TEXTS = tuple("name title query topic keyword tag mood emotion location place relation label".split())
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

#: Patterns are read as characters, classes and groups, each with a number of repetitions.
_TIMES = r"([*+?]|\{\d+(?:,\d*)?\})?"
_GROUP = re.compile(r"(?<!\\)\((?:\?:)?((?:[^()\\]|\\.)*)\)" + _TIMES)
_ATOM = re.compile(r"(\[\^?[^\]]+\]|\\.|.)" + _TIMES)
_BOUNDS = {"": "1", "*": "0,", "+": "1,", "?": "0,1"}
_CHARACTERS = string.ascii_letters + string.digits + "-_. "
#: Repetitions beyond the least number, at most.
_MAX_MORE = 8


class Inventor:
    """Invents values for one request: `Inventor(schema, context, draws, 24).invent()`."""

    def __init__(self, schema: Schema, context: ConversationContext, draws: Draws, reply_tokens: int) -> None:
        self._schema = schema
        self._context = context
        self._draws = draws
        self._characters = reply_tokens * CHARACTERS_PER_TOKEN

    def invent(self) -> Any:
        """Invent a value; SchemaUnanswerable if none fits."""
        if not self._is_possible(self._schema.root):
            raise SchemaUnanswerable("no finite value fits it")
        return self._invent(self._schema.root, "", 0)

    def _invent(self, node: Node, hint: str, depth: int) -> Any:
        """Invent a value for a node. `hint` is the name of the property that holds it."""
        shape = self._schema.simplify(node)
        while branches := self._schema.list_branches(shape):
            shape = self._choose_branch(branches, depth)
        keywords = shape.keywords
        if "enum" in keywords:
            options = keywords["enum"]
            if not options:
                raise SchemaUnanswerable("no value fits it")
            if len(options) == 1:
                return options[0]
            likely = [
                UNLIKELY if one is None else weigh_action(one) if isinstance(one, str) else 1.0 for one in options
            ]
            return self._draw_weighted(options, likely)
        match shape.types[0]:
            case "object":
                return self._invent_object(keywords, depth)
            case "array":
                return self._invent_array(keywords, hint.removesuffix("s"), depth)
            case "string":
                return self._invent_string(keywords, hint)
            case "integer" | "number" as kind:
                return self._invent_number(keywords, kind == "integer", hint)
            case "boolean":
                return self._draws.chance(0.5)
        return None

    def _is_possible(self, node: Node) -> bool:
        return self._schema.measure_depth(self._schema.simplify(node)) < math.inf

    def _choose_branch(self, branches: Sequence[Branch], depth: int) -> Shape:
        """Choose an alternative. An action on a post makes little sense where the conversation shows no post."""
        if depth > _MAX_OPTIONAL_DEPTH:
            return branches[0].shape
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
        chosen: Branch = self._draw_weighted(branches, weights)
        return chosen.shape

    def _draw_weighted(self, options: Sequence[Any], weights: Sequence[float]) -> Any:
        drawn = self._draws.random() * sum(weights)
        for option, weight in zip(options, weights, strict=True):
            drawn -= weight
            if drawn < 0:
                return option
        return options[-1]

    # members

    def _invent_object(self, keywords: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties, required = keywords.get("properties", {}), keywords.get("required", ())
        is_deep = depth > _MAX_OPTIONAL_DEPTH
        names, spare = [], []
        for name, node in properties.items():
            if name in required or (not is_deep and self._draws.chance(_OPTIONAL_CHANCE) and self._is_possible(node)):
                names.append(name)
            else:
                spare.append(name)
        names += [name for name in required if name not in properties]
        if len(names) > keywords.get("maxProperties", math.inf):
            names = [name for name in names if name in required]
        least = keywords.get("minProperties", 0)
        names += [name for name in spare if self._is_possible(properties[name])][: max(0, least - len(names))]
        if len(names) < least:
            if "propertyNames" in keywords or "patternProperties" in keywords:
                raise SchemaUnanswerable("'minProperties' beside rules for names is not supported")
            names += [f"more_{number}" for number in range(least - len(names))]
        return {name: self._invent(find_member(name, keywords), name, depth + 1) for name in names}

    def _invent_array(self, keywords: Mapping[str, Any], hint: str, depth: int) -> list[Any]:
        first, rest = keywords.get("prefixItems", []), keywords.get("items", True)
        least, most = keywords.get("minItems", 0), keywords.get("maxItems", math.inf)
        if not self._is_possible(rest):
            most = min(most, len(first))
        is_deep = depth > _MAX_OPTIONAL_DEPTH
        length = least if is_deep else min(most, max(least, len(first), 1 + self._draws.below(2)))
        nodes = [first[at] if at < len(first) else rest for at in range(int(length))]
        if not keywords.get("uniqueItems"):
            return [self._invent(node, hint, depth + 1) for node in nodes]
        items: list[Any] = []
        for node in nodes:
            for at in range(_MAX_TRIES):
                # A hint leads to the same few words again and again.
                item = self._invent(node, hint if at < 3 else "", depth + 1)
                if item not in items:
                    items.append(item)
                    break
        if len(items) < least:
            raise SchemaUnanswerable(f"{least} different items were not found")
        return items

    # leaves

    def _invent_string(self, keywords: Mapping[str, Any], hint: str) -> str:
        context, draws = self._context, self._draws
        low, high = keywords.get("minLength", 0), keywords.get("maxLength", math.inf)
        if "pattern" in keywords:
            return invent_match(keywords["pattern"], draws, low, high)
        if keywords.get("format") in _FORMATS:
            return _FORMATS[keywords["format"]].format(10 + draws.below(18))
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
        if len(text) < low:
            text = (text + " and so on" * low)[:low]
        return text

    def _invent_number(self, keywords: Mapping[str, Any], whole: bool, hint: str) -> float:
        least: float = max(keywords.get(name, -math.inf) for name in ("minimum", "exclusiveMinimum"))
        most: float = min(keywords.get(name, math.inf) for name in ("maximum", "exclusiveMaximum"))
        step = Decimal(str(keywords.get("multipleOf", 1)))
        if whole and step % 1:
            step *= step.as_integer_ratio()[1]
        if hint.endswith("_id") or hint in ("id", "to", "target", "user", "agent"):
            excluded = (keywords.get("exclusiveMinimum"), keywords.get("exclusiveMaximum"))
            seen = self._context.find_numbers(hint.removesuffix("_id"))
            if known := [one for one in seen if least <= one <= most and one not in excluded and one % step == 0]:
                return self._draws.choice(known)
        low, high = _find_bounds(keywords, step)
        if low > high and not whole and "multipleOf" not in keywords:
            # There is no whole number between the bounds.
            return least if least == most else least + (most - least) * (0.25 + 0.5 * self._draws.random())
        value = step * (low + int(self._draws.below(min(int(high - low) + 1, 2**53)) if high > low else 0))
        return int(value) if value == int(value) else float(value)


def _find_bounds(keywords: Mapping[str, Any], step: Decimal) -> tuple[int, int]:
    """Return the least and the greatest allowed multiple of the step; a missing bound is a span away."""
    counts = {
        name: Decimal(str(keywords[name])) / step
        for name in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
        if name in keywords
    }
    lows = [math.ceil(counts["minimum"])] if "minimum" in counts else []
    lows += [math.floor(counts["exclusiveMinimum"]) + 1] if "exclusiveMinimum" in counts else []
    highs = [math.floor(counts["maximum"])] if "maximum" in counts else []
    highs += [math.ceil(counts["exclusiveMaximum"]) - 1] if "exclusiveMaximum" in counts else []
    low = max(lows) if lows else min(highs) - _SPAN if highs else 0
    return low, min(highs) if highs else low + _SPAN


def invent_match(pattern: str, draws: Draws, low: int, high: float) -> str:
    """Invent a text of this length that matches a simple pattern; SchemaUnanswerable if none is found."""
    for attempt in range(_MAX_TRIES):
        try:
            text = _expand_pattern(pattern, draws, max(low, attempt % _MAX_MORE))
            padding = "x" * (low - len(text))
            if not pattern.endswith("$"):
                text += padding
            elif not pattern.startswith("^"):
                text = padding + text
            if low <= len(text) <= high and re.search(pattern, text):
                return text
        except re.error:
            break
    raise SchemaUnanswerable(f"no text was found for the pattern {pattern!r}")


def _expand_pattern(pattern: str, draws: Draws, more: int) -> str:
    """Write out groups from the inside, then draw a character for each character or class that is left."""

    def draw_times(times: str) -> int:
        least, comma, most = _BOUNDS.get(times, times.strip("{}")).partition(",")
        spread = int(most) - int(least) if most else more if comma else 0
        return int(least) + draws.below(min(spread, more) + 1)

    while group := _GROUP.search(pattern):
        inner = draws.choice(group[1].split("|")) * draw_times(group[2] or "")
        pattern = pattern[: group.start()] + inner + pattern[group.end() :]
    text = ""
    for atom, times in _ATOM.findall(draws.choice(pattern.split("|")).removeprefix("^").removesuffix("$")):
        # None fits what has no width, such as a word boundary.
        if fitting := [one for one in _CHARACTERS + atom if re.fullmatch(atom, one)]:
            text += "".join(draws.choice(fitting) for _ in range(draw_times(times)))
    return text
