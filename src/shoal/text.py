"""Texts cut to size, marked as somebody else's, or made from plain values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from typing import Any

_MARKS = str.maketrans("«»", "“”")
#: One value among many.
_MAX_VALUE_CHARS = 500
_MINUTES_PER_HOUR, _HOURS_PER_DAY = 60, 24
#: Comparing words is slow, and a file with thousands of people may be wrong in thousands of places.
_MAX_CANDIDATES = 2_000


def clip(text: str, limit: int) -> str:
    """The text on one line, and no longer than this."""
    if "\n" in text or "\r" in text or "\t" in text:
        text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 2].rstrip() + " …"


def quote(text: str, limit: int) -> str:
    """Somebody's words, marked so that they cannot pass for anything else."""
    if "«" in text or "»" in text:
        text = text.translate(_MARKS)
    return f"«{clip(text, limit)}»"


def count_of(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def join_words(words: Iterable[str], limit: int) -> str:
    """A list in words, with how many are left out."""
    everything = list(words)
    shown = ", ".join(everything[:limit])
    return shown if len(everything) <= limit else f"{shown} and {len(everything) - limit} more"


def nearest(word: object, known: Iterable[str], limit: int | None = _MAX_CANDIDATES) -> str | None:
    """Return the known word that was probably meant, out of the first `limit` ones."""
    folded: dict[str, str] = {}
    for candidate in islice(known, limit):
        folded.setdefault(candidate.casefold(), candidate)
    close = get_close_matches(str(word).casefold(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def hint(word: object, known: Iterable[str], limit: int | None = _MAX_CANDIDATES) -> str:
    """Return `; did you mean 'x'?` where there is a near word, else nothing."""
    near = nearest(word, known, limit)
    return f"; did you mean {near!r}?" if near is not None else ""


def one_of(words: Iterable[str]) -> str:
    """Return `a, b or c`."""
    listed = list(words)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"


@lru_cache(maxsize=1024)
def moment(time: str) -> str:
    """`Monday 2 March 2026, 10:30`, from ISO 8601."""
    when = datetime.fromisoformat(time)
    return f"{when:%A} {when.day} {when:%B %Y, %H:%M}"


@lru_cache(maxsize=4096)
def ago(minutes: int) -> str:
    if minutes < _MINUTES_PER_HOUR:
        return f"{minutes} min ago" if minutes else "just now"
    hours = minutes // _MINUTES_PER_HOUR
    return f"{hours} h ago" if hours < 2 * _HOURS_PER_DAY else f"{hours // _HOURS_PER_DAY} days ago"


def outline(value: Mapping[str, Any], limit: int, *, quoted: bool = False) -> str:
    """Plain values as indented lines, as much as fits; where they may be somebody's words, marked as such."""
    lines, room = [], limit
    for line in _lines(value, "", quoted):
        room -= len(line) + 1
        if room < 0:
            lines.append("…")
            break
        lines.append(line)
    return "\n".join(lines)


def _lines(value: Any, indent: str, quoted: bool) -> Iterator[str]:
    named = isinstance(value, Mapping)
    for inner in value.items() if named else value:
        start, inner = (f"{indent}{inner[0]}:", inner[1]) if named else (f"{indent}-", inner)
        if isinstance(inner, (Mapping, list, tuple)) and inner:
            yield start
            yield from _lines(inner, indent + "  ", quoted)
        else:
            yield f"{start} {_plain(inner, quoted)}"


def _plain(value: Any, quoted: bool) -> str:
    if value is None or value in ((), [], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return quote(text, _MAX_VALUE_CHARS) if quoted and " " in text.strip() else clip(text, _MAX_VALUE_CHARS)
