"""Files of the follow graph: lists of edges, and GraphML."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ScenarioInvalid
from shoal.formats import decode_json, decode_text, guess_delimiter, read_csv_rows, read_graphml
from shoal.scenario.importers.fields import FieldUse, raise_problems
from shoal.scenario.importers.people_file import read_content
from shoal.scenario.importers.tables import locate_line
from shoal.scenario.validation.problems import describe_mismatch, show_value
from shoal.text import hint

#: Names of the columns of the follower and of the person they follow. The first pair that a file has is taken.
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
#: Attributes of a GraphML node that name a person, best first; its id comes last.
IDENTITIES = ("name", "username", "label")
SUFFIXES = (".csv", ".tsv", ".txt", ".edges", ".edgelist", ".jsonl", ".ndjson", ".json", ".graphml")
_COMMENTS = ("#", "%")
_FILES_KEPT = 4

#: A person: a name, a username or a number; where a node has several names, any of them.
EdgeEnd = str | int | tuple[str, ...]
#: The line of an edge, and its cells.
_Row = tuple[int, Sequence[Any]]
_Rows = tuple[Sequence[_Row], tuple[FieldUse, ...]]


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges of a follow graph that stand in a file. Two with the same digest are equal."""

    digest: str
    name: str = field(compare=False)
    #: Every person that occurs, once.
    ends: Sequence[EdgeEnd] = field(compare=False)
    #: For each edge the indices of its two ends in `ends`.
    sources: NDArray[np.int32] = field(compare=False)
    targets: NDArray[np.int32] = field(compare=False)
    #: The line of each edge, or its number where the file has no useful lines.
    lines: Sequence[int] = field(compare=False)
    uses: tuple[FieldUse, ...] = field(default=(), compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    #: What that number counts; empty for lines.
    unit: str = field(default="", compare=False)

    def locate(self, edge: int) -> str:
        """Return where an edge stands, as the beginning of a problem."""
        return locate_line(self.name, self.unit, self.lines[edge])


@dataclass(frozen=True, slots=True)
class _LoadedEdges:
    """A file in memory. Two with the same digest are equal, so that the same content is parsed once."""

    digest: str
    path: Path = field(compare=False)
    content: bytes = field(compare=False)
    columns: tuple[str, str] | None = field(compare=False)


def read_edges(path: Path, columns: tuple[str, str] | None = None) -> Edges:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ScenarioInvalid([f"{path}: expected a file that ends in {', '.join(SUFFIXES)}"])
    content = read_content(path)
    digest = hashlib.sha256(repr((suffix, columns)).encode() + content).hexdigest()
    return _parse_edges(_LoadedEdges(digest, path, content, columns))


@lru_cache(maxsize=_FILES_KEPT)
def _parse_edges(loaded: _LoadedEdges) -> Edges:
    name, suffix = loaded.path.name, loaded.path.suffix.lower()
    if suffix == ".graphml":
        return _parse_graphml(loaded)
    text = decode_text(loaded.content, name)
    if suffix in (".jsonl", ".ndjson", ".json"):
        rows, uses = _read_json_rows(text, name, suffix, loaded.columns)
    else:
        rows, uses = _read_text_rows(text, name, suffix, loaded.columns)
    problems = [f"{name}:{line}: expected two people, found {show_value(row[0])}" for line, row in rows if len(row) < 2]
    problems += [
        f"{name}:{line}: {describe_mismatch('a name or a number', end)}"
        for line, row in rows
        for end in row[:2]
        if not isinstance(end, (str, int)) or end == "" or isinstance(end, bool)
    ]
    raise_problems(problems)
    encoded = encode_edges([row[0] for _, row in rows], [row[1] for _, row in rows])
    return Edges(loaded.digest, name, *encoded, [line for line, _ in rows], uses)


def encode_edges(
    sources: Sequence[EdgeEnd], targets: Sequence[EdgeEnd]
) -> tuple[Sequence[EdgeEnd], NDArray[np.int32], NDArray[np.int32]]:
    """Return every person that occurs, once, and the two ends of each edge as indices into these."""
    places: dict[EdgeEnd, int] = {}
    codes = [
        np.array([places.setdefault(end, len(places)) for end in ends], dtype=np.int32) for ends in (sources, targets)
    ]
    return list(places), codes[0], codes[1]


def _parse_graphml(loaded: _LoadedEdges) -> Edges:
    """Read a graph. An edge without a direction becomes two edges."""
    name = loaded.path.name
    graph = read_graphml(loaded.content, name, IDENTITIES)
    names: dict[str, tuple[str, ...]] = {}
    for node in dict.fromkeys(end for edge in graph.edges for end in edge[:2]):
        known = graph.nodes.get(node, {})
        names[node] = (*(known[key] for key in IDENTITIES if known.get(key)), node)
    sources, targets, lines, undirected = [], [], [], 0
    for source, target, directed, line in graph.edges:
        undirected += not directed
        for one, other in ((source, target), (target, source))[: 1 if directed else 2]:
            sources.append(names[one])
            targets.append(names[other])
            lines.append(line)
    uses = (
        FieldUse(name, "node", "used", f"a person, found by {', '.join(IDENTITIES)} or id", len(graph.nodes)),
        FieldUse(name, "edge", "used", "who follows whom", len(graph.edges)),
        *(FieldUse(name, what, "unused", "following has no properties", n) for what, n in graph.ignored.items()),
    )
    notes = (f"{undirected:,} edges have no direction: each of the two follows the other",) if undirected else ()
    return Edges(loaded.digest, name, *encode_edges(sources, targets), lines, uses, notes)


def _read_text_rows(text: str, name: str, suffix: str, columns: tuple[str, str] | None) -> _Rows:
    """Read the two columns of each row. Without a header the first two columns are taken.

    Cells are separated by white space where the first line has no other separator.
    """
    first = next((line for line in text.split("\n") if line.strip() and not line.startswith(_COMMENTS)), "")
    delimiter = "\t" if suffix == ".tsv" else guess_delimiter(first)
    skipped = () if suffix == ".csv" else _COMMENTS
    if suffix != ".csv" and delimiter not in first:
        split = ((line, row.split()) for line, row in enumerate(text.split("\n"), 1) if row.strip())
        rows = [(line, row) for line, row in split if not row[0].startswith(skipped)]
    else:
        filled = (found for found in read_csv_rows(text, name, delimiter) if any(found[0]))
        rows = [(line, [cell.strip() for cell in row]) for row, line in filled if not row[0].startswith(skipped)]
    if not rows:
        raise ScenarioInvalid([f"{name}: nothing in it"])

    header = rows[0][1]
    pair = columns or _find_pair(header)
    if pair is None:
        others = [f"column {place}" for place in range(3, len(header) + 1)]
        return rows, _list_uses(name, ("column 1", "column 2"), others, len(rows))
    for column in pair:
        if column not in header:
            raise ScenarioInvalid([f"{name}: no column {column!r}{hint(column, header) or f'; there is {header}'}"])
    source, target = map(header.index, pair)
    uses = _list_uses(name, pair, [each for at, each in enumerate(header) if at not in (source, target)], len(rows) - 1)
    short = [(line, row[:1]) for line, row in rows[1:] if len(row) <= max(source, target)]
    return short or [(line, (row[source], row[target])) for line, row in rows[1:]], uses


def _read_json_rows(text: str, name: str, suffix: str, columns: tuple[str, str] | None) -> _Rows:
    """Read edges that are objects, or lists of two."""
    values: Iterable[tuple[int, Any]]
    if suffix == ".json":
        value = decode_json(text, name)
        if not isinstance(value, list):
            raise ScenarioInvalid([f"{name}: expected a list of edges, found {show_value(value)}"])
        values = enumerate(value, 1)
    else:
        filled = ((line, each) for line, each in enumerate(text.split("\n"), 1) if each.strip())
        values = ((line, decode_json(each, f"{name}:{line}")) for line, each in filled)
    rows: list[_Row] = []
    problems: list[str] = []
    others: dict[str, None] = {}
    pair: tuple[str, str] | None = None
    for line, value in values:
        pair = (columns or _find_pair(value)) if isinstance(value, Mapping) else None
        if isinstance(value, list):
            rows.append((line, value))
        elif pair is None or any(end not in value for end in pair):
            problems.append(f"{name}:{line}: expected an object with `from` and `to`, found {show_value(value)}")
        else:
            rows.append((line, (value[pair[0]], value[pair[1]])))
            others |= dict.fromkeys(key for key in value if key not in pair)
    raise_problems(problems)
    return rows, _list_uses(name, pair or ("[0]", "[1]"), others, len(rows))


def _find_pair(header: Iterable[str]) -> tuple[str, str] | None:
    folded = {cell.casefold(): cell for cell in header}
    return next(((folded[a], folded[b]) for a, b in PAIRS if a in folded and b in folded), None)


def _list_uses(name: str, pair: Sequence[str], others: Iterable[str], count: int) -> tuple[FieldUse, ...]:
    """List what was made of each column: the first two name people, others have no use."""
    return (
        FieldUse(name, pair[0], "used", "who follows", count),
        FieldUse(name, pair[1], "used", "whom they follow", count),
        *(FieldUse(name, other, "unused", "following has no properties", count) for other in others),
    )
