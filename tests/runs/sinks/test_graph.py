"""Graph memory of a run: it follows what is committed, and is the same however often it was interrupted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.runs import RunDirectory, create_run
from shoal.runs.sinks import SinkFollower, open_graph
from shoal.scenario import validate
from shoal.sinks import GraphStore, Position, SinkBatch, answer_question, describe_graph
from tests.runs.harness import branch, go_on, start, stop_after

SCENARIO: dict[str, Any] = {
    "name": "town",
    "topic": "the old bridge",
    "claims": [{"id": "closing", "text": "the old bridge will be closed"}],
    "population": [{"count": 20, "activity": 0.9}, {"name": "Ada Lund"}],
    "rounds": 8,
    "seed": 3,
    "worlds": ["twitter", "reddit"],
    "events": [{"round": 1, "post": "They will close the old bridge.", "by": "Ada Lund", "supports": "closing"}],
}


def list_content(path: Path) -> list[tuple[Any, ...]]:
    """What a graph holds, whatever the order in which the worlds were followed."""
    store = GraphStore(path)
    rows = store.database.execute(
        "SELECT e.event, e.text, f.relation, s.kind, s.key, t.kind, t.key, f.since, f.until, f.times, f.lean,"
        " last.event FROM fact AS f JOIN episode AS e ON e.id = f.episode JOIN episode AS last ON last.id = f.latest"
        " JOIN entity AS s ON s.id = f.source JOIN entity AS t ON t.id = f.target"
    ).fetchall()
    episodes = store.database.execute("SELECT event, text, NULL FROM episode").fetchall()
    store.close()
    return sorted(map(repr, rows + episodes))  # type: ignore[arg-type]


class FaultySink(GraphStore):
    """A graph whose process dies before or after a batch is written."""

    fails_in: int = 0

    def write(self, batch: SinkBatch) -> bool:
        self.fails_in -= 1
        if self.fails_in == 0:
            raise KeyboardInterrupt
        return super().write(batch)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    path = tmp_path_factory.mktemp("graph") / "run"
    start(SCENARIO, path)
    return RunDirectory.open(path)


def test_the_graph_knows_what_was_committed(run: RunDirectory) -> None:
    with open_graph(run) as graph:
        answer = answer_question(graph, "What did Ada Lund say about the bridge?")
        assert any("They will close the old bridge." in episode.text for episode in answer.episodes)
        (told,) = [fact for fact in answer.facts if fact.since == 1 and fact.world == "twitter"]
        assert told.sentence.startswith("Ada Lund supports “the old bridge will be closed”")


def test_following_a_run_while_it_goes_on_gives_the_same_graph(tmp_path: Path, run: RunDirectory) -> None:
    live = create_run(validate(SCENARIO), tmp_path / "run")
    stop_after(live, 3)
    with open_graph(RunDirectory.open(live.path)) as graph:
        part = describe_graph(graph).episodes
    go_on(RunDirectory.open(live.path))
    with open_graph(RunDirectory.open(live.path)) as graph:
        assert describe_graph(graph).episodes > part > 0
    with open_graph(run):
        pass
    assert list_content(live.path / "graph.db") == list_content(run.path / "graph.db")


@pytest.mark.parametrize("fails_in", [1, 2, 3, 5, 9])
def test_a_follower_that_dies_between_batches_loses_and_repeats_nothing(
    tmp_path: Path, run: RunDirectory, fails_in: int
) -> None:
    with open_graph(run):
        whole = list_content(run.path / "graph.db")
    sink = FaultySink(tmp_path / "graph.db")
    sink.fails_in = fails_in
    with pytest.raises(KeyboardInterrupt):
        SinkFollower(run, sink, batch_episodes=5).catch_up()
    sink.close()
    again = GraphStore(tmp_path / "graph.db")
    SinkFollower(run, again).catch_up()
    assert SinkFollower(run, again).catch_up() == 0
    again.close()
    assert list_content(tmp_path / "graph.db") == whole


def test_two_followers_at_once_write_nothing_twice(tmp_path: Path, run: RunDirectory) -> None:
    first, second = GraphStore(tmp_path / "graph.db"), GraphStore(tmp_path / "graph.db")
    batches = list(SinkFollower(run, first).read_batches("twitter", Position()))
    assert all(first.write(batch) for batch in batches)
    assert not any(second.write(batch) for batch in batches)
    first.close()
    second.close()


def test_a_stream_that_was_made_anew_is_followed_from_the_start(tmp_path: Path) -> None:
    start(SCENARIO, tmp_path / "run")
    with open_graph(RunDirectory.open(tmp_path / "run")) as graph:
        before = describe_graph(graph).episodes
    branch(tmp_path / "run", tmp_path / "fork", 4, sets=["mind.persuasion=0.9"])
    for world in ("twitter", "reddit"):
        stream = tmp_path / "run" / world / "actions.jsonl"
        stream.write_bytes((tmp_path / "fork" / world / "actions.jsonl").read_bytes())
    with open_graph(RunDirectory.open(tmp_path / "run")) as graph:
        after = describe_graph(graph).episodes
    with open_graph(RunDirectory.open(tmp_path / "fork")):
        pass
    assert list_content(tmp_path / "run" / "graph.db") == list_content(tmp_path / "fork" / "graph.db")
    assert before != after


def test_a_round_that_is_not_whole_is_left_for_later(tmp_path: Path) -> None:
    start(SCENARIO, tmp_path / "run")
    stream = tmp_path / "run" / "twitter" / "actions.jsonl"
    content = stream.read_bytes()
    lines = content.splitlines(keepends=True)
    end = next(n for n, line in enumerate(lines) if b'"round_end","round":5' in line)
    stream.write_bytes(b"".join(lines[: end - 1]) + lines[end - 1][:20])
    run = RunDirectory.open(tmp_path / "run")
    with open_graph(run) as graph:
        last = graph.database.execute("SELECT max(round) FROM episode WHERE world = 'twitter'").fetchone()
        assert last == (4,)
    stream.write_bytes(content)
    with open_graph(run) as graph:
        assert graph.database.execute("SELECT max(round) FROM episode WHERE world = 'twitter'").fetchone()[0] >= 5
