"""YAML and JSON texts as plain values, with the line and column of each value.

The text is read from parser events with our own stack instead of through `yaml.compose`, because the composer recurses
in C: a few hundred kilobytes of `[` would end the process. Scalars follow YAML 1.2: `no`, `on` and 12:30 are text.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, field
from math import isinf
from pathlib import Path as FilePath
from typing import Any, NoReturn

import yaml

from shoal.errors import ScenarioInvalid, StorageFailed
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
#: What to do about an error of the YAML parser, by words of its message.
_ADVICE = {
    "character that cannot start any token": "indent with spaces, not tabs; put text that begins with @ or ` in quotes",
    "mapping values are not allowed": "put text that contains ': ' in quotes",
    "could not find expected ':'": "write 'key: value', with a space after the colon",
    "did not find expected key": "check the indentation, and put text with special characters in quotes",
    "did not find expected '-' indicator": "items of a list begin with '- ', all in the same column",
    "did not find expected ',' or": "a bracket is not closed, or a comma is missing",
    "unexpected end of stream": "a quote or a bracket is not closed",
}


@dataclass(slots=True)
class Document:
    """Plain values (mappings have text keys), and the line and column, from 1, of each value and each key."""

    value: Any = None
    values: dict[Path, Position] = field(default_factory=dict)
    keys: dict[Path, Position] = field(default_factory=dict)
    #: Repeated keys and infinite numbers. Everything around them can still be read.
    problems: list[tuple[Position, Problem]] = field(default_factory=list)

    def locate(self, problem: Problem) -> Position:
        """Return the position of what a problem is about, or of the nearest value around it."""
        path = problem.path
        if problem.at_key and path in self.keys:
            return self.keys[path]
        while path not in self.values and path:
            path = path[:-1]
        return self.values.get(path, (1, 1))


def read_document(text: str, name: str) -> Document:
    """Read a text. Syntax errors are reported under `name`."""
    return _DocumentReader(name).read(text)


@dataclass(slots=True)
class _OpenNode:
    """A list or mapping that is being read."""

    value: list[Any] | dict[str, Any]
    path: Path
    anchor: str | None
    key: str | None = None


class _DocumentReader:
    def __init__(self, name: str) -> None:
        self._name = name
        self._document = Document()
        self._stack: list[_OpenNode] = []
        self._anchors: dict[str, Any] = {}
        self._repeated_values = 0

    def read(self, text: str) -> Document:
        documents = 0
        try:
            for event in yaml.parse(_SURROGATES.sub(_join_surrogates, text), Loader=yaml.CSafeLoader):
                documents += isinstance(event, yaml.DocumentStartEvent)
                if documents > 1:
                    self.refuse(event, "a second document begins here ('---'); a scenario is one document")
                self.take(event)
        except yaml.MarkedYAMLError as error:
            mark: Any = error.problem_mark or error.context_mark
            place = "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"
            problem = str(error.problem or error.context)
            context = f" {error.context}" if error.context and error.problem else ""
            advice = next((f"; {advice}" for words, advice in _ADVICE.items() if words in problem), "")
            message = f"{self._name}{place}: cannot be read as YAML: {problem}{context}{advice}"
            raise ScenarioInvalid([message]) from error
        except yaml.reader.ReaderError as error:
            character = f"U+{int(error.character):04X}"
            message = f"{self._name}: not a text file: it contains the character {character}"
            raise ScenarioInvalid([message]) from error
        return self._document

    def take(self, event: yaml.Event) -> None:
        top = self._stack[-1] if self._stack else None
        if isinstance(event, yaml.ScalarEvent):
            if top is not None and isinstance(top.value, dict) and top.key is None:
                self.take_key(event, top)
            else:
                self.take_scalar(event)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            if len(self._stack) >= MAX_DEPTH:
                self.refuse(event, f"nested more than {MAX_DEPTH} levels deep")
            self.refuse_tag(event)
            value: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
            self._stack.append(_OpenNode(value, self.place(event, value), event.anchor))
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            done = self._stack.pop()
            self.remember(done.anchor, done.value)
        elif isinstance(event, yaml.AliasEvent):
            self.take_alias(event)

    def take_key(self, event: yaml.ScalarEvent, top: _OpenNode) -> None:
        self.remember(event.anchor, event.value)
        top.key, path = event.value, (*top.path, event.value)
        if event.value in top.value:
            first = self._document.keys[path][0]
            problem = Problem(path, f"the key {event.value!r} is already in line {first}", at_key=True)
            self._document.problems.append((_find_position(event), problem))
        else:
            self._document.keys[path] = _find_position(event)

    def take_scalar(self, event: yaml.ScalarEvent) -> None:
        self.refuse_tag(event, "tag:yaml.org,2002:str")
        text, is_plain = event.value, event.implicit[0]
        value: Any = text
        if is_plain:
            if _NULL.fullmatch(text):
                value = None
            elif _BOOL.fullmatch(text):
                value = text.lower() == "true"
            elif _INT.fullmatch(text) and len(text) <= 40:
                value = int(text)
            elif _FLOAT.fullmatch(text):
                value = float(text)
        self.remember(event.anchor, value)
        path = self.place(event, value)
        is_infinite = (
            isinf(value) if isinstance(value, float) else isinstance(value, str) and _NOT_FINITE.fullmatch(value)
        )
        if is_plain and is_infinite:
            problem = Problem(path, expected="a finite number", found=repr(text))
            self._document.problems.append((_find_position(event), problem))

    def take_alias(self, event: yaml.AliasEvent) -> None:
        name = str(event.anchor)
        if name not in self._anchors:
            self.refuse(event, f"'*{name}' stands for nothing: there is no '&{name}' that ends before it")
        left = [self._anchors[name]]
        while left:
            self._repeated_values += 1
            if self._repeated_values > MAX_REPEATED_VALUES:
                self.refuse(event, f"aliases repeat more than {MAX_REPEATED_VALUES:,} values")
            value = left.pop()
            left.extend(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
        self.place(event, self._anchors[name])

    def place(self, event: yaml.Event, value: Any) -> Path:
        """Put a value into the list or mapping that is being read, note its position, and return its path."""
        path: Path = ()
        if not self._stack:
            self._document.value = value
        else:
            top = self._stack[-1]
            if isinstance(top.value, list):
                path = (*top.path, len(top.value))
                top.value.append(value)
            elif top.key is None:
                self.refuse(event, "a key must be plain text")
            else:
                path = (*top.path, top.key)
                top.value.setdefault(top.key, value)
                top.key = None
        self._document.values.setdefault(path, _find_position(event))
        return path

    def remember(self, anchor: str | None, value: Any) -> None:
        if anchor is not None:
            self._anchors[anchor] = value

    def refuse(self, event: yaml.Event, text: str) -> NoReturn:
        line, column = _find_position(event)
        raise ScenarioInvalid([f"{self._name}:{line}:{column}: {text}"])

    def refuse_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, *allowed: str) -> None:
        if event.tag not in (None, "!", *allowed):
            self.refuse(event, f"tags such as {event.tag!r} are not used in scenarios")


def _find_position(event: yaml.Event) -> Position:
    mark: Any = event.start_mark or yaml.Mark("", 0, 0, 0, None, 0)
    return mark.line + 1, mark.column + 1


def _join_surrogates(match: re.Match[str]) -> str:
    """Join the two halves that JSON writes for a rare character; YAML does not know them."""
    high, low = int(match[1], 16), int(match[2], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08X}"


def set_number(text: str, key: str, value: int) -> str | None:
    """Set a whole number at the top level of a text, and leave everything else as it is written.

    Returns None where that cannot be done safely: the new text is read again, and must mean the same but for the key.
    """
    try:
        before = read_document(text, "")
        line, column = before.values.get((key,), (0, 0))
        lines = text.splitlines(keepends=True)
        found = re.compile(r"\d+").match(lines[line - 1], column - 1) if 0 < line <= len(lines) else None
        if found is not None:
            start, end = found.span()
            lines[line - 1] = f"{lines[line - 1][:start]}{value}{lines[line - 1][end:]}"
            changed = "".join(lines)
        else:
            ending = "\r\n" if "\r\n" in text else "\n"
            gap = "" if text.endswith("\n") else ending
            changed = f"{text}{gap}{key}: {value}{ending}"
        after = read_document(changed, "")
    except ScenarioInvalid:
        return None
    return changed if isinstance(before.value, dict) and after.value == {**before.value, key: value} else None


def set_number_in_file(path: FilePath, key: str, value: int) -> bool:
    """Set a whole number in a file as `set_number` does; False where that cannot be done, and nothing was changed."""
    try:
        changed = set_number(path.read_bytes().decode(), key, value)
        if changed is None:
            return False
        target = FilePath(os.path.realpath(path))
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            beside.write_bytes(changed.encode())
            shutil.copymode(target, beside)
            beside.replace(target)
        except OSError:
            beside.unlink(missing_ok=True)
            raise
    except UnicodeDecodeError:
        return False
    except OSError as error:
        raise StorageFailed(f"cannot write {path}: {error.strerror}") from error
    return True
