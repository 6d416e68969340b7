"""A sink for Zep: the sentences of a run, as text episodes of one of its graphs, in order.

Zep reads facts out of texts by itself. It has no transactions, and takes an episode twice if it is sent twice. So a
file says what is about to be sent, and every episode says what it holds: after a kill, Zep is asked whether the last
episode arrived.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from shoal.errors import SinkFailed
from shoal.sinks.narration import Narration
from shoal.sinks.sink import Position, SinkBatch
from shoal.text import clip

ZEP_ADDRESS = "https://api.getzep.com"
_SECONDS = 30.0
#: Zep takes 10,000 characters in one episode.
_MAX_CHARS = 9_000
#: How many of the latest episodes are looked through for one that may have arrived.
_LOOKED_THROUGH = 50
_MAX_ANSWER_BYTES = 16 << 20
_STARTED_OVER = "The simulation was started over. What was said of it before no longer holds."


@dataclass(frozen=True, slots=True)
class ZepServer:
    """Where Zep is, which graph is written, and the key."""

    graph: str
    key: str = field(repr=False)
    address: str = ZEP_ADDRESS


class _Place(msgspec.Struct):
    """How far a world was sent: the position, and the number of sentences after it."""

    bytes: int = 0
    digest: str = ""
    sent: int = 0


class _Record(msgspec.Struct):
    """What is known of the episodes that were sent."""

    #: World -> how far it was sent.
    worlds: dict[str, _Place] = {}
    #: What the episode says of itself that was being sent last; empty when it arrived.
    sending: str = ""
    #: The world of that episode, and how many sentences it has.
    world: str = ""
    sentences: int = 0
    #: How often the run was started over.
    histories: int = 0


class ZepSink:
    """Sends the sentences of a run to a graph of Zep."""

    def __init__(self, server: ZepServer, run: str, path: Path, seconds: float = _SECONDS) -> None:
        self._server = server
        self._run = run
        self._path = path
        self._seconds = seconds
        try:
            self._record = msgspec.json.decode(path.read_bytes(), type=_Record)
        except FileNotFoundError:
            self._record = _Record()
        except (OSError, msgspec.DecodeError) as error:
            raise SinkFailed(f"{path}: {error}; without this file everything is sent again") from error
        graph = self._server.graph
        status, _ = self._ask("GET", f"/api/v2/graph/{quote(graph, safe='')}")
        if status == 404:
            self._call("POST", "/api/v2/graph/create", {"graph_id": graph, "name": self._run})
        elif status >= 400:
            raise SinkFailed(f"{self._server.address}: graph {graph}: answered with {status}")
        if self._record.sending:
            self._settle()

    def position(self, world: str) -> Position:
        place = self._record.worlds.get(world, _Place())
        return Position(place.bytes, place.digest)

    def write(self, batch: SinkBatch) -> bool:
        place = self._record.worlds.setdefault(batch.world, _Place())
        if Position(place.bytes, place.digest) != batch.begin:
            return False
        waiting = batch.episodes[place.sent :]
        for part in _split(waiting):
            self._send(batch.world, "\n".join(each.text for each in part), part[-1].time, len(part))
        self._record.worlds[batch.world] = _Place(batch.end.bytes, batch.end.digest)
        self._keep()
        return True

    def clear(self) -> None:
        """Begin anew. What was sent is left there: the graph may hold more than this run, and Zep dates its facts."""
        had_any = any(place.bytes or place.sent for place in self._record.worlds.values())
        self._record = _Record(histories=self._record.histories + had_any)
        self._keep()
        if had_any:
            self._send("", _STARTED_OVER, None, 0)

    def close(self) -> None:
        """Close nothing: each request opens and closes its connection."""

    def _send(self, world: str, text: str, time: str | None, sentences: int) -> None:
        record, place = self._record, self._record.worlds.get(world, _Place())
        record.sending = f"shoal {self._run} {record.histories} {world} {place.bytes}+{place.sent}"
        record.world, record.sentences = world, sentences
        self._keep()
        episode = {"graph_id": self._server.graph, "type": "text", "data": text}
        dated = {} if time is None else {"created_at": time}
        self._call("POST", "/api/v2/graph", {**episode, **dated, "source_description": record.sending})
        self._arrive()

    def _arrive(self) -> None:
        if self._record.world:
            self._record.worlds[self._record.world].sent += self._record.sentences
        self._record.sending = ""
        self._keep()

    def _settle(self) -> None:
        """Find out whether the last episode arrived, whose sender was interrupted."""
        path = f"/api/v2/graph/episodes/graph/{quote(self._server.graph, safe='')}"
        answer = self._call("GET", f"{path}?{urlencode({'lastn': _LOOKED_THROUGH})}")
        known = {each.get("source_description") for each in answer.get("episodes") or ()}
        if self._record.sending in known:
            self._arrive()
        else:
            self._record.sending = ""
            self._keep()

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request, and return its answer; SinkFailed says why there is none."""
        status, answer = self._ask(method, path, body)
        if status >= 400:
            why = clip(str(answer.get("message") or answer.get("error") or ""), 200)
            raise SinkFailed(f"{self._server.address}: {method} {path.partition('?')[0]}: {status} {why}".rstrip())
        return answer

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Send a request, and return status and answer; SinkFailed where there is no answer in time."""
        parts = urlsplit(self._server.address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        connection = (
            http.client.HTTPSConnection(
                parts.hostname or "", port, timeout=self._seconds, context=ssl.create_default_context()
            )
            if parts.scheme == "https"
            else http.client.HTTPConnection(parts.hostname or "", port, timeout=self._seconds)
        )
        headers = {"Authorization": f"Api-Key {self._server.key}", "Content-Type": "application/json"}
        try:
            connection.request(
                method, parts.path.rstrip("/") + path, None if body is None else msgspec.json.encode(body), headers
            )
            response = connection.getresponse()
            content = response.read(_MAX_ANSWER_BYTES)
            found = msgspec.json.decode(content) if content and response.status < 400 else _read_error(content)
            return response.status, found if isinstance(found, dict) else {}
        except (OSError, http.client.HTTPException, msgspec.DecodeError) as error:
            why = str(error) or type(error).__name__
            raise SinkFailed(f"{self._server.address}: {method} {path.partition('?')[0]}: {why}") from error
        finally:
            connection.close()

    def _keep(self) -> None:
        beside = self._path.with_suffix(".new")
        try:
            beside.write_bytes(msgspec.json.encode(self._record))
            beside.replace(self._path)
        except OSError as error:
            raise SinkFailed(f"{self._path}: {error}") from error


def _split(episodes: Sequence[Narration]) -> Iterator[Sequence[Narration]]:
    """Yield episodes that together are short enough for one of Zep's."""
    first = chars = 0
    for number, episode in enumerate(episodes):
        size = len(episode.text) + 1
        if number > first and chars + size > _MAX_CHARS:
            yield episodes[first:number]
            first, chars = number, 0
        chars += size
    if first < len(episodes):
        yield episodes[first:]


def _read_error(content: bytes) -> dict[str, Any]:
    """Read what an error says, which may be anything."""
    try:
        found = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return {"message": content.decode(errors="replace")}
    return found if isinstance(found, dict) else {}
