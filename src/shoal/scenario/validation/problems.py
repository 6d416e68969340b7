"""Problems of a scenario: where each one is, what was expected, and which valid word is nearest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from pydantic_core import ErrorDetails

from shoal.text import nearest, one_of

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a scenario, with its path in what was validated."""

    path: Path
    message: str = ""
    _: KW_ONLY
    expected: str | None = None
    #: The wrong value as `show_value` writes it.
    found: str | None = None
    #: The nearest valid word.
    suggestion: str | None = None
    #: What to do; left out where there is a suggestion.
    advice: str | None = None
    #: The required field that is missing at the path.
    missing: str | None = None
    #: Other parts of the scenario that the verdict depends on. If one of them is broken, it cannot be trusted.
    needs: frozenset[str] = frozenset()
    #: True where the key at the end of the path is wrong, and not the value behind it.
    at_key: bool = False

    @classmethod
    def mismatch(cls, expected: str, value: object, *path: str | int, **details: Any) -> Problem:
        """Build the problem of a value that is not what was expected. `details` are more fields of it."""
        return cls(path, expected=expected, found=show_value(value), **details)

    @classmethod
    def unknown(cls, noun: str, word: object, known: Iterable[str], *path: str | int, **details: Any) -> Problem:
        """Build the problem of a word that is none of the known ones. `details` are more fields of it."""
        shown = repr(word) if isinstance(word, str) else show_value(word)
        return cls(path, f"unknown {noun} {shown}", suggestion=nearest(word, known), **details)

    @property
    def text(self) -> str:
        """The whole message in one line, without the path."""
        parts = [self.message] if self.message else []
        parts += [] if self.expected is None else [f"expected {self.expected}"]
        parts += [] if self.found is None else [f"found {self.found}"]
        text = ", ".join(parts)
        if self.suggestion is not None:
            return f"{text}; did you mean {self.suggestion!r}?"
        return text if self.advice is None else f"{text}; {self.advice}"

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path))}: {self.text}" if self.path else self.text


class InvalidValue(ValueError):
    """Raised by validators. The paths of its problems begin at the validated value."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.text for problem in problems))
        self.problems = problems


def show_value(value: object) -> str:
    """Write a value as a user would, cut short."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def describe_mismatch(expected: str, value: object) -> str:
    """Write `expected a number, found 'x'`."""
    return f"expected {expected}, found {show_value(value)}"


#: The type of error whose message says what was expected.
EXPECTED = "expected"
#: What was expected, by the type of pydantic's error.
_EXPECTED: Mapping[str, str] = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    "int_parsing_size": "a smaller whole number",
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    "finite_number": "a finite number",
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": "text",
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    **dict.fromkeys(("dict_type", "mapping_type"), "a mapping"),
    **dict.fromkeys(("model_type", "model_attributes_type"), "a mapping of settings"),
    **dict.fromkeys(
        ("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "datetime_object_invalid"),
        "a date and time such as 2026-01-01T08:00",
    ),
}
_LIMITS: Mapping[str, tuple[str, str]] = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


def read_problems(details: ErrorDetails) -> tuple[Problem, ...]:
    """Return the problems of one of pydantic's errors. Their paths begin at the error's location."""
    kind, context, value = details["type"], details.get("ctx", {}), details["input"]
    if isinstance(context.get("error"), InvalidValue):
        return tuple(context["error"].problems)
    if kind == EXPECTED or kind in _EXPECTED:
        return (Problem.mismatch(_EXPECTED.get(kind, details["msg"]), value),)
    if kind in _LIMITS:
        word, key = _LIMITS[kind]
        limit = context[key]
        message = f"must be {word} {int(limit) if limit == int(limit) else limit:,}"
        return (Problem((), message, found=str(value)),)
    if kind == "literal_error":
        # Pydantic gives the words only as text: "'a', 'b' or 'c'".
        words = [word.strip("'") for word in context["expected"].replace(" or ", ", ").split(", ")]
        suggestion = nearest(value, words)
        return (Problem((), expected=one_of(words), found=show_value(value), suggestion=suggestion),)
    if kind in ("too_long", "string_too_long"):
        what = " characters" if isinstance(value, str) else ""
        message = f"at most {context['max_length']}{what} are possible"
        return (Problem((), message, found=str(context["actual_length"]) if kind == "too_long" else None),)
    if kind in ("too_short", "string_too_short"):
        return (Problem((), "must not be empty"),)
    return (Problem((), details["msg"]),)
