"""Reads the JSON that language models write, however broken, into values that can be stored.

Repair is bounded by the length of a text and by steps, and not by time: the same reply must be read the same way again
on any machine.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, SupportsIndex

import msgspec
from json_repair import loads as repair_json

from shoal.text import make_storable

#: A broken text that is longer, or takes more steps, is not repaired: json-repair may take the cube of its length.
#: At these bounds it takes a second or two in the worst case, and ten milliseconds usually.
MAX_REPAIRED_CHARS = 8_000
MAX_STEPS = 30_000

_decode = msgspec.json.Decoder().decode


class _TooManySteps(Exception):
    """Repairing a text takes too long."""


class _MeteredText(str):
    """A text that counts how often a parser looks at a character of it, and ends the parsing when that is too often."""

    __slots__ = ("_looks",)

    _looks: int

    def __new__(cls, text: str) -> _MeteredText:
        made = super().__new__(cls, text)
        made._looks = 0
        return made

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        self._looks += 1
        if self._looks > MAX_STEPS:
            raise _TooManySteps
        return super().__getitem__(key)


def decode_json(text: str) -> Any:
    """Return the value of a text that is valid JSON; ValueError for any other text, or one that is nested too deep."""
    try:
        return make_storable(_decode(text))
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def read_json(text: str) -> Any:
    """Return the value in a text that is JSON, or almost; an empty text where it holds none."""
    with suppress(ValueError):
        return decode_json(text)
    if len(text) > MAX_REPAIRED_CHARS:
        return ""
    with suppress(ValueError, RecursionError, _TooManySteps):
        return make_storable(repair_json(_MeteredText(text)))
    return ""
