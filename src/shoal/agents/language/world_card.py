"""What prompts say about a world: its rules, what can be done in it now, and the form of a reply.

A card is the same for all agents that can do the same. It stands at the beginning of every prompt, so that a server
has to read it only once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from inspect import cleandoc
from typing import Any

import msgspec

from shoal.types import WorldProtocol
from shoal.worlds import NOTHING, ActionCard, Argument, WorldRules, kind_named

#: How much of the docstring of a user's own world stands in its card.
_MAX_DOCSTRING_CHARS = 2000

_JSON_TYPES: Mapping[type, str] = {int: "integer", float: "number", str: "string", bool: "boolean"}


@dataclass(frozen=True, slots=True)
class WorldCard:
    """One world, as language models get to know it."""

    #: Variables of prompts: `place`, `notes`, `actions`, `example` and `max_actions`.
    values: Mapping[str, str]
    #: JSON schema of a turn, as strict structured output accepts it.
    schema: dict[str, Any]
    actions: Mapping[str, ActionCard]
    max_actions: int


def describe_world(settings: object, world: WorldProtocol) -> WorldRules:
    """Return the rules of a world by its kind; a world of the user's own describes itself."""
    kind, visibility = kind_named(getattr(settings, "kind", None)), getattr(world, "visibility", 1)
    if kind is not None:
        rules = kind.rules(settings)
        return replace(rules, place=getattr(world, "place", "") or rules.place, visibility=visibility)
    about = cleandoc(type(world).__doc__ or "")[:_MAX_DOCSTRING_CHARS] or "Its rules show in what you see."
    declared: Mapping[str, Mapping[str, type]] = getattr(world, "actions", {})
    cards = (
        ActionCard(kind, tuple(Argument(name, type_) for name, type_ in needs.items()))
        for kind, needs in declared.items()
    )
    return WorldRules(f"# The place\n{about}", tuple(cards), visibility=visibility)


def build_card(rules: WorldRules, max_actions: int) -> WorldCard:
    """Build the card of a world from its rules."""
    cards = {card.kind: card for card in rules.actions if card.kind != NOTHING.kind}
    cards[NOTHING.kind] = NOTHING
    listed = "\n".join(card.line() for card in cards.values())
    first = next((card for card in cards.values() if card.arguments), NOTHING)
    args = {argument.name: argument.example() for argument in first.arguments if argument.is_needed}
    example = {"thought": "Why I do this, in a few words.", "actions": [{"action": first.kind, **args}]}
    values = {
        "place": rules.place,
        "notes": rules.notes,
        "actions": f"# What you can do\n{listed}",
        "example": msgspec.json.encode(example).decode(),
        "max_actions": "one action" if max_actions == 1 else f"{max_actions} actions",
    }
    return WorldCard(values, turn_schema(cards.values()), cards, max_actions)


def turn_schema(cards: Iterable[ActionCard]) -> dict[str, Any]:
    """Return the JSON schema of a turn, with all keys required.

    Actions that take the same arguments are one alternative, told apart by its first key.
    """
    alike: dict[tuple[Argument, ...], list[str]] = {}
    for card in cards:
        alike.setdefault(card.arguments, []).append(card.kind)
    choices = []
    for arguments, kinds in alike.items():
        fields: dict[str, Any] = {"action": {"type": "string", "enum": kinds}}
        for argument in arguments:
            name = _JSON_TYPES.get(argument.value_type, "string")
            fields[argument.name] = {"type": name if argument.is_needed else [name, "null"]}
            if argument.value_type is list:
                fields[argument.name] = {"type": "array", "items": {"type": "string"}}
        choices.append(_object(fields))
    items = choices[0] if len(choices) == 1 else {"anyOf": choices}
    return _object({"thought": {"type": "string"}, "actions": {"type": "array", "items": items}})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
