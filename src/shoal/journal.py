"""The append-only record of everything that came from outside a run.

One JSON object per line:

    {"key": "twitter/2/2/decide/0", "request": "9f3c...", "reply": [...], "ms": 913}       an answer
    {"key": "twitter/2/0/decide/0", "request": "1b77...", "outcome": "timeout", ...}       a failure that became history
    {"key": "twitter/12/inject/0", "event": {...}}                                         something a person injected
    {"key": "*/25/continue/0", "event": {"scenario": {...}}}                               a run that was made to go on

A line taken over from the run that this one was forked from carries `"from"`: it answers only while its request is
still the same, and is otherwise passed over. The same goes for lines about rounds from which on a run was made to go on
differently: when it was interrupted, some of them may have been asked for. Of a run's other lines the request must
always be the same: if it is not, the run has diverged from itself, and that is an error.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from shoal.errors import JournalCorrupt, StorageFailed


class JournalLine(msgspec.Struct, frozen=True, omit_defaults=True, rename={"inherited": "from"}):
    """One line of the journal."""

    key: str
    request: str = ""
    reply: Any = None
    outcome: str | None = None
    reason: str | None = None
    event: dict[str, Any] | None = None
    usage: dict[str, int] | None = None
    ms: int = 0
    #: The run this line was taken over from, where the run is a fork.
    inherited: str | None = None


def is_continuation(line: JournalLine) -> bool:
    """Whether somebody made the run go on, rather than something happen in it."""
    return line.event is not None and "/continue/" in line.key


def round_of(line: JournalLine) -> int:
    """The round that a line is about."""
    return int(line.key.split("/")[1])


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(JournalLine).decode


def digest(request: object) -> str:
    """What identifies a request: the same request has the same digest, on every machine."""
    return blake2b(_encode(request), digest_size=16).hexdigest()


class Journal:
    """The journal of one run, in memory for looking up and on disk for good.

    Lines of many concurrent decisions share one write and one sync; `record` returns once its line is on disk.
    """

    def __init__(self, path: Path, lines: list[JournalLine], file: int | None) -> None:
        self._path = path
        self._file = file
        self._own: dict[str, JournalLine] = {}
        self._inherited: dict[str, JournalLine] = {}
        self.events: list[JournalLine] = []
        #: How often something outside was asked by this run.
        self.calls = 0
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._flusher: asyncio.Task[None] | None = None
        for line in lines:
            self._index(line)

    @classmethod
    def open(cls, path: Path) -> Journal:
        """Open for reading and appending. A torn last line was never acted upon, so it is cut off."""
        lines, length = read_journal(path)
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
            os.ftruncate(file, length)
            os.lseek(file, length, os.SEEK_SET)
        except OSError as error:
            raise StorageFailed.writing(path, error.strerror) from error
        return cls(path, lines, file)

    @classmethod
    def sealed(cls, path: Path) -> Journal:
        """Open for reading only."""
        return cls(path, read_journal(path)[0], None)

    @property
    def is_sealed(self) -> bool:
        return self._file is None

    def __iter__(self) -> Iterator[JournalLine]:
        yield from self._inherited.values()
        yield from self._own.values()

    def own(self, key: str) -> JournalLine | None:
        """The run's own line under this key, whatever it answers."""
        return self._own.get(key)

    def inherited(self, key: str, request: str) -> JournalLine | None:
        """The parent's line under this key, if it answers the same request."""
        line = self._inherited.get(key)
        return line if line is not None and line.request == request else None

    def inherited_by(self, key: str, request: Callable[[], str]) -> JournalLine | None:
        """The same where working out the request costs something: it is asked for only if there is such a line."""
        line = self._inherited.get(key)
        return line if line is not None and line.request == request() else None

    def holds(self, key: str) -> bool:
        """Whether there is any line under this key."""
        return key in self._own or key in self._inherited

    async def record(self, line: JournalLine) -> None:
        """Append the line; on return it is on disk."""
        if self._file is None:
            raise AssertionError("a sealed journal cannot be written to")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((_encode(line) + b"\n", done))
        if self._flusher is None:
            self._flusher = asyncio.create_task(self._flush())
        await done
        self._index(line)

    def _index(self, line: JournalLine) -> None:
        if line.event is not None:
            self.events.append(line)
            if is_continuation(line):
                self._set_free(round_of(line))
        elif line.inherited is not None:
            self._inherited[line.key] = line
        else:
            self.calls += 1
            self._own[line.key] = line

    def _set_free(self, round: int) -> None:
        """From this round on, own lines answer only the same request, as inherited ones do."""
        later = [key for key, line in self._own.items() if round_of(line) >= round]
        self._inherited.update((key, self._own.pop(key)) for key in later)

    async def _flush(self) -> None:
        """Write what has gathered, again and again until nothing is left, each time with one sync."""
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                error = await asyncio.to_thread(self._write, b"".join(text for text, _ in batch))
                for _, done in batch:
                    _settle(done, error)
        finally:
            self._flusher = None

    def _write(self, text: bytes) -> StorageFailed | None:
        assert self._file is not None
        try:
            view = memoryview(text)
            while view:
                view = view[os.write(self._file, view) :]
            os.fsync(self._file)
        except OSError as error:
            return StorageFailed.writing(self._path, error.strerror)
        return None

    async def close(self) -> None:
        """Wait for lines under way, then close the file."""
        if self._flusher is not None:
            await self._flusher
        if self._file is not None:
            os.close(self._file)
            self._file = None

    async def __aenter__(self) -> Journal:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _settle(done: asyncio.Future[None], error: StorageFailed | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def read_journal(path: Path) -> tuple[list[JournalLine], int]:
    """All whole lines, and how many bytes they take. Only the last line may be torn."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise StorageFailed(f"cannot read {path}: {error.strerror}") from error
    length = text.rfind(b"\n") + 1
    return [_parse(path, number, line) for number, line in enumerate(text[:length].split(b"\n")[:-1], 1)], length


def read_events(path: Path) -> list[JournalLine]:
    """The lines about what a person made happen, found without reading all the replies around them."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageFailed(f"cannot read {path}: {error.strerror}") from error
    whole = enumerate(text.split(b"\n")[:-1], 1)
    lines = [_parse(path, number, line) for number, line in whole if b'"event":' in line]
    return [line for line in lines if line.event is not None]


def _parse(path: Path, number: int, text: bytes) -> JournalLine:
    try:
        return _decode(text)
    except msgspec.DecodeError as error:
        raise JournalCorrupt(path, number, str(error)) from error


def add_line(path: Path, line: JournalLine) -> None:
    """Append a line to a journal that nobody works on; on return it is on disk."""
    _, length = read_journal(path)
    try:
        with path.open("r+b") as file:
            file.truncate(length)
            file.seek(length)
            file.write(_encode(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StorageFailed.writing(path, error.strerror) from error


def write_lines(path: Path, lines: list[JournalLine]) -> None:
    """Write a new journal in one go, synced: how a fork starts."""
    try:
        with path.open("xb") as file:
            file.write(b"".join(_encode(line) + b"\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StorageFailed.writing(path, error.strerror) from error
