"""Pictures of runs: what is drawn, from which data, and what is refused."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from shoal.errors import RunRefused
from shoal.runs.directory import RunDirectory
from shoal.runs.operations import create_run
from shoal.runs.plots import PlotPage, colour_of, plot_runs
from shoal.runs.plots.history import WorldHistory, read_history
from shoal.scenario import validate
from tests.runs.harness import start

HOSTILE = "<script>alert('bridge')</script> & more"
PLATFORM: dict[str, Any] = {
    "name": "town",
    "topic": "the old bridge",
    "claims": [{"id": "closing", "text": "The old bridge will be closed for good", "truth": False}],
    "population": {"count": 60, "activity": 1},
    "rounds": 8,
    "worlds": ["twitter"],
    "time": {"daily_rhythm": False},
    "events": [
        {"post": "They say the old bridge will be closed!", "by": "most_followed", "supports": "closing"},
        {"broadcast": "Not true.", "round": 5, "denies": "closing"},
    ],
}
RECORDED = Path(__file__).parents[1] / "recorded"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    path = tmp_path_factory.mktemp("plots") / "run"
    start(PLATFORM, path)
    return RunDirectory.open(path)


@pytest.fixture(scope="module")
def history(run: RunDirectory) -> WorldHistory:
    found = read_history(run, "twitter", "run")
    assert found is not None
    return found


def list_pictures(page: PlotPage) -> dict[str, str]:
    return {drawing.name: drawing.svg for section in page.sections for drawing in section.drawings}


def test_every_figure_that_was_recorded_has_a_chart(run: RunDirectory) -> None:
    with sqlite3.connect(run.path / "twitter_simulation.db") as database:
        names = database.execute("SELECT DISTINCT name, about FROM figure WHERE value != 0")
        recorded = {"-".join(filter(None, row)) for row in names}
    assert recorded
    assert recorded <= list_pictures(plot_runs([run])).keys()


def test_figures_that_are_zero_all_the_time_are_left_out(run: RunDirectory) -> None:
    assert "unread" not in list_pictures(plot_runs([run]))


def test_announcements_are_marked_where_they_happen(run: RunDirectory) -> None:
    chart = list_pictures(plot_runs([run]))["mean-closing"]
    assert chart.count('class="event"') == 1
    assert "broadcast: Not true." in chart


def test_people_are_coloured_by_what_opinions_changed_most_about(run: RunDirectory, history: WorldHistory) -> None:
    assert history.find_subject() == "closing"
    network = list_pictures(plot_runs([run]))["network"]
    assert "coloured by belief in closing" in network
    assert "believes" in network


def test_a_platform_has_ridges_cascades_and_a_network_as_whole_documents(run: RunDirectory) -> None:
    pictures = list_pictures(plot_runs([run]))
    assert {"opinions-topic", "opinions-closing", "cascade-1", "network"} <= pictures.keys()
    for svg in pictures.values():
        assert ElementTree.fromstring(svg).tag.endswith("svg")


def test_two_runs_share_each_chart(run: RunDirectory, tmp_path: Path) -> None:
    start({**PLATFORM, "seed": 2}, tmp_path / "other")
    page = plot_runs([run, RunDirectory.open(tmp_path / "other")])
    chart = list_pictures(page)["mean-topic"]
    assert 'class="run0"' in chart
    assert 'class="run1"' in chart
    written = {path.name for path in page.save(tmp_path / "plots")}
    assert {"index.html", "twitter-mean-topic.svg", "twitter-network-1.svg", "twitter-network-2.svg"} <= written


def test_a_page_holds_texts_of_agents_as_text_and_loads_nothing(run: RunDirectory, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "run")
    with sqlite3.connect(tmp_path / "run/twitter_simulation.db") as database:
        database.execute("UPDATE post SET content = ?", (HOSTILE,))
        database.execute("UPDATE user SET name = ?", (HOSTILE,))
    page = plot_runs([RunDirectory.open(tmp_path / "run")]).html
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_opinions_are_those_of_the_database_in_every_round(run: RunDirectory, history: WorldHistory) -> None:
    with sqlite3.connect(run.path / "twitter_simulation.db") as database:
        rows = database.execute("SELECT round, agent_id, value FROM opinion WHERE about = 'closing'").fetchall()
    values = history.opinions["closing"]
    assert len(rows) == np.count_nonzero(~np.isnan(values))
    assert all(values[history.rounds.index(round), agent] == value for round, agent, value in rows)


def test_a_share_came_through_the_latest_sharer_whom_the_person_follows(tmp_path: Path) -> None:
    start({**PLATFORM, "rounds": 1, "events": [], "population": {"count": 5}}, tmp_path / "run")
    with sqlite3.connect(tmp_path / "run/twitter_simulation.db") as database:
        database.executescript("DELETE FROM post; DELETE FROM follow;")
        database.executemany(
            "INSERT INTO post (post_id, user_id, original_post_id, content) VALUES (?, ?, ?, 'x')",
            [(1, 0, None), (2, 1, 1), (3, 2, 1), (4, 3, 1), (5, 4, 1)],
        )
        # 2 follows 1; 3 follows 1 and 2; 4 follows nobody.
        database.executemany("INSERT INTO follow VALUES (?, ?, ?, 0)", [(1, 2, 1), (2, 3, 1), (3, 3, 2)])
    found = read_history(RunDirectory.open(tmp_path / "run"), "twitter", "run")
    assert found is not None
    [cascade] = found.cascades
    assert [(share.agent, share.parent, share.depth) for share in cascade] == [
        (0, None, 0), (1, 0, 1), (2, 1, 2), (3, 2, 3), (4, 0, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "world",
    [{"kind": "room"}, {"kind": "dialogue", "pairs": [["Ada", "Ben"]], "scenes": [{"setting": "a café", "turns": 4}]}],
    ids=["room", "dialogue"],
)
def test_rooms_and_dialogues_are_drawn_too(world: dict[str, Any], tmp_path: Path) -> None:
    people = [{"name": "Ada", "stance": 0.7}, {"name": "Ben", "stance": -0.5}]
    start({"topic": "the pool", "rounds": 4, "population": people, "worlds": {"place": world}}, tmp_path / "run")
    pictures = list_pictures(plot_runs([RunDirectory.open(tmp_path / "run")]))
    assert "activity" in pictures
    assert "network" not in pictures


def test_a_run_that_recorded_no_state_is_refused_with_what_to_do(tmp_path: Path) -> None:
    shutil.copytree(RECORDED / "platforms", tmp_path / "old")
    with pytest.raises(RunRefused, match="Run it again"):
        plot_runs([RunDirectory.open(tmp_path / "old")])


def test_a_run_that_has_not_begun_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunRefused, match="nothing is recorded"):
        plot_runs([create_run(validate(PLATFORM), tmp_path / "new")])


def test_more_runs_than_can_be_told_apart_are_refused(run: RunDirectory) -> None:
    with pytest.raises(RunRefused, match="at most 6"):
        plot_runs([run] * 7)


def test_opinions_have_one_colour_everywhere() -> None:
    assert (colour_of(-1), colour_of(0), colour_of(1)) == ("#d96c06", "#a8aeb7", "#1f6fd6")
    assert colour_of(float("nan")) == "#d0d7de"
