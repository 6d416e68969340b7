"""Text that matches a regular expression: best effort, over the parts that Python's own parser finds."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from shoal.seeds import Draws

# The parser of `re`; it has no public name any more.
_parse: Any = import_module("re._parser").parse

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
_MORE = 8


def matching(pattern: str, draws: Draws, low: int, high: int) -> str | None:
    """A text of the wanted length that matches, or None where none was found."""
    try:
        parts = _parse(pattern)
    except re.error:
        return None
    padded = not pattern.startswith("^") or not pattern.endswith("$")
    for more in range(_MORE * 4):
        text = "".join(_part(part, draws, max(low, more % _MORE)) for part in parts)
        if padded and len(text) < low:
            text = text + "x" * (low - len(text)) if not pattern.endswith("$") else "x" * (low - len(text)) + text
        if low <= len(text) <= high and re.search(pattern, text):
            return text
    return None


def _part(part: tuple[Any, Any], draws: Draws, more: int) -> str:
    name, value = str(part[0]), part[1]
    if name == "LITERAL":
        return chr(value)
    if name == "SUBPATTERN":
        return "".join(_part(one, draws, more) for one in value[3])
    if name == "BRANCH":
        return "".join(_part(one, draws, more) for one in draws.choice(value[1]))
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, inner = value
        times = least + draws.below(max(0, min(int(most), least + more) - least) + 1)
        return "".join(_part(one, draws, more) for _ in range(times) for one in inner)
    return _character(name, value, draws)


def _character(name: str, value: Any, draws: Draws) -> str:
    if name == "IN":
        return draws.choice(_members(value) or "x")
    if name == "ANY":
        return draws.choice(_LETTERS)
    if name == "NOT_LITERAL":
        return draws.choice([one for one in _ANY if ord(one) != value])
    return ""


def _members(items: list[tuple[Any, Any]]) -> str:
    """The characters of a class, some of them where they are many."""
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
