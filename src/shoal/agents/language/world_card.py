"""What prompts say about a world: its rules, what can be done in it now, and the form of a reply.

A card is the same for all agents that can do the same. It stands at the beginning of every prompt, so that a server
has to read it only once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import cleandoc
from types import MappingProxyType
from typing import Any

import msgspec

from shoal.agents.settings import LanguageSettings
from shoal.types import Observation, WorldProtocol
from shoal.worlds import NOTHING, ActionCard, Argument, WorldRules, kind_named, renderer_for

#: How much of the docstring of a user's own world stands in its card.
_MAX_DOCSTRING_CHARS = 2000

#: Bounds of texts and lists in replies: full, and for small models.
_MAX_THOUGHT_CHARS, _MAX_TEXT_CHARS, _MAX_ITEMS = 300, 1000, 16
_BRIEF_THOUGHT_CHARS, _BRIEF_TEXT_CHARS = 120, 280
#: A reply has at least this many characters for each token, and this many around the text of an action.
_LEAST_CHARS_PER_TOKEN, _CHARS_AROUND_TEXT = 3, 60

_JSON_TYPES: Mapping[type, str] = {int: "integer", float: "number", str: "string", bool: "boolean"}


@dataclass(frozen=True, slots=True)
class WorldCard:
    """One world, as language models get to know it."""

    #: Variables of prompts: `place`, `notes`, `actions`, `example` and `max_actions`.
    values: Mapping[str, str]
    #: JSON schema of a turn, as strict structured output accepts it.
    schema: dict[str, Any]
    #: What is offered now.
    actions: Mapping[str, ActionCard]
    max_actions: int
    #: All actions of the world. One that makes no sense now is understood too; the world says why it is refused.
    known: Mapping[str, ActionCard]
    #: The most characters of a thought and of any other text; None where they are not bounded.
    max_chars: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class CardLimits:
    """How large a reply may be, and how much is said about the world."""

    max_actions: int
    #: The most characters of a thought and of any other text; None where they are not bounded.
    max_chars: tuple[int, int] | None = None
    is_brief: bool = False

    @classmethod
    def of(cls, settings: LanguageSettings) -> CardLimits:
        """Return limits with which a reply is not cut off: a compact one always fits, a full one usually does."""
        if settings.prompt.version == 1:
            return cls(settings.max_actions)
        if not settings.is_compact:
            return cls(settings.max_actions, (_MAX_THOUGHT_CHARS, _MAX_TEXT_CHARS))
        room = settings.max_tokens * _LEAST_CHARS_PER_TOKEN - _BRIEF_THOUGHT_CHARS
        most = room // settings.max_actions - _CHARS_AROUND_TEXT
        return cls(settings.max_actions, (_BRIEF_THOUGHT_CHARS, max(min(most, _BRIEF_TEXT_CHARS), 40)), is_brief=True)


def describe_world(settings: object, world: WorldProtocol) -> WorldRules:
    """Return the rules of a world by its kind; a world of the user's own describes itself."""
    kind, visibility = kind_named(getattr(settings, "kind", None)), getattr(world, "visibility", 1)
    if kind is not None:
        rules = kind.rules(settings)
        own = getattr(world, "place", "")
        places = (own, own) if own else (rules.place, rules.brief_place)
        return replace(rules, place=places[0], brief_place=places[1], visibility=visibility)
    about = cleandoc(type(world).__doc__ or "")[:_MAX_DOCSTRING_CHARS] or "Its rules show in what you see."
    declared: Mapping[str, Mapping[str, type]] = getattr(world, "actions", {})
    cards = (
        ActionCard(kind, tuple(Argument(name, type_) for name, type_ in needs.items()))
        for kind, needs in declared.items()
    )
    return WorldRules(f"# The place\n{about}", tuple(cards), visibility=visibility)


