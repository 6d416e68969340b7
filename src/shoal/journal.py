"""The append-only record of everything that came from outside a run: its keys, its lines, and how they are looked up.

One JSON object per line:

    {"key": "twitter/2/2/decide/0", "request": "9f3c...", "reply": [...], "ms": 913}       an answer
    {"key": "twitter/2/0/decide/0", "request": "1b77...", "outcome": "timeout", ...}       a failure that became history
    {"key": "twitter/2/7/seat/0", "request": "c3d1...", "reply": {"by": "person", ...}}      a person's answer
    {"key": "twitter/12/inject/0", "event": {...}}                                         an event a user injected
    {"key": "*/25/continue/0", "event": {"scenario": {...}}}                               an extension of the run

A line inherited from the parent of a fork carries `"from"`. It answers only the same request, and is otherwise passed
over. Own lines about rounds after an extension, and those marked `"conditional"` when lost turns were asked for again,
are treated the same way: they may have been asked for in another history. The request of every other own line must be
the same whenever the run is repeated. If it is not, the run has diverged from itself, which is an error.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import msgspec

from shoal import __version__
from shoal.errors import Diverged, JournalChanged, JournalCorrupt, JournalIncomplete, StorageFailed
from shoal.text import format_count
from shoal.types import Observation

#: Purposes of keys. A turn has one decision, or the outcome of a turn that failed.
DECIDE, OUTCOME = "decide", "outcome"
#: How a turn ended in which a person was in the agent's seat.
SEAT = "seat"
#: Questions asked in the background, beside an agent's turns.
REMEMBER, EMBED = "remember", "embed"
BACKGROUND_PURPOSES = frozenset({REMEMBER, EMBED})
#: Events, which belong to no agent.
INJECT, CONTINUE = "inject", "continue"
EVERY_WORLD = "*"
#: The end of a journal is searched for its last line in blocks of this size.
_BLOCK_BYTES = 1 << 16


class JournalKey(str):
    """The key of a line: its text form `world/round/agent/purpose/n`, with the parts as attributes.

    The keys of events have no agent, and their text leaves it out.
    """

    __slots__ = ("agent", "n", "purpose", "round", "world")

    world: str
    round: int
    agent: int | str | None
    purpose: str
    n: int | str

    def __new__(cls, world: str, round: int, agent: int | str | None, purpose: str, n: int | str = 0) -> JournalKey:
        owner = f"{world}/{round}" if agent is None else f"{world}/{round}/{agent}"
        key = str.__new__(cls, f"{owner}/{purpose}/{n}")
        key.world, key.round, key.agent, key.purpose, key.n = world, round, agent, purpose, n
        return key

    @classmethod
    def of_turn(cls, observation: Observation, purpose: str = DECIDE) -> JournalKey:
        return cls(observation.world, observation.round, observation.agent, purpose)

    @classmethod
    def parse(cls, text: str) -> JournalKey:
        """Read a key back from its text form."""
        world, round, *agent, purpose, n = text.split("/")
        owner = _number_or_text(agent[0]) if agent else None
        return cls(world, int(round), owner, purpose, _number_or_text(n))

    @property
    def turn(self) -> tuple[str, int, int | str | None]:
        """World, round and agent: what all questions of one turn have in common."""
        return self.world, self.round, self.agent

    def next(self) -> JournalKey:
        """Make the key of a further question for the same purpose."""
        assert isinstance(self.n, int)
        return JournalKey(self.world, self.round, self.agent, self.purpose, self.n + 1)


def _number_or_text(part: str) -> int | str:
    return int(part) if part.isdecimal() else part


class JournalLine(msgspec.Struct, frozen=True, omit_defaults=True, rename={"inherited": "from"}):
    """One line of the journal. Its key is a plain text when it was read from disk."""

    key: str
    request: str = ""
    reply: Any = None
    outcome: str | None = None
    reason: str | None = None
    event: dict[str, Any] | None = None
    #: Tokens. Earlier versions wrote what the server said, whatever it was.
    usage: dict[str, Any] | None = None
    ms: int = 0
    #: The run this line was inherited from, where the run is a fork.
    inherited: str | None = None
    #: Whether the line answers only the same request, as an inherited one does.
    conditional: bool = False

    @property
    def round(self) -> int:
        return int(self.key.split("/", 2)[1])

    @property
    def is_continuation(self) -> bool:
        """Whether the line extends the run, rather than injecting an event into it."""
        return self.event is not None and self.key.split("/", 3)[2] == CONTINUE


def _encode_key(value: object) -> str:
    if isinstance(value, JournalKey):
        return str(value)
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


#: Makes lines durable on another machine.
KeepLines = Callable[[bytes], Awaitable[None]]

_encode = msgspec.json.Encoder(enc_hook=_encode_key).encode
_decode = msgspec.json.Decoder(JournalLine).decode


class JournalMark(msgspec.Struct, frozen=True):
    """How far a journal was written, and the digest of what it held then: bytes before the mark never change."""

    bytes: int = 0
    digest: str = ""


def digest(request: object) -> str:
    """Compute what identifies a request: the same request has the same digest on every machine."""
    return blake2b(_encode(request), digest_size=16).hexdigest()


class Journal:
    """The journal of one run: in memory for looking up, on disk for good.

    Lines of many concurrent decisions share one write and one sync. `written_by` is the version of Shoal that created
    the run. With `keep_elsewhere`, lines are durable once they are on another machine, and are not synced here.
    """

    def __init__(
        self,
        path: Path,
        lines: list[JournalLine],
        file: int | None,
        written_by: str = __version__,
        keep_elsewhere: KeepLines | None = None,
    ) -> None:
        self._path = path
        self._file = file
        self._written_by = written_by
        self._keep_elsewhere = keep_elsewhere
        self._own: dict[str, JournalLine] = {}
        self._inherited: dict[str, JournalLine] = {}
        self.events: list[JournalLine] = []
        #: How many requests this run has made outside, those to a person in a seat not counted.
        self.calls = 0
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._hash = blake2b(digest_size=16)
        #: How far the file is written.
        self.mark = JournalMark()
        for line in lines:
            self._index(line)

    @classmethod
    def open(cls, path: Path, written_by: str = __version__, keep_elsewhere: KeepLines | None = None) -> Journal:
        """Open for reading and appending. A torn last line was never acted upon, so it is cut off."""
        texts = _read_whole_lines(path)
        lines = _parse_lines(path, texts)
        length = sum(map(len, texts)) + len(texts)
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
            os.ftruncate(file, length)
            os.lseek(file, length, os.SEEK_SET)
        except OSError as error:
            raise StorageFailed.writing(path, error.strerror) from error
        journal = cls(path, lines, file, written_by, keep_elsewhere)
        for text in texts:
            journal._hash.update(text + b"\n")
        journal.mark = JournalMark(length, journal._hash.hexdigest())
        return journal

    @classmethod
    def open_part(
        cls, path: Path, written_by: str, keep_elsewhere: KeepLines, is_wanted: Callable[[JournalLine], bool]
    ) -> Journal:
        """Open a part of a journal that another process writes: lines go there, and are durable once it says so."""
        lines = _parse_lines(path, _read_whole_lines(path))
        return cls(path, [line for line in lines if is_wanted(line)], None, written_by, keep_elsewhere)

    @classmethod
    def sealed(cls, path: Path, written_by: str = __version__, mark: JournalMark | None = None) -> Journal:
        """Open for reading only. Raises JournalChanged where what was written before the mark is not there any more.

        Lines after the mark are those of a worker that goes on, or that was killed before it wrote how far it was.
        """
        texts = _read_whole_lines(path)
        lines = _parse_lines(path, texts)
        if mark is not None and mark.bytes:
            size, found = 0, blake2b(digest_size=16)
            for text in texts:
                if size >= mark.bytes:
                    break
                size += len(text) + 1
                found.update(text + b"\n")
            if (size, found.hexdigest()) != (mark.bytes, mark.digest):
                missing = mark.bytes - sum(map(len, texts)) - len(texts)
                raise JournalChanged(
                    path,
                    f"{format_count(missing, 'byte')} of it are missing" if missing > 0 else "lines of it were changed",
                )
        return cls(path, lines, None, written_by)

    @property
    def is_sealed(self) -> bool:
        return self._file is None and self._keep_elsewhere is None

    def __iter__(self) -> Iterator[JournalLine]:
        yield from self._inherited.values()
        yield from self._own.values()

    def holds(self, key: JournalKey) -> bool:
        """Return whether there is any line under this key."""
        return key in self._own or key in self._inherited

    def find(self, key: JournalKey, request: Callable[[], str]) -> JournalLine | None:
        """Return the run's own line under this key, whatever it answers, or an inherited one for this request.

        The digest of the request may be expensive, so it is computed only where there is a line to compare it with.
        """
        if (own := self._own.get(key)) is not None:
            return own
        line = self._inherited.get(key)
        return line if line is not None and line.request == request() else None

    def lookup(self, key: JournalKey, request: Callable[[], str]) -> JournalLine | None:
        """Return the line that answers this request, or None where it must be made now.

        Raises Diverged if the run made another request under this key before. Raises JournalIncomplete if the journal
        is sealed and has no answer.
        """
        own = self._own.get(key)
        if own is not None and own.request != (now := request()):
            raise Diverged(
                f"{key}: the journal answers request {own.request}, but this run now asks {now}.",
                written_by=self._written_by,
            )
        line = own or self.find(key, request)
        if line is None and self.is_sealed:
            raise JournalIncomplete(f"the journal has no reply under {key}; `shoal resume` the run to complete it")
        return line

    async def record(self, line: JournalLine) -> None:
        """Append the line. On return it is on disk."""
        await self.append(_encode(line) + b"\n")
        self._index(line)

    def append(self, text: bytes) -> asyncio.Future[None]:
        """Append whole lines, which are not looked up here. They are on disk when the result is there."""
        if self.is_sealed:
            raise AssertionError("a sealed journal cannot be written to")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((text, done))
        if self._flusher is None:
            self._flusher = asyncio.create_task(self._flush())
        return done

    def add(self, line: JournalLine, *, sync: bool = True) -> None:
        """Append the line at once, while no decision is under way. Without `sync`, a power cut may undo it."""
        if (error := self._write(_encode(line) + b"\n", sync)) is not None:
            raise error
        self._index(line)

    def _index(self, line: JournalLine) -> None:
        if line.event is not None:
            self.events.append(line)
            if line.is_continuation:
                # From this round on, own lines answer only the same request, as inherited ones do.
                later = [key for key, known in self._own.items() if known.round >= line.round]
                self._inherited.update((key, self._own.pop(key)) for key in later)
        elif line.inherited is not None:
            self._inherited[line.key] = line
        else:
            self.calls += f"/{SEAT}/" not in line.key
            (self._inherited if line.conditional else self._own)[line.key] = line

    async def _flush(self) -> None:
        """Write the waiting lines in batches until none is left, each batch with one sync."""
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                error = await self._keep(b"".join(text for text, _ in batch))
                for _, done in batch:
                    if done.done():
                        continue
                    if error is None:
                        done.set_result(None)
                    else:
                        done.set_exception(error)
        finally:
            self._flusher = None

    async def _keep(self, text: bytes) -> StorageFailed | None:
        """Make lines durable; return what prevented it."""
        if self._keep_elsewhere is None:
            return await asyncio.to_thread(self._write, text)
        if self._file is None or (error := self._write(text, sync=False)) is None:
            try:
                await self._keep_elsewhere(text)
            except StorageFailed as lost:
                return lost
            return None
        return error

    def _write(self, text: bytes, sync: bool = True) -> StorageFailed | None:
        assert self._file is not None
        try:
            view = memoryview(text)
            while view:
                view = view[os.write(self._file, view) :]
            if sync:
                os.fsync(self._file)
        except OSError as error:
            return StorageFailed.writing(self._path, error.strerror)
        self._hash.update(text)
        self.mark = JournalMark(self.mark.bytes + len(text), self._hash.hexdigest())
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


def read_journal(path: Path) -> tuple[list[JournalLine], int]:
    """Read all whole lines, and how many bytes they take. Only the last line may be torn."""
    texts = _read_whole_lines(path)
    return _parse_lines(path, texts), sum(map(len, texts)) + len(texts)


class EventReader:
    """Reads the events that users caused, without parsing the replies around them. A later call reads only on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._lines = 0

    def read(self) -> list[JournalLine]:
        """Read the events that were added since the last call."""
        try:
            if self._path.stat().st_size <= self._offset:
                return []
        except FileNotFoundError:
            return []
        texts = _read_whole_lines(self._path, self._offset)
        numbered = enumerate(texts, self._lines + 1)
        lines = [_parse_line(self._path, number, text) for number, text in numbered if b'"event":' in text]
        self._offset += sum(map(len, texts)) + len(texts)
        self._lines += len(texts)
        return [line for line in lines if line.event is not None]


