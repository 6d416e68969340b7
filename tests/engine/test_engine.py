"""What the engine promises: one history, whatever the speed."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shoal.agents.scripted import ScriptedMind
from shoal.agents.settings import Latency
from shoal.agents.wrappers import DelayedMind
from shoal.engine.decisions import Decider, DecisionLimits
from shoal.engine.engine import Engine, TurnCount
from shoal.errors import Diverged, Stopped
from shoal.journal import Journal, read_journal
from shoal.scenario.build import build
from shoal.scenario.loading import validate
from shoal.types import Action, Decision, Mind, MindMode, Observation, Versioned
from shoal.worlds.social.observations import SocialObservation
from tests.engine.harness import Ledger, crowd, play, village


class Delayed(DelayedMind):
    """Answers after a time that is different in every run."""

    def __init__(self, inner: Mind, seed: int) -> None:
        super().__init__(inner, Latency(median_ms=1), seed)
        self._random = random.Random(seed)

    def seconds(self, observation: Observation) -> float:
        return self._random.random() * 0.004


def heuristic(scenario: dict[str, Any]) -> Mind:
    return build(Versioned(validate(scenario))).minds["twitter"]


def lines_of(ledger: Ledger) -> list[dict[str, Any]]:
    return [json.loads(line) for record in ledger.records for line in record.lines.splitlines()]


@pytest.mark.parametrize("visibility", [1, 2, 5])
async def test_the_history_is_the_same_at_any_concurrency_and_with_any_delays(visibility: int, tmp_path: Path) -> None:
    scenario = crowd(20, visibility, rounds=8)
    histories = []
    for n, workers in enumerate((1, 8, 256)):
        mind = Delayed(heuristic(scenario), seed=n)
        ledger = await play(scenario, tmp_path / f"{n}.jsonl", mind, DecisionLimits(workers, 30))
        histories.append(ledger.digests)
    at_once = await play(scenario, tmp_path / "none.jsonl")
    assert histories[0] == histories[1] == histories[2] == at_once.digests


async def test_different_visibilities_are_different_worlds(tmp_path: Path) -> None:
    digests = {(await play(crowd(20, k, rounds=8), tmp_path / f"{k}.jsonl")).digests[-1] for k in (1, 2, 3)}
    assert len(digests) == 3


async def test_the_first_agents_are_answered_while_others_are_still_to_be_asked(tmp_path: Path) -> None:
    asked, asked_before_an_answer = [], list[int]()

    class Quick(Mind):
        outside = True

        async def decide(self, observation: Observation) -> Decision:
            asked.append(observation.agent)
            await asyncio.sleep(0)
            asked_before_an_answer.append(len(asked))
            return Decision()

    await play(crowd(600, rounds=1), tmp_path / "j.jsonl", Quick(), DecisionLimits(600, 30))
    assert asked_before_an_answer[0] < 300 < len(asked)


async def test_a_different_seed_gives_a_different_history(tmp_path: Path) -> None:
    one = await play(crowd(20, rounds=4, seed=1), tmp_path / "1.jsonl")
    two = await play(crowd(20, rounds=4, seed=2), tmp_path / "2.jsonl")
    assert one.digests[-1] != two.digests[-1]


async def test_an_action_is_seen_by_others_after_as_many_rounds_as_visibility_says(tmp_path: Path) -> None:
    seen: dict[tuple[int, str], bool] = {}

    def act(observation: Observation) -> Sequence[Action]:
        assert isinstance(observation, SocialObservation)
        seen[observation.round, observation.name] = bool(observation.followed)
        return [Action("CREATE_POST", {"content": "hello"})] if (observation.round, observation.agent) == (2, 0) else []

    scenario = village(["Ada", "Ben"], [("Ben", "Ada")], rounds=8)
    scenario["worlds"]["twitter"]["visibility"] = 3
    await play(scenario, tmp_path / "j.jsonl", ScriptedMind(act))
    assert [round for round in range(1, 9) if seen[round, "Ben"]] == [5, 6, 7, 8]


async def test_an_agent_always_knows_its_own_past(tmp_path: Path) -> None:
    pending: dict[int, list[str]] = {}

    def act(observation: Observation) -> Sequence[Action]:
        pending[observation.round] = [action.args["content"] for action in observation.pending]
        return [Action("CREATE_POST", {"content": f"said in round {observation.round}"})]

    scenario = village(["Ada"], rounds=5)
    scenario["worlds"]["twitter"]["visibility"] = 3
    await play(scenario, tmp_path / "j.jsonl", ScriptedMind(act))
    assert pending[1] == []
    assert pending[2] == ["said in round 1"]
    assert pending[5] == ["said in round 3", "said in round 4"]


async def test_a_slow_agent_delays_no_other_until_it_must_be_seen(tmp_path: Path) -> None:
    """With visibility 3 all other agents decide up to round 3 while one is still in round 1."""
    decided: list[tuple[int, int]] = []
    release = asyncio.Event()

    class Waiting(Mind):
        outside = True

        async def decide(self, observation: Observation) -> Decision:
            if (observation.round, observation.agent) == (1, 0):
                await release.wait()
            decided.append((observation.round, observation.agent))
            if decided.count((3, 1)) and decided.count((3, 2)):
                release.set()
            return Decision()

    scenario = village(["Ada", "Ben", "Cid"], rounds=6)
    scenario["worlds"]["twitter"]["visibility"] = 3
    await play(scenario, tmp_path / "j.jsonl", Waiting())
    assert set(decided[:6]) == {(round, agent) for round in (1, 2, 3) for agent in (1, 2)}


async def test_a_decision_that_never_returns_is_given_up_at_its_deadline(tmp_path: Path) -> None:
    class Hanging(Mind):
        outside = True

        async def decide(self, observation: Observation) -> Decision:
            if observation.agent == 0:
                await asyncio.Event().wait()
            return Decision((Action("CREATE_POST", {"content": f"round {observation.round}"}),))

    ledger = await play(village(["Ada", "Ben"], rounds=2), tmp_path / "j.jsonl", Hanging(), DecisionLimits(8, 0.05))
    assert [record.tally.timeouts for record in ledger.records] == [0, 1, 1]
    lost = [line for line in lines_of(ledger) if line["agent_id"] == 0]
    assert [(line["action_type"], line["success"], line["result"]) for line in lost] == [
        ("DO_NOTHING", False, "timeout")
    ] * 2
    assert [line.outcome for line in read_journal(tmp_path / "j.jsonl")[0] if "/0/decide" in line.key] == [
        "timeout"
    ] * 2


async def test_a_decision_that_ignores_being_cancelled_holds_no_round_and_no_slot(tmp_path: Path) -> None:
    class Deaf(Mind):
        outside = True

        def __init__(self) -> None:
            self.end = asyncio.Event()

        async def decide(self, observation: Observation) -> Decision:
            while not self.end.is_set():
                try:
                    await self.end.wait()
                except asyncio.CancelledError:
                    continue
            return Decision()

    mind = Deaf()
    before = asyncio.all_tasks()
    ledger = await play(village(["Ada", "Ben", "Cid"], rounds=2), tmp_path / "j.jsonl", mind, DecisionLimits(1, 0.02))
    assert sum(record.tally.timeouts for record in ledger.records) == 6
    mind.end.set()
    await asyncio.gather(*(asyncio.all_tasks() - before))


async def test_a_decision_without_a_deadline_is_cancelled_when_the_run_is_stopped(tmp_path: Path) -> None:
    stop, cancelled = asyncio.Event(), list[int]()

    class Patient(Mind):
        outside = True

        def deadline(self, agent: int, seconds: float) -> float | None:
            return None

        async def decide(self, observation: Observation) -> Decision:
            stop.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(observation.agent)
                raise
            return Decision()

    with pytest.raises(Stopped):
        await play(village(["Ada", "Ben"], rounds=2), tmp_path / "j.jsonl", Patient(), stop=stop)
    assert sorted(cancelled) == [0, 1]


async def test_no_task_is_left_behind_by_timeouts(tmp_path: Path) -> None:
    class Hanging(Mind):
        outside = True

        async def decide(self, observation: Observation) -> Decision:
            await asyncio.Event().wait()
            return Decision()

    before = asyncio.all_tasks()
    await play(village(["Ada", "Ben"], rounds=3), tmp_path / "j.jsonl", Hanging(), DecisionLimits(8, 0.01))
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("outside", [True, False])
async def test_a_mind_that_fails_for_one_agent_fails_for_no_other(outside: bool, tmp_path: Path) -> None:
    def answer(observation: Observation) -> Decision:
        if observation.agent == 1:
            raise ValueError("no idea")
        return Decision((Action("CREATE_POST", {"content": f"round {observation.round}"}),))

    class Inside(Mind):
        def decide(self, observation: Observation) -> Decision:
            return answer(observation)

    class Outside(Mind):
        outside = True

        async def decide(self, observation: Observation) -> Decision:
            return answer(observation)

    mind: Mind = Outside() if outside else Inside()
    ledger = await play(village(["Ada", "Ben", "Cid"], rounds=2), tmp_path / "j.jsonl", mind)
    assert [(r.tally.errors, r.tally.actions) for r in ledger.records] == [(0, 0), (1, 2), (1, 2)]


async def test_something_else_than_a_decision_is_an_unusable_outcome(tmp_path: Path) -> None:
    class Confused(Mind):
        outside = True

        async def decide(self, observation: Observation) -> Decision:
            return "like everything"  # type: ignore[return-value]

    ledger = await play(village(["Ada"], rounds=1), tmp_path / "j.jsonl", Confused())
    assert lines_of(ledger)[0]["result"] == "unusable: the mind returned str, not a Decision"
    assert "not a Decision" in str(read_journal(tmp_path / "j.jsonl")[0][0].reason)


@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.parametrize("bad", [np.int64(3), "\ud800", object()])
async def test_a_decision_that_cannot_be_written_down_is_unusable(outside: bool, bad: object, tmp_path: Path) -> None:
    class Odd(Mind):
        def decide(self, observation: Observation) -> Decision:
            return Decision((Action("LIKE_POST", {"post_id": bad}),))

    class OddOutside(Mind):
        outside = True

        async def decide(self, observation: Observation) -> Decision:
            return Odd().decide(observation)

    mind: Mind = OddOutside() if outside else Odd()
    ledger = await play(village(["Ada"], rounds=1), tmp_path / "j.jsonl", mind)
    assert lines_of(ledger)[0]["result"].startswith("unusable: the decision cannot be written as JSON")
    assert ledger.records[1].tally.errors == 1


class CountingMind(Mind):
    """Counts how many of its decisions are under way at once."""

    outside = True

    def __init__(self) -> None:
        self.now = self.most = 0

    async def decide(self, observation: Observation) -> Decision:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        return Decision()


async def test_never_more_decisions_at_once_than_max_workers(tmp_path: Path) -> None:
    mind = CountingMind()
    await play(crowd(30, rounds=2), tmp_path / "j.jsonl", mind, DecisionLimits(7, 30))
    assert mind.most == 7


async def test_worlds_that_share_limits_share_the_workers(tmp_path: Path) -> None:
    limits, mind = DecisionLimits(3, 30), CountingMind()
    runs = (play(crowd(12, rounds=2), tmp_path / f"{n}.jsonl", mind, limits) for n in range(2))
    await asyncio.gather(*runs)
    assert mind.most == 3


async def test_a_reply_in_the_journal_is_not_asked_for_again(tmp_path: Path) -> None:
    scenario = village(["Ada", "Ben"], rounds=3)
    first = ScriptedMind(lambda seen: [Action("CREATE_POST", {"content": f"{seen.name} in {seen.round}"})])
    one = await play(scenario, tmp_path / "j.jsonl", first)
    again = ScriptedMind(lambda seen: [Action("CREATE_POST", {"content": "something else"})])
    two = await play(scenario, tmp_path / "j.jsonl", again)
    assert again.asked == []
    assert one.digests == two.digests


async def test_a_reply_to_another_question_is_a_divergence(tmp_path: Path) -> None:
    await play(village(["Ada", "Ben"], rounds=2), tmp_path / "j.jsonl", ScriptedMind(lambda seen: []))
    with pytest.raises(Diverged, match="twitter/1/0/decide/0"):
        await play(village(["Eva", "Ben"], rounds=2), tmp_path / "j.jsonl", ScriptedMind(lambda seen: []))


async def test_stopping_lets_decisions_under_way_reach_the_journal(tmp_path: Path) -> None:
    stop, asked = asyncio.Event(), asyncio.Event()

    class Slow(Mind):
        outside = True

        async def decide(self, observation: Observation) -> Decision:
            asked.set()
            await stop.wait()
            return Decision()

    async def stop_when_asked() -> None:
        await asked.wait()
        stop.set()

    stopper = asyncio.create_task(stop_when_asked())
    with pytest.raises(Stopped):
        await play(village(["Ada", "Ben"], rounds=2), tmp_path / "j.jsonl", Slow(), stop=stop)
    await stopper
    assert {line.key for line in read_journal(tmp_path / "j.jsonl")[0]} == {
        "twitter/1/0/decide/0",
        "twitter/1/1/decide/0",
    }


async def test_the_digest_of_a_round_covers_everything_before_it(tmp_path: Path) -> None:
    def say(word: str) -> ScriptedMind:
        return ScriptedMind(lambda seen: [Action("CREATE_POST", {"content": word if seen.round == 1 else "the same"})])

    one = await play(village(["Ada"], rounds=2), tmp_path / "1.jsonl", say("yes"))
    two = await play(village(["Ada"], rounds=2), tmp_path / "2.jsonl", say("no"))
    assert one.records[2].lines != b""
    assert one.digests[0] == two.digests[0]
    assert one.digests[2] != two.digests[2]


async def test_the_order_of_applying_is_drawn_and_not_that_of_the_numbers(tmp_path: Path) -> None:
    mind = ScriptedMind(lambda seen: [Action("CREATE_POST", {"content": f"{seen.round}"})])
    ledger = await play(village([f"P{n}" for n in range(12)], rounds=3), tmp_path / "j.jsonl", mind)
    orders = [[json.loads(line)["agent_id"] for line in r.lines.splitlines()] for r in ledger.records[1:]]
    assert all(sorted(order) == list(range(12)) for order in orders)
    assert orders[0] != sorted(orders[0])
    assert orders[0] != orders[1]


async def test_a_sealed_journal_counts_its_calls(tmp_path: Path) -> None:
    await play(village(["Ada"], rounds=1), tmp_path / "j.jsonl", ScriptedMind(lambda seen: []))
    journal = Journal.sealed(tmp_path / "j.jsonl")
    assert journal.is_sealed
    assert journal.calls == 1


async def test_a_self_journaling_mind_is_prepared_once_before_each_decision(tmp_path: Path) -> None:
    calls: list[str] = []

    class SelfJournaling(Mind):
        outside = True

        def mode(self, agent: int) -> MindMode:
            return MindMode.SELF_JOURNALING

        async def prepare(self, observation: Observation) -> None:
            calls.append(f"prepare {observation.round}")

        async def decide(self, observation: Observation) -> Decision:
            calls.append(f"decide {observation.round}")
            return Decision()

    await play(village(["Ada"], rounds=2), tmp_path / "j.jsonl", SelfJournaling())
    assert calls == ["prepare 1", "decide 1", "prepare 2", "decide 2"]
    assert read_journal(tmp_path / "j.jsonl") == ([], 0)


@pytest.mark.parametrize("visibility", [1, 3])
async def test_changes_reach_each_mind_once_in_order_and_from_their_round_on(visibility: int, tmp_path: Path) -> None:
    happened: list[tuple[int, str]] = []

    class Noting(Mind):
        outside = True

        async def decide(self, observation: Observation) -> Decision:
            happened.append((observation.agent, f"round {observation.round}"))
            return Decision()

        def change(self, agent: int, traits: Mapping[str, Any]) -> None:
            happened.append((agent, str(traits["stance"])))

    events = [
        {"change": {"stance": 0.1}, "round": 2},
        {"change": {"stance": 0.2}, "to": ["Ben"], "round": 2},
        {"change": {"stance": 0.3}, "to": ["Ada"], "round": 3},
    ]
    scenario = village(["Ada", "Ben"], rounds=3, events=events)
    scenario["worlds"]["twitter"]["visibility"] = visibility
    await play(scenario, tmp_path / "j.jsonl", Noting())
    ada, ben = ([what for who, what in happened if who == agent] for agent in (0, 1))
    assert ada == ["round 1", "0.1", "round 2", "0.3", "round 3"]
    assert ben == ["round 1", "0.1", "0.2", "round 2", "round 3"]


@pytest.mark.parametrize("visibility", [1, 3])
async def test_the_turns_of_a_round_are_counted_while_they_are_decided(visibility: int, tmp_path: Path) -> None:
    simulation, counts = build(Versioned(validate(crowd(5, visibility, rounds=6)))), list[TurnCount]()

    class Watched(Mind):
        outside = True

        async def decide(self, observation: Observation) -> Decision:
            # A decision counts once it is on disk, so each agent waits for those before it, and not for a time.
            while engine.count_turns().decided < observation.agent:  # noqa: ASYNC110  # nobody sets an event then
                await asyncio.sleep(0)
            counts.append(engine.count_turns())
            return Decision()

    async with Journal.open(tmp_path / "j.jsonl") as journal:
        decider = Decider(Watched(), journal, simulation.limits)
        engine = Engine(simulation.worlds["twitter"], decider, Ledger(), simulation.seed)
        await engine.run(6, asyncio.Event())
    assert len(counts) == 5 * 6
    assert all(0 <= count.decided < count.turns <= 5 * visibility for count in counts)
    assert len({count.decided for count in counts}) > 1
    assert all(count.progress < visibility for count in counts)
    assert engine.count_turns().turns == engine.count_turns().decided == 0
