"""Replies of language models, read: a turn out of whatever they made of it, or what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

import msgspec
from json_repair import loads as repaired

from shoal.agents.language.references import Finder
from shoal.agents.language.world_card import WorldCard
from shoal.models.base import Answer
from shoal.types import Action
from shoal.worlds.world_kind import ActionCard, Argument

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"```[\w-]*\s*(.*?)(?:```|\Z)", re.DOTALL)
_NUMBER = re.compile(r"[^\d-]{0,12}(-?\d+)(?:\.0*)?[^\d]{0,3}")
_NOT_NAME = re.compile(r"[^A-Z0-9]+")

#: Where models put the list of actions, the kind of one, and what it needs, whatever they are told.
_LISTS = ("actions", "action_list", "turn", "tool_calls", "steps")
_KINDS = ("action", "action_type", "kind", "type", "name", "tool", "tool_name", "function")
_ARGUMENTS = ("args", "arguments", "parameters", "action_args", "input", "params")
_MAX_SHOWN_CHARS = 60

_decode = msgspec.json.Decoder().decode
_IN_WORDS: Mapping[type, str] = {int: "a whole number", float: "a number", bool: "true or false", list: "a list"}


class ParsedReply(msgspec.Struct, frozen=True):
    """What a reply says."""

    actions: tuple[Action, ...] = ()
    thought: str = ""
    #: What of it cannot be used, in words that its author understands.
    complaints: tuple[str, ...] = ()

    @property
    def is_usable(self) -> bool:
        return bool(self.actions) or not self.complaints


class _UnusableReply(Exception):
    """Something that cannot be used, and why."""


def read_reply(answer: Answer, card: WorldCard, finder: Finder) -> ParsedReply:
    """The turn that the answer describes. What can be used of it is, the rest is complained about."""
    found, is_whole = _parsed(answer.text)
    try:
        entries = _entries(found)
    except _UnusableReply as why:
        return ParsedReply(complaints=(str(why),))
    if answer.finish == "length" and not is_whole:
        # The last one was cut off in the middle, and nobody knows where.
        entries = entries[:-1]
        if not entries:
            return ParsedReply(complaints=("your reply was cut off; make it much shorter",))
    return _reply(entries, card, finder, _thought(found))


def _reply(entries: list[Any], card: WorldCard, finder: Finder, thought: str) -> ParsedReply:
    actions, complaints = [], []
    for entry in entries[: card.max_actions]:
        try:
            actions.append(_action(entry, card, finder))
        except _UnusableReply as why:
            complaints.append(str(why))
    if not entries:
        actions.append(Action("DO_NOTHING"))
    return ParsedReply(tuple(actions), thought, tuple(complaints))


# From text to values


def _parsed(text: str) -> tuple[Any, bool]:
    """What the text holds, and whether it is JSON as it stands."""
    try:
        return _decode(text), True
    except msgspec.DecodeError:
        pass
    text = _bare(text)
    try:
        return _decode(text), True
    except msgspec.DecodeError:
        return repaired(text) if text else "", False


def _bare(text: str) -> str:
    """Without reasoning, fences, and what was said before and after."""
    text = _THINKING.sub("", text)
    fenced = [block for block in _FENCED.findall(text) if "{" in block or "[" in block]
    if fenced:
        text = fenced[-1]
    starts = [place for place in (text.find("{"), text.find("[")) if place >= 0]
    return text[min(starts) :].strip() if starts else ""


def _entries(found: Any) -> list[Any]:
    """The actions, each as it was written."""
    if isinstance(found, str) and found.lstrip()[:1] in ("{", "["):
        found = _parsed(found)[0]
    if isinstance(found, list):
        # Several objects in a row: the last one that is a turn, or else they are the actions themselves.
        turns = [one for one in found if isinstance(one, dict) and any(name in one for name in _LISTS)]
        return _entries(turns[-1]) if turns else found
    if isinstance(found, dict):
        for name in _LISTS:
            if name in found:
                return _listed(found[name])
        if any(name in found for name in _KINDS) or len(found) == 1:
            return [found]
        raise _UnusableReply("there is no list of actions in your reply")
    raise _UnusableReply("your reply is not a JSON object")


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str):
        return _entries(value) if value.lstrip()[:1] in ("{", "[") else [value]
    return value if isinstance(value, list) else [value]


def _thought(found: Any) -> str:
    thought = found.get("thought") if isinstance(found, dict) else None
    return thought.strip() if isinstance(thought, str) else ""


# From values to actions


def _action(entry: Any, card: WorldCard, finder: Finder) -> Action:
    name, given = _parts(entry, card)
    known = card.actions.get(_NOT_NAME.sub("_", name.upper()).strip("_"))
    if known is None:
        raise _UnusableReply(f"there is no action {_shown(name)}; possible are {', '.join(card.actions)}")
    return Action(known.kind, _arguments(known, given, finder))


def _parts(entry: Any, card: WorldCard) -> tuple[str, dict[str, Any]]:
    """The name of an action and what it is given, however they are wrapped up."""
    if isinstance(entry, str):
        return entry, {}
    if not isinstance(entry, dict) or not entry:
        raise _UnusableReply(f'an action is an object with its name under "action", not {_shown(entry)}')
    name_key = next((key for key in _KINDS if key in entry), None)
    if name_key is None:
        return _tagged(entry, card)
    name = entry[name_key]
    if isinstance(name, dict):
        return _parts(name, card)
    given = {key: value for key, value in entry.items() if key != name_key}
    for key in _ARGUMENTS:
        if key in given:
            given |= _mapping(given.pop(key))
    return str(name), given


def _tagged(entry: dict[str, Any], card: WorldCard) -> tuple[str, dict[str, Any]]:
    """`{"LIKE_POST": {"post_id": 12}}`, or `{"LIKE_POST": 12}`."""
    name, given = next(iter(entry.items()))
    if len(entry) > 1 or name.upper() not in card.actions:
        raise _UnusableReply(f'an action must have its name under "action": {_shown(entry)}')
    return name, given if isinstance(given, dict) else {"": given}


def _mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _parsed(value)[0]
    return value if isinstance(value, dict) else {}


def _arguments(known: ActionCard, given: dict[str, Any], finder: Finder) -> dict[str, Any]:
    fitted, missing = {}, []
    for argument in known.arguments:
        name = argument.name if argument.name in given else argument.argument
        value = given.pop(name, None)
        if not _is_nothing(value):
            fitted[argument.argument] = _fit(known, argument, value, finder)
        elif argument.is_needed:
            missing.append(argument)
    left = [value for name, value in given.items() if name != "thought" and not _is_nothing(value)]
    if len(missing) == 1 and len(left) == 1:
        # Under another name than the one it has, which can only mean this.
        meant = missing.pop()
        fitted[meant.argument] = _fit(known, meant, left[0], finder)
    if missing:
        raise _UnusableReply(f"{known.kind} needs {' and '.join(_needed(argument) for argument in missing)}")
    return {name: value for name, value in fitted.items() if value is not None}


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in ("", "null", "none"))


def _fit(known: ActionCard, argument: Argument, value: Any, finder: Finder) -> Any:
    """The value as the world wants it. What need not be there is left out where it does not fit."""
    fitted = _named(argument, value, finder) if argument.names else _typed(argument.value_type, value)
    if fitted is None and argument.is_needed:
        raise _UnusableReply(f"{known.kind} needs {_needed(argument)}, not {_shown(value)}")
    return fitted


def _named(argument: Argument, value: Any, finder: Finder) -> Any:
    """A number, or a name that stands for one."""
    match argument.names:
        case "person":
            return finder.find_person(value) if isinstance(value, str) else None
        case "user":
            number = finder.find_user(value) if isinstance(value, str) else None
            return _typed(int, value) if number is None else number
    number = _typed(int, value)
    return finder.find_thing(argument.names, value) if number is None and isinstance(value, str) else number


def _typed(kind: type, value: Any) -> Any:
    if kind is str:
        return _text(value)
    if kind is int:
        return _whole(value)
    if kind is float:
        return _float(value)
    if kind is bool:
        return value if isinstance(value, bool) else {"true": True, "false": False}.get(str(value).strip().lower())
    if kind is list:
        return value if isinstance(value, list) else [value]
    return value if isinstance(value, kind) else None


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value.strip() or None
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.strip())
        return int(match[1]) if match else None
    return value if isinstance(value, int) else None


def _float(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
    return float(value) if is_number else None


def _needed(argument: Argument) -> str:
    kind = "a name" if argument.names in ("user", "person") else _IN_WORDS.get(argument.value_type, "a text")
    return f"{argument.name} ({kind})"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    return f"“{text[:_MAX_SHOWN_CHARS]}{'…' if len(text) > _MAX_SHOWN_CHARS else ''}”"


def complaint(complaints: Iterable[str]) -> str:
    """What to tell a model whose reply cannot be used."""
    listed = "; ".join(dict.fromkeys(complaints))
    return f"That reply cannot be used: {listed}. Reply again, with one JSON object in the form you were given."
