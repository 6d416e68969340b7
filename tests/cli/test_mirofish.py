"""Running a directory that MiroFish prepared."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.terminal import call, last_object
from tests.scenario.importers.mirofish_directory import write_directory


def test_a_prepared_directory_is_run_as_it_is(folder: Path) -> None:
    write_directory(folder / "sim")
    result = call("run", "sim", "--rounds", "3")
    assert result.exit_code == 0
    assert result.stderr.startswith("MiroFish directory: fields ")
    assert "shoal import sim --dry-run shows every one" in result.stderr
    assert (folder / "runs" / "sim_0123456789ab-1" / "twitter" / "actions.jsonl").exists()
    assert call("replay", "runs/sim_0123456789ab-1").exit_code == 0


def test_standard_output_stays_one_object(folder: Path) -> None:
    write_directory(folder / "sim")
    result = call("run", "sim", "--rounds", "3", "--json")
    assert last_object(result.stdout)["rounds"] == 3


def test_the_directory_itself_is_not_touched(folder: Path) -> None:
    write_directory(folder / "sim")
    before = {path.name: path.read_bytes() for path in (folder / "sim").iterdir()}
    assert call("run", "sim", "--rounds", "1", "--quiet").exit_code == 0
    assert {path.name: path.read_bytes() for path in (folder / "sim").iterdir()} == before


def test_a_prepared_directory_is_validated_with_changes(folder: Path) -> None:
    write_directory(folder / "sim")
    result = call("validate", "sim", "--set", "time.minutes_per_round=30")
    assert result.stdout == "ok: 4 people, 2 worlds (twitter, reddit), 12 rounds of 30 minutes\n"


def test_a_wrong_field_is_named_with_its_file(folder: Path) -> None:
    write_directory(folder / "sim", {"agent_configs.1.activity_level": 2})
    result = call("run", "sim")
    assert result.exit_code == 2
    assert "simulation_config.json: agent_configs[1].activity_level" in result.stderr


@pytest.mark.parametrize("command", [("validate", "sim"), ("run", "sim", "--rounds", "1")])
def test_a_wrong_field_that_mirofish_ignores_is_a_note(folder: Path, command: tuple[str, ...]) -> None:
    write_directory(folder / "sim", {"agent_configs.1.stance": "suportive"})
    result = call(*command)
    assert result.exit_code == 0
    assert "note: simulation_config.json: agent_configs[1].stance: expected supportive" in result.stderr


def test_a_run_is_not_mistaken_for_a_prepared_directory(folder: Path) -> None:
    write_directory(folder / "sim")
    call("run", "sim", "--rounds", "1", "--quiet", "--out", "runs/one")
    result = call("run", "runs/one")
    assert result.exit_code == 2
    assert "shoal resume runs/one" in result.stderr


def test_importing_first_leads_to_the_same_history(folder: Path) -> None:
    write_directory(folder / "sim")
    assert call("import", "sim", "--out", "sim.yaml").exit_code == 0
    digests = [
        last_object(call("run", what, "--rounds", "6", "--json").stdout)["digest"] for what in ("sim", "sim.yaml")
    ]
    assert digests[0] == digests[1]


def test_the_run_speaks_of_people_as_mirofish_did(folder: Path) -> None:
    changes = {"agent_configs.1.sentiment_bias": -0.5, "agent_configs.1.influence_weight": 2.5}
    write_directory(folder / "sim", changes)
    call("run", "sim", "--rounds", "1", "--quiet", "--out", "runs/one")
    before, after = (json.loads((folder / path / "simulation_config.json").read_text()) for path in ("sim", "runs/one"))
    same = set(before["agent_configs"][1]) - {"entity_uuid"}
    assert {name: after["agent_configs"][1].get(name) for name in same} == {
        name: before["agent_configs"][1][name] for name in same
    }
    for field in ("simulation_requirement", "project_id", "graph_id", "llm_model", "generation_reasoning"):
        assert after[field] == before[field]


#: Tables of OASIS, and the columns that scripts of its users read.
OASIS_TABLES = {
    "user": "user_id agent_id user_name name bio created_at num_followings num_followers",
    "post": "post_id user_id original_post_id content quote_content created_at num_likes num_dislikes num_shares "
    "num_reports",
    "comment": "comment_id post_id user_id content created_at num_likes num_dislikes",
    "like": "like_id user_id post_id created_at",
    "dislike": "dislike_id user_id post_id created_at",
    "comment_like": "comment_like_id user_id comment_id created_at",
    "comment_dislike": "comment_dislike_id user_id comment_id created_at",
    "follow": "follow_id follower_id followee_id created_at",
    "mute": "mute_id muter_id mutee_id created_at",
    "report": "report_id user_id post_id report_reason created_at",
    "trace": "user_id created_at action info",
    "rec": "user_id post_id",
    "product": "product_id product_name sales",
    "chat_group": "group_id name created_at",
    "group_members": "group_id agent_id joined_at",
    "group_messages": "message_id group_id sender_id content sent_at",
}


@pytest.mark.parametrize("platforms", [("twitter",), ("reddit",), ("twitter", "reddit")])
def test_scripts_that_read_databases_of_oasis_find_their_tables_and_columns(
    folder: Path, platforms: tuple[str, ...]
) -> None:
    others = {"twitter", "reddit"} - set(platforms)
    write_directory(folder / "sim", {f"{other}_config": None for other in others})
    assert call("run", "sim", "--rounds", "4", "--quiet", "--out", "one").exit_code == 0
    assert {path.name for path in (folder / "one").glob("*_simulation.db")} == {
        f"{name}_simulation.db" for name in platforms
    }
    for platform in platforms:
        with closing(sqlite3.connect(folder / "one" / f"{platform}_simulation.db")) as database:
            for table, columns in OASIS_TABLES.items():
                found = {row[1] for row in database.execute(f"PRAGMA table_info('{table}')")}
                assert found >= set(columns.split()), table
            assert database.execute("SELECT agent_id FROM user ORDER BY user_id").fetchall() == [(0,), (1,), (2,), (3,)]
            (posts,) = database.execute("SELECT count(*) FROM trace WHERE action = 'create_post'").fetchone()
            assert posts > 0
        lines = (folder / "one" / platform / "actions.jsonl").read_text().splitlines()
        kinds = {line["event_type"] for line in map(json.loads, lines) if "event_type" in line}
        assert kinds >= {"simulation_start", "round_start", "round_end", "simulation_end"}
