"""Runs over HTTP, with real workers: started, watched, interviewed, stopped, continued, and outliving the server."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ServerRefused
from shoal.runs.directory import RunDirectory
from shoal.runs.launchers import find_worker
from shoal.server import Client
from tests.runs.harness import check_consistency
from tests.scenario.importers.mirofish_directory import write_directory
from tests.server.conftest import SCENARIO, Serve, wait_until

LONG = {**SCENARIO, "rounds": 100_000}


def start_long(client: Client) -> str:
    identity = client.create(LONG).simulation_id
    client.start(identity)
    wait_until(lambda: client.status(identity).current_round > 1)
    return identity


def test_a_simulation_is_created_started_and_runs_to_its_end(serve: Serve) -> None:
    with serve().client() as client:
        identity = client.create(SCENARIO).simulation_id
        started = client.start(identity)
        assert started.force_restarted is False
        events = list(client.events(identity))
        assert client.status(identity).runner_status == "completed"
        actions = [event.action for event in events if event.kind == "action"]
        assert sorted(action.id for action in actions) == sorted(a.id for a in client.all_actions(identity))
        assert client.environment(identity).env_alive is True
        assert client.close_environment(identity).success
        assert client.environment(identity).env_alive is False


def test_a_run_is_stopped_and_continued(serve: Serve) -> None:
    server = serve()
    with server.client() as client:
        identity = start_long(client)
        with pytest.raises(ServerRefused, match="is being worked on") as refused:
            client.start(identity)
        assert refused.value.status == 409
        stopped = client.stop(identity)
        assert (stopped.runner_status, stopped.resumable) == ("stopped", True)
        client.start(identity)
        wait_until(lambda: client.status(identity).current_round > stopped.current_round)
        client.stop(identity)
        with pytest.raises(ServerRefused, match="is not running"):
            client.stop(identity)
    check_consistency(server.folder / identity, finished=False)


def test_force_archives_what_was_written(serve: Serve) -> None:
    server = serve()
    with server.client() as client:
        identity = start_long(client)
        assert client.start(identity, force=True).force_restarted is True
        client.stop(identity)
    assert (server.folder / identity / "archive" / "1" / "twitter" / "actions.jsonl").stat().st_size > 0


def test_max_rounds_makes_a_run_shorter_and_never_longer(serve: Serve) -> None:
    with serve().client() as client:
        shorter, longer = (client.create(SCENARIO).simulation_id for _ in range(2))
        client.start(shorter, max_rounds=3)
        client.start(longer, max_rounds=600)
        for identity, rounds in [(shorter, 3), (longer, 6)]:
            list(client.events(identity))
            status = client.status(identity)
            assert (status.runner_status, status.current_round, status.total_rounds) == ("completed", rounds, rounds)


def test_a_run_outlives_its_server_and_the_next_one_finds_it(serve: Serve) -> None:
    first = serve()
    with first.client() as client:
        identity = start_long(client)
        before = client.status(identity)
    first.stop()
    second = serve()
    with second.client() as client:
        found = client.status(identity)
        assert (found.runner_status, found.process_pid) == ("running", before.process_pid)
        wait_until(lambda: client.status(identity).current_round > before.current_round)
        assert client.stop(identity).runner_status == "stopped"


def test_two_servers_on_one_folder_see_the_same(serve: Serve) -> None:
    one, two = serve(), serve()
    with one.client() as first, two.client() as second:
        identity = start_long(first)
        assert second.status(identity).process_pid == first.status(identity).process_pid
        assert second.pause(identity).result == {"runner_status": "paused"}
        assert first.status(identity).runner_status == "paused"
        second.stop(identity)
        assert first.status(identity).runner_status == "stopped"


def test_a_killed_worker_is_a_failure_with_a_reason_and_starting_continues(serve: Serve) -> None:
    server = serve()
    with server.client() as client:
        identity = start_long(client)
        worker = find_worker(RunDirectory(server.folder / identity))
        assert worker is not None
        os.kill(worker.pid, signal.SIGKILL)
        wait_until(lambda: client.status(identity).runner_status == "failed")
        status = client.status(identity)
        assert "the worker ended without a word" in str(status.error)
        assert status.resumable is True
        client.start(identity)
        assert client.status(identity).runner_status == "running"


def test_an_event_is_injected_into_a_run_that_goes_on(serve: Serve) -> None:
    with serve().client() as client:
        identity = start_long(client)
        client.pause(identity)
        event = client.inject(identity, {"broadcast": "The bridge is closed."}).result
        client.unpause(identity)
        notices = (each for each in client.events(identity, since=event["round"]) if each.kind == "marker")
        found = next(each.data for each in notices if each.data.get("event_type") == "broadcast")
        assert (found["content"], found["round"]) == ("The bridge is closed.", event["round"])
        with pytest.raises(ServerRefused, match="did you mean 'broadcast'"):
            client.inject(identity, {"brodcast": "?"})


def test_only_so_many_simulations_run_at_once(serve: Serve) -> None:
    with serve(max_workers=1).client() as client:
        start_long(client)
        second = client.create(SCENARIO).simulation_id
        with pytest.raises(ServerRefused, match="the most that this server starts"):
            client.start(second)


def test_an_interview_that_takes_too_long_is_answered_with_504(serve: Serve, finished: str) -> None:
    server = serve()
    body: dict[str, Any] = {"simulation_id": finished, "agent_id": 0, "prompt": "Hello?", "timeout": 0.001}
    assert server.post("interview", body).status == 504
    commands = server.folder / finished / "ipc_commands"
    assert not commands.exists() or list(commands.iterdir()) == []


def test_agents_without_a_model_say_so(serve: Serve, finished: str) -> None:
    with serve().client() as client, pytest.raises(ServerRefused, match="have no language model") as refused:
        client.interview(finished, 0, "Hello?")
    assert refused.value.status == 400


def test_a_directory_that_mirofish_prepared_is_run_where_it_is(serve: Serve, tmp_path: Path) -> None:
    server = serve()
    server.folder.mkdir()
    write_directory(server.folder / "sim_0123456789ab")
    with server.client() as client:
        assert client.get("sim_0123456789ab").status == "ready"
        client.start("sim_0123456789ab", max_rounds=2)
        list(client.events("sim_0123456789ab"))
        assert client.status("sim_0123456789ab").runner_status == "completed"
    assert (server.folder / "sim_0123456789ab" / "reddit_profiles.json").exists()
    assert "scenario" not in json.loads((server.folder / "sim_0123456789ab" / "prepared_config.json").read_text())


def test_a_mirofish_config_can_be_sent_with_its_people(serve: Serve, tmp_path: Path) -> None:
    write_directory(tmp_path / "prepared")
    config = json.loads((tmp_path / "prepared" / "simulation_config.json").read_text())
    profiles = json.loads((tmp_path / "prepared" / "reddit_profiles.json").read_text())
    server = serve()
    with server.client() as client:
        made = client.create(config=config, reddit_profiles=profiles)
        assert made.profiles_count == len(profiles)
        with pytest.raises(ServerRefused):
            client.create(config={"agent_configs": "?"})
    assert len(list(server.folder.iterdir())) == 1


def test_a_simulation_that_cannot_be_read_does_not_hide_the_others(serve: Serve, finished: str) -> None:
    server = serve()
    broken = server.folder / "sim_broken"
    broken.mkdir()
    (broken / "simulation_config.json").write_text("{}")
    assert [entry["simulation_id"] for entry in server.get("list").json["data"]] == [finished]
    assert [entry["simulation_id"] for entry in server.get("history").json["data"]] == [finished]
    assert server.get("sim_broken").status == 400
