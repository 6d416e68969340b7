"""Event streams: everything once and in order, across reconnects and restarts."""

from __future__ import annotations

import http.client
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any, cast

from shoal.runs.directory import RunDirectory
from shoal.runs.operations import create_run
from shoal.scenario.loading import validate
from shoal.server import ServerEvent
from tests.runs.harness import go_on, stop_after
from tests.server.conftest import SCENARIO, RunningServer, Serve


def take(events: Iterator[ServerEvent], count: int) -> list[ServerEvent]:
    with closing(cast(Generator[ServerEvent, None, None], events)):
        return [next(events) for _ in range(count)]


def read_raw(server: RunningServer, path: str, last_event_id: str = "") -> list[dict[str, str]]:
    """Read a stream to its end, as an EventSource does."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
    connection.request("GET", f"/api/simulation/{path}", headers=headers)
    response = connection.getresponse()
    assert response.getheader("content-type", "").startswith("text/event-stream")
    events: list[dict[str, str]] = []
    text = response.read().decode()
    response.close()
    connection.close()
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            events.append(fields)
    return events


def test_a_stream_that_is_taken_up_anywhere_has_no_gap_and_no_repeat(serve: Serve, finished: str) -> None:
    server = serve()
    with server.client() as client:
        whole = [event for event in client.events(finished) if event.kind != "state"]
        for cut in (1, 2, len(whole) // 2, len(whole) - 1):
            before = take(client.events(finished), cut)
            after = [event for event in client.events(finished, after=before[-1].id) if event.kind != "state"]
            assert [event.data for event in [*before, *after]] == [event.data for event in whole]


def test_a_stream_goes_on_at_another_server(serve: Serve, finished: str) -> None:
    first = serve()
    events = read_raw(first, f"{finished}/events?until_end=true")
    at = events[10]["id"]
    first.stop()
    rest = read_raw(serve(), f"{finished}/events?until_end=true", at)
    assert [event["data"] for event in rest] == [event["data"] for event in events[11:]]


def test_a_stream_can_begin_with_a_round(serve: Serve, finished: str) -> None:
    with serve().client() as client:
        events = [event for event in client.events(finished, since=4) if event.kind == "action"]
    assert {event.data["round_num"] for event in events} == {4, 5, 6}


def test_what_is_committed_later_comes_after_what_was_sent(serve: Serve, tmp_path: Any) -> None:
    server = serve()
    run = create_run(validate(SCENARIO), server.folder / "later")
    stop_after(run, 3)
    with server.client() as client:
        before = list(client.events("later"))
        go_on(RunDirectory(run.path))
        after = list(client.events("later", after=before[-1].id))
        whole = list(client.events("later"))
    actions = [event.data["id"] for event in [*before, *after] if event.kind == "action"]
    assert sorted(actions) == sorted(event.data["id"] for event in whole if event.kind == "action")
    assert len(actions) == len(set(actions))
    assert after[-1].data["runner_status"] == "completed"


def test_a_run_that_started_over_is_told_and_begins_anew(serve: Serve, finished: str) -> None:
    server = serve()
    with server.client() as client:
        before = list(client.events(finished))
        run = RunDirectory(server.folder / finished)
        with run.lock():
            run.archive()
        go_on(RunDirectory(run.path))
        after = list(client.events(finished, after=before[-1].id))
    assert after[0].kind == "restarted"
    assert [e.data for e in after if e.kind == "action"] == [e.data for e in before if e.kind == "action"]
