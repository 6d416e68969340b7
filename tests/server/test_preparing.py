"""Preparing over HTTP, in the shapes of MiroFish: with real processes, which outlive the server."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ServerRefused
from shoal.preparation import PreparationFolder
from shoal.preparation.folder import LOCK
from shoal.python.rehearsal import rehearse
from shoal.server import Client
from shoal.unix import read_lock
from tests.preparation.texts import ASKED_TOWN, TOWN
from tests.server.conftest import Serve, wait_until

STAGES = ("reading", "generating_profiles", "generating_config", "copying_scripts")


def create(client: Client, **settings: Any) -> str:
    made = client.create_from_documents(ASKED_TOWN, {"town.md": TOWN}, **{"people": 30, "rounds": 3, **settings})
    assert (made.status, made.config_generated) == ("created", False)
    return made.simulation_id


def prepare_whole(client: Client, identity: str) -> None:
    client.prepare(identity)
    wait_until(lambda: client.preparation(identity).status == "ready")


def test_a_requirement_becomes_a_simulation_that_starts(serve: Serve) -> None:
    with serve().client() as client:
        identity = create(client, worlds=["twitter", "reddit"])
        assert client.preparation(identity).status == "not_started"
        begun = client.prepare(identity)
        assert (begun.status, begun.already_prepared) == ("preparing", False)
        assert begun.task_id
        wait_until(lambda: client.preparation(identity).status == "ready")
        done = client.preparation(identity)
        assert (done.progress, done.already_prepared) == (100, True)
        assert done.prepare_info["entities_count"] == 30
        assert client.get(identity).status == "ready"
        names = [profile["name"] for profile in client.profiles(identity).profiles]
        assert "Tom Brennan" in names
        assert client.config(identity)["scenario"]["topic"] == "the closure of the old bridge"
        client.start(identity)
        wait_until(lambda: client.status(identity).runner_status == "completed")
        again = client.prepare(identity)
        assert (again.status, again.already_prepared) == ("ready", True)


def test_what_was_found_is_shown_with_its_sentences_and_the_scenario_as_one_text(serve: Serve) -> None:
    server = serve()
    with server.client() as client:
        identity = create(client)
        early = server.get(f"{identity}/preparation/result")
        assert (early.status, "not prepared yet" in early.json["error"]) == (409, True)
        listed = server.get("preparations").json["data"]
        assert [(one["simulation_id"], one["status"], one["people"]) for one in listed] == [
            (identity, "not_started", 30)
        ]
        prepare_whole(client, identity)
        info = server.get(f"{identity}/preparation").json["data"]
        assert (info["status"], info["requirement"], info["documents"]) == ("ready", ASKED_TOWN, ["town.md"])
        result = server.get(f"{identity}/preparation/result").json["data"]
        tom = next(entity for entity in result["entities"] if entity["name"] == "Tom Brennan")
        assert tom["sentences"][0]["document"] == "town.md"
        assert all(sentence["text"] in " ".join(TOWN.split()) for sentence in tom["sentences"])
        assert result["drawn"] == 30 - len(result["entities"])
        # The text names no file, so that any server takes it as it is, with the same people in the same places.
        assert server.post("check", {"text": result["text"]}).json["data"] == []
        edited = server.post("create", {"text": result["text"]}).json["data"]["simulation_id"]
        names = [[profile["name"] for profile in client.profiles(one).profiles] for one in (identity, edited)]
        assert [len(each) for each in names] == [30, 30]
        found = len(result["entities"])
        assert names[0][:found] == names[1][:found]
        assert server.get(f"{edited}/preparation").status == 404


def test_the_state_of_a_task_has_the_fields_of_mirofish(serve: Serve) -> None:
    server = serve()
    with server.client() as client:
        identity = create(client)
        task = client.prepare(identity).task_id
        answer = server.post("prepare/status", {"task_id": task})
        assert answer.status == 200
        wait_until(lambda: client.preparation(identity).status == "ready")
        assert server.post("prepare/status", {"task_id": task}).json["data"]["already_prepared"] is True
        folder = PreparationFolder(server.folder / ".preparations" / identity)
        seen = server.context.preparations
        assert seen.find_task(task).path == folder.path
    wanted = {
        "task_id",
        "task_type",
        "status",
        "progress",
        "message",
        "progress_detail",
        "metadata",
        "already_prepared",
    }
    # Before the run is there, the same folder is described as a task.
    config = server.folder / identity / "simulation_config.json"
    config.rename(config.with_suffix(".away"))
    found = server.post("prepare/status", {"simulation_id": identity}).json["data"]
    assert wanted <= set(found)
    detail = found["progress_detail"]
    assert detail["current_stage"] in STAGES
    assert (detail["stage_index"], detail["total_stages"]) == (4, 4)
    assert (found["status"], "preparing again" in found["error"]) == ("failed", True)


def test_a_preparation_outlives_the_server_and_goes_on_after_a_kill(serve: Serve) -> None:
    with rehearse(latency_seconds=0.3) as model:
        environ = {**os.environ, "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "rehearsal"}
        server = serve(environ=environ)
        with server.client() as client:
            identity = create(client, model="openai/rehearsal")
            client.prepare(identity)
        folder = PreparationFolder(server.folder / ".preparations" / identity)
        wait_until(lambda: bool(read_lock(folder.work / LOCK)))
        server.stop()
        worker = int(read_lock(folder.work / LOCK) or 0)
        assert worker not in (0, os.getpid())
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: not folder.has_worker())
        with serve(environ=environ).client() as client:
            interrupted = client.preparation(identity)
            assert (interrupted.status, "goes on with it" in (interrupted.error or "")) == ("failed", True)
            prepare_whole(client, identity)
            assert client.get(identity).status == "ready"


def test_a_second_process_is_never_started(serve: Serve) -> None:
    server = serve()
    with server.client() as client:
        identity = create(client)
        folder = PreparationFolder(server.folder / ".preparations" / identity)
        with folder.lock():
            assert client.prepare(identity).status == "preparing"
            assert read_lock(folder.work / LOCK) == str(os.getpid())


def test_what_is_not_prepared_cannot_be_started(serve: Serve) -> None:
    server = serve()
    with server.client() as client:
        identity = create(client)
        assert client.get(identity).status == "created"
        with pytest.raises(ServerRefused, match="is not prepared yet") as refused:
            client.start(identity)
        assert refused.value.status == 400
        growing = server.get(f"{identity}/profiles/realtime").json["data"]
        assert (growing["count"], growing["is_generating"]) == (0, False)
        assert server.get(f"{identity}/config/realtime").json["data"]["config_generated"] is False
        assert client.list_simulations() == []


def test_wrong_requests_are_answered_with_the_field_and_read_no_file(serve: Serve, tmp_path: Path) -> None:
    server = serve()
    secret = tmp_path / "secret.txt"
    secret.write_text("Ada Secret, a spy, said that nobody should read this.")
    for path, body, status in (
        ("prepare", {"simulation_id": "sim_000000000000"}, 404),
        ("prepare/status", {}, 400),
        ("prepare/status", {"task_id": "none"}, 404),
        ("prepare/status", {"simulation_id": "../x"}, 400),
        ("create", {"requirement": ""}, 400),
        ("create", {"requirement": "x", "people": 0}, 400),
        ("create", {"requirement": "x", "worlds": ["mars"]}, 400),
        ("create", {"requirement": "x", "documents": [{"name": "a", "path": str(secret)}]}, 400),
        ("create", {"requirement": "x", "marginals": [{"name": "t", "text": "age,count\nyoung,1\n"}]}, 400),
    ):
        answer = server.post(path, body)
        assert answer.status == status, answer.body
        assert answer.json["success"] is False
    with server.client() as client:
        made = client.create_from_documents("What of it?", {str(secret): "Nothing is said here."})
        prepare_whole(client, made.simulation_id)
        assert "Secret" not in str(client.profiles(made.simulation_id).profiles)