def _read_whole_lines(path: Path, offset: int = 0) -> list[bytes]:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageFailed(f"cannot read {path}: {error.strerror}") from error


def _parse_lines(path: Path, texts: list[bytes]) -> list[JournalLine]:
    return [_parse_line(path, number, text) for number, text in enumerate(texts, 1)]


def _parse_line(path: Path, number: int, text: bytes) -> JournalLine:
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise JournalCorrupt(path, number, str(error)) from error


def add_line(path: Path, line: JournalLine) -> None:
    """Append a line to a journal without a worker. On return it is on disk. A torn last line is cut off."""
    with _write_synced(path, "r+b") as file:
        end, block = file.seek(0, os.SEEK_END), b""
        while end and b"\n" not in block:
            start = max(end - _BLOCK_BYTES, 0)
            file.seek(start)
            block, end = file.read(end - start), start
        file.seek(end + block.rfind(b"\n") + 1)
        file.truncate()
        file.write(_encode(line) + b"\n")


def write_lines(path: Path, lines: list[JournalLine]) -> None:
    """Write the first lines of a new journal. On return they are on disk."""
    with _write_synced(path, "xb") as file:
        file.write(b"".join(_encode(line) + b"\n" for line in lines))


@contextmanager
def _write_synced(path: Path, mode: str) -> Iterator[IO[bytes]]:
    try:
        with path.open(mode) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StorageFailed.writing(path, error.strerror) from error
