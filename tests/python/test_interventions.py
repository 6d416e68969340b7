"""Interventions that take functions of a script, and claims that a model judges."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.engine.facts import Facts
from shoal.errors import ScenarioInvalid
from shoal.python.person import Person
from shoal.python.rehearsal import rehearse
from shoal.python.run import Run
from shoal.python.world import World
from shoal.runs.directory import RunDirectory

CALLED: list[tuple[str, int]] = []
LUCK = count(1)


@pytest.fixture(autouse=True)
def forget_calls() -> Iterator[None]:
    CALLED.clear()
    yield
    CALLED.clear()


def is_lively(facts: Facts) -> bool:
    CALLED.append(("check", facts.round))
    return any(event.action_type == "TALK" for event in facts.events) and facts.total("TALK") > 3


async def calm_down(facts: Facts) -> list[dict[str, Any]]:
    CALLED.append(("call", facts.round))
    await asyncio.sleep(0)
    return [{"hear": f"Hush, after round {facts.round}."}, {"goal": "whisper", "to": ["Ada"]}]


def is_lucky(facts: Facts) -> bool:
    """Depends on more than the history, which nobody should do."""
    return next(LUCK) % 2 == 0


def find_lost(facts: Facts) -> bool:
    raise LookupError("no such table")


def count_to_three(facts: Facts) -> int:
    return 3


def name_nobody(facts: Facts) -> dict[str, Any]:
    return {"hear": "Psst.", "to": ["Zoe"]}


async def wait_for_ever(facts: Facts) -> bool:
    await asyncio.Event().wait()
    return True


def do_nothing(facts: Facts) -> None:
    return None


def town(**settings: Any) -> World:
    people = [Person("Ada"), Person("Ben"), Person("Cem")]
    return World("Town", people, topic="tea", mind={"talkativeness": 3}, **settings)


def notices(run: Run, kind: str) -> list[tuple[int, str]]:
    stream = RunDirectory(run.path).open_stream("room")
    return [(notice.round, notice.content) for notice in stream.read_notices(event_type=kind)]


def test_functions_say_whether_and_what_and_are_called_once() -> None:
    world = town()
    world.intervene(is_lively, calm_down, name="calming", times=2, pause=1)
    run = world.run(6)
    happened = [round for round, name in notices(run, "intervention") if name == "calming"]
    assert len(happened) == 2
    assert notices(run, "hear") == [(round, f"Hush, after round {round - 1}.") for round in happened]
    assert [round for what, round in CALLED if what == "call"] == [round - 1 for round in happened]
    calls = len(CALLED)
    assert run.replay().digest == run.digest
    assert len(CALLED) == calls


def test_a_world_that_goes_on_is_the_same_as_one_that_never_stopped() -> None:
    once = town().intervene(is_lively, calm_down, times=9).run(6)
    checked = [round for what, round in CALLED if what == "check"]
    CALLED.clear()
    world = town().intervene(is_lively, calm_down, times=9)
    world.run(2)
    world.run(4)
    assert world.results.digest == once.digest
    assert [round for what, round in CALLED if what == "check"] == checked


def test_a_script_that_is_run_again_and_a_replay_call_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def script(rounds: int) -> Run:
        return town(out="kept").intervene(is_lucky, {"hear": "Bingo."}, times=9).run(rounds)

    first = script(5).digest
    assert script(5).digest == first == shoal.open("kept").replay().digest
    # What depends on luck is what the journal says, and a function that is gone is not missed.
    monkeypatch.delattr(f"{__name__}.is_lucky")
    assert shoal.open("kept").replay().digest == first


def test_a_fork_calls_functions_only_where_the_history_differs() -> None:
    run = town().intervene(is_lively, calm_down, times=9).run(6)
    CALLED.clear()
    fork = run.fork(at=4, inject=[{"hear": "A bell rings."}])
    assert {round for _, round in CALLED} == {4, 5}
    assert fork.replay().digest == fork.digest


def test_a_function_that_fails_lets_nothing_happen_and_the_run_says_so() -> None:
    world = town(deadline_seconds=0.01)
    failing: tuple[Any, ...] = (find_lost, count_to_three, wait_for_ever)
    for when in failing:
        world.intervene(when, {"hear": "never"}, times=9)
    world.intervene("round >= 2", name_nobody, name="naming")
    world.intervene("round >= 2", do_nothing, name="resting")
    run = world.run(3)
    assert notices(run, "hear") == []
    assert notices(run, "intervention") == [(3, "resting")]
    here = __name__
    assert notices(run, "intervention_failed") == [
        (1, f"{here}:find_lost: LookupError: no such table"),
        (1, f"{here}:count_to_three returned 3, not True or False"),
        (1, f"{here}:wait_for_ever took longer than 0.01 s"),
        (3, f"naming: {here}:name_nobody returned what cannot happen: 0.to.0: unknown person 'Zoe'; only people "
            "listed with a name can be called by it, others by number"),
    ]  # fmt: skip
    assert run.quality.verdict == "doubtful"
    assert "could not be decided upon" in str(run.quality.reasons[0])
    assert "LookupError" in (run.path / "simulation.log").read_text()
    assert run.replay().digest == run.digest


def test_functions_without_a_name_of_their_own_are_refused_at_once() -> None:
    def inner(facts: Facts) -> bool:
        return True

    world = town()
    with pytest.raises(ScenarioInvalid, match="a lambda has no name"):
        world.intervene(lambda facts: True, {"hear": "no"})
    with pytest.raises(ScenarioInvalid, match="inner is defined inside a function"):
        world.intervene(inner, {"hear": "no"})
    with pytest.raises(ScenarioInvalid, match="nothing happens"):
        world.intervene(is_lively)
    with pytest.raises(ScenarioInvalid, match="it needs `when`"):
        world.intervene(do={"hear": "no"})
    with pytest.raises(ScenarioInvalid, match=r"interventions.0.check: there is no 'missing' in"):
        town(interventions=[{"check": f"{__name__}:missing", "do": {"hear": "x"}}]).run()
    assert world.run().rounds == 1


def test_a_claim_is_judged_by_the_model_journaled_and_counted(tmp_path: Path) -> None:
    with rehearse(seed=3) as server:
        mind = {"kind": "language", "model": "test/small", "base_url": server.base_url}
        world = World("Town", [Person("Ada"), Person("Ben")], topic="tea", mind=mind, out=tmp_path / "run")
        world.intervene(
            judge={"claim": "They have agreed.", "at_least": 0, "every": 2}, do={"hear": "Agreed!"}, times=2
        )
        world.intervene(when="round >= 3", judge="They are bored.", do={"stop": "bored"})
        run = world.run(5)
        assert notices(run, "hear") == [(2, "Agreed!"), (4, "Agreed!")]
        lines = [line for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines() if "/judge/0" in line]
        assert [line.split("/")[1] for line in lines] == ["2", "4", "4", "5"][: len(lines)]
        assert run.replay().digest == run.digest


def test_without_a_language_model_no_claim_holds_and_this_is_said() -> None:
    run = town().intervene(judge="They have agreed.", do={"hear": "Agreed!"}).run(3)
    assert notices(run, "hear") == []
    assert notices(run, "intervention_failed") == [
        (1, "They have agreed.: no language model is there to judge the claim, so it never holds")
    ]
    assert run.quality.verdict == "doubtful"
