from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from shoal.runs.directory import RunDirectory
from shoal.runs.operations import extend_run
from shoal.runs.stream import (
    ActionStream,
    RoundEnd,
    RoundStart,
    SimulationEnd,
    SimulationStart,
    StreamLine,
    encode_marker,
    parse_line,
)
from shoal.scenario.loading import override
from shoal.types import Event, Notice
from tests.runs.harness import go_on, read_lines, start

SCENARIO = {
    "name": "town",
    "rounds": 4,
    "population": {"count": 5},
    "worlds": {"twitter": {}},
    "mind": {"kind": "heuristic"},
    "events": [{"round": 2, "broadcast": "There will be rain."}],
}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    start(SCENARIO, tmp_path / "run")
    return RunDirectory(tmp_path / "run")


def list_rounds(lines: list[StreamLine]) -> list[int]:
    return [line.round for line in lines if isinstance(line, RoundStart)]


def test_every_line_is_read_as_what_it_is(run: RunDirectory) -> None:
    lines = list(run.open_stream("twitter").read())
    assert isinstance(lines[0], SimulationStart)
    assert isinstance(lines[-1], SimulationEnd)
    assert list_rounds(lines) == [0, 1, 2, 3, 4]
    assert [line.content for line in lines if isinstance(line, Notice)] == ["There will be rain."]
    written = read_lines(run.path / "twitter" / "actions.jsonl")
    assert sum(isinstance(line, Event) for line in lines) == sum("action_type" in line for line in written)


def test_a_marker_is_written_as_it_is_read() -> None:
    marker = RoundEnd(3, 7, 1.5, "ab", "2026-01-01T10:00:00+00:00")
    text = encode_marker(marker)
    assert list(json.loads(text)) == [
        "event_type",
        "round",
        "actions_count",
        "simulated_hours",
        "digest",
        "timestamp",
    ]
    assert parse_line(text) == marker


def test_reading_begins_with_a_round_and_ends_with_one(run: RunDirectory) -> None:
    assert list_rounds(list(run.open_stream("twitter", since=3).read())) == [3, 4]
    lines = list(run.open_stream("twitter", since=1).read(until=2))
    assert list_rounds(lines) == [1, 2]
    assert isinstance(lines[-1], RoundEnd)
    assert list(run.open_stream("twitter", since=9).read()) == list(run.open_stream("twitter").read())[-1:]


def test_nothing_before_the_offset_is_read(run: RunDirectory) -> None:
    offset = run.open_stream("twitter", since=4).offset
    path = run.path / "twitter" / "actions.jsonl"
    path.write_bytes(b"\0" * offset + path.read_bytes()[offset:])
    assert list_rounds(list(ActionStream(path, offset).read())) == [4]


def test_actions_of_one_agent_and_notices_of_one_type(run: RunDirectory) -> None:
    everything = [line for line in run.open_stream("twitter").read() if isinstance(line, Event)]
    assert list(run.open_stream("twitter").read_actions()) == everything
    assert list(run.open_stream("twitter").read_actions(agent=1)) == [
        event for event in everything if event.agent_id == 1
    ]
    assert [notice.round for notice in run.open_stream("twitter").read_notices(event_type="broadcast")] == [2]
    assert not list(run.open_stream("twitter").read_notices(event_type="mute"))
    assert len(list(run.open_stream("twitter").read_notices())) == 1


def test_a_torn_last_line_is_left_until_it_is_whole(run: RunDirectory) -> None:
    path = run.path / "twitter" / "actions.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-60])
    stream = ActionStream(path)
    before = list(stream.read())
    assert list(stream.read()) == []
    path.write_bytes(whole)
    assert before + list(stream.read()) == list(ActionStream(path).read())


def test_a_position_outlasts_the_end_of_a_run_that_is_extended(run: RunDirectory) -> None:
    stream = run.open_stream("twitter")
    before = list(stream.read())
    extend_run(run, override(run.scenario_versions.first, ["rounds=6"]))
    go_on(run)
    added = list(stream.read())
    assert list_rounds(added) == [5, 6]
    assert before[:-1] + added == list(run.open_stream("twitter").read())


def test_a_stream_that_is_not_there_yet_has_no_lines(tmp_path: Path) -> None:
    assert list(ActionStream(tmp_path / "twitter" / "actions.jsonl").read()) == []


async def test_following_waits_for_what_is_still_being_written(run: RunDirectory) -> None:
    path = run.path / "twitter" / "actions.jsonl"
    whole = path.read_bytes()
    path.unlink()
    followed: list[StreamLine] = []
    lines = aiter(ActionStream(path).follow(is_live=lambda: True, poll_seconds=0))
    waiting = asyncio.ensure_future(anext(lines))
    for end in (0, 100, 101, len(whole) // 2, len(whole) - 1, len(whole)):
        path.write_bytes(whole[:end])
        for _ in range(len(list(ActionStream(path).read())) - len(followed)):
            followed.append(await waiting)
            waiting = asyncio.ensure_future(anext(lines))
    assert followed == list(ActionStream(path).read())
    with pytest.raises(StopAsyncIteration):
        await waiting


async def test_following_ends_with_a_round_or_with_the_writer(run: RunDirectory) -> None:
    lines = [line async for line in run.open_stream("twitter").follow(until=2, is_live=lambda: True)]
    assert isinstance(lines[-1], RoundEnd)
    assert lines[-1].round == 2
    path = run.path / "twitter" / "actions.jsonl"
    path.write_bytes(path.read_bytes()[:-60])
    left = [line async for line in ActionStream(path).follow(is_live=lambda: False)]
    assert list_rounds(left) == [0, 1, 2, 3, 4]
