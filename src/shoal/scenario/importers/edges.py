"""Files that say who follows whom: lists of edges, and GraphML."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ScenarioInvalid
from shoal.scenario.importers import graphml
from shoal.scenario.importers.people_file import content
from shoal.scenario.importers.result import FieldUse
from shoal.scenario.importers.tables import delimiter_of, describe_table, json_value, rows_of, text_of
from shoal.scenario.validation.problems import expected, show
from shoal.text import hint

#: Names of columns that say who follows, and whom. The first pair of which a file has both is taken.
PAIRS = (
    ("from", "to"),
    ("source", "target"),
    ("src", "dst"),
    ("follower", "followed"),
    ("follower", "followee"),
    ("follower", "following"),
    ("follower_id", "followee_id"),
    ("follower_id", "followed_id"),
    ("user_id", "follows"),
    ("user", "follows"),
)
SUFFIXES = (".csv", ".tsv", ".txt", ".edges", ".edgelist", ".jsonl", ".ndjson", ".json", ".graphml")
_COMMENTS = ("#", "%")
_FILES_KEPT = 4

#: Somebody: a name, a username or a number; where a node has several names, any of them.
EdgeEnd = str | int | tuple[str, ...]
_Row = tuple[int, Sequence[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Who follows whom, as a file says it."""

    digest: str
    name: str
    #: Everybody that occurs, once.
    ends: Sequence[EdgeEnd]
    #: For each edge the places of its two ends among these.
    sources: NDArray[np.int32]
    targets: NDArray[np.int32]
    #: The line, or else the place, of each edge.
    lines: Sequence[int]
    uses: tuple[FieldUse, ...] = ()
    notes: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edges) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@dataclass(frozen=True, slots=True)
class _LoadedEdges:
    digest: str
    path: Path = field(compare=False)
    content: bytes = field(compare=False)
    columns: tuple[str, str] | None = field(compare=False)


def read_edges(path: Path, columns: tuple[str, str] | None = None) -> Edges:
    """The edges in a file. The same content is worked through once."""
    if path.suffix.lower() not in SUFFIXES:
        raise ScenarioInvalid([f"{path}: expected a file that ends in {', '.join(SUFFIXES)}"])
    found = content(path)
    digest = hashlib.sha256(repr((path.suffix.lower(), columns)).encode() + found).hexdigest()
    return _edges(_LoadedEdges(digest, path, found, columns))


@lru_cache(maxsize=_FILES_KEPT)
def _edges(loaded: _LoadedEdges) -> Edges:
    name, suffix = loaded.path.name, loaded.path.suffix.lower()
    if suffix == ".graphml":
        graph = graphml.read_graphml(loaded.content, name)
        coded = encode_edges(graph.sources, graph.targets)
        return Edges(loaded.digest, name, *coded, graph.lines, graph.uses, graph.notes)
    text = text_of(loaded.content, name)
    if suffix in (".jsonl", ".ndjson", ".json"):
        rows, uses = _json_rows(_json(text, name, suffix), name, loaded.columns)
    else:
        rows, uses = _under_header(list(_rows(text, name, suffix)), name, loaded.columns)
    problems = [f"{name}:{line}: expected two people, found {show(row[0])}" for line, row in rows if len(row) < 2]
    problems += [
        f"{name}:{line}: {expected('a name or a number', end)}"
        for line, row in rows
        for end in row[:2]
        if not isinstance(end, (str, int)) or end == "" or isinstance(end, bool)
    ]
    if problems:
        raise ScenarioInvalid(describe_table(problems))
    coded = encode_edges([row[0] for _, row in rows], [row[1] for _, row in rows])
    return Edges(loaded.digest, name, *coded, [line for line, _ in rows], uses)


def encode_edges(
    sources: Sequence[EdgeEnd], targets: Sequence[EdgeEnd]
) -> tuple[Sequence[EdgeEnd], NDArray[np.int32], NDArray[np.int32]]:
    """Everybody that occurs, once, and the two ends of each edge as places among these."""
    places: dict[EdgeEnd, int] = {}
    codes = [
        np.array([places.setdefault(end, len(places)) for end in ends], dtype=np.int32) for ends in (sources, targets)
    ]
    return list(places), codes[0], codes[1]