def build_card(rules: WorldRules, limits: CardLimits, offered: Collection[str] | None = None) -> WorldCard:
    """Build the card of a world from its rules, with the actions that are offered now; default: all."""
    known = {card.kind: card for card in rules.actions if card.kind != NOTHING.kind}
    known[NOTHING.kind] = NOTHING
    cards = {kind: known[kind] for kind in (known if offered is None else offered)}
    max_actions, is_brief = limits.max_actions, limits.is_brief
    # What a small model reads stays the same from turn to turn; only its schema says what makes sense now.
    listed = "\n".join(card.line(is_brief=is_brief) for card in (known if is_brief else cards).values())
    first = next((card for card in cards.values() if card.arguments), NOTHING)
    args = {argument.name: argument.example() for argument in first.arguments if argument.is_needed}
    example = {"thought": "Why I do this, in a few words.", "actions": [{"action": first.kind, **args}]}
    values = {
        "place": (is_brief and rules.brief_place) or rules.place,
        "notes": (is_brief and rules.brief_notes) or rules.notes,
        "actions": f"# What you can do\n{listed}",
        "example": msgspec.json.encode(example).decode(),
        "max_actions": "one action" if max_actions == 1 else f"{max_actions} actions",
    }
    schema = turn_schema(cards.values(), limits)
    return WorldCard(values, schema, cards, max_actions, known, limits.max_chars)


def list_offered(rules: WorldRules, senseless: Collection[str], occasional: Collection[str]) -> list[str]:
    """List the kinds of action that make sense now. What may go missing comes last, so that prompts begin alike."""
    kinds = [one.kind for one in rules.actions if one.kind not in (NOTHING.kind, *senseless)]
    last = [kind for kind in kinds if kind in occasional]
    return [*(kind for kind in kinds if kind not in last), NOTHING.kind, *last]


def list_in_sight(seen: Observation, sight: str) -> dict[str, list[Any]]:
    """Return what arguments can name, by what they name: numbers and names, as the prompt shows them."""
    renderer = renderer_for(seen)
    found: dict[str, list[Any]] = {
        what: [number for number, _ in renderer.things(seen, what) if f"[{number}]" in sight]
        for what in ("post", "comment", "group")
    }
    users = [(name, f"{name} ({agent})") for agent, name in renderer.users(seen) if agent != seen.agent]
    found["user"] = [numbered if numbered in sight else name for name, numbered in users if name in sight]
    found["person"] = [name for name in renderer.people(seen) if name in sight and name != seen.name]
    return {what: list(dict.fromkeys(names)) for what, names in found.items()}


def turn_schema(
    cards: Iterable[ActionCard], limits: CardLimits, in_sight: Mapping[str, Sequence[Any]] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the JSON schema of a turn, with all keys required and texts and lists bounded.

    Actions that take the same arguments are one alternative, told apart by its first key. Where it is given what is in
    sight, nothing else can be named, and an action that needs something that is not there is left out.
    """
    alike: dict[tuple[Argument, ...], list[str]] = {}
    for card in cards:
        if all(in_sight.get(one.names, True) for one in card.arguments if one.is_needed):
            alike.setdefault(card.arguments, []).append(card.kind)
    choices = []
    for arguments, kinds in alike.items():
        fields: dict[str, Any] = {"action": {"type": "string", "enum": kinds}}
        for argument in arguments:
            name = _JSON_TYPES.get(argument.value_type, "string")
            fields[argument.name] = {"type": name if argument.is_needed else [name, "null"]}
            if argument.value_type is list:
                fields[argument.name] = {"type": "array", "items": {"type": "string"}}
            if argument.names in in_sight:
                nobody = [] if argument.is_needed else [None]
                fields[argument.name]["enum"] = [*in_sight[argument.names], *nobody]
            elif limits.max_chars is not None:
                fields[argument.name] |= _bound(argument, limits.max_chars[1])
        choices.append(_object(fields))
    items = choices[0] if len(choices) == 1 else {"anyOf": choices}
    thought: dict[str, Any] = {"type": "string"}
    actions: dict[str, Any] = {"type": "array", "items": items}
    if limits.max_chars is not None:
        thought["maxLength"], actions["maxItems"] = limits.max_chars[0], limits.max_actions
    return _object({"thought": thought, "actions": actions})


def _bound(argument: Argument, max_chars: int) -> dict[str, Any]:
    """Limit a value in the schema: numbers by their bounds, lists and texts by their length."""
    if argument.bounds is not None:
        return {"minimum": argument.bounds[0], "maximum": argument.bounds[1]}
    if argument.value_type is list:
        return {"maxItems": _MAX_ITEMS}
    return {} if argument.value_type in _JSON_TYPES and argument.value_type is not str else {"maxLength": max_chars}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
