"""The report of a run: sentences whose evidence is there."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from shoal.runs import RunDirectory, create_run
from shoal.runs.narrative import render_html, render_markdown, tell_run
from shoal.runs.narrative.narrative import measure_influence
from shoal.scenario import validate
from tests.runs.harness import start

RUMOUR: dict[str, Any] = {
    "name": "town",
    "topic": "the old bridge",
    "claims": [{"id": "closing", "text": "the old bridge will be closed", "truth": "false", "appeal": 2.5}],
    "population": [{"count": 60, "activity": 0.8}, {"name": "Ada <b>Lund</b>"}],
    "rounds": 24,
    "seed": 5,
    "time": {"daily_rhythm": False},
    "worlds": ["twitter"],
    "events": [
        {"round": 0, "post": "They will close the old bridge.", "by": 60, "supports": "closing"},
        {"round": 9, "broadcast": "The old bridge stays open.", "denies": "closing"},
    ],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    path = tmp_path_factory.mktemp("narrative") / "town"
    start(RUMOUR, path)
    return RunDirectory.open(path)


def test_every_action_that_a_sentence_names_is_in_the_streams(run: RunDirectory) -> None:
    narrative = tell_run(run)
    named = {event for section in narrative.sections for each in section.statements for event in each.events}
    streams = "".join(path.read_text() for path in run.path.glob("*/actions.jsonl"))
    acted = {line["id"] for line in map(json.loads, streams.splitlines()) if "id" in line}
    assert len(named) > 3
    assert named <= narrative.evidence.keys()
    assert {event for event in named if "notice" not in event} <= acted


def test_the_report_tells_the_turn_that_a_denial_made(run: RunDirectory) -> None:
    sections = {section.heading: section for section in tell_run(run).sections}
    turns = [each for each in sections["Turning points"].statements if "The old bridge stays open." in each.text]
    assert any("round 9" in each.text or "round 10" in each.text for each in turns)
    assert {"In short", "Turning points", "Who moved whom", "What spread", "Camps"} <= sections.keys()


def test_the_report_is_the_same_each_time(run: RunDirectory) -> None:
    assert render_html(tell_run(run)) == render_html(tell_run(run))


def test_texts_of_agents_are_neither_html_nor_markdown(run: RunDirectory) -> None:
    narrative = tell_run(run)
    assert "Ada <b>" not in render_html(narrative)
    assert "Ada &lt;b&gt;Lund" in render_html(narrative)
    assert "Ada <b>" not in render_markdown(narrative)


def test_the_page_needs_nothing_else_and_runs_nothing(run: RunDirectory) -> None:
    page = render_html(tell_run(run))
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("kind", ["room", "dialogue"])
def test_other_worlds_have_a_report_too(tmp_path: Path, kind: str) -> None:
    world: dict[str, Any] = {"kind": kind} | ({"pairs": [["Ada", "Ben"]]} if kind == "dialogue" else {})
    people = [{"name": "Ada"}, {"name": "Ben"}]
    start(
        {"name": "talk", "topic": "tea", "population": people, "rounds": 6, "worlds": {"place": world}}, tmp_path / "r"
    )
    narrative = tell_run(RunDirectory.open(tmp_path / "r"))
    assert narrative.sections[0].heading == "In short"
    assert render_markdown(narrative).startswith("# What happened in r")


def test_a_run_that_has_not_begun_has_a_report(tmp_path: Path) -> None:
    run = create_run(validate(RUMOUR), tmp_path / "new")
    assert tell_run(run).sections


def test_nobody_is_said_to_have_moved_further_than_they_did(run: RunDirectory) -> None:
    with sqlite3.connect(run.path / "twitter_simulation.db") as database:
        rows = database.execute("SELECT about, agent_id, value FROM opinion_change ORDER BY round").fetchall()
    way: dict[int, float] = defaultdict(float)
    last: dict[tuple[str, int], float] = {}
    for about, agent, value in rows:
        way[agent] += abs(value - last.get((about, agent), value))
        last[about, agent] = value
    told: dict[int, float] = defaultdict(float)
    influences = measure_influence(run, "twitter")
    assert influences
    for influence in influences:
        assert influence.agent not in influence.people
        assert influence.moved == pytest.approx(sum(moved for moved, _ in influence.people.values()))
        for agent, (moved, event) in influence.people.items():
            told[agent] += moved
            assert f"-{agent}-" in event
    assert all(told[agent] <= way[agent] + 1e-9 for agent in told)
