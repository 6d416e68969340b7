"""What everybody in a world is told first: its rules, what can be done in it, and how to say so.

A card is the same for all agents of a world and never changes while they act, so that it stands at the beginning of
every prompt and a server has to read it only once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any

import msgspec

from shoal.agents.language import rules
from shoal.agents.language.rules import ActionCard, Argument
from shoal.types import WorldProtocol
from shoal.worlds.dialogue.settings import DialogueSettings
from shoal.worlds.room.settings import RoomSettings
from shoal.worlds.social.settings import SocialSettings

#: Of a world of one's own, so much of what its class says about itself.
_MAX_DOCSTRING_CHARS = 2000

_JSON_TYPES: Mapping[type, str] = {int: "integer", float: "number", str: "string", bool: "boolean"}


@dataclass(frozen=True, slots=True)
class WorldCard:
    """One world, as language models get to know it."""

    #: The part of the prompt that all agents share.
    text: str
    #: JSON schema of a turn, as strict structured output accepts it.
    schema: dict[str, Any]
    actions: Mapping[str, ActionCard]
    max_actions: int


def build_card(settings: object, world: WorldProtocol, max_actions: int) -> WorldCard:
    """The card of a world: what the scenario says about it and, for a world of one's own, the world itself."""
    match settings:
        case SocialSettings():
            intro = rules.TWITTER if settings.kind == "twitter" else rules.REDDIT
            notes = f"{rules.SOCIAL_NOTES}\n\n{rules.SOCIAL_CUSTOM}"
            return _card(intro, _social_actions(settings), max_actions, notes)
        case RoomSettings():
            return _card(rules.ROOM, _allowed(rules.ROOM_ACTIONS, settings.actions, ("DONE",)), max_actions)
        case DialogueSettings():
            return _card(rules.DIALOGUE, rules.DIALOGUE_ACTIONS, max_actions)
    about = cleandoc(type(world).__doc__ or "")[:_MAX_DOCSTRING_CHARS]
    return _card(rules.OWN.format(about=about or "Its rules show in what you see."), _own_actions(world), max_actions)


def _social_actions(settings: SocialSettings) -> list[ActionCard]:
    """What the scenario allows, or all; buying only where there is something to buy."""
    hidden = () if settings.products else ("PURCHASE_PRODUCT",)
    return [action for action in _allowed(rules.SOCIAL_ACTIONS, settings.actions) if action.kind not in hidden]


def _allowed(
    actions: Iterable[ActionCard], allowed: Iterable[str] | None, always: tuple[str, ...] = ()
) -> list[ActionCard]:
    kinds = None if allowed is None else {*allowed, *always}
    return [action for action in actions if kinds is None or action.kind in kinds]


def _own_actions(world: WorldProtocol) -> list[ActionCard]:
    declared: Mapping[str, Mapping[str, type]] = getattr(world, "actions", {})
    return [
        ActionCard(kind, tuple(Argument(name, type_) for name, type_ in needs.items()))
        for kind, needs in declared.items()
    ]


def _card(intro: str, actions: Iterable[ActionCard], max_actions: int, notes: str = "") -> WorldCard:
    known = {action.kind: action for action in actions if action.kind != rules.NOTHING.kind}
    known[rules.NOTHING.kind] = rules.NOTHING
    listed = "\n".join(action.line() for action in known.values())
    turn = rules.TURN.format(example=_example(known), limit=_limit(max_actions))
    text = "\n\n".join(part for part in (rules.ROLE, intro, f"# What you can do\n{listed}", notes, turn) if part)
    return WorldCard(text, turn_schema(known.values()), known, max_actions)


def _limit(max_actions: int) -> str:
    return "one action" if max_actions == 1 else f"{max_actions} actions"


def _example(actions: Mapping[str, ActionCard]) -> str:
    """A reply that could be given here, with the first action that needs something."""
    action = next((action for action in actions.values() if action.arguments), rules.NOTHING)
    args = {argument.name: argument.example() for argument in action.arguments if argument.is_needed}
    shown = {"thought": "Why I do this, in a few words.", "actions": [{"action": action.kind, **args}]}
    return msgspec.json.encode(shown).decode()


def turn_schema(actions: Iterable[ActionCard]) -> dict[str, Any]:
    """Actions that take the same arguments are one alternative, told apart by its first key. All keys are required."""
    alike: dict[tuple[Argument, ...], list[str]] = {}
    for action in actions:
        alike.setdefault(action.arguments, []).append(action.kind)
    choices = [_object({"action": {"type": "string", "enum": kinds}, **_fields(args)}) for args, kinds in alike.items()]
    items = choices[0] if len(choices) == 1 else {"anyOf": choices}
    return _object({"thought": {"type": "string"}, "actions": {"type": "array", "items": items}})


def _fields(arguments: Iterable[Argument]) -> dict[str, Any]:
    return {argument.name: _field(argument) for argument in arguments}


def _field(argument: Argument) -> dict[str, Any]:
    if argument.kind is list:
        return {"type": "array", "items": {"type": "string"}}
    name = _JSON_TYPES.get(argument.kind, "string")
    return {"type": name if argument.is_needed else [name, "null"]}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
