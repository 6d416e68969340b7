"""The examples do what they are there to show."""

from __future__ import annotations

import ast
import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from shoal.runs.directory import RunDirectory
from shoal.runs.operations import create_run
from shoal.runs.reports.summary import summarize
from shoal.runs.state import Status
from shoal.scenario import sample
from shoal.scenario.loading import load
from shoal.worlds.social.kind import SOCIAL
from tests.runs.harness import check_consistency, go_on, repeat

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.yaml"))


@pytest.fixture(scope="module", params=EXAMPLES, ids=lambda path: path.stem)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    directory = create_run(load(request.param), tmp_path_factory.mktemp("runs") / request.param.stem)
    assert go_on(directory).status is Status.COMPLETED
    return directory


def platforms(run: RunDirectory) -> list[str]:
    """Worlds where people post."""
    return [name for name, world in run.scenario_versions.first.worlds.items() if world.kind in SOCIAL.names]


def test_an_example_runs_without_errors_and_replays(run: RunDirectory) -> None:
    state = run.read_state()
    assert (state.errors, state.timeouts) == (0, 0)
    assert sum(world.rejected for world in state.worlds.values()) < 0.02 * state.actions_count
    assert repeat(run).actions == state.actions_count
    check_consistency(run.path, finished=True)


def test_nobody_says_the_same_thing_twice(run: RunDirectory) -> None:
    for name in platforms(run):
        with closing(sqlite3.connect(run.file(f"{name}_simulation.db"))) as database:
            said = database.execute(
                "SELECT user_id, coalesce(quote_content, content) FROM post "
                "WHERE original_post_id IS NULL OR quote_content IS NOT NULL "
                "UNION ALL SELECT user_id, content FROM comment"
            ).fetchall()
        assert [text for text, times in Counter(said).items() if times > 1] == []


def test_the_topic_reaches_most_people_little_by_little(run: RunDirectory) -> None:
    for world in summarize(run).worlds:
        if world.name not in platforms(run):
            continue
        assert world.talk is not None
        reached = world.talk.people_by_round
        assert reached[4] < 0.5 * reached[-1]
        assert reached[-1] > 0.7 * len(sample(run.scenario))


def test_the_two_who_negotiate_come_closer_from_scene_to_scene(tmp_path: Path) -> None:
    directory = create_run(load(EXAMPLES[0].with_name("negotiation.yaml")), tmp_path / "run")
    go_on(directory)
    with closing(sqlite3.connect(directory.file("dialogue_simulation.db"))) as database:
        scenes = database.execute("SELECT turning_point, agreement FROM scene ORDER BY scene").fetchall()
        scores = database.execute("SELECT count(score) FROM score").fetchall()
    assert all(turning_point for turning_point, _ in scenes)
    assert 0.7 < scenes[0][1] < scenes[1][1]
    assert scores == [(4,)]


def test_the_focus_group_comes_to_life_when_it_is_shown_the_product(tmp_path: Path) -> None:
    directory = create_run(load(EXAMPLES[0].with_name("focus-group.yaml")), tmp_path / "run")
    go_on(directory)
    with closing(sqlite3.connect(directory.file("room_simulation.db"))) as database:
        said = database.execute("SELECT created_at, user_id, content FROM utterance").fetchall()
        relations = database.execute("SELECT count(*) FROM relation WHERE created_at > 0").fetchall()
    per_round = Counter(round for round, _, _ in said)
    assert per_round[10] > 2 * sum(per_round[round] for round in range(5, 10)) / 5
    assert len({(who, words) for _, who, words in said}) == len(said)
    assert relations > [(0,)]


OWN_WORLD = Path(__file__).parents[1] / "examples" / "own_world.py"


def test_a_world_of_ones_own_does_what_it_says(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(OWN_WORLD)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    lake = [float(line.split()[1]) for line in done.stdout.splitlines()]
    assert len(lake) == 17
    # Overfished until everybody was told, and growing again from then on.
    assert lake[1:10] == sorted(lake[1:10], reverse=True)
    assert lake[9:] == sorted(lake[9:])


def test_a_world_and_a_mind_of_ones_own_take_few_lines() -> None:
    lengths = {
        node.name: (node.end_lineno or 0) - node.lineno + 1
        for node in ast.parse(OWN_WORLD.read_text()).body
        if isinstance(node, ast.ClassDef)
    }
    assert set(lengths) == {"Lake", "Fisher"}
    assert max(lengths.values()) < 40


NOTEBOOK = EXAMPLES[0].parent / "focus-group.ipynb"


def test_the_notebook_was_executed_and_is_short() -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(cells) < 15
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert not any(output["output_type"] == "error" or output.get("name") == "stderr" for output in outputs)


@pytest.mark.slow
def test_the_cells_of_the_notebook_run(tmp_path: Path) -> None:
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    script = "\n".join("".join(cell["source"]) for cell in cells)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "Dea.agent.json").exists()
