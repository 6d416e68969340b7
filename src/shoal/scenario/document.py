"""YAML and JSON text as plain values, together with where in the text each value stands.

Read from parser events with a stack of our own instead of through `yaml.compose`, because the composer recurses in C:
a few hundred kilobytes of `[` would end the process. Scalars follow YAML 1.2: `no` and `on` are text, and so is 12:30.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from math import isinf
from typing import Any

import yaml

from shoal.errors import ScenarioInvalid
from shoal.scenario.validation.problems import Path, Problem

MAX_DEPTH = 40
#: Values that aliases may repeat in all; more is a mistake or an attack.
MAX_REPEATED_VALUES = 100_000

Position = tuple[int, int]

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_SURROGATES = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class Document:
    """Plain values (mappings have text keys), and the line and column, from 1, of each value and each key."""

    value: Any
    values: dict[Path, Position] = field(default_factory=dict)
    keys: dict[Path, Position] = field(default_factory=dict)
    #: What is wrong already, before anybody asks what the values mean.
    problems: list[tuple[Position, Problem]] = field(default_factory=list)

    def find(self, path: Path) -> Position:
        """Where the value is, or the nearest thing around it that is written down."""
        while path not in self.values and path:
            path = path[:-1]
        return self.values.get(path, (1, 1))


def read_document(text: str, name: str) -> Document:
    """The values of a text. `name` is what problems are reported under."""
    return _DocumentReader(name).read(text)


@dataclass(slots=True)
class _OpenNode:
    """A list or mapping that is being read."""

    value: list[Any] | dict[str, Any]
    path: Path
    anchor: str | None
    key: str | None = None


@dataclass(slots=True)
class _DocumentReader:
    name: str
    document: Document = field(default_factory=lambda: Document(None))
    stack: list[_OpenNode] = field(default_factory=list)
    anchors: dict[str, Any] = field(default_factory=dict)
    repeated: int = 0
    root: Any = None

    def read(self, text: str) -> Document:
        try:
            self._take_all(_SURROGATES.sub(_joined, text))
        except yaml.MarkedYAMLError as error:
            raise ScenarioInvalid([self._syntax(error)]) from error
        except yaml.reader.ReaderError as error:
            raise ScenarioInvalid([f"{self.name}: {_unreadable(error)}"]) from error
        return replace(self.document, value=self.root)

    def _take_all(self, text: str) -> None:
        documents = 0
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            documents += isinstance(event, yaml.DocumentStartEvent)
            if documents > 1:
                self._refuse(event, "a second document begins here ('---'); a scenario is one document")
            self._take(event)

    def _take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._take_scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            self._place(event, self._repeat(event))
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._begin(event, {} if isinstance(event, yaml.MappingStartEvent) else [])
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            done = self.stack.pop()
            self._remember(done.anchor, done.value)

    def _take_scalar(self, event: yaml.ScalarEvent) -> None:
        top = self.stack[-1] if self.stack else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            self._take_key(event, top, top.value)
            return
        value = self._scalar(event)
        self._remember(event.anchor, value)
        path = self._place(event, value)
        if event.implicit[0] and _endless(value):
            problem = Problem(path, f"expected a finite number, found {event.value!r}")
            self.document.problems.append((_position(event), problem))

    def _take_key(self, event: yaml.ScalarEvent, top: _OpenNode, mapping: dict[str, Any]) -> None:
        self._remember(event.anchor, event.value)
        top.key, path = event.value, (*top.path, event.value)
        if event.value in mapping:
            first = self.document.keys[path][0]
            problem = Problem(path, f"the key {event.value!r} is already in line {first}", at_key=True)
            self.document.problems.append((_position(event), problem))
        else:
            self.document.keys[path] = _position(event)

    def _begin(self, event: yaml.CollectionStartEvent, value: list[Any] | dict[str, Any]) -> None:
        if len(self.stack) >= MAX_DEPTH:
            self._refuse(event, f"nested more than {MAX_DEPTH} levels deep")
        self._require_no_tag(event)
        path = self._place(event, value)
        self.stack.append(_OpenNode(value, path, event.anchor))

    def _place(self, event: yaml.Event, value: Any) -> Path:
        """Put a value where it belongs, and note where it stands."""
        path: Path = ()
        if not self.stack:
            self.root = value
        else:
            top = self.stack[-1]
            path = (*top.path, self._put(event, top, value))
        self.document.values.setdefault(path, _position(event))
        return path

    def _put(self, event: yaml.Event, top: _OpenNode, value: Any) -> str | int:
        if isinstance(top.value, list):
            top.value.append(value)
            return len(top.value) - 1
        if top.key is None:
            self._refuse(event, "a key must be plain text")
        key, top.key = str(top.key), None
        top.value.setdefault(key, value)
        return key

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        self._require_no_tag(event, "tag:yaml.org,2002:str")
        if not event.implicit[0]:
            return event.value
        return _plain(event.value)

    def _repeat(self, event: yaml.AliasEvent) -> Any:
        name = str(event.anchor)
        if name not in self.anchors:
            self._refuse(event, f"'*{name}' stands for nothing: there is no '&{name}' that ends before it")
        self.repeated += _count(self.anchors[name])
        if self.repeated > MAX_REPEATED_VALUES:
            self._refuse(event, f"aliases repeat more than {MAX_REPEATED_VALUES:,} values")
        return self.anchors[name]

    def _remember(self, anchor: str | None, value: Any) -> None:
        if anchor is not None:
            self.anchors[anchor] = value

    def _refuse(self, event: yaml.Event, text: str) -> None:
        line, column = _position(event)
        raise ScenarioInvalid([f"{self.name}:{line}:{column}: {text}"])

    def _require_no_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, *allowed: str) -> None:
        if event.tag not in (None, "!", *allowed):
            self._refuse(event, f"tags such as {event.tag!r} are not used in scenarios")

    def _syntax(self, error: yaml.MarkedYAMLError) -> str:
        mark: Any = error.problem_mark or error.context_mark
        place = "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"
        problem = str(error.problem or error.context)
        context = f" {error.context}" if error.context and error.problem else ""
        return f"{self.name}{place}: cannot be read as YAML: {problem}{context}{_advice(problem)}"


def _plain(text: str) -> Any:
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text) and len(text) <= 40:
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _endless(value: Any) -> bool:
    if isinstance(value, str):
        return _NOT_FINITE.fullmatch(value) is not None
    return isinstance(value, float) and isinf(value)


def _position(event: yaml.Event) -> Position:
    mark: Any = event.start_mark or yaml.Mark("", 0, 0, 0, None, 0)
    return mark.line + 1, mark.column + 1


def _count(value: Any) -> int:
    """How many values there are in a value that was already read, itself included."""
    total, left = 0, [value]
    while left:
        value = left.pop()
        total += 1
        if total > MAX_REPEATED_VALUES:
            break
        left.extend(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    return total


def _joined(match: re.Match[str]) -> str:
    """JSON writes a rare character as two halves, which YAML does not know."""
    high, low = int(match[1], 16), int(match[2], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08X}"


_ADVICE = {
    "character that cannot start any token": "indent with spaces, not tabs; put text that begins with @ or ` in quotes",
    "mapping values are not allowed": "put text that contains ': ' in quotes",
    "could not find expected ':'": "write 'key: value', with a space after the colon",
    "did not find expected key": "check the indentation, and put text with special characters in quotes",
    "did not find expected '-' indicator": "items of a list begin with '- ', all in the same column",
    "did not find expected ',' or": "a bracket is not closed, or a comma is missing",
    "unexpected end of stream": "a quote or a bracket is not closed",
}


def _advice(problem: str) -> str:
    return next((f"; {advice}" for known, advice in _ADVICE.items() if known in problem), "")


def _unreadable(error: yaml.reader.ReaderError) -> str:
    return f"not a text file: it contains the character U+{int(error.character):04X}"
