"""The examples do what they are there to show."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from shoal.runs.directory import RunDirectory
from shoal.runs.state import Status
from shoal.runs.summary import summarize
from shoal.runs.verbs import create
from shoal.scenario.files import load
from tests.runs.harness import check_consistency, go_on, repeat

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.yaml"))


@pytest.fixture(scope="module", params=EXAMPLES, ids=lambda path: path.stem)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    directory = create(load(request.param), tmp_path_factory.mktemp("runs") / request.param.stem)
    assert go_on(directory).status is Status.COMPLETED
    return directory


def test_an_example_runs_without_errors_and_replays(run: RunDirectory) -> None:
    state = run.state()
    assert (state.errors, state.timeouts) == (0, 0)
    assert sum(world.rejected for world in state.worlds.values()) < 0.02 * state.actions_count
    assert repeat(run).actions == state.actions_count
    check_consistency(run.path, finished=True)


def test_nobody_says_the_same_thing_twice(run: RunDirectory) -> None:
    for name in run.state().worlds:
        with closing(sqlite3.connect(run.file(f"{name}_simulation.db"))) as database:
            said = database.execute(
                "SELECT user_id, coalesce(quote_content, content) FROM post "
                "WHERE original_post_id IS NULL OR quote_content IS NOT NULL "
                "UNION ALL SELECT user_id, content FROM comment"
            ).fetchall()
        assert [text for text, times in Counter(said).items() if times > 1] == []


def test_the_topic_reaches_most_people_little_by_little(run: RunDirectory) -> None:
    for world in summarize(run).worlds:
        assert world.talk is not None
        reached = world.talk.people_by_round
        assert reached[4] < 0.5 * reached[-1]
        assert reached[-1] > 0.7 * 200
