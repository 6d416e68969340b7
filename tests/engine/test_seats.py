"""A person takes an agent's turns for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from shoal.engine import Decider, Engine, SeatAnswer, Seats, WaitingTurn
from shoal.errors import Stopped
from shoal.journal import Journal, read_journal
from shoal.scenario.build import build
from shoal.scenario.loading import validate
from shoal.types import Action, Mind, Versioned
from tests.engine.harness import Ledger, crowd, village

NAMES = ["Ada", "Bo", "Cy"]
#: Returns what the person does in a turn; None: the person says nothing, and the time goes by.
Person = Callable[[WaitingTurn], Sequence[Action] | None]


def post(turn: WaitingTurn) -> Sequence[Action]:
    return [Action("CREATE_POST", {"content": f"{turn.observation.name} was here in round {turn.observation.round}."})]


def stay_silent(turn: WaitingTurn) -> None:
    return None


def sit_down(seats: Seats, person: Person) -> list[tuple[int, int]]:
    """Let a person answer all turns that wait; returns the list of agents and rounds that were asked about."""
    asked: list[tuple[int, int]] = []

    def look() -> None:
        for agent in seats.list_taken():
            for turn in seats.list_waiting(agent):
                key = turn.observation.agent, turn.observation.round
                if key not in asked:
                    asked.append(key)
                    if (actions := person(turn)) is not None:
                        turn.settle(SeatAnswer.of_person(tuple(actions)))

    seats.is_attended = True
    seats.watch(look)
    return asked


class Play:
    """One small world that is played with a person at the keyboard, or from its journal alone."""

    def __init__(self, scenario: dict[str, Any], journal: Path, mind: Mind | None = None) -> None:
        self.simulation = build(Versioned(validate(scenario)))
        self.journal = journal
        self.ledger = Ledger()
        self.mind = mind

    async def run(self, stop: asyncio.Event | None = None, *, is_sealed: bool = False) -> list[str]:
        """Run to the end and return the digests."""
        simulation, (name, world) = self.simulation, next(iter(self.simulation.worlds.items()))
        async with (Journal.sealed if is_sealed else Journal.open)(self.journal) as lines:
            asking = Decider(self.mind or simulation.minds[name], lines, simulation.limits, simulation.seats)
            engine = Engine(world, asking, self.ledger, simulation.seed, simulation.schedules[name])
            await engine.run(simulation.rounds, stop or asyncio.Event())
        return self.ledger.digests

    def done(self, agent: int) -> list[str]:
        """Return what an agent posted."""
        lines = b"".join(record.lines for record in self.ledger.records).decode().splitlines()
        return [line for line in lines if f'"agent_id":{agent},' in line and "CREATE_POST" in line]


def seated(rounds: int = 4, **more: Any) -> dict[str, Any]:
    """A village where a person takes the turns of Ada in rounds 2 and 3."""
    events = [{"seat": "Ada", "round": 2}, {"give_back": "Ada", "round": 4}]
    return village(NAMES, [("Bo", "Ada"), ("Cy", "Ada")], rounds=rounds, events=events, **more)


async def test_a_person_takes_the_turns_from_one_event_to_the_next(tmp_path: Path) -> None:
    play = Play(seated(), tmp_path / "journal.jsonl")
    asked = sit_down(play.simulation.seats, post)
    await play.run()
    assert asked == [(0, 2), (0, 3)]
    mine = [line for line in play.done(0) if "was here" in line]
    assert ["in round 2." in mine[0], "in round 3." in mine[1]] == [True, True]
    assert not play.simulation.seats.list_taken()


async def test_a_replay_needs_nobody_at_the_keyboard(tmp_path: Path) -> None:
    first = Play(seated(), tmp_path / "journal.jsonl")
    sit_down(first.simulation.seats, post)
    digests = await first.run()
    assert await Play(seated(), tmp_path / "journal.jsonl").run(is_sealed=True) == digests


@pytest.mark.parametrize(
    "scenario",
    [
        crowd(12, 2, rounds=5, events=[{"seat": 3, "round": 2}]),
        crowd(12, rounds=5, events=[{"seat": 3, "round": 2}], mind={"kind": "heuristic", "latency": {"median_ms": 1}}),
        village(
            NAMES,
            rounds=4,
            events=[{"seat": "Ada", "round": 1}],
            worlds={"room": {"kind": "room"}},
        ),
        village(
            NAMES[:2],
            rounds=6,
            events=[{"seat": "Ada", "round": 1}],
            worlds={"talk": {"kind": "dialogue", "pairs": [["Ada", "Bo"]]}},
        ),
    ],
    ids=["rounds in flight", "decisions from outside", "room", "dialogue"],
)
async def test_whatever_is_around_the_seat_the_history_can_be_repeated(
    tmp_path: Path, scenario: dict[str, Any]
) -> None:
    first = Play(scenario, tmp_path / "journal.jsonl")
    asked = sit_down(first.simulation.seats, lambda turn: [Action("THINK", {"content": "Hm."})])
    digests = await first.run()
    assert len(asked) >= 2
    assert await Play(scenario, tmp_path / "journal.jsonl").run(is_sealed=True) == digests


async def test_when_the_time_is_over_the_own_mind_decides_and_the_journal_says_so(tmp_path: Path) -> None:
    events = [{"seat": "Ada", "round": 2, "seconds": 1}, {"give_back": "Ada", "round": 3}]
    alone = Play(village(NAMES, rounds=3), tmp_path / "alone.jsonl")
    await alone.run()
    late = Play(village(NAMES, rounds=3, events=events), tmp_path / "journal.jsonl")
    sit_down(late.simulation.seats, stay_silent)
    digests = await late.run()
    (line,) = read_journal(late.journal)[0]
    assert (line.key, line.reply) == ("twitter/2/0/seat/0", {"by": "mind", "reason": "no answer within 1 s"})
    assert late.done(0) == alone.done(0)
    assert await Play(village(NAMES, rounds=3, events=events), late.journal).run(is_sealed=True) == digests


async def test_where_nobody_can_be_asked_no_turn_waits(tmp_path: Path) -> None:
    events = [{"seat": "Ada", "round": 1, "seconds": 600, "otherwise": "nothing"}]
    play = Play(village(NAMES, rounds=2, events=events), tmp_path / "journal.jsonl")
    await play.run()
    lines = read_journal(play.journal)[0]
    assert [line.reply["by"] for line in lines] == ["nothing", "nothing"]
    assert {action["kind"] for line in lines for action in line.reply["actions"]} == {"DO_NOTHING"}
    assert play.done(0) == []


async def test_a_run_that_goes_on_asks_again_only_for_the_turn_without_an_answer(tmp_path: Path) -> None:
    stop = asyncio.Event()

    def leave_in_round_3(turn: WaitingTurn) -> Sequence[Action] | None:
        if turn.observation.round == 2:
            return post(turn)
        stop.set()
        return None

    first = Play(seated(), tmp_path / "journal.jsonl")
    sit_down(first.simulation.seats, leave_in_round_3)
    with pytest.raises(Stopped):
        await first.run(stop)
    later = Play(seated(), tmp_path / "journal.jsonl")
    asked = sit_down(later.simulation.seats, post)
    await later.run()
    assert asked == [(0, 3)]


async def test_an_intervention_calls_for_a_person(tmp_path: Path) -> None:
    rules = [{"when": "round >= 2", "do": [{"seat": "Bo"}]}]
    play = Play(village(NAMES, rounds=4, interventions=rules), tmp_path / "journal.jsonl")
    asked = sit_down(play.simulation.seats, post)
    await play.run()
    assert asked == [(1, 3), (1, 4)]
