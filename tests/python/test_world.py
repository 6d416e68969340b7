"""A world in a script: who is there, what is made to happen, and running it further and further."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import EveryTurnFailed, RunRefused, ScenarioInvalid
from shoal.python.person import Person
from shoal.python.world import World
from tests.python.minds import Blocking, Climber, Counting, Forgetful, Hung, Ladder, Noted, Slow, Troubled


def town(**settings: Any) -> World:
    people = [Person("Ada", stance=0.6), Person("Ben", stance=-0.6), Person("Cem")]
    return World("My Town", people, topic="the bridge", **settings)


def test_a_world_runs_and_is_kept_like_any_other_run() -> None:
    world = town()
    results = world.run(rounds=4)
    assert (world.rounds, results.rounds, str(world.path)) == (4, 4, "runs/my-town-1")
    assert {event.agent_name for event in results.actions()} == {"Ada", "Ben", "Cem"}
    assert str(town().run().path) == "runs/my-town-2"


def test_running_on_is_the_same_as_running_far() -> None:
    once = town().run(rounds=6)
    world = town()
    world.run(rounds=2)
    world.run(rounds=4)
    assert world.results.digest == once.digest


def test_the_seed_decides_what_happens() -> None:
    first, same, other = (town(seed=seed).run(rounds=3).digest for seed in (1, 1, 2))
    assert first == same != other


@pytest.mark.parametrize("kind", ["twitter", "reddit"])
def test_people_meet_on_a_platform(kind: str) -> None:
    world = World("Net", 30, kind=kind, topic="the bridge").post("The bridge is closed!", by=3)
    actions = list(world.run(rounds=3).actions())
    assert next((event.agent_id, event.action_type) for event in actions) == (3, "CREATE_POST")
    assert len(actions) > 10


def test_two_people_talk() -> None:
    world = World("Talk", [Person("Ada"), Person("Ben")], kind="dialogue", topic="the bridge")
    assert [event.agent_name for event in world.run(rounds=4).actions()] == ["Ada", "Ben", "Ada", "Ben"]


# who is there


def test_people_are_found_by_name_and_in_order() -> None:
    world = World("Town", [Person("Ada"), {"name": "Ben", "age": 40}, {"count": 3}])
    assert (world.people["Ben"]["age"], world.people[0].name, len(world.people)) == (40, "Ada", 2)
    assert "Ada" in world.people
    assert repr(world) == "<World 'Town': 2 people and 1 group of people, 0 rounds>"
    with pytest.raises(KeyError, match="nobody called 'Bem' in 'Town'; did you mean 'Ben'"):
        world.people["Bem"]
    assert len({event.agent_id for event in world.run().actions()}) == 5


@pytest.mark.parametrize("kind", ["room", "twitter", "reddit"])
def test_an_empty_world_runs(kind: str) -> None:
    world = World("Void", kind=kind)
    assert (world.run(3).rounds, world.results.status, list(world.results.actions())) == (3, "completed", [])
    assert world.run(2).replay().rounds == 5


def test_two_people_cannot_have_the_same_name() -> None:
    with pytest.raises(ScenarioInvalid, match="there is already somebody called 'Ada' in 'Town'"):
        World("Town", [Person("Ada"), Person("Ada")])


def test_the_same_people_may_meet_in_several_worlds() -> None:
    people = [Person("Ada"), Person("Ben")]
    assert World("Town", people).run(2).digest == World("Town", people).run(2).digest


def list_speakers(world: World, round: int) -> set[str]:
    return {event.agent_name for event in world.results.actions() if event.round == round}


def test_people_join_and_leave_a_running_world() -> None:
    world = town(mind={"talkativeness": 3})
    before = world.run(2).digest
    dea = Person("Dea", interests=["chess"], traits={"relationships": [["Ada", "her boss"]]})
    world.add(dea)
    dea.listen("Welcome!")
    world.run(2)
    assert list_speakers(world, 2) == {"Ada", "Ben", "Cem"}
    assert list_speakers(world, 3) == {"Ada", "Ben", "Cem", "Dea"}
    world.remove("Ben", dea).run(2)
    assert list_speakers(world, 6) == {"Ada", "Cem"}
    assert (len(world.people), dea.world, "Ben" in world.people) == (2, None, False)
    world.add(dea).run()
    assert list_speakers(world, 7) == {"Ada", "Cem", "Dea"}
    users = world.results.query("SELECT name, created_at FROM user ORDER BY user_id").to_numpy().tolist()
    assert users == [["Ada", 0], ["Ben", 0], ["Cem", 0], ["Dea", 3]]
    assert "[leave to Ben] leaves" in world.results.transcript()
    assert world.results.replay().digest == world.results.digest != before


def test_a_script_in_which_people_join_can_be_run_again() -> None:
    def script() -> str:
        world = World("Town", [Person("Ada"), Person("Ben")], mind=Counting, out="kept")
        world.run(2)
        world.add(Person("Cem")).run(2)
        return world.remove("Ada").run(2).digest

    Counting.asked.clear()
    assert script() == script()
    assert len(Counting.asked) == len(set(Counting.asked)) == 2 * 2 + 3 * 2 + 2 * 2


def test_who_is_not_there_perceives_nothing_and_is_out_of_reach() -> None:
    turns = [{"round": 2, "agent": "Ada", "action": "TALK", "args": {"content": "Hi.", "target": "Ben"}}]
    mind = {"kind": "scripted", "turns": turns}
    events = [{"join": ["Ben"], "round": 3}, {"hear": "Thunder.", "round": 1}, {"mute": ["Cem"], "rounds": 9}]
    world = World("Town", [Person("Ada"), Person("Ben"), Person("Cem")], mind=mind, events=events)
    refused = [event.result for event in world.run(4).actions() if not event.success]
    assert refused == ["Ben is not here"]
    assert list_speakers(world, 2) == {"Ada"}
    assert list_speakers(world, 3) == {"Ada", "Ben"}


def test_who_joins_has_not_heard_what_was_said_before() -> None:
    world = World("Town", [Person("Ada"), Person("Ben")], mind=Counting, events=[{"hear": "Thunder.", "round": 1}])
    world.run(2)
    world.add(Person("Cem")).run(2)
    said = [event.action_args["content"] for event in world.results.actions() if event.agent_name == "Cem"]
    assert said == ["I heard 0.", "I heard 2."]


def test_an_empty_world_fills_up() -> None:
    world = World("Void")
    world.run(2)
    world.add(Person("Ada")).run(2)
    assert [event.round for event in world.results.actions()] == [3, 4]
    assert world.results.replay().digest == world.results.digest


def test_nobody_joins_where_that_cannot_be() -> None:
    room = town()
    room.run()
    with pytest.raises(RunRefused, match="people join one by one"):
        room.add({"count": 3})
    with pytest.raises(ScenarioInvalid, match="already somebody called 'Ada'"):
        room.remove("Ada").add(Person("Ada"))
    with pytest.raises(KeyError, match="nobody called 'Zoe'"):
        room.remove("Zoe")


def test_relations_begin_in_a_running_world_too() -> None:
    world = town()
    world.run()
    world.relate("Ada", "Ben", "sisters").run()
    assert world.results.frame("relation").to_numpy().tolist() == [[2, 0, 1, "sisters"]]
    assert world.results.replay().digest == world.results.digest


def test_people_do_not_change_behind_a_run() -> None:
    world = town()
    world.run()
    world.people["Ada"].define("stance", -1)
    with pytest.raises(ScenarioInvalid, match=r"change them in the run with world\.change"):
        world.run()


# what is made to happen


def test_what_reaches_people_reaches_them_in_the_next_round() -> None:
    world = town()
    ada = world.people["Ada"].listen("Hello!").see("A bird.").think("Oh.").goal("Sleep.").move_to("attic")
    world.run(rounds=2)
    ada.listen("Still there?")
    told = world.run().query("SELECT created_at, kind, user_id, content FROM stimulus")
    assert told.to_numpy().tolist() == [
        [1, "hear", 0, "Hello!"],
        [1, "see", 0, "A bird."],
        [1, "think", 0, "Oh."],
        [1, "goal", 0, "Sleep."],
        [1, "location", 0, "attic"],
        [3, "hear", 0, "Still there?"],
    ]


def test_a_message_is_heard_where_there_is_no_room() -> None:
    world = World("Net", [Person("Ada"), Person("Ben")], kind="twitter")
    world.people["Ben"].listen("Psst!")
    assert "[broadcast to Ben] Psst!" in world.run().transcript()


def test_everything_that_can_be_made_to_happen_happens() -> None:
    world = town()
    world.broadcast("Fire!", to=world.people["Ada"]).skip("2 days").mute("Ben", rounds=2).change("Cem", stance=1)
    told = world.run(rounds=2).transcript()
    assert "[broadcast to Ada] Fire!" in told
    assert "-- round 1, 2026-01-03 08:00" in told
    assert "[change to Cem] stance = 1" in told
    assert "Ben" not in {event.agent_name for event in world.results.actions()}


def test_events_may_speak_of_people_as_objects() -> None:
    ben = Person("Ben")
    world = World("Town", [Person("Ada"), ben], events=[{"hear": "Early.", "to": [ben]}])
    world.happen(see="A bird.", to=ben).happen(mute=ben).intervene("round >= 1", {"goal": "Rest.", "to": ben})
    told = world.run(rounds=2).transcript()
    for line in ("[hear to Ben] Early.", "[see to Ben] A bird.", "[mute to Ben] for 1 round", "[goal to Ben] Rest."):
        assert line in told


def test_events_wait_for_the_round_they_are_meant_for() -> None:
    world = town(events=[{"broadcast": "Later.", "round": 4}]).happen(3, broadcast="Soon.")
    assert "Soon." not in world.run(rounds=2).transcript()
    assert "Later." not in world.run(rounds=1).transcript(last=6)
    assert "[broadcast] Later." in world.run(rounds=1).transcript()
    assert world.results.transcript().count("Soon.") == 1


def test_what_is_over_cannot_be_changed() -> None:
    world = town()
    world.run(rounds=3)
    with pytest.raises(RunRefused, match="round 2 of 'My Town' is over; the next one is 4"):
        world.broadcast("Too late.", round=2)


def test_an_intervention_follows_its_condition() -> None:
    world = town().intervene("round >= 2", {"broadcast": "Half-time."}, name="whistle")
    assert "-- round 3" in world.run(rounds=4).transcript().partition("[broadcast] Half-time.")[0]


@pytest.mark.parametrize("has_run", [False, True])
@pytest.mark.parametrize(
    ("happen", "problem"),
    [
        (lambda world: world.broadcast("Hello!", to="Bem"), r"^broadcast: to\.0: unknown person 'Bem'; did you mean"),
        (lambda world: world.broadcast(7), "^broadcast: expected"),
        (lambda world: world.broadcast("Hello!", round="soon"), "^broadcast: round: expected"),
        (lambda world: world.happen(haer="Hello!"), "^haer: unknown field 'haer'; did you mean 'hear'"),
        (lambda world: world.happen(hear="One.", see="Two."), "an event is one thing"),
        (lambda world: world.post("Hello!", by="Ada"), "'post' cannot happen"),
        (lambda world: world.change("Ada", stance=7), "^change: change.stance: expected a number from -1 to 1"),
        (lambda world: world.intervene("quiet(3) > 2", {"hear": "Ada?"}), "^intervene: when: quiet needs one text"),
        (
            lambda world: world.intervene("round > 2", {"hear": "Ada?", "to": "Bem"}),
            r"^intervene: do\.to\.0: unknown person",
        ),
        (lambda world: world.people["Ada"].listen("Hello!", source="Bem"), "^hear: by: unknown person 'Bem'"),
        (lambda world: world.people["Ada"].see(""), "expected some text"),
    ],
)
def test_what_cannot_happen_is_refused_at_once_and_leaves_the_world_usable(
    happen: Callable[[World], object], problem: str, has_run: bool
) -> None:
    world, same = town(), town()
    for each in (world, same) if has_run else ():
        each.run()
    with pytest.raises(ScenarioInvalid, match=problem):
        happen(world)
    assert world.run(2).digest == same.run(2).digest


def test_a_person_sees_nothing_where_nothing_can_be_seen() -> None:
    world = World("Net", [Person("Ada"), Person("Ben")], kind="twitter")
    with pytest.raises(ScenarioInvalid, match=r"^see: 'see' cannot happen"):
        world.people["Ada"].see("A bird.")
    assert world.run().rounds == 1


@pytest.mark.parametrize(("every", "second"), [("1 day", "01-02 08:00"), (timedelta(hours=3), "01-01 11:00")])
def test_time_passes_as_fast_as_is_asked_for(every: Any, second: str) -> None:
    told = town(mind=Slow).run(rounds=3, every=every).transcript()
    assert "-- round 1, 2026-01-01 08:00" in told
    assert f"-- round 2, 2026-{second}" in told


def test_a_round_cannot_take_less_than_it_takes() -> None:
    with pytest.raises(ScenarioInvalid, match="a round of 'My Town' takes 60 minutes; give World a smaller"):
        town().run(every="10 minutes")
    with pytest.raises(ScenarioInvalid, match="expected a time such as 3 days"):
        town().skip("a while")


# parallel and sequential


def test_side_by_side_all_act_on_the_same_picture_and_in_turn_on_what_was_done() -> None:
    world = town(mind=Counting)
    world.run(parallel=True)
    world.run(parallel=False)
    world.run()
    # In turn, each also hears what those before said in the same round.
    assert (_heard(world, 1), _heard(world, 2)) == ([0, 0, 0], [2, 3, 4])
    assert (world.metrics.parallel_steps, world.metrics.sequential_steps) == (1, 2)


def _heard(world: World, round: int) -> list[int]:
    said = [event.action_args["content"] for event in world.results.actions() if event.round == round]
    return sorted(int(text.strip("I heard.")) for text in said)


def test_only_rooms_take_turns_one_by_one() -> None:
    with pytest.raises(ScenarioInvalid, match="parallel=False is for rooms"):
        World("Net", 3, kind="twitter").run(parallel=False)


def test_speedup_is_measured() -> None:
    world = World("Town", 10, mind=Slow)
    world.run(rounds=2, parallel=True)
    world.run(rounds=1, parallel=False)
    # At most as many as there are people, and less by what is not deciding: a loaded machine, a slow disk.
    assert 1 < world.metrics.speedup <= 10
    assert 0.1 < world.metrics.sequential_speedup <= 1
    assert world.metrics.decisions == 30


def test_no_more_decide_at_once_than_allowed() -> None:
    world = World("Town", 10, mind=Slow, max_workers=2)
    world.run()
    assert 1 < world.metrics.speedup <= 2


def test_failures_and_hung_decisions_are_counted_and_hold_up_nobody() -> None:
    world = town(mind=Troubled, deadline_seconds=0.2)
    results = world.run(rounds=2)
    assert (world.metrics.errors, world.metrics["timeouts"]) == (2, 2)
    assert sum(event.success for event in results.actions() if event.agent_name == "Cem") == 2
    assert "Ada did nothing (error: ValueError: out of ideas)" in results.transcript()


def test_a_thread_that_hangs_holds_up_neither_the_run_nor_the_next_one() -> None:
    world = World("Town", 8, mind=Hung, deadline_seconds=0.1)
    with pytest.raises(EveryTurnFailed):
        world.run(rounds=2)
    assert (world.metrics.timeouts, world.results.status) == (16, "failed")


def test_a_thread_that_hangs_does_not_hold_up_the_end_of_a_script(folder: Path) -> None:
    script = "from shoal import World\nfrom tests.python.minds import Troubled, Hung\n"
    script += "class Mixed(Hung):\n    async def decide(self, seen):\n"
    script += "        return await (Troubled if seen.agent else Hung).decide(self, seen)\n"
    script += "print(World('Town', 2, mind=Mixed, deadline_seconds=0.1).run(quiet=True).metrics.timeouts)\n"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True
    )
    assert (done.stdout.decode().strip(), done.returncode) == ("1", 0), done.stderr.decode()


def test_blocking_code_is_said_counted_and_no_speedup() -> None:
    world = World("Town", 3, mind=Blocking)
    with pytest.warns(UserWarning, match=r"3 decisions blocked the others; see .*simulation\.log"):
        world.run()
    assert world.metrics.blocked == 3
    assert world.metrics.speedup <= 1.1
    assert "kept everybody else waiting for 0." in (world.path / "simulation.log").read_text()


def test_an_exception_in_a_mind_leaves_its_traceback_in_the_log_once() -> None:
    world = World("Town", [Person("Ada"), Person("Cem")], mind=Troubled)
    world.run(rounds=3)
    log = (world.path / "simulation.log").read_text()
    assert (
        log.count("the mind of Ada failed in round 1\nTraceback") == log.count('raise ValueError("out of ideas")') == 1
    )


def test_a_coroutine_that_nobody_awaits_is_refused_in_words() -> None:
    world = World("Town", [Person("Ada")], mind=Forgetful)
    with pytest.raises(EveryTurnFailed, match=r"returned a coroutine; set `outside = True`"):
        world.run()


def test_without_metrics_nothing_is_timed_but_failures_are_counted() -> None:
    world = town(mind=Troubled, deadline_seconds=0.2, metrics=False)
    world.run()
    assert (world.metrics.decisions, world.metrics.speedup) == (0, None)
    assert (world.metrics.errors, world.metrics.timeouts) == (1, 1)


def test_before_the_first_run_there_is_nothing_to_measure() -> None:
    world = town()
    assert (world.metrics.parallel_steps, world.metrics.speedup) == (0, None)
    with pytest.raises(RunRefused, match="nothing has been run yet"):
        world.results  # noqa: B018


# where an event loop is running


async def test_a_world_runs_where_a_loop_is_running_already() -> None:
    world = town()
    assert world.run(rounds=2).rounds == 2
    assert (await world.run_async(rounds=2)).rounds == 4
    assert world.results.digest == (await asyncio.to_thread(town().run, 4)).digest


async def test_a_cancelled_run_is_stopped_and_goes_on() -> None:
    world = World("Town", 3, mind=Noted)
    Noted.rounds.clear()
    running = asyncio.create_task(world.run_async(rounds=1000))
    while max(Noted.rounds, default=0) < 3:
        assert not running.done()
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert world.results.status == "stopped"
    behind = world.rounds
    assert (await world.run_async(rounds=1)).rounds == behind + 1


# worlds and minds of one's own


def test_a_world_and_a_mind_of_ones_own_run() -> None:
    world = World("Climb", [Person("Ada"), Person("Ben")], kind=Ladder, mind=Climber, settings={"top": 4})
    world.run(rounds=2)
    world.people["Ben"].listen("Hurry!")
    results = world.run(rounds=10)
    assert results.rounds == 4
    assert [event.result for event in results.actions() if not event.success] == ["one step at a time"]


def test_a_history_that_has_ended_has_no_more_rounds() -> None:
    world = World("Climb", [Person("Ada")], kind=Ladder, mind=Climber, settings={"top": 2})
    assert world.run(rounds=5).rounds == 2
    assert world.run(rounds=5).rounds == 2


def test_a_history_that_ended_in_its_last_planned_round_has_no_more_rounds_either() -> None:
    world = World("Climb", [Person("Ada")], kind=Ladder, mind=Climber, settings={"top": 2}, out="climb")
    assert world.run(rounds=2).rounds == 2
    assert world.run(rounds=5).rounds == 2
    again = World("Climb", [Person("Ada")], kind=Ladder, mind=Climber, settings={"top": 2}, out="climb")
    assert again.run(rounds=2).rounds == 2
    assert again.run(rounds=5).rounds == 2


def test_a_world_does_not_run_past_the_end_of_the_calendar() -> None:
    world = World("Late", 2, start="9999-12-28", minutes_per_round=24 * 60)
    world.run(1)
    with pytest.raises(ScenarioInvalid, match="end after the year 9999"):
        world.run(5)
    assert world.run(1).rounds == 2


def test_a_mind_may_have_settings() -> None:
    world = World("Town", 2, mind={"talkativeness": 0, "kind": "heuristic"}, topic="x")
    assert {event.action_type for event in world.run(3).actions()} == {"DO_NOTHING"}
    own = World("Town", 2, mind={"kind": Counting, "settings": {"a": 1}})
    assert own.scenario(1).mind.kind == "tests.python.minds:Counting"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"kind": "twiter"}, "kind: expected twitter, reddit, room or dialogue, or a subclass of shoal.BaseWorld"),
        ({"kind": Climber}, "or a subclass of shoal.BaseWorld, found"),
        ({"mind": "heuristik"}, "unknown mind 'heuristik'"),
        ({"mind": Ladder}, "mind: Ladder is not a subclass of shoal.Mind"),
        ({"mind": Climber(None, {})}, "mind: give the class itself, Climber"),
        ({"hearing": "none"}, "worlds.room.hearing: expected everyone, neighbours, relations or pairs"),
        ({"kind": "twitter", "hearing": "pairs"}, "hearing: only a room knows this"),
        ({"kind": "twitter", "relations": [(0, 1, "sisters")]}, "relations: only a room knows this"),
        ({"deadline_seconds": 0}, "World('Bad'): deadline_seconds: must be more than 0"),
        ({"max_workers": 0}, "World('Bad'): max_workers: must be at least 1"),
        ({"start": "soon"}, "time.start: expected a date and time"),
    ],
)
def test_a_wrong_setting_is_refused_in_words(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        World("Bad", 2, **settings).run()
    assert problem in str(caught.value)


def test_a_class_inside_a_function_is_refused() -> None:
    class Hidden(Climber):
        pass

    with pytest.raises(ScenarioInvalid, match="Hidden is defined inside a function"):
        World("Bad", 2, mind=Hidden)


@pytest.mark.parametrize("rounds", [0, -1, 2.5, True, "3"])
def test_only_whole_rounds_can_be_run(rounds: Any) -> None:
    with pytest.raises(ScenarioInvalid, match="rounds: expected a whole number, at least 1"):
        town().run(rounds)


def test_each_of_two_people_can_be_told_something_else_about_the_other() -> None:
    world = World("W", [Person("Ada"), Person("Ben")], relations=[("Ada", "Ben", "cousins")])
    world.relate("Ada", "Ben", "manager of", "managed by").relate("Ben", "Ada", "admirer of", "")
    stated = world.run(1).query("SELECT user_id, other_id, relation FROM relation", kind="polars").rows()
    assert stated == [(0, 1, "cousins"), (0, 1, "manager of"), (1, 0, "managed by"), (1, 0, "admirer of")]
