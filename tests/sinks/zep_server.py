"""A server with the routes of Zep that are used, which is strict about what it is sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

KEY = "z_test"
MAX_CHARS = 10_000
_FIELDS = {"graph_id", "type", "data", "created_at", "source_description"}


class _Handler(BaseHTTPRequestHandler):
    server: ZepServerPeer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self.handle_request(None)

    def do_POST(self) -> None:
        assert self.headers["Content-Type"] == "application/json"
        self.handle_request(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def handle_request(self, body: dict[str, Any] | None) -> None:
        peer = self.server
        if peer.hangs.is_set():
            peer.released.wait(60)
            self.close_connection = True
            return None
        if self.headers["Authorization"] != f"Api-Key {KEY}":
            return self.answer(401, {"message": "unauthorized"})
        parts = urlsplit(self.path)
        with peer.lock:
            if peer.refusals:
                return self.answer(peer.refusals.pop(0), {"message": "try again"})
            status, answer = peer.respond(self.command, unquote(parts.path), parse_qs(parts.query), body)
            is_lost = body is not None and status == 202 and len(peer.episodes) in peer.loses_answers
        if is_lost:
            # The episode was taken; its sender does not hear of it.
            self.close_connection = True
            return None
        return self.answer(status, answer)

    def answer(self, status: int, content: dict[str, Any]) -> None:
        encoded = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)


class ZepServerPeer(ThreadingHTTPServer):
    """Keeps graphs and the episodes that it was sent, and fails where a test wants it to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = threading.Lock()
        self.graphs: set[str] = set()
        self.episodes: list[dict[str, Any]] = []
        #: Status codes with which the next requests are refused.
        self.refusals: list[int] = []
        #: Numbers of episodes, from 1, whose sender gets no answer.
        self.loses_answers: set[int] = set()
        self.hangs, self.released = threading.Event(), threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def respond(
        self, method: str, path: str, query: dict[str, list[str]], body: dict[str, Any] | None
    ) -> tuple[int, dict[str, Any]]:
        match method, path.removeprefix("/api/v2/graph").strip("/").split("/"):
            case "POST", ["create"]:
                assert body is not None
                if body["graph_id"] in self.graphs:
                    return 400, {"message": "the graph exists"}
                self.graphs.add(body["graph_id"])
                return 201, body
            case "POST", [""]:
                assert body is not None
                return self.add(body)
            case "GET", ["episodes", "graph", graph]:
                count = int(query["lastn"][0])
                found = [each for each in self.episodes if each["graph_id"] == graph]
                return 200, {"episodes": [{**each, "content": each["data"]} for each in found[::-1][:count]]}
            case "GET", [graph] if path.startswith("/api/v2/graph/"):
                return (200, {"graph_id": graph}) if graph in self.graphs else (404, {"message": "not found"})
        return 404, {"message": f"no route {method} {path}"}

    def add(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if unknown := body.keys() - _FIELDS:
            return 400, {"message": f"unknown fields {unknown}"}
        if body["graph_id"] not in self.graphs:
            return 404, {"message": "no such graph"}
        if body["type"] not in ("text", "json", "message") or not body["data"] or len(body["data"]) > MAX_CHARS:
            return 400, {"message": "the data is empty, too long, or of no known type"}
        if "created_at" in body:
            datetime.fromisoformat(body["created_at"])
        self.episodes.append({**body, "uuid": str(len(self.episodes))})
        return 202, self.episodes[-1]


@contextmanager
def serve_zep() -> Iterator[ZepServerPeer]:
    with ZepServerPeer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()
