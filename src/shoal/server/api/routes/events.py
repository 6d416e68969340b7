"""Streams what happens in a run as server-sent events, from any point on and without a gap.

The id of an event says how far each world's stream was read, in bytes, and which history that was. Bytes of a committed
round never change. So a client that comes back, to this server or to another one, goes on exactly where it was.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, suppress
from typing import Annotated

import msgspec
from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from shoal.errors import QueryFailed
from shoal.runs import ARCHIVE, RunDirectory, format_state
from shoal.runs.reports import format_line, is_end
from shoal.server.api.context import Context, ServerContext, find_run
from shoal.server.api.guard import RequestRefused
from shoal.server.messages.base import RunId

router = APIRouter(tags=["events"])

_HEARTBEAT_SECONDS = 15.0
#: A change of a file that the system did not tell of is found after this time.
_LOOK_SECONDS = 2.0
#: So much is read before what was read is sent.
_MAX_CHUNK_BYTES = 1 << 18
#: Fields of a state that change although nothing happens.
_RESTLESS = frozenset({"updated_at", "metrics", "measured", "limits", "prefixes", "spending"})
_EVENT_ID = re.compile(r"(\d{1,9})((?:;[a-z][a-z0-9_-]{0,63}:\d{1,18})*)")


class StreamPosition:
    """How far a client has read a run."""

    def __init__(self, history: int, offsets: dict[str, int]) -> None:
        #: The number of histories that were archived before this one.
        self.history = history
        self.offsets = offsets

    @classmethod
    def parse(cls, text: str) -> StreamPosition:
        """Parse the id of an event; QueryFailed where it is none of ours."""
        found = _EVENT_ID.fullmatch(text)
        if found is None:
            raise QueryFailed("Last-Event-ID: this is no id that the server has sent")
        parts = (part.partition(":") for part in found[2].split(";")[1:])
        return cls(int(found[1]), {world: int(offset) for world, _, offset in parts})

    def __str__(self) -> str:
        return ";".join([str(self.history), *(f"{world}:{offset}" for world, offset in self.offsets.items())])


@router.get(
    "/{simulation_id}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def stream_events(
    simulation_id: RunId,
    context: Context,
    last_event_id: Annotated[str, Header(max_length=2_000)] = "",
    since: Annotated[int, Query(ge=0, le=1_000_000, description="Begin with this round.")] = 0,
    until_end: Annotated[bool, Query(description="End the stream when the run has ended or stopped.")] = False,
) -> Response:
    """Stream actions and changes of the state, from the start, from a round, or from `Last-Event-ID` on.

    Events: `action`, `marker` (start and end of a round, notices), `state`, and `restarted` where the run started over.
    """
    run = await find_run(context, simulation_id)
    if len(context.streams) >= context.settings.max_streams:
        raise RequestRefused(429, "too many event streams are open", retry_after=5)
    if last_event_id:
        position = StreamPosition.parse(last_event_id)
    else:
        offsets = {world: run.open_stream(world, since).offset for world in run.worlds}
        position = StreamPosition(_count_histories(run), offsets)
    events = _follow(context, run, position, until_end)
    return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def _count_histories(run: RunDirectory) -> int:
    try:
        return sum(path.name.isdecimal() for path in run.file(ARCHIVE).iterdir())
    except FileNotFoundError:
        return 0


async def _follow(
    context: ServerContext, run: RunDirectory, position: StreamPosition, until_end: bool
) -> AsyncIterator[bytes]:
    assert context.watch is not None
    changed, last_state, loop = asyncio.Event(), b"", asyncio.get_running_loop()
    context.streams.add(changed)
    sent_at = loop.time()
    try:
        with ExitStack() as watches:
            watches.enter_context(context.watch.watching(run.path, changed.set))
            for world in run.worlds:
                stream = run.open_stream(world).path
                if stream.parent.is_dir():
                    watches.enter_context(context.watch.watching(stream.parent, changed.set, appends=True))
            yield b": connected\n\n"
            while not context.is_leaving:
                changed.clear()
                # Read first: the next look finds what is written after it.
                state = run.observe_state()
                history = _count_histories(run)
                if history != position.history:
                    position.history, position.offsets = history, dict.fromkeys(run.worlds, 0)
                    yield _format_event("restarted", position, b'{"history":%d}' % history)
                for chunk in _read_new(run, position):
                    yield chunk
                    sent_at = loop.time()
                    # Others have their turn while a long past is sent.
                    await asyncio.sleep(0)
                shown = {name: value for name, value in format_state(state).items() if name not in _RESTLESS}
                if (told := msgspec.json.encode(shown)) != last_state:
                    last_state, sent_at = told, loop.time()
                    yield _format_event("state", position, told)
                if until_end and not state.runner_status.is_live:
                    # A client that does not read this knows that the connection broke off.
                    yield b": end\n\n"
                    return
                if loop.time() - sent_at > _HEARTBEAT_SECONDS:
                    sent_at = loop.time()
                    yield b": still here\n\n"
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), _LOOK_SECONDS)
    finally:
        context.streams.remove(changed)


def _read_new(run: RunDirectory, position: StreamPosition) -> Iterator[bytes]:
    """Yield the events of all worlds that came since the position, which moves on with them."""
    for world in run.worlds:
        stream, chunk, size = run.open_stream(world), list[bytes](), 0
        stream.offset = position.offsets.setdefault(world, 0)
        if stream.offset > stream.size():
            # A power cut undid what was not yet safe. It is written again, the same.
            continue
        for line in stream.read_texts():
            if is_end(line):
                # The state says so too, and the line goes away when the run is extended.
                break
            position.offsets[world] = stream.offset
            kind = "action" if line.startswith(b'{"round":') else "marker"
            chunk.append(_format_event(kind, position, format_line(line.rstrip(), world)))
            size += len(line)
            if size > _MAX_CHUNK_BYTES:
                yield b"".join(chunk)
                chunk, size = [], 0
        if chunk:
            yield b"".join(chunk)


def _format_event(kind: str, position: StreamPosition, content: bytes) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (str(position).encode(), kind.encode(), content)
