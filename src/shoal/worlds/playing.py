"""Worlds for a person who plays an agent: what they see, and what they may type."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from shoal.text import nearest
from shoal.types import Action, Observation

NO_ACTION = Action("DO_NOTHING")
S = TypeVar("S", bound=Observation)


class Mistake(Exception):
    """What was typed makes no sense here; the message says why."""


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


def read_action(line: str) -> Action:
    """Read `BID price=3 note="a last word"`."""
    try:
        kind, *rest = shlex.split(line.removeprefix("/"))
    except ValueError as error:
        raise Mistake(f"a quotation mark is missing ({error})") from error
    if kind.lower() == "nothing":
        return NO_ACTION
    pairs = [word.partition("=") for word in rest]
    if not all(name and equals for name, equals, _ in pairs):
        raise Mistake("after the action come name=value pairs, as in: BID price=3")
    args: dict[str, Any] = {}
    for name, _, value in pairs:
        try:
            args[name] = json.loads(value)
        except ValueError:
            args[name] = value
    return Action(kind.upper(), args)


_NOT_SHOWN = frozenset({*Observation.__struct_fields__, "announcements"})


class PlayAdapter(Generic[S]):
    """One kind of world as a person plays it. The defaults serve worlds of the user's own."""

    help = """\
  KIND name=value ...   do something, as in: BID price=3 note="a last word"
  nothing               do nothing"""

    def show(self, seen: S) -> Iterable[str]:
        """Yield the lines that show an observation."""
        for name in seen.__struct_fields__:
            value = getattr(seen, name)
            if name not in _NOT_SHOWN:
                for key, part in (value if isinstance(value, Mapping) else {name: value}).items():
                    yield f"  {key}: {part if isinstance(part, str) else msgspec.json.encode(part).decode()}"

    def read(self, line: str, seen: S) -> Action:
        """Return the action that a typed line means, given what the person sees."""
        return read_action(line)
