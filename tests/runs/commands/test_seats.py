"""A person in a seat among agents with language models."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from shoal.agents import LanguageSettings
from shoal.errors import RunRefused
from shoal.journal import read_journal
from shoal.runs.commands import CommandType
from shoal.runs.operations import fork_run, plan_fork, work_on_run
from shoal.runs.rerun import explain_turn
from shoal.runs.rerun.rerun import replay
from shoal.runs.resources import RunResources
from shoal.runs.state import Status
from tests.runs.commands.test_serving import Worker, open_worker

ME: dict[str, Any] = {"agent_id": 0, "secret": "at the keyboard"}
TERMS: dict[str, Any] = {"seconds": 300, "otherwise": "mind"}


async def wait_for_turn(worker: Worker, after: int = 0) -> dict[str, Any]:
    """Return the next turn of the person that waits, in a round after this one."""
    while True:
        for seat in await worker.send(CommandType.SEATS, secret=ME["secret"]):
            for turn in seat["turns"]:
                if turn["round"] > after:
                    found: dict[str, Any] = turn
                    return found
        await asyncio.sleep(0.02)


async def test_a_person_decides_among_agents_with_language_models(tmp_path: Path) -> None:
    always: dict[str, Any] = {
        "population": [{"count": 4, "activity": 1.0, "active_hours": "0-23"}],
        "time": {"daily_rhythm": False},
    }
    async with open_worker(tmp_path / "run", **always, rounds=40, worlds={"twitter": None}) as worker:
        seat = await worker.send(CommandType.TAKE_SEAT, **ME, **TERMS)
        turn = await wait_for_turn(worker)
        assert turn["round"] == seat["since_round"]
        # The form is the card of the agent's own mind.
        assert isinstance(mind := worker.run.scenario.mind, LanguageSettings)
        assert turn["max_actions"] == mind.max_actions
        answer = {**ME, "world": "twitter", "round": turn["round"]}
        words = {"action": "create post", "content": "I am no model."}
        assert (await worker.send(CommandType.ANSWER_TURN, **answer, actions=[words]))["is_accepted"]
        second = await wait_for_turn(worker, turn["round"])
        await worker.send(CommandType.GIVE_SEAT_BACK, **ME)
        await asyncio.wait({worker.work})
        assert worker.run.read_status() is Status.COMPLETED
        calls = worker.run.read_state().calls
        child = fork_run(plan_fork(worker.run, 1), tmp_path / "fork")
        resources = RunResources(environ={"OPENAI_BASE_URL": worker.url})
        same = await work_on_run(child, asyncio.Event(), resources=resources)
    run = worker.run
    seats = {line.key: line.reply["by"] for line in read_journal(run.journal)[0] if "/seat/" in line.key}
    assert seats == {f"twitter/{turn['round']}/0/seat/0": "person", f"twitter/{second['round']}/0/seat/0": "mind"}
    assert calls == sum(line.event is None for line in read_journal(run.journal)[0]) - len(seats)
    explained = (await explain_turn(run, "0", turn["round"])).explanations[0]
    assert explained.rests_on["decided_by"] == "a person"
    assert [event.action_args.get("content") for event in explained.events] == ["I am no model."]
    later = (await explain_turn(run, "0", second["round"])).explanations[0]
    assert (later.rests_on["decided_by"], "prompt" in later.rests_on) == ("the agent's own mind", True)
    assert (await replay(run, asyncio.Event())).digest == (await worker.work).digest
    assert same.status is Status.COMPLETED


async def test_a_seat_cannot_be_taken_in_the_last_round_but_given_back(tmp_path: Path) -> None:
    always: dict[str, Any] = {
        "population": [{"count": 2, "activity": 1.0, "active_hours": "0-23"}],
        "time": {"daily_rhythm": False},
    }
    events: list[dict[str, Any]] = [{"seat": 0, "round": 2, "seconds": 300}]
    async with open_worker(tmp_path / "run", **always, rounds=2, worlds={"twitter": None}, events=events) as worker:
        await wait_for_turn(worker)
        with pytest.raises(RunRefused, match="in its last round"):
            await worker.send(CommandType.TAKE_SEAT, **{**ME, "agent_id": 1}, **TERMS)
        await worker.send(CommandType.GIVE_SEAT_BACK, **ME)
        await asyncio.wait({worker.work})
        assert worker.run.read_status() is Status.COMPLETED


async def test_a_person_sits_in_a_world_of_the_users_own(tmp_path: Path) -> None:
    lake = {"kind": "examples.own_world:Lake", "mind": "examples.own_world:Fisher", "settings": {"tonnes": 100.0}}
    people = [{"name": name, "activity": 1.0, "traits": {"greed": 1}} for name in ("Ada", "Ben")]
    more: dict[str, Any] = {"population": people, "worlds": {"lake": lake}, "mind": {"kind": "heuristic"}, "rounds": 2}
    async with open_worker(tmp_path / "run", **more, events=[{"seat": "Ada", "round": 2, "seconds": 300}]) as worker:
        turn = await wait_for_turn(worker)
        assert {row["label"]: row["value"] for row in turn["saw"]}["fishers"] == 2
        assert turn["actions"][0]["fields"][0]["type"] == "number"
        answer = {**ME, "world": "lake", "round": turn["round"]}
        many = await worker.send(CommandType.ANSWER_TURN, **answer, actions=[{"action": "FISH", "tonnes": "many"}])
        assert [problem["fields"] for problem in many["problems"]] == [["tonnes"]]
        assert (await worker.send(CommandType.ANSWER_TURN, **answer, actions=[{"action": "FISH", "tonnes": 7}]))[
            "is_accepted"
        ]
        await asyncio.wait({worker.work})
    explained = (await explain_turn(worker.run, "Ada", turn["round"])).explanations[0]
    assert [event.action_args for event in explained.events] == [{"tonnes": 7.0}]


async def test_a_seat_that_an_event_has_given_back_is_free_for_anybody(tmp_path: Path) -> None:
    always: dict[str, Any] = {"population": [{"count": 2, "activity": 1.0, "active_hours": "0-23"}]}
    events = [{"seat": 0, "round": 2}, {"seat": 1, "round": 3}, {"give_back": 0, "round": 3}]
    more: dict[str, Any] = {"rounds": 4, "worlds": {"twitter": None}, "time": {"daily_rhythm": False}}
    async with open_worker(tmp_path / "run", **always, **more, events=events) as worker:
        first = await wait_for_turn(worker)
        await worker.send(CommandType.TAKE_SEAT, **ME, seconds=120, otherwise="mind")
        await worker.send(CommandType.ANSWER_TURN, **ME, world="twitter", round=first["round"], actions=[])
        await wait_for_turn(worker, first["round"])
        other: dict[str, Any] = {"agent_id": 0, "secret": "another browser"}
        assert (await worker.send(CommandType.TAKE_SEAT, **other, **TERMS))["is_mine"]
