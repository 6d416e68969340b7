"""What a plan says, beside what a run then takes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.agents.propositions import JUDGE
from shoal.engine.decisions import Decider
from shoal.engine.engine import Engine
from shoal.journal import Journal, JournalKey
from shoal.models.base import Answer, Message, Question, Usage
from shoal.models.costs import Spent
from shoal.rehearsal.server import start
from shoal.rehearsal.settings import RehearsalSettings
from shoal.runs.config import LimitSettings
from shoal.runs.operations import create_run
from shoal.runs.planning.dry_run import CallTally, DryRunModel, Measurements
from shoal.runs.planning.plan import Plan, plan_run
from shoal.runs.resources import KnownServer, RunResources, describe_free_models, describe_servers
from shoal.runs.worker import work_on_run
from shoal.scenario.build import Sources, build
from shoal.scenario.loading import load, override, validate
from shoal.scenario.scenario import BudgetSettings, Scenario
from shoal.seeds import Draws, derive
from shoal.slots.adaptive.limiter import Learned, LearnedRate
from shoal.types import Versioned
from shoal.worlds.base import BaseWorld
from tests.engine.harness import Ledger

EXAMPLES = Path(__file__).parents[3] / "examples"
MINI, LARGE, OWN = "openai/gpt-4.1-mini", "openai/gpt-4.1", "nobody/knows-it"
TOLERANCE = 0.15

WORDS = "I would say that this boat is worth its price and that we should meet in the middle before it rains".split()


def language(name: str, *sets: str, model: str = MINI) -> Scenario:
    mind = msgspec.json.encode({"kind": "language", "model": model}).decode()
    return override(load(EXAMPLES / f"{name}.yaml"), [f"mind={mind}", *sets])


def small(**more: Any) -> Scenario:
    """Eight people who act in every round."""
    return validate(
        {
            "population": {"count": 8, "activity": 1.0, "active_hours": "0-23"},
            "time": {"daily_rhythm": False},
            "rounds": 6,
            "worlds": {"twitter": {}},
            "mind": {"kind": "language", "model": MINI},
            **more,
        }
    )


async def measure_run(scenario: Scenario, folder: Path) -> dict[str, Any]:
    """Run a scenario on a rehearsal server and return what it spent."""
    directory = create_run(scenario, folder)
    async with start(RehearsalSettings()) as server:
        outside = RunResources(environ={"OPENAI_BASE_URL": server.base_url})
        await work_on_run(directory, asyncio.Event(), None, outside)
    found = directory.read_state().spending
    assert found is not None
    return found


def check_close(found: Plan, calls: int, input: int, output: int) -> None:
    assert found.total.calls == pytest.approx(calls, rel=TOLERANCE)
    assert found.total.input == pytest.approx(input, rel=TOLERANCE)
    assert found.total.tokens == pytest.approx(input + output, rel=TOLERANCE)


# Close to the truth


@pytest.mark.parametrize(
    "scenario",
    [
        language("rumour", "population.count=60", "rounds=12"),
        # The stand-in for a model would walk off at random, and then it has nobody to talk to.
        language("focus-group", "worlds.room.actions=[TALK, THINK, REACH_OUT, ATTEND, RELATE]"),
        language("debate", "rounds=20"),
        small(name="platform", rounds=12),
    ],
    ids=lambda scenario: scenario.name,
)
async def test_a_plan_is_close_to_what_the_run_then_takes(scenario: Scenario, tmp_path: Path) -> None:
    found = await plan_run(scenario)
    took = await measure_run(scenario, tmp_path / "run")
    check_close(found, took["calls"], took["input"], took["output"])
    assert found.total.output == pytest.approx(took["output"], rel=TOLERANCE)
    assert found.total.cost == pytest.approx(took["cost"], rel=TOLERANCE)


class Mindless(BaseWorld):
    """A world without an offline mind."""

    def view(self, round: int, agent: int) -> dict[str, Any]:
        return {"round": round}


class Talker:
    """Says something in every turn, rates when it must, and counts four characters as a token, as servers about do."""

    def __init__(self) -> None:
        self.spent = Spent()

    async def answer(self, question: Question) -> Answer:
        draws = Draws(derive(1, question.key))
        words = [draws.choice(WORDS) for _ in range(12 + draws.below(20))]
        action: dict[str, Any] = {"action": "SAY", "content": " ".join(words)}
        if "RATE it" in question.messages[-1].content:
            action = {"action": "RATE", "score": 6, "reason": " ".join(words[:8])}
        reply = {"thought": " ".join(words[:15]), "actions": [action]}
        if question.key.rsplit("/", 2)[1] == "remember":
            reply = {"insights": [" ".join(words)]}
        text = msgspec.json.encode(reply).decode()
        sent = sum(len(message.content) for message in question.messages) + len(msgspec.json.encode(question.schema))
        usage = Usage(sent // 4, len(text) // 4)
        self.spent.add(usage, None)
        return Answer(text, usage)


async def test_the_plan_of_a_conversation_is_close_too(tmp_path: Path) -> None:
    scenario = language("negotiation")
    found, talker = await plan_run(scenario), Talker()
    simulation = build(Versioned(scenario), sources=Sources(model=talker))
    async with Journal.open(tmp_path / "journal") as journal:
        asking = Decider(simulation.minds["dialogue"], journal, simulation.limits)
        engine = Engine(simulation.worlds["dialogue"], asking, Ledger(), simulation.seed)
        await engine.run(simulation.rounds, asyncio.Event())
    assert found.total.calls == talker.spent.calls == 24
    check_close(found, talker.spent.calls, talker.spent.input, talker.spent.output)


async def test_a_conversation_that_ends_early_takes_something_between_the_least_and_the_most(tmp_path: Path) -> None:
    # A word that comes up sooner or later, whatever the stand-in for a model is asked.
    scenario = override(language("negotiation"), ["worlds.dialogue.stop.said=[about, the, of, to, is]"])
    found, took = await plan_run(scenario), await measure_run(scenario, tmp_path / "run")
    assert (found.total.least_calls, found.total.calls) == (6, 24)
    assert found.total.least_calls <= took["calls"] < found.total.calls
    assert found.total.cost is not None
    assert took["cost"] < found.total.cost


async def test_what_the_offline_minds_say_does_not_end_a_planned_conversation() -> None:
    """They walk out and use the words that end it as they do, which is no measure of a model."""
    people = {"count": 40}
    talk = {"kind": "dialogue", "turns": 8, "score": False}
    stopping = {**talk, "stop": {"said": ["I", "you", "the"], "silence": 1, "agreement": 2}}
    free, ended = [
        await plan_run(small(population=people, rounds=8, worlds={"talk": world})) for world in (talk, stopping)
    ]
    assert free.total.calls == ended.total.calls == 20 * 8
    assert ended.total.least_calls == 20


async def test_without_conversations_there_is_only_one_figure() -> None:
    found = await plan_run(small())
    assert not found.may_end_early
    assert found.total.least_calls == found.total.calls


# Replies and embeddings


async def test_an_agent_that_may_act_only_once_writes_less() -> None:
    mind = {"kind": "language", "model": MINI}
    one, many = [await plan_run(small(mind={**mind, "max_actions": most})) for most in (1, 4)]
    assert one.total.output < 0.95 * many.total.output


async def test_quiet_offline_minds_do_not_make_for_short_replies() -> None:
    """How often people let a turn pass is a matter of the offline minds; how long what they say is, of the world."""
    people = {"count": 12, "activity": 1.0}
    room = {"hall": {"kind": "room"}}
    found = await plan_run(small(population=people, worlds=room, rounds=10))
    assert 70 < found.total.output / found.total.calls < 110


async def test_embeddings_are_planned(tmp_path: Path) -> None:
    memory = {"embeddings": "openai/text-embedding-3-small", "consolidate_every": 0, "recent_tokens": 100}
    scenario = small(rounds=16, mind={"kind": "language", "model": MINI, "memory": memory})
    found, took = await plan_run(scenario), await measure_run(scenario, tmp_path / "run")
    chat, embedding = found.expected
    assert (chat.embedding, embedding.embedding) == (0, embedding.calls)
    assert (embedding.model, embedding.output) == (memory["embeddings"], 0)
    assert embedding.calls > chat.calls
    check_close(found, took["calls"], took["input"], took["output"])
    assert found.total.cost == pytest.approx(took["cost"], rel=TOLERANCE)


# What is left


async def test_of_a_run_that_goes_on_only_what_is_left_is_planned() -> None:
    whole, rest, none = [await plan_run(small(), latency_seconds=1.0, done={"twitter": done}) for done in (0, 4, 6)]
    assert (whole.total.calls, rest.total.calls, none.total.calls) == (8 * 6, 8 * 2, 0)
    assert whole.seconds > rest.seconds > none.seconds == 0
    assert rest.total.input / rest.total.calls > whole.total.input / whole.total.calls
    assert (none.total.tokens, none.total.cost) == (0, 0.0)


async def test_a_run_that_was_made_longer_is_planned_to_its_new_end() -> None:
    history = Versioned(small(), ((7, small(rounds=10)),))
    assert (await plan_run(history, done={"twitter": 6})).total.calls == 8 * 4


async def test_a_sample_of_people_stands_for_all() -> None:
    scenario = language("rumour", "population.count=300", "rounds=14")
    whole, sample = await plan_run(scenario), await plan_run(scenario, max_followed=75)
    assert (whole.followed, sample.followed) == (300, 75)
    assert [each.calls - each.remembering for each in sample.expected] == [
        each.calls - each.remembering for each in whole.expected
    ]
    assert sample.total.input == pytest.approx(whole.total.input, rel=0.05)
    assert sample.total.output == pytest.approx(whole.total.output, rel=0.1)


async def test_planning_twice_says_the_same() -> None:
    assert await plan_run(small()) == await plan_run(small())


async def test_planning_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    await plan_run(small())
    assert list(tmp_path.iterdir()) == []


# By world and model


async def test_every_world_and_every_model_is_counted_by_itself() -> None:
    people = [{"name": "Ada"}, {"name": "Ben"}, {"count": 4}]
    mind = {
        "kind": "language",
        "model": MINI,
        "by_agent": {"Ada": LARGE},
        "memory": {"model": OWN, "consolidate_every": 6},
    }
    worlds = {"hall": {"kind": "room"}, "attic": {"kind": "room"}}
    found = await plan_run(small(population=people, mind=mind, worlds=worlds, rounds=12))
    calls = {(each.world, each.model): each.calls for each in found.expected}
    rooms = ("attic", "hall")
    expected = {(room, model): count for room in rooms for model, count in ((MINI, 60), (LARGE, 12), (OWN, 6))}
    assert calls == expected
    assert found.total.calls == sum(expected.values())


async def test_of_every_model_some_people_are_followed() -> None:
    people = [{"name": "Ada"}, {"count": 59}]
    mind = {"kind": "language", "model": MINI, "by_agent": {"Ada": LARGE}}
    found = await plan_run(small(population=people, mind=mind, worlds={"hall": {"kind": "room"}}), max_followed=20)
    large, mini = found.expected
    assert (large.calls, mini.calls) == (6, 59 * 6)
    assert large.input / large.calls == pytest.approx(mini.input / mini.calls, rel=0.3)


async def test_conclusions_that_people_draw_are_counted() -> None:
    """Those that could only count after the last round are not drawn."""
    mind = {"kind": "language", "model": MINI}
    with_memory = await plan_run(small(rounds=12, mind={**mind, "memory": {"consolidate_every": 6}}))
    without = await plan_run(small(rounds=12, mind={**mind, "memory": {"consolidate_every": 0}}))
    assert [each.remembering for each in (*with_memory.expected, *without.expected)] == [8, 0]
    assert with_memory.total.calls == without.total.calls + 8
    assert with_memory.total.tokens > without.total.tokens


async def test_people_who_are_played_are_not_asked() -> None:
    people = [{"name": "Ada", "activity": 1.0}, {"count": 3}]
    room = {"hall": {"kind": "room"}}
    everybody = await plan_run(small(population=people, worlds=room))
    all_but_one = await plan_run(small(population=people, worlds=room, play=["Ada"]))
    assert (everybody.total.calls, all_but_one.total.calls) == (4 * 6, 3 * 6)


async def test_an_own_world_is_planned_too() -> None:
    known = await plan_run(small(worlds={"pot": {"kind": "tests.contracts.own:Pot"}}))
    unknown = await plan_run(
        small(worlds={"pot": {"kind": "tests.runs.planning.test_plan:Mindless"}, "hall": {"kind": "room"}})
    )
    assert known.total.calls > 0
    assert [each.world for each in unknown.expected] == ["hall", "pot"]


async def test_without_language_minds_nothing_is_asked() -> None:
    found = await plan_run(small(mind={"kind": "heuristic"}))
    assert (found.total.calls, found.total.tokens, found.total.cost, found.seconds) == (0, 0, 0.0, 0.0)


# Money


async def test_an_unknown_price_is_unknown_and_not_nothing() -> None:
    found = await plan_run(small(mind={"kind": "language", "model": OWN}))
    assert (found.total.cost, found.total.cost_uncached, found.unpriced) == (None, None, (OWN,))
    assert found.total.tokens > 0


async def test_a_price_from_the_scenario_is_used() -> None:
    mind = {"kind": "language", "model": OWN, "price": {"input": 2.0, "output": 10.0}}
    found = await plan_run(small(mind=mind))
    assert found.total.cost == pytest.approx((2 * found.total.input + 10 * found.total.output) / 1e6)
    assert found.unpriced == ()


async def test_one_model_without_a_price_leaves_the_total_unknown() -> None:
    mind = {"kind": "language", "model": MINI, "by_agent": {"Ada": OWN}}
    found = await plan_run(
        small(population=[{"name": "Ada"}, {"count": 3}], worlds={"hall": {"kind": "room"}}, mind=mind)
    )
    assert {each.model: each.cost is None for each in found.expected} == {MINI: False, OWN: True}
    assert found.total.cost is None


async def test_what_a_server_has_kept_costs_less() -> None:
    found = await plan_run(language("rumour", "population.count=40", "rounds=12"))
    assert 0.2 < found.total.cached / found.total.input < 0.8
    assert found.total.cost is not None
    assert found.total.cost_uncached is not None
    assert found.total.cost < 0.9 * found.total.cost_uncached


async def test_a_server_that_keeps_nothing_charges_for_everything() -> None:
    found = await plan_run(language("rumour", "population.count=40", "rounds=12", model="anthropic/claude-sonnet-4-0"))
    assert found.total.cached == 0
    assert found.total.cost == found.total.cost_uncached != 0.0


async def test_limits_below_the_plan_are_reported() -> None:
    fits = {"max_calls": 1000, "max_tokens": 10_000_000, "max_cost": 100.0}
    assert (await plan_run(small(budget=fits))).short == ()
    found = await plan_run(small(budget=fits), budget=BudgetSettings(max_calls=10, max_tokens=20, max_cost=0.001))
    assert [words.split()[0] for words in found.short] == ["max_cost", "max_tokens", "max_calls"]
    assert found.short[2] == f"max_calls is 10, and {found.total.calls} are expected"


async def test_a_budget_in_dollars_is_not_compared_with_an_unknown_price() -> None:
    mind = {"kind": "language", "model": OWN}
    assert (await plan_run(small(mind=mind), budget=BudgetSettings(max_cost=0.001))).short == ()


# Time


async def test_people_who_take_turns_wait_for_one_another_and_others_do_not() -> None:
    at_once = await plan_run(small(worlds={"hall": {"kind": "room", "turns": "parallel"}}), latency_seconds=2.0)
    in_turn = await plan_run(small(worlds={"hall": {"kind": "room", "turns": "sequential"}}), latency_seconds=2.0)
    assert (at_once.seconds, in_turn.seconds) == (6 * 2.0, 6 * 8 * 2.0)


async def test_fewer_calls_at_once_take_longer() -> None:
    room = {"hall": {"kind": "room", "turns": "parallel"}}
    found = await plan_run(small(worlds=room, max_workers=3), latency_seconds=1.0)
    assert found.seconds == 6 * 3


async def test_rounds_in_flight_overlap() -> None:
    one, four = [
        await plan_run(small(worlds={"twitter": {"visibility": rounds}}), latency_seconds=1.0) for rounds in (1, 4)
    ]
    assert four.seconds == pytest.approx(one.seconds / 4)


async def test_a_call_takes_longer_the_longer_its_reply() -> None:
    found = await plan_run(small())
    assert found.seconds_per_call == pytest.approx(0.8 + found.total.output / found.total.calls / 80)


async def test_a_plan_uses_what_was_learned_about_the_server() -> None:
    scenario = language("rumour", "rounds=4", "events=[]")
    usual = await plan_run(scenario)
    wall = Learned(in_flight=4, is_wall=True, answer_seconds=2.0)
    slow = await plan_run(scenario, servers={MINI: KnownServer(None, wall)})
    assert (slow.max_workers, slow.seconds_per_call, slow.is_learned) == (4, 2.0, True)
    assert slow.seconds >= usual.total.calls / 4 * 2.0 > usual.seconds
    rate = Learned(in_flight=500, requests=LearnedRate(per_minute=10, burst=0))
    limited = await plan_run(scenario, servers={MINI: KnownServer(None, rate)})
    assert (limited.max_workers, limited.seconds) == (500, usual.total.calls * 6)
    own = await plan_run(override(scenario, ["max_workers=2"]), 1.0, servers={MINI: KnownServer(None, wall)})
    assert (own.max_workers, own.seconds_per_call) == (2, 1.0)
    assert usual.total.cost == slow.total.cost


@pytest.mark.parametrize(
    ("model", "address", "costs"),
    [
        ("ollama/llama3.2", None, 0.0),
        (OWN, "http://127.0.0.1:8000/v1", 0.0),
        (OWN, "http://192.168.1.7:8000/v1", 0.0),
        (OWN, "http://gpu.local:8000/v1", 0.0),
        (OWN, "https://models.example.com/v1", None),
    ],
)
async def test_a_server_of_ones_own_costs_nothing(model: str, address: str | None, costs: float | None) -> None:
    where = [] if address is None else [f"mind.base_url={address}"]
    scenario = language("rumour", "rounds=2", "events=[]", *where, model=model)
    found = await plan_run(scenario, servers=describe_servers(scenario, {}))
    assert found.total.cost == costs


async def test_a_proxy_of_a_provider_on_this_machine_costs_what_the_provider_does() -> None:
    scenario = language("rumour", "rounds=2", "events=[]", "mind.base_url=http://127.0.0.1:4000/v1")
    found = await plan_run(scenario, servers=describe_servers(scenario, {}))
    assert found.total.cost == (await plan_run(scenario)).total.cost
    assert found.total.cost


async def test_a_plan_counts_the_claims_that_interventions_have_judged_and_calls_no_function() -> None:
    judged = {"judge": {"claim": "They agree.", "every": 2}, "check": "nowhere:function", "do": {"stop": "agreed"}}
    before, after = await plan_run(small()), await plan_run(small(interventions=[judged]))
    assert [each.judging for each in (*before.expected, *after.expected)] == [0, 3]
    assert after.total.calls == before.total.calls + 3
    assert after.total.input > before.total.input


@pytest.mark.parametrize(
    ("mind", "limit", "said"),
    [
        ({"base_url": "http://10.0.0.7:4000/v1"}, 2.0, 1),
        ({"base_url": "http://10.0.0.7:4000/v1"}, None, 0),
        ({"base_url": "http://10.0.0.7:4000/v1", "price": {"input": 1, "output": 2}}, 2.0, 0),
        ({"base_url": "http://10.0.0.7:4000/v1", "model": MINI}, 2.0, 0),
        ({"base_url": "https://models.example.org/v1"}, 2.0, 0),
    ],
)
def test_a_limit_of_the_cost_says_what_it_cannot_hold(mind: dict[str, Any], limit: float | None, said: int) -> None:
    scenario = small(mind={"kind": "language", "model": "our/alias", **mind})
    notes = describe_free_models(scenario, LimitSettings(max_cost=limit), {"OPENAI_API_KEY": "x", "OUR_API_KEY": "x"})
    assert [note[:19] for note in notes] == ["our/alias counts as"] * said


async def test_of_a_model_on_this_machine_what_was_read_before_is_not_read_again_and_no_schema() -> None:
    rules, schema = Message("system", "The rules of this world. " * 40), {"type": "object", "description": "long " * 99}
    here, hosted = [
        await _measure_judging(Question(key=key, model=model, messages=(rules,), schema=schema))
        for model in ("local", MINI)
        for key in [JournalKey("twitter", 1, 0, JUDGE)]
    ]
    assert here.input < hosted.input / 1.4
    assert here.cached > 0
    assert hosted.cached == 0


async def _measure_judging(question: Question) -> CallTally:
    """Return what it takes to ask the same question twice."""
    measured = Measurements()
    model = DryRunModel(measured)
    for _ in range(2):
        await model.answer(question)
    [found] = measured.judged.values()
    return found
