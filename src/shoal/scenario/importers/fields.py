"""Reads the fields of an imported source one by one, and reports how each was used."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from shoal.errors import ScenarioInvalid
from shoal.scenario.validation.problems import describe_mismatch
from shoal.text import hint, one_of

#: `used`: has its effect in the scenario; `kept`: carried along as a trait or a note; `unused`: has no counterpart.
Use = Literal["used", "kept", "unused"]
#: The least and the greatest value that a number may have; None: no limit.
Bounds = tuple[float | None, float | None]

#: Problems of one file that are listed.
MAX_PROBLEMS = 20
_ANY: Bounds = (None, None)
#: Texts of a source that tell its language, and the last of the Latin letters.
_MAX_TEXTS_READ, _LAST_LATIN = 200, "\u024f"
#: The order of deeper fields is not learned.
_MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class FieldUse:
    """How one field of a source was used."""

    #: The file that the field stands in.
    source: str
    #: Its name or path there, for example `agent_configs[].stance`.
    field: str
    use: Use
    #: What it becomes, or why it becomes nothing.
    becomes: str
    #: How many records have it.
    count: int = 1


@dataclass(frozen=True, slots=True)
class ImportResult:
    """A scenario made from a source. Every field of the source is in `fields`."""

    #: The kind of source, for example `MiroFish directory`.
    kind: str
    #: The scenario in plain values, as a YAML file would hold it.
    scenario: dict[str, Any]
    fields: tuple[FieldUse, ...]
    #: What the user should know: what was repaired, guessed or made unique.
    notes: tuple[str, ...] = ()


def limit_problems(problems: Sequence[str], count: int | None = None) -> list[str]:
    """Return the first problems and a line with the number of the others."""
    more = (len(problems) if count is None else count) - MAX_PROBLEMS
    return [*problems[:MAX_PROBLEMS], *([f"... and {more:,} more problems like these"] if more > 0 else [])]


def raise_problems(problems: Iterable[str]) -> None:
    """Raise ScenarioInvalid with the first problems, if there are any."""
    if found := list(problems):
        raise ScenarioInvalid(limit_problems(found))


def note_language(texts: Iterable[str | None]) -> Iterator[str]:
    """Note what the offline mind cannot do, where one of five of the first texts is not in Latin letters."""
    read = [list(filter(str.isalpha, text)) for text in islice(filter(None, texts), _MAX_TEXTS_READ)]
    foreign = [2 * sum(letter > _LAST_LATIN for letter in letters) > len(letters) for letters in read]
    if 5 * sum(foreign) > len(foreign):
        which = "the texts are" if all(foreign) else f"{sum(foreign)} of {len(foreign)} texts are"
        yield (
            f"{which} not in English: the offline mind reads and writes English only, and finds neither topics "
            "nor opinions in them; a language model does (--model)"
        )


class FieldReport:
    """How every field of a source was used, the problems of the source, and notes for the user."""

    def __init__(self, ignored: Collection[str] = ()) -> None:
        #: Fields that the other system ignores. What is wrong with them is noted, and their defaults are used.
        self._ignored = ignored
        self._uses: dict[tuple[str, str, Use, str], FieldUse] = {}
        self._problems: list[str] = []
        self._order: dict[tuple[str, str], int] = {}
        self.notes: list[str] = []

    def count_use(self, source: str, field: str, use: Use, becomes: str) -> None:
        """Count one more record whose field was used this way."""
        key = (source, field, use, becomes)
        known = self._uses.get(key, FieldUse(source, field, use, becomes, 0))
        self._uses[key] = replace(known, count=known.count + 1)

    def add_empty(self, source: str, field: str) -> None:
        """Report a list without anything in it."""
        self._uses.setdefault((source, field, "unused", ""), FieldUse(source, field, "unused", "nothing in it", 0))

    def add_note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def add_problem(self, source: str, path: str, text: str) -> None:
        if path.rpartition(".")[2] in self._ignored:
            self.add_note(f"{source}: {path}: {text}; it is as if it were not there")
            return
        self._problems.append(f"{source}: {path}: {text}" if path else f"{source}: {text}")

    def check(self) -> None:
        """Raise ScenarioInvalid if the source has problems."""
        raise_problems(self._problems)

    def learn_order(self, source: str, value: object, path: str = "") -> None:
        """Learn the order of the fields in a file, to report them in that order."""
        self._order.setdefault((source, path), len(self._order))
        if path.count(".") + path.count("[]") > _MAX_DEPTH:
            return
        if isinstance(value, Mapping):
            for name, below in value.items():
                self.learn_order(source, below, f"{path}.{name}" if path else str(name))
        elif isinstance(value, list):
            for below in value:
                self.learn_order(source, below, f"{path}[]")

    @property
    def fields(self) -> tuple[FieldUse, ...]:
        last = len(self._order)
        return tuple(sorted(self._uses.values(), key=lambda use: self._order.get((use.source, use.field), last)))


class SourceRecord:
    """One object of a source. A wrong value is reported and replaced by a default, so that all problems are found.

    `path` says where the object stands; `[]` in it stands for `number`, the index in a list.
    """

    def __init__(
        self, report: FieldReport, source: str, values: object, path: str = "", number: int | None = None
    ) -> None:
        self._report = report
        self.source = source
        self._path = path
        self._number = number
        self._values: dict[str, Any] = {}
        if isinstance(values, Mapping):
            self._values = {str(name): value for name, value in values.items()}
        elif values is not None:
            self.add_problem("", describe_mismatch("an object", values))
        self._unread = dict(self._values)

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def add_problem(self, name: str, text: str) -> None:
        number = "" if self._number is None else str(self._number)
        self._report.add_problem(self.source, self.path_to(name).replace("[]", f"[{number}]"), text)

    def add_note(self, text: str) -> None:
        self._report.add_note(text)

    def path_to(self, name: str) -> str:
        return ".".join(part for part in (self._path, name) if part)

    def take(self, name: str, use: Use, becomes: str) -> Any:
        """Return the value of a field and report how it is used."""
        value = self._unread.pop(name, None)
        if name in self._values:
            if value is None:
                use, becomes = "unused", "nothing in it"
            self._report.count_use(self.source, self.path_to(name), use, becomes)
        return value

    def take_rest(self, use: Use, becomes: str) -> dict[str, Any]:
        """Return the fields that were not read yet, and report them."""
        found = {name: self.take(name, use, becomes) for name in list(self._unread)}
        return {name: value for name, value in found.items() if value not in (None, "", [], {})}

    def peek(self, name: str) -> Any:
        """Return the value of a field without reporting it."""
        return self._values.get(name)

    def read_number(self, name: str, becomes: str, default: float, bounds: Bounds = _ANY) -> float:
        value = self.take(name, "used", becomes)
        return value if self._check_number(name, value, bounds, "a number") else default

    def read_whole(self, name: str, becomes: str, default: int | None, bounds: Bounds = _ANY) -> int | None:
        value = self.take(name, "used", becomes)
        return int(value) if self._check_number(name, value, bounds, "a whole number") else default

    def _check_number(self, name: str, value: Any, bounds: Bounds, expected: str) -> bool:
        """Return whether there is a number within the bounds; a wrong value is reported."""
        if value is None:
            return False
        low, high = bounds
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or (expected == "a whole number" and value % 1):
            self.add_problem(name, describe_mismatch(expected, value))
        elif low is not None and not value >= low:
            self.add_problem(name, f"must be at least {low:g}, found {value}")
        elif high is not None and not value <= high:
            self.add_problem(name, f"must be at most {high:g}, found {value}")
        else:
            return True
        return False

    def read_text(self, name: str, becomes: str, use: Use = "used") -> str | None:
        """Read text without surrounding spaces; a number becomes its digits."""
        value = self.take(name, use, becomes)
        if isinstance(value, (dict, list, bool)):
            self.add_problem(name, describe_mismatch("text", value))
            return None
        return str(value).strip() or None if value is not None else None

    def read_word(self, name: str, becomes: str, default: str, known: Sequence[str]) -> str:
        """Read one of the known words, in lower case."""
        value = self.read_text(name, becomes)
        if value is not None and value.lower() not in known:
            self.add_problem(name, describe_mismatch(one_of(known), value) + hint(value, known))
            return default
        return default if value is None else value.lower()

    def read_texts(self, name: str, becomes: str) -> list[str]:
        """Read a list of texts without repetitions."""
        value = self.take(name, "used", becomes)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, (str, int, float)) for item in value):
            self.add_problem(name, describe_mismatch("a list of texts", value))
            return []
        return list(dict.fromkeys(text for item in value if (text := str(item).strip())))

    def read_hours(self, name: str, becomes: str, default: Sequence[int]) -> list[int]:
        value = self.take(name, "used", becomes)
        if value is None:
            return list(default)
        if not isinstance(value, list) or not all(type(hour) is int and 0 <= hour <= 23 for hour in value):
            self.add_problem(name, f"expected a list of hours from 0 to 23, found {value!r}"[:200])
            return list(default)
        return sorted(set(value))

    def read_object(self, name: str) -> SourceRecord:
        """Open the object in a field; a missing one is empty."""
        return SourceRecord(self._report, self.source, self._unread.pop(name, None), self.path_to(name))

    def read_objects(self, name: str) -> Iterator[SourceRecord]:
        """Open each object of a list."""
        values = self._unread.pop(name, None)
        if values is not None and not isinstance(values, list):
            self.add_problem(name, describe_mismatch("a list of objects", values))
            return
        if values == []:
            self._report.add_empty(self.source, self.path_to(name))
        for number, value in enumerate(values or ()):
            yield SourceRecord(self._report, self.source, value, f"{self.path_to(name)}[]", number)
