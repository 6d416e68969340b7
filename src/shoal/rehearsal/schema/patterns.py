"""Invents text that matches a regular expression, from the parse tree of Python's own parser."""

from __future__ import annotations

import re
from re import _parser  # type: ignore[attr-defined]  # the parser has no public name
from typing import Any

from shoal.seeds import Draws

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ANY = _LETTERS + _LETTERS.upper() + "0123456789-_. "
_CATEGORIES = {
    "CATEGORY_DIGIT": "0123456789",
    "CATEGORY_WORD": _LETTERS + "0123456789_",
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_DIGIT": _LETTERS,
    "CATEGORY_NOT_WORD": " -.",
    "CATEGORY_NOT_SPACE": _LETTERS + "0123456789",
}
#: Repetitions beyond the least number, at most.
_MAX_MORE = 8


def invent_match(pattern: str, draws: Draws, low: int, high: int) -> str | None:
    """Return a text that matches and has the wanted length, or None if none is found in a few tries."""
    try:
        parts = _parser.parse(pattern)
    except re.error:
        return None
    open_start, open_end = not pattern.startswith("^"), not pattern.endswith("$")
    for more in range(_MAX_MORE * 4):
        text = _invent_parts(parts, draws, max(low, more % _MAX_MORE))
        padding = "x" * (low - len(text)) if open_start or open_end else ""
        text = text + padding if open_end else padding + text
        if low <= len(text) <= high and re.search(pattern, text):
            return text
    return None


def _invent_parts(parts: Any, draws: Draws, more: int) -> str:
    text = ""
    for opcode, value in parts:
        kind = str(opcode)
        if kind == "LITERAL":
            text += chr(value)
        elif kind == "SUBPATTERN":
            text += _invent_parts(value[3], draws, more)
        elif kind == "BRANCH":
            text += _invent_parts(draws.choice(value[1]), draws, more)
        elif kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, inner = value
            times = least + draws.below(max(0, min(int(most), least + more) - least) + 1)
            text += "".join(_invent_parts(inner, draws, more) for _ in range(times))
        elif kind == "IN":
            text += draws.choice(_list_characters(value) or "x")
        elif kind == "ANY":
            text += draws.choice(_LETTERS)
        elif kind == "NOT_LITERAL":
            text += draws.choice([one for one in _ANY if ord(one) != value])
    return text


def _list_characters(items: list[tuple[Any, Any]]) -> str:
    """List the characters of a class, or some of them if there are many."""
    found = ""
    for kind, value in items:
        if str(kind) == "LITERAL":
            found += chr(value)
        elif str(kind) == "RANGE":
            found += "".join(map(chr, range(value[0], min(value[1], value[0] + 256) + 1)))
        elif str(kind) == "CATEGORY":
            found += _CATEGORIES.get(str(value), "")
    if items and str(items[0][0]) == "NEGATE":
        return "".join(one for one in _ANY if one not in found)
    return found
