"""Formats counts, times and plain values as text; clips, quotes and joins texts; suggests similar words."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

_MARKS = str.maketrans("«»", "“”")
#: The text of one value in `outline`.
_MAX_VALUE_CHARS = 500
_MINUTES_PER_HOUR, _HOURS_PER_DAY = 60, 24
#: Comparing words is slow, and a file with thousands of people may be wrong in thousands of places.
_MAX_CANDIDATES = 2_000


def clip(text: str, limit: int) -> str:
    """Put a text on one line and cut it to `limit` characters."""
    if "\n" in text or "\r" in text or "\t" in text:
        text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 2].rstrip() + " …"


def quote(text: str, limit: int) -> str:
    """Clip a text and mark it as a quotation that cannot pass for anything else."""
    if "«" in text or "»" in text:
        text = text.translate(_MARKS)
    return f"«{clip(text, limit)}»"


def format_count(number: int, noun: str, plural: str = "") -> str:
    """Return `1 round`, `48 rounds` or `1,000 people`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def pluralise(number: int, noun: str) -> str:
    """Return `1 like` or `1000 likes`, as prompts have it: without a separator of thousands."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def quote_path(path: Path | str) -> str:
    """Quote a path for a shell."""
    return shlex.quote(str(path))


def printable(text: str) -> str:
    """Replace control characters with spaces, so that texts of agents cannot take over the terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def join_words(words: Iterable[str], limit: int) -> str:
    """Join the first `limit` words with commas and say how many are left out."""
    everything = list(words)
    shown = ", ".join(everything[:limit])
    return shown if len(everything) <= limit else f"{shown} and {len(everything) - limit} more"


def nearest(word: object, known: Iterable[str], limit: int | None = _MAX_CANDIDATES, cutoff: float = 0.6) -> str | None:
    """Return the known word that was probably meant, out of the first `limit` ones."""
    folded: dict[str, str] = {}
    for candidate in islice(known, limit):
        folded.setdefault(candidate.casefold(), candidate)
    close = get_close_matches(str(word).casefold(), folded, n=1, cutoff=cutoff)
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
def format_moment(time: str) -> str:
    """Format a time in ISO 8601 as `Monday 2 March 2026, 10:30`."""
    when = datetime.fromisoformat(time)
    return f"{when:%A} {when.day} {when:%B %Y, %H:%M}"


@lru_cache(maxsize=4096)
def format_age(minutes: int) -> str:
    """Return `just now`, `5 min ago`, `3 h ago` or `2 days ago`."""
    if minutes < _MINUTES_PER_HOUR:
        return f"{minutes} min ago" if minutes else "just now"
    hours = minutes // _MINUTES_PER_HOUR
    return f"{hours} h ago" if hours < 2 * _HOURS_PER_DAY else f"{hours // _HOURS_PER_DAY} days ago"


def format_duration(seconds: float) -> str:
    """Return `0:07`, `12:30` or `3:05:00`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_milliseconds(ms: float) -> str:
    """Return `0.04 ms`, `105 ms` or `2.3 s`."""
    if ms >= 1000:
        return f"{ms / 1000:.1f} s"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.2g} ms"


def format_kind(kind: str) -> str:
    """Return `like post` for the action `LIKE_POST`."""
    return kind.lower().replace("_", " ")


def outline(value: Mapping[str, Any], limit: int, *, quoted: bool = False) -> str:
    """Write plain values as indented lines, up to `limit` characters; with `quoted`, texts are marked as quotations."""
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
            yield f"{start} {_format_value(inner, quoted)}"


def _format_value(value: Any, quoted: bool) -> str:
    if value is None or value in ((), [], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return quote(text, _MAX_VALUE_CHARS) if quoted and " " in text.strip() else clip(text, _MAX_VALUE_CHARS)
