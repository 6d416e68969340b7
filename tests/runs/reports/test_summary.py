"""The summary of a run counts what happened in it."""

from __future__ import annotations

from pathlib import Path

from shoal.runs.directory import RunDirectory
from shoal.runs.reports.summary import summarize
from tests.engine.harness import village
from tests.runs.harness import start


def test_posts_on_topic_are_those_that_agents_read_as_on_topic(tmp_path: Path) -> None:
    texts = {
        "Ada": "I grew up beside the old bridge.",
        "Bea": "The bridge is old, and I like it.",
        "Cid": "They want to close the old bridge!",
        "Dan": "A new bicycle for the summer",
    }
    posts = [
        {"round": 1, "agent": name, "action": "CREATE_POST", "args": {"content": text}} for name, text in texts.items()
    ]
    likes = [{"round": 2, "agent": "Dan", "action": "LIKE_POST", "args": {"post_id": 1}}]
    scenario = village(list(texts), rounds=2, mind={"kind": "scripted", "turns": posts + likes})
    start({**scenario, "topic": "closing the old bridge"}, tmp_path / "run")
    (world,) = summarize(RunDirectory(tmp_path / "run")).worlds
    assert world.talk is not None
    assert world.talk.posts_by_round == (0, 3, 0)
    assert world.talk.people_by_round[1] == 3
    assert sum(camp.posts for camp in world.talk.camps) == 3
