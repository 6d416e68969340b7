"""Takes the fields of something brought from elsewhere one by one, and notes what became of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from shoal.errors import ScenarioInvalid
from shoal.scenario.importers.result import FieldUse, Use
from shoal.scenario.importers.tables import describe_table
from shoal.scenario.validation.problems import expected
from shoal.text import hint, one_of

#: The least and the most that a number may be; None: no limit.
Bounds = tuple[float | None, float | None]

_ANY: Bounds = (None, None)
#: Deeper fields are spoken of in no particular order.
_MAX_DEPTH = 8


class FieldReport:
    """What became of every field of a source, what is wrong with it, and what its owner should know."""

    def __init__(self) -> None:
        self._uses: dict[tuple[str, str, Use, str], FieldUse] = {}
        self._problems: list[str] = []
        self._order: dict[tuple[str, str], int] = {}
        self.notes: list[str] = []

    def use(self, source: str, field: str, use: Use, becomes: str) -> None:
        """Count one more record of this field that became this."""
        key = (source, field, use, becomes)
        known = self._uses.get(key)
        self._uses[key] = (
            FieldUse(source, field, use, becomes) if known is None else replace(known, count=known.count + 1)
        )

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def wrong(self, source: str, path: str, text: str) -> None:
        self._problems.append(f"{source}: {path}: {text}" if path else f"{source}: {text}")

    def check(self) -> None:
        """Refuse the source if anything was found wrong with it."""
        if self._problems:
            raise ScenarioInvalid(describe_table(self._problems))

    def lay_out(self, source: str, value: object, path: str = "") -> None:
        """Learn in which order the fields of a file stand, to speak of them in that order."""
        self._order.setdefault((source, path), len(self._order))
        if path.count(".") + path.count("[]") > _MAX_DEPTH:
            return
        if isinstance(value, Mapping):
            for name, below in value.items():
                self.lay_out(source, below, f"{path}.{name}" if path else str(name))
        elif isinstance(value, list):
            for below in value:
                self.lay_out(source, below, f"{path}[]")

    @property
    def fields(self) -> tuple[FieldUse, ...]:
        last = len(self._order)
        return tuple(sorted(self._uses.values(), key=lambda use: self._order.get((use.source, use.field), last)))


class SourceRecord:
    """One object of a file. What is wrong is noted, and something usable answered, so that all of it gets looked at.

    `path` says where it is, and `[]` stands in it for the number that this one of many has.
    """

    def __init__(
        self, book: FieldReport, source: str, values: object, path: str = "", number: int | None = None
    ) -> None:
        self._book = book
        self.source = source
        self._path = path
        self._number = number
        self._values: dict[str, Any] = {}
        if isinstance(values, Mapping):
            self._values = {str(name): value for name, value in values.items()}
        elif values is not None:
            self.wrong("", expected("an object", values))
        self._left = dict(self._values)

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def wrong(self, name: str, text: str) -> None:
        path = self.place(name)
        number = "" if self._number is None else str(self._number)
        self._book.wrong(self.source, path.replace("[]", f"[{number}]"), text)

    def place(self, name: str) -> str:
        return ".".join(part for part in (self._path, name) if part)

    def note(self, text: str) -> None:
        self._book.note(text)

    def mark(self, name: str, use: Use, becomes: str) -> Any:
        """Say what becomes of a field; answers what is in it."""
        value = self._left.pop(name, None)
        if name in self._values:
            if value is None:
                use, becomes = "unused", "nothing in it"
            self._book.use(self.source, self.place(name), use, becomes)
        return value

    def peek(self, name: str) -> Any:
        """What is in a field; that says nothing about what becomes of it."""
        return self._values.get(name)

    def number(self, name: str, becomes: str, default: float, bounds: Bounds = _ANY) -> float:
        value = self.mark(name, "used", becomes)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.wrong(name, expected("a number", value))
            return default
        return value if self._within(name, value, bounds) else default

    def whole(self, name: str, becomes: str, default: int | None, bounds: Bounds = _ANY) -> int | None:
        value = self.mark(name, "used", becomes)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
            self.wrong(name, expected("a whole number", value))
            return default
        return int(value) if self._within(name, value, bounds) else default

    def _within(self, name: str, value: float, bounds: Bounds) -> bool:
        low, high = bounds
        if low is not None and not value >= low:
            self.wrong(name, f"must be at least {low:g}, found {value}")
        elif high is not None and not value <= high:
            self.wrong(name, f"must be at most {high:g}, found {value}")
        else:
            return True
        return False

    def text(self, name: str, becomes: str, use: Use = "used") -> str | None:
        """Text without spaces around it; a number is taken as its digits."""
        value = self.mark(name, use, becomes)
        if isinstance(value, (dict, list, bool)):
            self.wrong(name, expected("text", value))
            return None
        return str(value).strip() or None if value is not None else None

    def word(self, name: str, becomes: str, default: str, known: Sequence[str]) -> str:
        value = self.text(name, becomes)
        if value is not None and value.lower() not in known:
            self.wrong(name, expected(one_of(known), value) + hint(value, known))
            return default
        return default if value is None else value.lower()

    def texts(self, name: str, becomes: str) -> list[str]:
        """A list of texts, each once."""
        value = self.mark(name, "used", becomes)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, (str, int, float)) for item in value):
            self.wrong(name, expected("a list of texts", value))
            return []
        return list(dict.fromkeys(text for item in value if (text := str(item).strip())))

    def hours(self, name: str, becomes: str, default: Sequence[int]) -> list[int]:
        value = self.mark(name, "used", becomes)
        if value is None:
            return list(default)
        fits = isinstance(value, list) and all(type(hour) is int and 0 <= hour <= 23 for hour in value)
        if not fits:
            self.wrong(name, f"expected a list of hours from 0 to 23, found {value!r}"[:200])
            return list(default)
        return sorted(set(value))

    def below(self, name: str) -> SourceRecord:
        """The object in a field; an empty one where there is none."""
        return SourceRecord(self._book, self.source, self._left.pop(name, None), self.place(name))

    def each(self, name: str) -> Iterator[SourceRecord]:
        """The objects in a list."""
        values = self._left.pop(name, None)
        if values is not None and not isinstance(values, list):
            self.wrong(name, expected("a list of objects", values))
            return
        if values == []:
            self._book.use(self.source, self.place(name), "unused", "nothing in it")
        for number, value in enumerate(values or ()):
            yield SourceRecord(self._book, self.source, value, f"{self.place(name)}[]", number)

    def rest(self, use: Use, becomes: str) -> dict[str, Any]:
        """Everything that nobody asked for."""
        return {
            name: value
            for name in list(self._left)
            if (value := self.mark(name, use, becomes)) not in (None, "", [], {})
        }
