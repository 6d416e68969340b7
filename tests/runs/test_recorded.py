"""Runs that Shoal 0.2.0 recorded replay, and can be continued, in every later version.

`recorded/` holds a conversation and a room with the replies of a rehearsal server, and two platforms with the offline
mind. Their config, journal, databases and streams are as that version wrote them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from shoal.runs.directory import RunDirectory
from shoal.runs.operations import extend_run
from shoal.runs.reports.summary import summarize
from shoal.runs.state import Status
from shoal.runs.views import PeopleFilter, PeopleReader
from tests.runs.harness import check_consistency, go_on, repeat, start

RECORDED = sorted((Path(__file__).parent / "recorded").iterdir())


@pytest.fixture(params=RECORDED, ids=lambda path: path.name)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> RunDirectory:
    return RunDirectory(shutil.copytree(request.param, tmp_path / request.param.name))


def test_a_recorded_run_has_the_same_history_when_it_is_replayed(run: RunDirectory) -> None:
    outcome = repeat(run)
    assert outcome.status is Status.COMPLETED
    assert (
        outcome.digest
        == {
            "dialogue": "23858a40edbe18eb9a9cc9d3ed99a28d",
            "platforms": "97613a5255ce2f20c4d63442643d0804",
            "room": "7c0e606f2b1d0c0c6bf32e069142bd79",
        }[run.path.name]
    )


def test_a_recorded_run_can_be_summarised(run: RunDirectory) -> None:
    assert all(world.actions > 0 for world in summarize(run).worlds)
    check_consistency(run.path, finished=True)


def test_a_recorded_run_goes_on_as_if_it_had_been_planned_so_long(tmp_path: Path) -> None:
    run = RunDirectory(shutil.copytree(RECORDED[1], tmp_path / "run"))
    scenario = run.scenario.model_copy(update={"rounds": 6})
    extend_run(run, scenario)
    again = json.loads(json.dumps(scenario.model_dump(mode="json", exclude_unset=True)))
    assert go_on(run).digest == start(again, tmp_path / "again").digest
    # What people did is counted in the trace, and not in part by the version that continued it.
    busiest = PeopleFilter(order="actions")
    pages = [PeopleReader().read_page(each, busiest, 0, 50) for each in (run, RunDirectory(tmp_path / "again"))]
    assert [person.actions for person in pages[0].items] == [person.actions for person in pages[1].items]
    assert pages[0].items[0].actions > 0


def test_a_recorded_run_keeps_its_prompts_and_what_was_drawn_unasked() -> None:
    dialogue, room = (RunDirectory(path).scenario for path in RECORDED if path.name in ("room", "dialogue"))
    assert all(scenario.mind.model_dump()["prompt"]["version"] == 1 for scenario in (dialogue, room))
    assert all(entry.model_dump()["interests_from"] is not None for entry in dialogue.population)


def test_a_recorded_room_keeps_its_way_with_relations() -> None:
    [room] = (RunDirectory(path).scenario.worlds["room"] for path in RECORDED if path.name == "room")
    assert room.model_dump()["one_relation"]
