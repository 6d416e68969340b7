"""A script that is run again: what it has done already is not done again."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

import shoal
from shoal.errors import ProviderRefused, RunLocked, RunRefused, ScenarioInvalid
from shoal.python.person import Person
from shoal.python.run import open as open_run
from shoal.python.run import run
from shoal.python.session import slug
from shoal.python.world import World
from shoal.runs.directory import RunDirectory
from shoal.scenario.loading import validate
from tests.python.minds import Counting, Interrupted
from tests.runs.harness import check_consistency

SMALL = {"name": "small", "topic": "the bridge", "rounds": 3, "population": [{"count": 20}]}


@pytest.fixture(autouse=True)
def _forgetful() -> Iterator[None]:
    """What minds of the tests remember of the process, they forget."""
    Counting.asked.clear()
    Interrupted.pressed = False
    yield
    Counting.asked.clear()


def script(rounds: int = 2, message: str = "Hello!") -> World:
    """What somebody might run again and again."""
    world = World("Town", [Person("Ada"), Person("Ben")], mind=Counting, out="kept")
    world.run(rounds)
    world.broadcast(message)
    world.run(rounds)
    return world


def test_a_script_that_is_run_again_asks_nothing_again() -> None:
    first = script()
    assert len(Counting.asked) == 8
    again = script()
    assert len(Counting.asked) == 8
    assert again.results.digest == first.results.digest
    check_consistency(again.path, finished=True)


def test_a_script_that_does_more_than_before_goes_on() -> None:
    script()
    world = script()
    world.run(1)
    assert (world.rounds, len(Counting.asked)) == (5, 10)


def test_another_scenario_is_refused_where_a_run_is_kept() -> None:
    script()
    with pytest.raises(RunRefused, match=r"kept already holds a run of another scenario \(rounds differ\)"):
        script(rounds=3)
    with pytest.raises(RunRefused, match=r"another scenario \(events differ\)"):
        script(message="Goodbye!")
    assert len(Counting.asked) == 8


def test_a_script_that_was_interrupted_is_finished_by_running_it_again() -> None:
    def town() -> World:
        return World("Town", [Person("Ada"), Person("Ben")], mind=Interrupted, out="kept")

    with pytest.raises(KeyboardInterrupt, match=r"stopped after round 2; nothing is lost"):
        town().run(rounds=5)
    world = town()
    assert world.run(rounds=5).status == "completed"
    assert world.rounds == 5


def test_a_world_that_was_interrupted_goes_on_with_the_next_call() -> None:
    world = World("Town", [Person("Ada"), Person("Ben")], mind=Interrupted)
    with pytest.raises(KeyboardInterrupt):
        world.run(rounds=5)
    assert world.rounds == 2
    assert world.run(rounds=2).rounds == 4
    check_consistency(world.path, finished=True)


def test_an_interrupt_stops_a_run_beside_a_running_loop_too() -> None:
    world = World("Town", [Person("Ada"), Person("Ben")], mind=Interrupted)

    async def notebook() -> None:
        with pytest.raises(KeyboardInterrupt, match="stopped after round 2"):
            world.run(rounds=5)
        assert world.results.status == "stopped"
        world.run(rounds=3)

    asyncio.run(notebook())
    assert world.rounds == 5


def test_files_of_people_are_kept_with_the_run(folder: Path) -> None:
    (folder / "people.csv").write_text("name,age\nAda,36\nBen,41\n")

    def town() -> World:
        world = World("Town", [{"file": "people.csv"}], out="kept")
        world.run(1)
        world.run(1)
        return world

    assert town().results.digest == town().results.digest
    assert "Ada" in town().results.frame("user")["name"].tolist()
    (folder / "people.csv").write_text("name,age\nAda,36\nBea,41\n")
    with pytest.raises(RunRefused, match="population differ"):
        town()


def test_where_something_else_is_no_run_is_begun(folder: Path) -> None:
    (folder / "notes").mkdir()
    (folder / "notes" / "diary.txt").write_text("Dear diary")
    with pytest.raises(RunRefused, match="is not empty"):
        World("Town", 2, out="notes").run()


# scenarios


def test_a_scenario_runs_from_plain_values_an_object_and_a_file(folder: Path) -> None:
    (folder / "small.yaml").write_text("{name: small, topic: the bridge, rounds: 3, population: [{count: 20}]}")
    digests = {run(scenario, quiet=True).digest for scenario in (SMALL, validate(SMALL), "small.yaml")}
    assert len(digests) == 1
    assert sorted(path.name for path in (folder / "runs").iterdir()) == ["small-1", "small-2", "small-3"]


def test_a_scenario_that_was_run_before_is_not_run_again() -> None:
    first = run(SMALL, out="kept")
    lines = (first.path / "metrics.jsonl").read_bytes()
    assert run(SMALL, out="kept").digest == first.digest
    assert (first.path / "metrics.jsonl").read_bytes() == lines
    with pytest.raises(RunRefused, match=r"\(seed differ\)"):
        run({**SMALL, "seed": 2}, out="kept")


def test_a_wrong_scenario_leaves_nothing_behind(folder: Path) -> None:
    with pytest.raises(ScenarioInvalid, match="unknown field 'ronds'; did you mean 'rounds'"):
        run({"ronds": 3, "population": 5})
    assert list(folder.iterdir()) == []


def test_a_script_on_its_own_runs_classes_that_it_defines(folder: Path) -> None:
    (folder / "script.py").write_text(
        "from shoal import Action, Decision, Mind, World\n"
        "class Shy(Mind):\n"
        "    def decide(self, seen):\n"
        "        return Decision((Action('THINK', {'content': 'Should I?'}),))\n"
        "world = World('Party', 3, mind=Shy, out='party')\n"
        "world.run(rounds=2)\n"
        "print(world.results.frame().action_type.tolist())\n"
    )
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, check=True, env=dict(os.environ)
        )
        assert (done.stdout, done.stderr) == (f"{['THINK'] * 6}\n", "")


@pytest.mark.parametrize(
    ("name", "folder_name"),
    [
        ("My World", "my-world"),
        ("Ärger!", "rger"),
        ("2 lakes", "world-2-lakes"),
        ("Мир", "world"),
        ("x" * 99, "x" * 40),
    ],
)
def test_a_name_becomes_the_name_of_a_folder(name: str, folder_name: str) -> None:
    assert slug(name) == folder_name


def test_the_package_gives_everything_by_name() -> None:
    assert (shoal.World, shoal.Person, shoal.run) == (World, Person, run)


def test_a_call_that_finds_the_run_taken_can_be_repeated() -> None:
    world = World("Taken", [Person("Ada"), Person("Ben")], topic="the old bridge", out="runs/taken")
    world.run(2, quiet=True)
    with RunDirectory(world.path).lock(), pytest.raises(RunLocked, match="is being worked on by process"):
        world.run(2, quiet=True)
    again = world.run(2, quiet=True)
    assert again.rounds == 4
    whole = World("Taken", [Person("Ada"), Person("Ben")], topic="the old bridge", out="runs/whole")
    assert whole.run(4, quiet=True).digest == again.digest


def test_another_worker_between_two_calls_is_noticed() -> None:
    world = World("Shared", [Person("Ada"), Person("Ben")], topic="the old bridge", out="runs/shared")
    world.run(2, quiet=True)
    open_run(world.path).resume(4, quiet=True)
    with pytest.raises(RunRefused, match="another scenario"):
        world.run(3, quiet=True)
    assert open_run(world.path).replay().rounds == 4


@pytest.mark.parametrize("in_loop", [False, True])
def test_a_dead_server_is_said_without_the_inside_of_the_package(
    in_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    world = World("Kept", [Person("Ada"), Person("Ben")], mind={"kind": "language", "model": "openai/x"})

    async def run_in_loop() -> None:
        world.run(rounds=2)

    with pytest.raises(ProviderRefused, match="cannot be reached") as refused:
        asyncio.run(run_in_loop()) if in_loop else world.run(rounds=2)
    shown = "".join(traceback.format_exception(refused.value))
    assert "During handling" not in shown
    assert "shoal/models" not in shown.replace("\\", "/")