def _rows(text: str, name: str, suffix: str) -> Iterator[_Row]:
    """Rows of cells: separated by white space where no other separator is in sight."""
    first = next((line for line in text.split("\n") if line.strip() and not line.startswith(_COMMENTS)), "")
    delimiter = "\t" if suffix == ".tsv" else delimiter_of(first)
    if suffix != ".csv" and delimiter not in first:
        lines = ((number, line.split()) for number, line in enumerate(text.split("\n"), 1))
        yield from ((number, row) for number, row in lines if row and not row[0].startswith(_COMMENTS))
        return
    for row, line in rows_of(text, name, delimiter):
        if any(row) and not (suffix != ".csv" and row[0].startswith(_COMMENTS)):
            yield line, [cell.strip() for cell in row]


def _under_header(
    rows: Sequence[_Row], name: str, columns: tuple[str, str] | None
) -> tuple[Sequence[_Row], tuple[FieldUse, ...]]:
    """The two columns of every row, and what became of the others. Without a header the first two are taken."""
    if not rows:
        raise ScenarioInvalid([f"{name}: nothing in it"])
    header = [str(cell) for cell in rows[0][1]]
    pair = columns or _pair(header)
    if pair is None:
        others = [f"column {place}" for place in range(3, len(header) + 1)]
        return rows, _uses(name, ("column 1", "column 2"), others, len(rows))
    source, target = (_place(column, header, name) for column in pair)
    others = [column for place, column in enumerate(header) if place not in (source, target)]
    uses = _uses(name, pair, others, len(rows) - 1)
    short = [(line, row[:1]) for line, row in rows[1:] if len(row) <= max(source, target)]
    return short or [(line, (row[source], row[target])) for line, row in rows[1:]], uses


def _pair(header: Iterable[str]) -> tuple[str, str] | None:
    folded = {cell.casefold(): cell for cell in header}
    return next(((folded[a], folded[b]) for a, b in PAIRS if a in folded and b in folded), None)


def _place(column: str, header: Sequence[str], name: str) -> int:
    if column not in header:
        raise ScenarioInvalid([f"{name}: no column {column!r}{hint(column, header) or f'; there is {header}'}"])
    return header.index(column)


def _uses(name: str, pair: Sequence[str], others: Iterable[str], count: int) -> tuple[FieldUse, ...]:
    return (
        FieldUse(name, pair[0], "used", "who follows", count),
        FieldUse(name, pair[1], "used", "whom they follow", count),
        *(FieldUse(name, other, "unused", "following has no properties", count) for other in others),
    )


def _json(text: str, name: str, suffix: str) -> Iterator[tuple[int, Any]]:
    if suffix == ".json":
        value = json_value(text, name)
        if not isinstance(value, list):
            raise ScenarioInvalid([f"{name}: expected a list of edges, found {show(value)}"])
        yield from enumerate(value, 1)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, json_value(line, f"{name}:{number}")


def _json_rows(
    values: Iterable[tuple[int, Any]], name: str, columns: tuple[str, str] | None
) -> tuple[Sequence[_Row], tuple[FieldUse, ...]]:
    """Edges that are objects, or lists of two."""
    rows: list[_Row] = []
    problems: list[str] = []
    others: dict[str, None] = {}
    pair: tuple[str, str] | None = None
    for line, value in values:
        pair = (columns or _pair(value)) if isinstance(value, Mapping) else None
        if isinstance(value, list):
            rows.append((line, value))
        elif pair is None or any(end not in value for end in pair):
            problems.append(f"{name}:{line}: expected an object with `from` and `to`, found {show(value)}")
        else:
            rows.append((line, (value[pair[0]], value[pair[1]])))
            others |= dict.fromkeys(key for key in value if key not in pair)
    if problems:
        raise ScenarioInvalid(describe_table(problems))
    return rows, _uses(name, pair or ("[0]", "[1]"), others, len(rows))
