"""Attacks on a server. Each must fail, and must learn nothing from the answer."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ArgumentInvalid
from shoal.server.api.guard import Guard, RateLimiter
from shoal.server.api.settings import ServerSettings
from tests.server.conftest import SCENARIO, RunningServer, Serve

TOKEN = "a-token-that-is-long-enough"

#: Ids that would lead out of the folder, or into files that are none of a client's business.
NO_IDS = [
    "..",
    ".",
    "..%2f..%2fetc",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "....//....//etc",
    "a%00b",
    "%2fetc%2fpasswd",
    "sim_1%0a",
    "a" * 300,
    "-rf",
    ".hidden",
    "sim%20one",
    "sim;rm",
    "C:%5Cwindows",
    "s%C3%AFm",
    "",
]


def check_refusal(server: RunningServer, status: int, body: bytes) -> None:
    """An error is an envelope with a reason, and has nothing of the inside in it."""
    text = body.decode()
    assert "Traceback" not in text
    assert str(server.folder) not in text
    if body:
        answer = json.loads(text)
        assert answer["success"] is False
        assert answer["error"]
    assert 400 <= status < 500


# paths and ids


def test_an_id_that_is_none_is_not_found_and_touches_no_file(serve: Serve) -> None:
    server = serve()
    for identity in NO_IDS:
        for route in ("", "/config", "/run-status", "/actions", "/posts", "/events"):
            answer = server.get(f"{identity}{route}")
            assert answer.status in (404, 405), f"{identity}{route}"
            check_refusal(server, answer.status, answer.body)
    assert not server.folder.exists()


def test_a_link_in_the_folder_leads_nowhere(serve: Serve, finished: str, tmp_path: Path) -> None:
    server = serve()
    outside = tmp_path / "outside"
    (server.folder / finished).rename(outside)
    (server.folder / "linked").symlink_to(outside)
    assert server.get("linked/config").status == 404
    assert server.get("list").json["data"] == []


def test_a_platform_opens_no_other_database(serve: Serve, finished: str, tmp_path: Path) -> None:
    (tmp_path / "outside_simulation.db").write_bytes(b"secret")
    server = serve()
    for platform in ("../../outside", "..%2f..%2foutside", "trace%27--", "/etc/passwd", "twitter%00"):
        for route in ("posts", "comments", "actions", "run-status/detail"):
            answer = server.get(f"{finished}/{route}?platform={platform}")
            assert answer.status == 400, f"{route}?platform={platform}"
            check_refusal(server, answer.status, answer.body)


def test_a_made_up_cursor_is_refused_or_harmless(serve: Serve, finished: str) -> None:
    server = serve()
    for cursor in ("../x:1", "twitter:99999999999999999999999", "twitter", "x" * 5000, "twitter:-1"):
        assert server.get(f"{finished}/actions?cursor={cursor}").status in (200, 400), cursor


def test_a_made_up_event_id_is_refused(serve: Serve, finished: str) -> None:
    server = serve()
    for event_id in ("x", "1;../x:1", "1;twitter:-1", "1;twitter:9;;", "999999999999999999"):
        answer = server.request("GET", f"/api/simulation/{finished}/events", headers={"Last-Event-ID": event_id})
        assert answer.status == 400, event_id


# scenarios are data


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"population": [{"file": "/etc/passwd"}]}, "cannot name files"),
        ({"population": {"file": "people.csv"}}, "cannot name files"),
        ({"population": [{"count": 3, "fragments": ["/etc/hosts"]}]}, "cannot name files"),
        ({"follows": {"file": "/etc/passwd"}}, "cannot name files"),
        ({"sinks": [{"kind": "zep", "address": "http://10.0.0.1"}]}, "leave out address"),
        ({"sinks": ["graph", {"kind": "neo4j", "key_variable": "HOME"}]}, "was not declared"),
        ({"mind": {"kind": "os:system"}}, "cannot name code"),
        ({"worlds": {"mine": {"kind": "subprocess:Popen"}}}, "cannot name code"),
        ({"worlds": {"mine": {"kind": "room", "mind": "os:system"}}}, "cannot name code"),
        ({"worlds": ["os:system"]}, "cannot name code"),
        ({"variables": ["os:getcwd"]}, "cannot name code"),
        ({"interventions": [{"check": "os:getcwd", "do": {"broadcast": "x"}}]}, "cannot name code"),
        ({"interventions": [{"when": "round > 0", "call": "os:getcwd"}]}, "cannot name code"),
        ({"mind": {"kind": "language", "model": "x", "key_variable": "AWS_SECRET_ACCESS_KEY"}}, "was not declared"),
        (
            {"mind": {"kind": "language", "model": "x", "key_variable": "MINE", "base_url": "http://evil.example"}},
            "gets no key of this machine",
        ),
        ({"play": ["Ada"]}, "no terminal at the server"),
        ({"population": "everyone"}, "population"),
        ({"rounds": 10**12}, "rounds"),
    ],
)
def test_a_scenario_that_is_sent_names_nothing_of_the_machine(serve: Serve, change: dict[str, Any], why: str) -> None:
    server = serve(key_variables=frozenset({"MINE"}))
    answer = server.post("create", {"scenario": {**SCENARIO, **change}})
    assert answer.status == 400
    assert why in answer.json["error"]
    check_refusal(server, answer.status, answer.body)
    assert not server.folder.exists() or list(server.folder.iterdir()) == []


def test_a_key_of_the_environment_is_neither_shown_nor_written(serve: Serve) -> None:
    secret = "sk-very-secret-indeed"
    server = serve(environ={"OPENAI_API_KEY": secret, "PATH": "/usr/bin"})
    mind = {"kind": "language", "model": "openai/gpt-4.1-mini"}
    with server.client() as client:
        made = client.create({**SCENARIO, "mind": mind})
    shown = server.get(f"{made.simulation_id}/config").body + server.get(made.simulation_id).body
    assert secret.encode() not in shown
    assert all(secret.encode() not in path.read_bytes() for path in server.folder.rglob("*") if path.is_file())


# who may talk to it


def test_a_foreign_name_that_points_here_is_refused(serve: Serve, finished: str) -> None:
    """DNS rebinding: a page of evil.example lets its own name point at this machine."""
    server = serve()
    for host in ("evil.example", "evil.example:5001", "127.0.0.1.evil.example", "localhost.evil", ""):
        answer = server.request("GET", f"/api/simulation/{finished}/config", headers={"Host": host})
        assert answer.status in (400, 403), host


def test_a_page_of_another_origin_is_refused(serve: Serve, finished: str) -> None:
    server = serve()
    foreign: list[dict[str, str]] = [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "http://127.0.0.1.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ]
    requests: list[tuple[str, str, object]] = [
        ("POST", "/api/simulation/start", {"simulation_id": finished, "force": True}),
        ("GET", f"/api/simulation/{finished}/config", None),
    ]
    for headers in foreign:
        for method, path, body in requests:
            answer = server.request(method, path, body, headers)
            assert answer.status == 403, headers
            assert "access-control-allow-origin" not in answer.headers
    assert not (server.folder / finished / "archive").exists()


def test_a_named_origin_may_call_and_its_browser_is_told_so(serve: Serve, finished: str) -> None:
    server = serve(origins=frozenset({"http://localhost:3000"}))
    headers = {"Origin": "http://localhost:3000"}
    answer = server.request("GET", f"/api/simulation/{finished}/run-status", headers=headers)
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "http://localhost:3000")
    preflight = server.request("OPTIONS", "/api/simulation/start", headers=headers)
    assert preflight.status == 204
    assert "authorization" in preflight.headers["access-control-allow-headers"]


def test_a_form_of_another_page_starts_nothing(serve: Serve, finished: str) -> None:
    server = serve()
    headers = {"Content-Type": "text/plain"}
    answer = server.request("POST", "/api/simulation/start", b'{"simulation_id": "finished", "force": true}', headers)
    assert answer.status == 400
    assert not (server.folder / finished / "archive").exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "example.org"])
def test_no_server_is_open_to_other_machines_without_a_token(host: str) -> None:
    with pytest.raises(ArgumentInvalid, match="a token is needed"):
        ServerSettings(host=host).check()
    with pytest.raises(ArgumentInvalid, match="at least 16"):
        ServerSettings(host=host, token="short").check()
    ServerSettings(host=host, token=TOKEN).check()


def test_without_the_token_nothing_is_answered(serve: Serve, finished: str) -> None:
    server = serve(token=TOKEN, wrong_tokens_at_once=1000)
    wrong: list[dict[str, str]] = [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Cookie": "shoal_token=wrong"},
        {"Cookie": "shoal_token"},
    ]
    for headers in wrong:
        for path in (f"/api/simulation/{finished}/config", "/api/openapi.json", "/api/simulation/list", "/nowhere"):
            answer = server.request("GET", path, headers=headers)
            assert answer.status == 401, headers
            assert "finished" not in answer.body.decode()


def test_the_token_opens_by_header_and_by_cookie(serve: Serve, finished: str) -> None:
    server = serve(token=TOKEN)
    with server.client(TOKEN) as client:
        assert client.status(finished).runner_status == "completed"
    assert server.request("POST", "/api/session", {"token": "wrong"}).status == 401
    session = server.request("POST", "/api/session", {"token": TOKEN})
    cookie = session.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    given = {"Cookie": cookie.partition(";")[0]}
    assert server.request("GET", f"/api/simulation/{finished}/run-status", headers=given).status == 200


def test_tokens_cannot_be_tried_without_end(serve: Serve, finished: str) -> None:
    server = serve(token=TOKEN, wrong_tokens_at_once=5, wrong_tokens_per_second=0.001)
    path = f"/api/simulation/{finished}/config"
    found = [server.request("GET", path, headers={"Authorization": f"Bearer {n}"}).status for n in range(8)]
    assert found == [401] * 5 + [429] * 3
    # Whoever knows it has to wait as well: otherwise an attacker could go on trying.
    assert server.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"}).status == 429


# how much


def test_a_body_that_is_too_long_is_refused_before_it_is_read(serve: Serve) -> None:
    server = serve(max_body_bytes=1000)
    assert server.post("create", {"scenario": {"name": "x" * 2000}}).status == 413
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        head = b"POST /api/simulation/create HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + b"400\r\n" + b"x" * 0x400 + b"\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_a_body_that_never_comes_is_given_up(serve: Serve) -> None:
    server = serve(body_seconds=0.2)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        head = b"POST /api/simulation/create HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
        connection.sendall(head)
        assert connection.recv(100).startswith(b"HTTP/1.1 408")


def test_too_many_requests_are_refused(serve: Serve) -> None:
    server = serve(requests_at_once=5, requests_per_second=0.001)
    assert [server.get("list").status for _ in range(7)] == [200] * 5 + [429] * 2


def test_a_rate_limiter_forgives_with_time() -> None:
    now = [0.0]
    limiter = RateLimiter(2.0, 3, lambda: now[0])
    assert [limiter.allows("a") for _ in range(4)] == [True, True, True, False]
    assert limiter.allows("b")
    now[0] = 0.5
    assert [limiter.allows("a") for _ in range(2)] == [True, False]


def test_too_many_event_streams_are_refused(serve: Serve, finished: str) -> None:
    assert serve(max_streams=0).get(f"{finished}/events").status == 429


MALFORMED = [
    b"",
    b"null",
    b"[]",
    b"{",
    b"\xff\xfe",
    b'{"simulation_id": null}',
    b'{"simulation_id": ["x"]}',
    b'{"simulation_id": "../x"}',
    b'{"simulation_id": "x", "max_rounds": "6"}',
    b'{"simulation_id": "x", "force": "yes"}',
    b"[" * 100_000,
    b'{"simulation_id": "x", "max_rounds": 1e400}',
]


def test_a_malformed_body_is_refused_with_a_reason(serve: Serve) -> None:
    server = serve()
    for route in ("start", "stop", "interview", "close-env", "create", "prepare/status"):
        for body in MALFORMED:
            answer = server.request("POST", f"/api/simulation/{route}", body, {"Content-Type": "application/json"})
            assert answer.status in (400, 404), (route, body[:50])
            check_refusal(server, answer.status, answer.body)


def test_answers_are_not_kept_guessed_at_or_framed(serve: Serve, finished: str) -> None:
    headers = serve().get(f"{finished}/config").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers or "uvicorn" in headers["server"]


def test_a_bug_is_answered_without_its_inside(serve: Serve, finished: str, caplog: pytest.LogCaptureFixture) -> None:
    server = serve()
    (server.folder / finished / "simulation_config.json").write_bytes(b'{"simulation_id": 7}')
    answer = server.get(f"{finished}/run-status")
    assert "Traceback" not in answer.body.decode()
    assert str(server.folder) not in answer.body.decode()
    assert answer.json["success"] is False


# leaving


@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_request_that_a_leaving_server_breaks_off_is_told_to_come_back(has_begun: bool) -> None:
    sent: list[Any] = []
    is_under_way = asyncio.Event()

    async def work(scope: Any, receive: Any, send: Any) -> None:
        if has_begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        is_under_way.set()
        await asyncio.Event().wait()

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    app: Any = work
    scope = {"type": "http", "method": "GET", "path": "/health", "headers": [(b"host", b"127.0.0.1")]}
    request = asyncio.create_task(Guard(app, ServerSettings())(scope, receive, send))
    await is_under_way.wait()
    request.cancel()
    await asyncio.wait({request})
    assert request.cancelled() is has_begun
    assert sent[0]["status"] == (200 if has_begun else 503)
    assert len(sent) == (1 if has_begun else 2)
