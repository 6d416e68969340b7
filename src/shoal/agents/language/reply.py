"""Reads the replies of language models: a turn with what its names stand for, or what is wrong with the reply."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import isfinite, nan
from typing import Any, TypeVar

import msgspec

from shoal.agents.language.world_card import WorldCard
from shoal.agents.loose_json import decode_json, read_json
from shoal.models import Answer, strip_reasoning
from shoal.text import MAX_INTEGER, clip, drop_cut_sentence
from shoal.types import Action, Observation
from shoal.worlds import ActionCard, Argument, NameIndex, renderer_for

T = TypeVar("T")

_FENCED = re.compile(r"```[\w-]*\s*(.*?)(?:```|\Z)", re.DOTALL)
_NUMBER = re.compile(r"[^\d-]{0,12}(-?\d{1,18})(?:\.0*)?[^\d]{0,3}")
_NOT_NAME = re.compile(r"[^A-Z0-9]+")
#: `Ada Lund (17)`: the number distinguishes two people of one name.
_NUMBERED = re.compile(r".*\((\d{1,18})\)")
_EVERYBODY = frozenset({"everyone", "everybody", "all", "the room", "room", "group", "the group", "anyone"})

#: Where models put the list of actions, the kind of an action, and its arguments, whatever the prompt says.
_LISTS = ("actions", "action_list", "turn", "tool_calls", "steps")
_KINDS = ("action", "action_type", "kind", "type", "name", "tool", "tool_name", "function")
_ARGUMENTS = ("args", "arguments", "parameters", "action_args", "input", "params")
_MAX_SHOWN_CHARS = 60

_IN_WORDS: Mapping[type, str] = {int: "a whole number", float: "a number", bool: "true or false", list: "a list"}


class Finder:
    """Knows the names in one observation, and those of all people. Looks only when asked, which is seldom."""

    def __init__(self, observation: Observation, index: NameIndex) -> None:
        self._seen = observation
        self._renderer = renderer_for(observation)
        self._index = index

    def find_user(self, name: str) -> int | None:
        """Return the number of a user in sight, or else of the only one of that name."""
        name = _simplify(name)
        numbered = _NUMBERED.fullmatch(name)
        if numbered:
            return int(numbered[1])
        shown = [(known.casefold(), agent) for agent, known in self._renderer.users(self._seen)]
        found = [agent for known, agent in shown if known == name]
        found = found or _only(agent for known, agent in shown if name in known.split())
        found = found or _only(self._index.namesakes(name))
        return found[0] if found else None

    def find_person(self, name: str) -> str | None:
        """Return the full name of a person in sight, or None for all of them. Unknown names stay as they are."""
        simple = _simplify(name)
        if simple in _EVERYBODY:
            return None
        shown = list(dict.fromkeys(self._renderer.people(self._seen)))
        found = [known for known in shown if known.casefold() == simple]
        found = found or _only(known for known in shown if simple in known.casefold().split())
        return found[0] if found else name.strip()

    def find_thing(self, what: str, name: str) -> int | None:
        """Return the number of the only group with this name, or of the only post in sight by this author."""
        name = _simplify(name)
        things = self._renderer.things(self._seen, what)
        found = _only(number for number, known in things if known.casefold() == name)
        return found[0] if found else None


def _simplify(name: str) -> str:
    return name.strip().strip("@*\"'«»“”").casefold()


def _only(found: Iterable[T]) -> list[T]:
    """Return what was found if it is one and the same, and else nothing."""
    different = list(dict.fromkeys(found))
    return different if len(different) == 1 else []


class ParsedReply(msgspec.Struct, frozen=True):
    """What a reply says."""

    actions: tuple[Action, ...] = ()
    thought: str = ""
    #: What cannot be used of it, as sentences for the model that wrote it.
    complaints: tuple[str, ...] = ()

    @property
    def is_usable(self) -> bool:
        return bool(self.actions) or not self.complaints


class UnusableReply(Exception):
    """A part of a reply that cannot be used; the message says why."""

    def __init__(self, message: str, arguments: Sequence[str] = ()) -> None:
        super().__init__(message)
        #: The names of the arguments that are missing or wrong.
        self.arguments = tuple(arguments)


def read_reply(answer: Answer, card: WorldCard, finder: Finder) -> ParsedReply:
    """Read the turn that an answer describes. What can be used of it is used, and there is a complaint for the rest."""
    found, is_whole = _parse(answer.text)
    try:
        entries = _find_entries(found)
    except UnusableReply as why:
        return ParsedReply(complaints=(str(why),))
    if answer.finish == "length" and not is_whole and not _ends_with_whole_action(answer.text):
        # The last action was cut off in the middle, and it is not known where.
        entries = entries[:-1]
        if not entries:
            return ParsedReply(complaints=("your reply was cut off; make it much shorter",))
    actions, complaints = [], []
    for entry in entries[: card.max_actions]:
        try:
            actions.append(bound_action(_end_with_sentence(read_action(entry, card, finder), card), card))
        except UnusableReply as why:
            complaints.append(str(why))
    thought = found.get("thought") if isinstance(found, dict) else None
    return ParsedReply(
        tuple(actions) if entries else (Action("DO_NOTHING"),),
        thought.strip() if isinstance(thought, str) else "",
        tuple(complaints),
    )


def read_action(entry: Any, card: WorldCard, finder: Finder) -> Action:
    """Read one action as it was written; UnusableReply says what is wrong with it."""
    name, given = _split_entry(entry, card)
    known = card.known.get(_NOT_NAME.sub("_", name.upper()).strip("_"))
    if known is None:
        raise UnusableReply(f"there is no action {_quote(name)}; possible are {', '.join(card.actions)}")
    return Action(known.kind, _read_arguments(known, given, finder))


def _end_with_sentence(action: Action, card: WorldCard) -> Action:
    """Drop the last sentence of texts that are as long as they can be: the schema has cut it off."""
    if card.max_chars is None:
        return action
    # A space at the end is gone already.
    most = card.max_chars[1] - 1
    args = {
        name: drop_cut_sentence(value) if isinstance(value, str) and most <= len(value) <= most + 1 else value
        for name, value in action.args.items()
    }
    return Action(action.kind, args)


def bound_action(action: Action, card: WorldCard) -> Action:
    """Keep the bounds of the schema, for models that cannot be held to them."""
    if card.max_chars is None:
        return action
    max_chars = card.max_chars[1]
    bounds = {one.argument: one.bounds for one in card.known[action.kind].arguments if one.bounds is not None}
    bounded: dict[str, Any] = {}
    for name, value in action.args.items():
        if name in bounds:
            least, most = bounds[name]
            value = min(max(value, least), most)
        bounded[name] = clip(value, max_chars) if isinstance(value, str) and len(value) > max_chars else value
    return Action(action.kind, bounded)


# From text to values


def _parse(text: str) -> tuple[Any, bool]:
    """Return the JSON value in a text, and whether it is valid without repair.

    Reasoning, fences, and sentences before and after the value are left out.
    """
    with suppress(ValueError):
        return decode_json(text), True
    text = strip_reasoning(text)
    fenced = [block for block in _FENCED.findall(text) if "{" in block or "[" in block]
    if fenced:
        text = fenced[-1]
    starts = [place for place in (text.find("{"), text.find("[")) if place >= 0]
    text = text[min(starts) :].strip() if starts else ""
    try:
        return decode_json(text), True
    except ValueError:
        return read_json(text) if text else "", False


def _is_json(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip()[:1] in ("{", "[")


def _find_entries(found: Any) -> list[Any]:
    """Return the actions, each as it was written."""
    if _is_json(found):
        found = _parse(found)[0]
    if isinstance(found, list):
        # Several objects in a row: the last one that is a turn, or else they are the actions themselves.
        turns = [one for one in found if isinstance(one, dict) and any(name in one for name in _LISTS)]
        return _find_entries(turns[-1]) if turns else found
    if not isinstance(found, dict):
        raise UnusableReply("your reply is not a JSON object")
    key = next((name for name in _LISTS if name in found), None)
    if key is not None:
        value = found[key]
        if _is_json(value):
            return _find_entries(value)
        return [] if value is None else value if isinstance(value, list) else [value]
    if any(name in found for name in _KINDS) or len(found) == 1:
        return [found]
    raise UnusableReply("there is no list of actions in your reply")


def _ends_with_whole_action(text: str) -> bool:
    """Return whether a text was cut off after the last of its actions: then nothing of them is missing."""
    depth, is_quoted, is_escaped, is_closed, last = 0, False, False, False, ""
    for letter in text[text.find("{") :]:
        if is_quoted:
            is_quoted, is_escaped = is_escaped or letter != '"', letter == "\\" and not is_escaped
            continue
        if letter == '"':
            is_quoted = True
        depth += (letter in "{[") - (letter in "}]")
        is_closed = is_closed or (letter == "]" and depth == 1)
        last = last if letter.isspace() else letter
    # The list of actions is over, or the text ends between two of them.
    return is_closed or (not is_quoted and last in "}," and depth <= 2)


# From values to actions


def _split_entry(entry: Any, card: WorldCard) -> tuple[str, dict[str, Any]]:
    """Return the name of an action and its arguments, however they are wrapped up."""
    if isinstance(entry, str):
        return entry, {}
    if not isinstance(entry, dict) or not entry:
        raise UnusableReply(f'an action is an object with its name under "action", not {_quote(entry)}')
    key = next((key for key in _KINDS if key in entry), None)
    if key is None:
        # `{"LIKE_POST": {"post_id": 12}}`, or `{"LIKE_POST": 12}`.
        name, given = next(iter(entry.items()))
        if len(entry) > 1 or name.upper() not in card.known:
            raise UnusableReply(f'an action must have its name under "action": {_quote(entry)}')
        return name, given if isinstance(given, dict) else {"": given}
    if isinstance(entry[key], dict):
        return _split_entry(entry[key], card)
    given = {name: value for name, value in entry.items() if name != key}
    for name in _ARGUMENTS:
        if name in given:
            value = given.pop(name)
            if isinstance(value, str) and value.lstrip().startswith("{"):
                value = _parse(value)[0]
            given |= value if isinstance(value, dict) else {}
    return str(entry[key]), given


def _read_arguments(known: ActionCard, given: dict[str, Any], finder: Finder) -> dict[str, Any]:
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
        needed = " and ".join(map(_describe, missing))
        raise UnusableReply(f"{known.kind} needs {needed}", [argument.name for argument in missing])
    return {name: value for name, value in fitted.items() if value is not None}


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in ("", "null", "none"))


def _fit(known: ActionCard, argument: Argument, value: Any, finder: Finder) -> Any:
    """Return the value as the world wants it; None where an optional value does not fit."""
    fitted: Any
    is_text = isinstance(value, str)
    if argument.names == "person":
        fitted = finder.find_person(value) if is_text else None
    elif argument.names == "user":
        fitted = finder.find_user(value) if is_text else None
        fitted = _convert(int, value) if fitted is None else fitted
    else:
        fitted = _convert(int if argument.names else argument.value_type, value)
        if argument.names and fitted is None and is_text:
            fitted = finder.find_thing(argument.names, value)
    if fitted is None and argument.is_needed:
        wrong = f"{known.kind} needs {_describe(argument)}, not {_quote(value)}"
        raise UnusableReply(wrong, [argument.name])
    return fitted


def _convert(kind: type, value: Any) -> Any:
    """Return the value as this type, or None where that is not possible."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is str:
        return value.strip() or None if isinstance(value, str) else str(value) if is_number else None
    if kind is int:
        if isinstance(value, str):
            match = _NUMBER.fullmatch(value.strip())
            return int(match[1]) if match else None
        if isinstance(value, float):
            return int(value) if value.is_integer() and abs(value) < MAX_INTEGER else None
        return value if is_number else None
    if kind is float:
        with suppress(ValueError):
            number = float(value) if is_number or isinstance(value, str) else nan
            return number if isfinite(number) else None
        return None
    if kind is bool:
        return value if isinstance(value, bool) else {"true": True, "false": False}.get(str(value).strip().lower())
    if kind is list:
        return value if isinstance(value, list) else [value]
    return value if isinstance(value, kind) else None


def _describe(argument: Argument) -> str:
    kind = "a name" if argument.names in ("user", "person") else _IN_WORDS.get(argument.value_type, "a text")
    return f"{argument.name} ({kind})"


def _quote(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    return f"“{text[:_MAX_SHOWN_CHARS]}{'…' if len(text) > _MAX_SHOWN_CHARS else ''}”"
