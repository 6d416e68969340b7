"""Worlds for a person who plays an agent: what they see, and what they may type."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from shoal.text import nearest
from shoal.types import Action, Observation

DO_NOTHING = Action("DO_NOTHING")


class Mistake(Exception):
    """What was typed makes no sense here; the message says why."""


@dataclass(frozen=True, slots=True)
class PlayAdapter:
    """One kind of world as a person plays it."""

    #: Yields the lines that show an observation.
    show: Callable[[Any], Iterable[str]]
    #: Returns the action that a typed line means, given what the person sees.
    read: Callable[[str, Any], Action]
    help: str


def split_word(line: str) -> tuple[str, str]:
    """Return the first word and the rest."""
    first, _, rest = line.strip().partition(" ")
    return first, rest.strip()


def need_text(words: str) -> str:
    if not words:
        raise Mistake("some words are missing")
    return words


def choose_verb(verb: str, verbs: Mapping[str, Callable[[], Action]], mark: str = "") -> Callable[[], Action]:
    """Return what a verb does. `mark` is what the person types before it."""
    if verb in verbs:
        return verbs[verb]
    near = nearest(verb, verbs)
    raise Mistake(f"there is no {mark}{verb}{f'; did you mean {mark}{near}?' if near else ''}")


# Worlds of the user's own

_HELP = """\
  KIND name=value ...   do something, as in: BID price=3 note="a last word"
  nothing               do nothing"""
_NOT_SHOWN = frozenset({*Observation.__struct_fields__, "announcements"})


def _show(seen: Observation) -> Iterable[str]:
    for name in seen.__struct_fields__:
        value = getattr(seen, name)
        if name not in _NOT_SHOWN:
            for key, part in (value if isinstance(value, Mapping) else {name: value}).items():
                yield f"  {key}: {part if isinstance(part, str) else msgspec.json.encode(part).decode()}"


def read_action(line: str, seen: Observation) -> Action:
    """Read `BID price=3 note="a last word"`."""
    try:
        kind, *rest = shlex.split(line.removeprefix("/"))
    except ValueError as error:
        raise Mistake(f"a quotation mark is missing ({error})") from error
    if kind.lower() == "nothing":
        return DO_NOTHING
    pairs = [word.partition("=") for word in rest]
    if not all(name and equals for name, equals, _ in pairs):
        raise Mistake("after the action come name=value pairs, as in: BID price=3")
    return Action(kind.upper(), {name: _read_value(value) for name, _, value in pairs})


def _read_value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


PLAY_ANYTHING = PlayAdapter(_show, read_action, _HELP)
