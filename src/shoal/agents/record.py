"""The record of what happened, as text for models that judge it or fill in forms from it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from shoal.text import clip, format_moment, quote
from shoal.types import Event, Notice
from shoal.worlds import DO_NOTHING

MAX_LINE_CHARS = 500
#: Of a long record only these many lines are kept, at its beginning and at its end.
FIRST_LINES, LAST_LINES = 40, 80
_MAX_QUOTE_CHARS = 400


def excerpt_record(lines: Iterable[str], first: int = FIRST_LINES, last: int = LAST_LINES) -> str:
    """Write down what happened, line by line; of a long record only the beginning and the end, which alone are kept."""
    rest, end, count = iter(lines), deque[str](maxlen=last), 0
    beginning = [*islice(rest, first)]
    for line in rest:
        end.append(line)
        count += 1
    return _join_lines(beginning, count - last, end)


def _join_lines(first: Iterable[str], left_out: int, last: Iterable[str]) -> str:
    gap = [f"(… {left_out:,} lines left out …)"] if left_out > 0 else []
    return "\n".join(clip(line, MAX_LINE_CHARS) for line in (*first, *gap, *last)) or "(nothing happened)"


def write_transcript(lines: Iterable[object]) -> Iterator[str]:
    """Write the lines of a world's stream as text, without markers and without turns in which nothing was done."""
    for line in lines:
        if not isinstance(line, Event | Notice):
            continue
        when = f"Round {line.round}, {format_moment(line.timestamp)}"
        if isinstance(line, Notice):
            yield f"{when}: {line.event_type}: {quote(line.content, _MAX_QUOTE_CHARS)}"
        elif line.action_type != DO_NOTHING:
            args = "; ".join(
                f"{name.replace('_', ' ')} {quote(value, _MAX_QUOTE_CHARS) if isinstance(value, str) else value}"
                for name, value in line.action_args.items()
            )
            action = line.action_type.replace("_", " ").lower() + (f" ({args})" if args else "")
            refused = f", which came to nothing: {quote(line.result or '', _MAX_QUOTE_CHARS)}"
            yield f"{when}, {line.agent_name}: {action}{'' if line.success else refused}"


class RunningRecord:
    """The record of a world that goes on. It keeps only what an excerpt shows."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._count = 0

    def add_round(self, happened: Sequence[Event | Notice]) -> None:
        for line in write_transcript(happened):
            if self._count < FIRST_LINES:
                self._first.append(line)
            else:
                self._last.append(line)
            self._count += 1

    def excerpt(self) -> str:
        left_out = self._count - len(self._first) - len(self._last)
        return _join_lines(self._first, left_out, self._last)
