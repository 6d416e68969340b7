"""What can be wrong with a scenario, said in one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import ErrorDetails, PydanticCustomError

from shoal.text import hint, one_of

Path = tuple[str | int, ...]

#: The type of the validation errors that carry problems of ours.
OURS = "shoal"


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: where, relative to what was validated, and in plain words."""

    path: Path
    text: str
    #: Other parts of the scenario that the verdict depends on: if one of them is broken, it cannot be trusted.
    needs: frozenset[str] = frozenset()
    #: Whether the key at the end of the path is wrong, and not what stands behind it.
    at_key: bool = False


def refuse(*problems: Problem) -> PydanticCustomError:
    """The error that a validator raises to report these."""
    text = "; ".join(problem.text for problem in problems)
    return PydanticCustomError(OURS, "{text}", {"text": text, "problems": problems})


def wrong(text: str, *path: str | int) -> PydanticCustomError:
    """The error that a validator raises to report one problem, here or further down the path."""
    return refuse(Problem(path, text))


def wrong_key(text: str, *path: str | int) -> PydanticCustomError:
    """The same for a key that should not be there."""
    return refuse(Problem(path, text, at_key=True))


def expected(what: str, value: object) -> str:
    return f"expected {what}, found {show(value)}"


def show(value: object) -> str:
    """A value as the user wrote it, cut short."""
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


#: What was expected, by the type of pydantic's error.
_EXPECTED: Mapping[str, str] = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping of settings",
    "model_attributes_type": "a mapping of settings",
    "datetime_type": "a date and time such as 2026-01-01T08:00",
    "datetime_parsing": "a date and time such as 2026-01-01T08:00",
    "datetime_from_date_parsing": "a date and time such as 2026-01-01T08:00",
    "datetime_object_invalid": "a date and time such as 2026-01-01T08:00",
}
_LIMITS: Mapping[str, tuple[str, str]] = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


def describe_error(details: ErrorDetails) -> str:
    """One line about one mistake that pydantic found."""
    kind, context, value = details["type"], details.get("ctx", {}), details["input"]
    if kind in _EXPECTED:
        return expected(_EXPECTED[kind], value)
    if kind in _LIMITS:
        word, key = _LIMITS[kind]
        limit = context[key]
        return f"must be {word} {int(limit) if limit == int(limit) else limit:,}, found {value}"
    speak = _SPECIAL.get(kind)
    return speak(context, value) if speak else details["msg"]


def _literal(context: Mapping[str, Any], value: Any) -> str:
    words = [word.strip("'") for word in context["expected"].replace(" or ", ", ").split(", ")]
    return expected(one_of(words), value) + hint(value, words)


def _too_long(context: Mapping[str, Any], value: Any) -> str:
    what = " characters" if isinstance(value, str) else ""
    return f"at most {context['max_length']}{what} are possible, found {context['actual_length']}"


_SPECIAL: Mapping[str, Callable[[Mapping[str, Any], Any], str]] = {
    "literal_error": _literal,
    "too_long": _too_long,
    "too_short": lambda context, value: "must not be empty",
    "string_too_long": lambda context, value: f"at most {context['max_length']} characters are possible",
    "string_too_short": lambda context, value: "must not be empty",
    "shoal_world": lambda context, value: expected("a mapping of settings such as {kind: room}", value),
    "shoal_mind": lambda context, value: expected("heuristic, scripted, or a mapping of settings", value),
}
