"""Handing a run to other tools."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import polars
import pytest

from tests.cli.terminal import SMALL, call, last_object
from tests.formats.test_graphml import parse_file

ROOM = """\
name: room
rounds: 4
population: [{name: Ada, traits: {mood: calm}}, {name: "Bo & <Co>", traits: {mood: wild, pets: 2}}]
worlds: {kitchen: {kind: room}}
mind:
  kind: scripted
  turns:
    - {round: 1, agent: Ada, action: TALK, args: {content: hello, target: "Bo & <Co>"}}
    - {round: 2, agent: Ada, action: REACH_OUT, args: {target: "Bo & <Co>"}}
    - {round: 3, agent: 1, action: TALK, args: {content: "hello, all"}}
"""


@pytest.fixture
def run(folder: Path) -> Path:
    call("run", "small.yaml", "--quiet", "--rounds", "12")
    return folder / "runs" / "small-1"


def export(*args: str) -> dict[str, Any]:
    result = call("export", "runs/small-1", *args, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_table_is_there_row_by_row(run: Path) -> None:
    manifest = export()
    rows = {file["path"]: file["rows"] for file in manifest["files"]}
    for world in ("twitter", "reddit"):
        with closing(sqlite3.connect(run / f"{world}_simulation.db")) as database:
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                count = database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
                assert rows[f"{world}/{name}.csv"] == len(rows_of(run / f"export/{world}/{name}.csv")) == count


def test_the_manifest_says_what_there_is(run: Path) -> None:
    manifest = export("--format", "jsonl")
    assert manifest.pop("out") == "runs/small-1/export"
    assert json.loads((run / "export/manifest.json").read_text()) == manifest
    (replayed,) = call("replay", "runs/small-1", "--json").stdout.splitlines()[-1:]
    assert manifest["digest"] == json.loads(replayed)["digest"]
    found = {path.relative_to(run / "export").as_posix() for path in (run / "export").rglob("*") if path.is_file()}
    assert {file["path"] for file in manifest["files"]} == found - {"manifest.json"}


def test_the_stream_is_one_row_per_action(run: Path) -> None:
    export()
    lines = [json.loads(line) for line in (run / "twitter/actions.jsonl").read_text().splitlines()]
    events = [line for line in lines if "agent_id" in line]
    rows = rows_of(run / "export/twitter/actions.csv")
    assert [(row["id"], json.loads(row["action_args"])) for row in rows] == [
        (event["id"], event["action_args"]) for event in events
    ]
    assert [row["content"] or None for row in rows] == [event["action_args"].get("content") for event in events]
    assert [row["id"] for row in rows if row["own"] == "false"] == ["twitter-0-" + rows[0]["agent_id"] + "-event0"]


def test_people_have_their_traits_and_opinions_at_the_start(folder: Path) -> None:
    (folder / "room.yaml").write_text(ROOM)
    call("run", "room.yaml", "--quiet")
    assert call("export", "runs/room-1", "--out", "out").exit_code == 0
    ada, bo = rows_of(folder / "out/people.csv")
    assert (ada["name"], ada["mood"], ada["pets"]) == ("Ada", "calm", "")
    assert (bo["name"], bo["mood"], bo["pets"]) == ("Bo & <Co>", "wild", "2")
    assert -1 <= float(ada["stance"]) <= 1


def test_talk_between_agents_is_a_graph(folder: Path) -> None:
    (folder / "room.yaml").write_text(ROOM)
    call("run", "room.yaml", "--quiet")
    call("export", "runs/room-1", "--out", "out")
    nodes, edges = parse_file(folder / "out/kitchen/talk.graphml")
    assert [node["name"] for node in nodes.values()] == ["Ada", "Bo & <Co>"]
    assert edges == [("n0", "n1", {"weight": 2, "reach_out": 1, "talk": 1})]
    assert not (folder / "out/kitchen/follows.graphml").exists()


def test_the_graphs_agree_with_the_database(run: Path) -> None:
    export()
    with closing(sqlite3.connect(run / "reddit_simulation.db")) as database:
        follows = set(database.execute("SELECT follower_id, followee_id FROM follow"))
        likes = database.execute(
            'SELECT count(*) FROM "like" JOIN post USING (post_id) WHERE "like".user_id != post.user_id'
        ).fetchone()[0]
    _, edges = parse_file(run / "export/reddit/follows.graphml")
    assert {(int(one[1:]), int(other[1:])) for one, other, _ in edges} == follows
    _, edges = parse_file(run / "export/reddit/talk.graphml")
    assert likes > 0
    assert sum(values["like_post"] for _, _, values in edges) == likes
    assert all(values["weight"] == sum(values.values()) - values["weight"] for _, _, values in edges)


def test_parquet_holds_the_same_as_csv(run: Path) -> None:
    export("--out", "as-csv")
    export("--out", "as-parquet", "--format", "parquet")
    frame = polars.read_parquet("as-parquet/twitter/post.parquet")
    rows = rows_of(Path("as-csv/twitter/post.csv"))
    assert [str(value) for value in frame["post_id"]] == [row["post_id"] for row in rows]
    assert [value or "" for value in frame["content"]] == [row["content"] for row in rows]


@pytest.mark.parametrize(
    ("graph", "expected"),
    [("follows", ["follows.graphml"]), ("talk", ["talk.graphml"]), ("none", [])],
)
def test_only_the_graphs_that_were_asked_for_are_drawn(run: Path, graph: str, expected: list[str]) -> None:
    export("--graph", graph)
    assert [path.name for path in (run / "export/twitter").glob("*.graphml")] == expected


def test_nothing_is_overwritten_unless_it_is_an_export_and_that_is_asked_for(run: Path) -> None:
    export("--graph", "all")
    refused = call("export", "runs/small-1")
    assert refused.exit_code == 3
    assert "--force" in refused.stderr
    export("--graph", "none", "--force")
    assert not list((run / "export").rglob("*.graphml"))
    for args in ((), ("--force",)):
        assert call("export", "runs/small-1", "--out", "runs", *args).exit_code == 3
    assert (run / "simulation_config.json").exists()


def test_what_cannot_be_finished_leaves_nothing_behind(run: Path) -> None:
    (run / "reddit_simulation.db").write_bytes(b"no database at all, but long enough to look like one" * 100)
    before = sorted(run.iterdir())
    assert call("export", "runs/small-1").exit_code == 1
    assert sorted(run.iterdir()) == before


def test_a_run_that_was_never_worked_on_has_its_people_and_nothing_else(run: Path, folder: Path) -> None:
    kept = (run / "simulation_config.json").read_bytes()
    new = folder / "runs" / "new"
    new.mkdir()
    (new / "simulation_config.json").write_bytes(kept)
    result = call("export", "runs/new", "--json")
    assert result.exit_code == 0, result.stderr
    assert [file["path"] for file in json.loads(result.stdout)["files"]] == ["people.csv", "metrics.csv"]


def test_force_replaces_only_what_an_export_made(folder: Path) -> None:
    run = last_object(call("run", "small.yaml", "--json", "--quiet").stdout)["run"]
    assert call("export", run).exit_code == 0
    assert call("export", run, "--force").exit_code == 0
    mine = folder / run / "export" / "twitter" / "notes.txt"
    mine.write_text("mine")
    refused = call("export", run, "--force")
    assert refused.exit_code == 3
    assert "notes.txt, which no export made" in refused.output
    assert mine.read_text() == "mine"
    mine.unlink()
    (folder / run / "export" / "manifest.json").write_text("{}")
    assert call("export", run, "--force").exit_code == 3


def test_raw_leaves_texts_that_spreadsheets_would_run(folder: Path) -> None:
    (folder / "formula.yaml").write_text(SMALL.replace("They say", "=1+1 they say"))
    run = last_object(call("run", "formula.yaml", "--json", "--quiet").stdout)["run"]
    call("export", run)
    quoted = (folder / run / "export/twitter/post.csv").read_text()
    call("export", run, "--force", "--raw")
    raw = (folder / run / "export/twitter/post.csv").read_text()
    assert "'=1+1 they say" in quoted
    assert ",=1+1 they say" in raw


@pytest.mark.parametrize("cost", ["nan", "inf", "-inf", "-1", "0"])
def test_a_budget_that_is_no_number_is_refused(cost: str, folder: Path) -> None:
    refused = call("run", "small.yaml", "--max-cost", cost)
    assert refused.exit_code == 2
    assert "--max-cost" in refused.output
    assert not (folder / "runs").exists() or not list((folder / "runs").iterdir())
