"""Surveys over HTTP: people are chosen, asked side by side, and their answers downloaded."""

from __future__ import annotations

import csv
import io
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from shoal.python.rehearsal import rehearse
from tests.server.conftest import RunningServer, Serve, wait_until

QUESTIONS = [
    {"question": "Will you go?", "fields": {"go": "yes/no", "sure": "integer 0-10"}},
    {"question": "Why?", "fields": {"why": "text"}},
]
MODEL = "openai/gpt-4.1-mini"


@pytest.fixture
def server(serve: Serve) -> Iterator[RunningServer]:
    """A server whose models are those of a rehearsal."""
    with rehearse(seed=3) as model:
        environ = {**os.environ, "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "rehearsal"}
        yield serve(environ=environ)


def start(server: RunningServer, run: str, **body: Any) -> dict[str, Any]:
    asked = server.post("survey", {"simulation_id": run, "questions": QUESTIONS, **body})
    assert asked.status == 200, asked.body
    found: dict[str, Any] = asked.json["data"]
    return found


def wait(server: RunningServer, survey: dict[str, Any]) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while survey["state"] in ("waiting", "copying", "asking"):
        assert time.monotonic() < deadline, survey
        # A server refuses clients that ask without a pause.
        time.sleep(0.02)
        found = server.get(f"{survey['simulation_id']}/survey/{survey['survey_id']}")
        assert found.status == 200, found.body
        survey = found.json["data"]
    return survey


def test_people_answer_in_the_form_that_was_asked_for(server: RunningServer, finished: str) -> None:
    survey = wait(server, start(server, finished, model=MODEL, who=[1, 4, 7], round=3))
    assert (survey["state"], survey["error"]) == ("completed", None)
    assert (survey["people"], survey["done"], survey["total"], survey["round"]) == (3, 3, 3, 3)
    assert [row["agent"] for row in survey["rows"]] == [1, 4, 7]
    for row in survey["rows"]:
        assert row["go"] in ("yes", "no")
        assert 0 <= row["sure"] <= 10
        assert row["why"]
    assert survey["stand_in"] is True
    assert survey["spending"]["calls"] == 3
    fields = [(field["name"], field["kind"]) for item in survey["items"] for field in item["fields"]]
    assert fields == [("go", "choice"), ("sure", "integer"), ("why", "text")]
    listed = server.get(f"{finished}/surveys").json["data"]
    assert [(one["survey_id"], one["rows"]) for one in listed] == [(survey["survey_id"], [])]


def test_answers_are_downloaded_as_tables(server: RunningServer, finished: str) -> None:
    survey = wait(server, start(server, finished, model=MODEL, sample=2))
    path = f"{finished}/survey/{survey['survey_id']}/table"
    table = server.get(f"{path}.csv")
    assert table.headers["content-disposition"] == f'attachment; filename="{finished}-survey.csv"'
    rows = list(csv.DictReader(io.StringIO(table.body.decode())))
    assert [row["name"] for row in rows] == [row["name"] for row in survey["rows"]]
    assert server.get(f"{path}.json").json["data"]["rows"] == survey["rows"]


def test_people_are_counted_before_anybody_is_asked(server: RunningServer, finished: str) -> None:
    found = server.post("survey/people", {"simulation_id": finished, "where": "number < 5"}).json["data"]
    assert found["count"] == len(found["names"]) == 5
    assert found["needs_model"] is True
    wrong = server.post("survey/people", {"simulation_id": finished, "where": "height > 3"})
    assert (wrong.status, wrong.json["field"]) == (400, "where")
    assert "nobody has a trait 'height'" in wrong.json["error"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"model": None}, "model"),
        ({"questions": []}, "questions"),
        ({"questions": [{"question": "Go?", "fields": {"go": "maybe"}}]}, "questions"),
        ({"who": [12]}, "who"),
        ({"round": 7}, "round"),
        ({"max_cost": -1}, "max_cost"),
    ],
)
def test_what_is_wrong_with_a_survey_is_said_at_once(
    server: RunningServer, finished: str, body: dict[str, Any], field: str
) -> None:
    refused = server.post("survey", {"simulation_id": finished, "questions": QUESTIONS, "model": MODEL, **body})
    assert (refused.status, refused.json["field"]) == (400, field)


def test_a_survey_that_is_ended_asks_nobody_else(server: RunningServer, finished: str) -> None:
    survey = start(server, finished, model=MODEL)
    ended = server.post("survey/end", {"simulation_id": finished, "survey_id": survey["survey_id"]})
    assert ended.status == 200
    # It may have been over already.
    assert wait(server, ended.json["data"])["state"] in ("ended", "completed")


def test_a_survey_whose_model_does_not_answer_says_why(serve: Serve, finished: str) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI")}
    server = serve(environ=environ)
    survey = wait(server, start(server, finished, model=MODEL, who=[1]))
    assert survey["state"] == "failed" or survey["rows"][0]["error"]
    assert "OPENAI_API_KEY" in (survey["error"] or survey["rows"][0]["error"])


def test_a_survey_outlives_its_server_and_is_asked_on(server: RunningServer, serve: Serve, finished: str) -> None:
    done = wait(server, start(server, finished, model=MODEL, sample=2, round=3))
    with rehearse(seed=3, latency_seconds=600) as silent:
        environ = {**os.environ, "OPENAI_BASE_URL": silent.base_url, "OPENAI_API_KEY": "rehearsal"}
        leaving = serve(environ=environ)
        survey = start(leaving, finished, model=MODEL, who=[2, 5])
        leaving.stop()
    assert server.get(f"{finished}/survey/{done['survey_id']}").json["data"] == done
    wait_until(lambda: server.get(f"{finished}/surveys").json["data"][0]["state"] == "interrupted")
    listed = server.get(f"{finished}/surveys").json["data"]
    assert [one["survey_id"] for one in listed] == [survey["survey_id"], done["survey_id"]]
    choice = {"simulation_id": finished, "survey_id": survey["survey_id"]}
    found = wait(server, server.post("survey/continue", choice).json["data"])
    assert (found["state"], [row["agent"] for row in found["rows"]]) == ("completed", [2, 5])
    assert server.post("survey/continue", choice).status == 409


def test_a_survey_of_another_run_is_not_found(server: RunningServer, finished: str) -> None:
    assert server.get(f"{finished}/survey/{'0' * 12}").status == 404
    assert server.get("nobody/surveys").status == 404
