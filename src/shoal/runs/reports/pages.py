"""Reads actions page by page, newest first. What a page costs depends on the page, not on the length of the run.

The newest actions are those of the latest round; within a round, those of the last world, from its last line on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from pathlib import Path

import msgspec

from shoal.errors import QueryFailed
from shoal.runs.directory import RunDirectory

#: More is not read for one page. A page of a rare agent's actions may then be short, and says where to go on.
_MAX_READ_BYTES = 32 << 20
_BLOCK_BYTES = 1 << 16
_ACTION = b'{"round":'
CURSOR_PATTERN = r"^[a-z][a-z0-9_-]*:[0-9]{1,18}(,[a-z][a-z0-9_-]*:[0-9]{1,18})*$"
_CURSOR = re.compile(CURSOR_PATTERN)


@dataclass(frozen=True, slots=True)
class ActionPage:
    """Some actions, newest first, as JSON."""

    actions: Sequence[bytes]
    #: Where the next page begins; None where this is the last one.
    cursor: str | None


@dataclass(frozen=True, slots=True)
class ActionFilter:
    """Which actions are wanted."""

    world: str | None = None
    agent: int | None = None
    round: int | None = None


EVERYTHING = ActionFilter()


class PageReader:
    """Reads pages of one run."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def read(
        self, wanted: ActionFilter = EVERYTHING, limit: int = 100, offset: int = 0, cursor: str | None = None
    ) -> ActionPage:
        """Read a page, from the newest action on, or from where the page before it ended."""
        ends = self._find_ends(wanted, cursor)
        positions, budget = dict(ends), ReadBudget(_MAX_READ_BYTES)
        lines = [
            self._read_world(number, world, end, wanted, budget) for number, (world, end) in enumerate(ends.items())
        ]
        found: list[bytes] = []
        skipped = 0
        for (_, _), world, position, action in merge(*lines, key=lambda line: line[0]):
            if action is not None and skipped < offset:
                skipped += 1
            elif action is not None and len(found) == limit:
                return ActionPage(found, _format_cursor(positions))
            elif action is not None:
                found.append(action)
            positions[world] = position
        return ActionPage(found, _format_cursor(positions) if budget.is_spent else None)

    def _find_ends(self, wanted: ActionFilter, cursor: str | None) -> dict[str, int]:
        """Return for each world where the wanted actions end, in bytes."""
        worlds = self._run.worlds
        if wanted.world is not None and wanted.world not in worlds:
            raise QueryFailed(f"there is no world {wanted.world!r}; there is {', '.join(worlds)}")
        ends = {}
        for world in worlds if wanted.world is None else (wanted.world,):
            if wanted.round is None:
                ends[world] = self._run.open_stream(world).size()
            else:
                ends[world] = self._run.open_stream(world, wanted.round + 1).offset
        if cursor is not None:
            if not _CURSOR.fullmatch(cursor):
                raise QueryFailed("cursor: this is none that a page ended with")
            known = {world: int(at) for world, _, at in (part.partition(":") for part in cursor.split(","))}
            ends = {world: min(end, known.get(world, end)) for world, end in ends.items()}
        return ends

    def _read_world(
        self, number: int, world: str, end: int, wanted: ActionFilter, budget: ReadBudget
    ) -> Iterator[tuple[tuple[int, int], str, int, bytes | None]]:
        """Yield order, world, position and JSON of a world's lines, newest first; lines not wanted have no JSON."""
        start = 0 if wanted.round is None else self._run.open_stream(world, wanted.round).offset
        mark = None if wanted.agent is None else b',"agent_id":%d,' % wanted.agent
        for position, line in read_backwards(self._run.open_stream(world).path, start, end, budget):
            if line.startswith(_ACTION):
                # The number of the round ends with the first comma.
                round = int(line[len(_ACTION) : line.index(b",")])
                is_wanted = mark is None or mark in line[:60]
                yield (-round, -number), world, position, format_action(line, world) if is_wanted else None


def format_action(line: bytes, world: str) -> bytes:
    """Turn the line of an action into the object that clients read, with its world and the round by another name."""
    return b'{"platform":"%s","round_num":%s' % (world.encode(), line[len(_ACTION) :])


def has_failed(action: bytes | msgspec.Raw) -> bool:
    """Return whether an action, as it is in a stream or a page of one, was refused or came to nothing."""
    # Within texts, quotes are escaped.
    return b'},"success":false,' in bytes(action)


def format_line(line: bytes, world: str) -> bytes:
    """Turn any line of a stream into an object with its world."""
    if line.startswith(_ACTION):
        return format_action(line, world)
    return b'{"world":"%s",%s' % (world.encode(), line[1:])


class ReadBudget:
    """How many bytes may still be read."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.is_spent = False

    def take(self, size: int) -> bool:
        self.is_spent = self.is_spent or self._left <= 0
        self._left -= size
        return not self.is_spent


def read_backwards(path: Path, start: int, end: int, budget: ReadBudget) -> Iterator[tuple[int, bytes]]:
    """Yield position and text of the whole lines between two offsets, the last line first."""
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        return
    with file:
        position, tail, is_torn = end, b"", True
        while position > start and budget.take(_BLOCK_BYTES):
            size = min(_BLOCK_BYTES, position - start)
            position -= size
            data = os.pread(file.fileno(), size, position) + tail
            if is_torn:
                # A last line without its line end is still being written.
                data, is_torn = data[: data.rfind(b"\n") + 1], b"\n" not in data
            # The first line of the block may begin before it.
            cut = data.find(b"\n") + 1 if position > start else 0
            tail, body = data[:cut], data[cut:]
            at = position + cut + len(body)
            for line in reversed(body.split(b"\n")[:-1]):
                at -= len(line) + 1
                yield at, line


def _format_cursor(positions: Mapping[str, int]) -> str:
    return ",".join(f"{world}:{at}" for world, at in positions.items())
