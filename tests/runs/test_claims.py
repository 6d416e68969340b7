"""Claims in a run: declared, carried by what is written, believed, and recorded round by round."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import MeasurementFailed, ScenarioInvalid
from shoal.runs.directory import RunDirectory
from shoal.runs.operations import extend_run, plan_fork
from shoal.scenario import validate
from tests.runs.harness import go_on, repeat, start

RUMOUR = "They say the old bridge will be closed for good!"
FACT_CHECK = "Not true. The old bridge stays open."
SCENARIO: dict[str, Any] = {
    "name": "misinformation",
    "topic": "the old bridge",
    "claims": [{"id": "closing", "text": "The old bridge will be closed for good", "truth": False}],
    "population": {"count": 60, "activity": 1},
    "rounds": 8,
    "worlds": ["twitter"],
    "time": {"daily_rhythm": False},
    "events": [{"post": RUMOUR, "by": "most_followed", "supports": "closing", "strength": 0.9}],
}
DENIAL = {"broadcast": FACT_CHECK, "round": 4, "denies": "closing"}


def query(run: RunDirectory, sql: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(run.path / "twitter_simulation.db") as database:
        return database.execute(sql).fetchall()


def read_actions(run: RunDirectory) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run.path / "twitter/actions.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    path = tmp_path_factory.mktemp("claims") / "run"
    start({**SCENARIO, "events": [*SCENARIO["events"], DENIAL]}, path)
    return RunDirectory(path)


def test_a_declared_text_carries_its_claim_in_stream_and_database(run: RunDirectory) -> None:
    [rumour] = [line for line in read_actions(run) if line.get("action_args", {}).get("content") == RUMOUR]
    assert (rumour["action_args"]["claim"], rumour["action_args"]["lean"]) == ("closing", 0.9)
    [denial] = [line for line in read_actions(run) if line.get("content") == FACT_CHECK]
    assert denial["mention"] == {"claim": "closing", "lean": -1.0}
    assert ("closing", 0.9) in query(run, f"SELECT claim, lean FROM post WHERE content = '{RUMOUR}'")


def test_what_offline_minds_write_about_a_claim_says_how_it_leans(run: RunDirectory) -> None:
    written = [line["action_args"] for line in read_actions(run) if line.get("action_type") == "CREATE_COMMENT"]
    about = [args for args in written if args.get("post_content") == RUMOUR]
    assert about
    assert all(args["claim"] == "closing" and -1 <= args["lean"] <= 1 for args in about)
    assert query(run, "SELECT count(*) FROM comment WHERE claim = 'closing'")[0][0] >= len(about)


def test_opinions_and_beliefs_have_a_row_for_every_person_and_round(run: RunDirectory) -> None:
    rows = query(run, "SELECT about, round, count(*) FROM opinion GROUP BY 1, 2 ORDER BY 1, 2")
    assert rows == [(about, round, 60) for about in ("closing", "topic") for round in range(9)]
    assert query(run, "SELECT count(*) FROM opinion_change")[0][0] < 2 * 9 * 60


def test_a_claim_gains_reach_and_belief_until_it_is_denied(run: RunDirectory, tmp_path: Path) -> None:
    start(SCENARIO, tmp_path / "undenied")
    undenied = RunDirectory(tmp_path / "undenied")

    def read(run: RunDirectory, name: str) -> list[float]:
        sql = f"SELECT value FROM figure WHERE name = '{name}' AND about = 'closing' ORDER BY round"
        return [value for (value,) in query(run, sql)]

    assert read(run, "reach") == sorted(read(run, "reach"))
    assert 0 == read(run, "mean")[0] < read(run, "mean")[3]
    assert read(run, "mean")[:4] == read(undenied, "mean")[:4]
    assert read(run, "mean")[-1] < read(undenied, "mean")[-1]


def test_a_run_with_claims_replays(run: RunDirectory) -> None:
    assert repeat(run).digest


def test_a_run_of_an_earlier_version_gets_its_state_when_it_goes_on(tmp_path: Path) -> None:
    old = RunDirectory(shutil.copytree(Path(__file__).parent / "recorded/platforms", tmp_path / "old"))
    extend_run(old, old.scenario.model_copy(update={"rounds": 6}))
    go_on(old)
    people = query(old, "SELECT count(*) FROM user")[0][0]
    assert query(old, "SELECT round, count(*) FROM opinion GROUP BY 1") == [(round, people) for round in range(7)]


def script(**turn: Any) -> dict[str, Any]:
    """A change after which only the first person does something, in round 2."""
    posted = {"round": 2, "agent": 0, "action": "CREATE_POST", "args": {"content": "Hm."}}
    return {"mind": {"kind": "scripted", "turns": [{**posted, **turn}]}, "events": []}


def test_a_scripted_turn_says_what_its_text_says_of_a_claim(tmp_path: Path) -> None:
    for way, lean in (("supports", 0.5), ("denies", -0.5), ("questions", -0.125)):
        run = start({**SCENARIO, **script(**{way: "closing"}, strength=0.5)}, tmp_path / way).run
        found = query(RunDirectory.open(Path(run)), "SELECT claim, lean FROM post WHERE content = 'Hm.'")
        assert found == [("closing", lean)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"events": [{"post": "x", "supports": "closng"}]}, "unknown claim 'closng'; did you mean 'closing'"),
        ({"events": [{"post": "x", "supports": "closing", "denies": "closing"}]}, "it already says 'supports'"),
        ({"claims": [{"id": "topic", "text": "x"}], "events": []}, "choose another id"),
        ({"claims": [{"id": "a", "text": "x", "truth": "maybe"}], "events": []}, "expected true, false or open"),
        ({"claims": [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], "events": []}, "already the id of claims.0"),
        ({"mind": {"kind": "scripted", "turns": [{"round": 1, "agent": 0, "action": "CREATE_POST",
          "args": {"content": "x", "claim": "b"}}]}}, "unknown claim 'b'"),
        (script(denies="closng"), "mind.turns.0.denies: unknown claim 'closng'; did you mean 'closing'"),
        (script(denies="closing", supports="closing"), "it already says 'supports'"),
        (script(args={"content": "x", "claim": "closing"}, denies="closing"), "leave out 'claim' in its args"),
    ],
)  # fmt: skip
def test_wrong_claims_are_refused_with_their_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioInvalid, match=message):
        validate({**SCENARIO, **change})


def test_figures_of_ones_own_are_recorded_each_round(tmp_path: Path) -> None:
    start({**SCENARIO, "rounds": 3, "variables": ["tests.runs.variables:believers"]}, tmp_path / "run")
    rows = query(RunDirectory(tmp_path / "run"), "SELECT round, value FROM figure WHERE name = 'believers'")
    assert [round for round, _ in rows] == [0, 1, 2, 3]
    assert rows[0][1] == 0.0 < rows[-1][1]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("tests.runs.variables:nothing", "there is no 'nothing'"),
        ("tests.runs.variables:shoal", "write @shoal.variable above the function"),
        ("believers", "a function as module:function"),
    ],
)
def test_a_variable_that_is_none_is_refused(place: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioInvalid, match=message):
        start({**SCENARIO, "variables": [place]}, tmp_path / "run")


def test_a_variable_that_fails_stops_the_run_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(MeasurementFailed, match="the variable broken failed in round 0: KeyError: 'nothing'"):
        start({**SCENARIO, "variables": ["tests.runs.variables:broken"]}, tmp_path / "run")


@pytest.mark.parametrize("world", ["room", "dialogue"])
def test_people_who_talk_believe_what_they_hear(world: str, tmp_path: Path) -> None:
    kind = "hear" if world == "room" else "broadcast"
    events = [{kind: RUMOUR, "supports": "closing", "round": 1}]
    start(
        {**SCENARIO, "population": {"count": 6, "activity": 1}, "worlds": [world], "events": events}, tmp_path / "run"
    )
    with sqlite3.connect(tmp_path / "run" / f"{world}_simulation.db") as database:
        sql = "SELECT value FROM figure WHERE name = ? AND about = 'closing' ORDER BY round"
        beliefs, reach = ([value for (value,) in database.execute(sql, (name,))] for name in ("mean", "reach"))
    assert beliefs[0] == reach[0] == 0 < beliefs[-1]
    assert reach[-1] > 0.5


def test_claims_cannot_change_in_the_middle_of_a_run(run: RunDirectory) -> None:
    with pytest.raises(ScenarioInvalid, match="claims: this cannot change in the middle of a run"):
        plan_fork(run, 3, changes=["claims=[]", "events=[]"])
