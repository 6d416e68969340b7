"""Formats counts, times and plain values as text; clips, quotes and joins texts; makes values storable."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

#: The C0 and C1 controls, the marks that change the direction of writing, other line ends, and halves of characters.
_CONTROLS = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)
#: The sentences of a text up to the last that ends.
_WHOLE_SENTENCES = re.compile(r".+[.!?…][\"'”’»)]*(?=\s|\Z)|.+[。！？]", re.DOTALL)
_MARKS = str.maketrans("«»", "“”")
#: The text of one value in `outline`.
_MAX_VALUE_CHARS = 500
_MINUTES_PER_HOUR, _HOURS_PER_DAY = 60, 24
#: Letters that are not seen but change their neighbours: in Persian words, in emoji, and in the flags of regions.
JOINERS = frozenset("\u200c\u200d") | frozenset(map(chr, range(0xE0020, 0xE0080)))
#: Comparing words is slow, and a file with thousands of people may be wrong in thousands of places.
_MAX_CANDIDATES = 2_000


#: What can be stored: the numbers of a database, and values that are nested at most this deep.
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**63 - 1
_MAX_DEPTH = 64


def replace_surrogates(text: str) -> str:
    """Replace halves of characters by U+FFFD: neither a database nor a file in UTF-8 can hold them."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def make_storable(value: Any, depth: int = 0) -> Any:
    """Make a value of JSON one that can be stored, in a database and as JSON.

    Halves of characters become U+FFFD. Numbers that no database holds, and what is nested too deep, become null.
    """
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, int):
        return value if MIN_INTEGER <= value <= MAX_INTEGER else None
    if isinstance(value, dict | list) and depth >= _MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return {replace_surrogates(str(name)): make_storable(inner, depth + 1) for name, inner in value.items()}
    return [make_storable(inner, depth + 1) for inner in value] if isinstance(value, list) else value


def clip(text: str, limit: int) -> str:
    """Put a text on one line and cut it to `limit` characters."""
    if "\n" in text or "\r" in text or "\t" in text:
        text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 2].rstrip() + " …"


def drop_cut_sentence(text: str) -> str:
    """Return a text that was cut off somewhere without the sentence in which it was; a lone sentence stays."""
    whole = _WHOLE_SENTENCES.match(text)
    return whole[0] if whole else text


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
    return "".join(letter if letter.isprintable() or letter in JOINERS else " " for letter in text)


def hide_controls(text: str) -> str:
    """Replace what could take over a terminal: control characters except line ends and tabs, and marks of direction."""
    return _CONTROLS.sub("\ufffd", text)


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
def format_moment(time: str, *, is_brief: bool = False) -> str:
    """Format a time in ISO 8601 as `Monday 2 March 2026, 10:30`, or without the year."""
    when = datetime.fromisoformat(time)
    return f"{when:%A} {when.day} {when:%B}{'' if is_brief else f' {when:%Y}'}, {when:%H:%M}"


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


def format_wait(seconds: float) -> str:
    """Return `7 s`, `15 minutes` or `26 hours`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.0f} hours"


def format_milliseconds(ms: float) -> str:
    """Return `0.04 ms`, `105 ms` or `2.3 s`."""
    if ms >= 1000:
        return f"{ms / 1000:.1f} s"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.2g} ms"


def format_kind(kind: str) -> str:
    """Return `like post` for the action `LIKE_POST`."""
    return kind.lower().replace("_", " ")


def outline(
    value: Mapping[str, Any], limit: int, *, quoted: bool = False, max_value_chars: int = _MAX_VALUE_CHARS
) -> str:
    """Write plain values as indented lines, up to `limit` characters; with `quoted`, texts are marked as quotations."""
    lines, room = [], limit
    for line in _lines(value, "", quoted, max_value_chars):
        room -= len(line) + 1
        if room < 0:
            lines.append("…")
            break
        lines.append(line)
    return "\n".join(lines)


def _lines(value: Any, indent: str, quoted: bool, max_value_chars: int) -> Iterator[str]:
    named = isinstance(value, Mapping)
    for inner in value.items() if named else value:
        start, inner = (f"{indent}{inner[0]}:", inner[1]) if named else (f"{indent}-", inner)
        if isinstance(inner, (Mapping, list, tuple)) and inner:
            yield start
            yield from _lines(inner, indent + "  ", quoted, max_value_chars)
        else:
            yield f"{start} {_format_value(inner, quoted, max_value_chars)}"


def _format_value(value: Any, quoted: bool, max_value_chars: int) -> str:
    if value is None or value in ((), [], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return quote(text, max_value_chars) if quoted and " " in text.strip() else clip(text, max_value_chars)
