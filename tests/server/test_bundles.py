"""Runs and experiments as folders of static files."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import RunMissing, RunRefused
from shoal.server.api import bundle_folder
from tests.runs.harness import start
from tests.server.conftest import SCENARIO, Serve


def read_file(bundle: Path, name: str) -> Any:
    """The content of a file of data, which is a script."""
    text = (bundle / "data" / f"{name}.js").read_text()
    head = f'shoalBundle.add("{name}",'
    assert text.startswith(head)
    assert text.endswith(");\n")
    return json.loads(text[len(head) : -3])


@pytest.fixture
def bundle(finished: str, tmp_path: Path) -> Path:
    bundle_folder(tmp_path / "runs" / finished, tmp_path / "bundle")
    return tmp_path / "bundle"


def test_a_bundle_holds_what_the_server_would_answer(bundle: Path, serve: Serve, finished: str) -> None:
    server = serve()
    run = read_file(bundle, "run-finished")
    assert run["header"] == server.get(f"{finished}/overview").json["data"]
    assert run["figures"] == server.get(f"{finished}/figures").json["data"]
    assert run["people"]["people"] == server.get(f"{finished}/people?limit=200").json["data"]["items"]
    feed = read_file(bundle, "world-finished-twitter")["feed"]
    assert feed["posts"] == server.get(f"{finished}/feed?world=twitter&limit=200").json["data"]["items"]
    assert read_file(bundle, "index")["runs"] == [run["header"]]


def test_reactions_of_a_bundle_tell_what_a_feed_was_like_in_the_past(bundle: Path, serve: Serve, finished: str) -> None:
    past = serve().get(f"{finished}/feed?world=reddit&limit=200&until=4").json["data"]["items"]
    feed = read_file(bundle, "world-finished-reddit")["feed"]
    for post in past:
        for kind in ("likes", "dislikes", "shares", "comments"):
            rounds = feed["reactions"][kind].get(str(post["post_id"]), [])
            assert sum(round <= 4 for round in rounds) == post[kind], (post["post_id"], kind)


def test_a_bundle_explains_turns_as_the_server_does(bundle: Path, serve: Serve, finished: str) -> None:
    server = serve()
    entries = read_file(bundle, "agent-finished-3")
    explained = [entry for entry in entries if entry["route"].endswith("/explain")]
    assert explained
    for entry in (explained[0], explained[-1]):
        values = entry["values"]
        route = f"{finished}/explain?agent=3&round={values['round']}&world={values['world']}"
        assert entry["answer"] == server.get(route).json["data"]


def test_a_bundle_needs_a_new_folder_a_run_and_built_pages(finished: str, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(RunRefused, match="not empty"):
        bundle_folder(tmp_path / "runs" / finished, tmp_path / "full")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunMissing, match="neither a run nor an experiment"):
        bundle_folder(tmp_path / "empty", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_server_packs_a_bundle_into_one_file(serve: Serve, finished: str) -> None:
    server = serve()
    answer = server.get(f"{finished}/bundle")
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.body)) as packed:
        assert {"finished-bundle/index.html", "finished-bundle/data/index.js"} <= set(packed.namelist())
    assert server.get("nothing/bundle").status == 404


def test_a_server_without_pages_says_what_to_do(serve: Serve, tmp_path: Path) -> None:
    start({**SCENARIO, "rounds": 1}, tmp_path / "runs" / "short")
    answer = serve(pages=tmp_path / "nowhere").get("short/bundle")
    assert answer.status == 503
    assert "SKIP_FRONTEND" in answer.json["error"]
