"""What ours is compared with does what is said of it; and the clients in virtual time do as real ones."""

from __future__ import annotations

from bench.limits import GOALS, RIVALS, compare
from bench.loads import Load, World, flood
from bench.providers import Provider
from bench.rivals import Aimd, Batches, Inspect, Semaphore
from bench.virtual import Alone, Apart, Keeping, Together, drive
from shoal.rehearsal.settings import RehearsalSettings
from shoal.slots.adaptive.limiter import Adaptive
from shoal.slots.leases import CallEnd, CallOutcome

OK, REFUSED = CallOutcome(CallEnd.OK, 1.0), CallOutcome(CallEnd.LIMITED, 0.02)


def provider(**settings: float) -> Provider:
    return Provider(RehearsalSettings(latency_seconds=1.0, labelled=False, headers="retry-after", **settings))  # type: ignore[arg-type]


def test_a_batch_waits_for_all_of_it() -> None:
    went = drive(provider(), Alone(Batches(16)), flood(4 + 8 + 16 + 16), seed=0)
    assert 4.0 <= went.seconds < 4.1


def test_inspect_takes_a_fifth_in_steps_of_five_once_in_fifteen_seconds() -> None:
    inspect, limits = Inspect(), []
    inspect.limit = 100
    for at in range(6):
        for _ in range(3):
            inspect.refused(at * 15.0, inspect.begin(at * 15.0, 100))
        limits.append(inspect.limit)
    assert limits == [80, 60, 45, 35, 25, 20]


def test_inspect_doubles_with_each_round_that_is_used() -> None:
    inspect = Inspect()
    for expected in (40, 80, 100):
        under_way = [inspect.begin(0.0, 100) for _ in range(int(inspect.limit))]
        for sent in under_way:
            inspect.end(1.0, sent, OK)
        assert inspect.limit == expected


def test_aimd_takes_a_fifth_once_in_a_round_trip() -> None:
    aimd = Aimd()
    aimd.limit = 50
    under_way = [aimd.begin(0.0, 100) for _ in range(3)]
    for sent in under_way:
        aimd.end(0.5, sent, REFUSED)
    assert aimd.limit == 40


def test_a_semaphore_keeps_the_slots_of_calls_that_wait_to_be_sent_again() -> None:
    """Ten at once where two are allowed: the other eight slots are busy with waiting."""
    went = drive(provider(cap=2), Keeping(Semaphore(10)), flood(20), seed=0)
    assert went.seconds >= 10.0
    assert went.sends > 60


def test_the_share_of_whom_gets_least_is_seen() -> None:
    senders = [Keeping(Semaphore(6)), Keeping(Semaphore(2))]
    went = drive(provider(), Apart(senders), flood(60, processes=2), seed=0)
    assert 0.4 < went.least_share < 0.55


def test_processes_at_one_broker_get_equal_shares() -> None:
    went = drive(provider(cap=8), Together(Adaptive()), flood(200, processes=4), seed=0)
    assert went.least_share > 0.9


def test_every_rival_gets_everything_answered() -> None:
    for name in RIVALS:
        (score,) = compare(GOALS[2], name, seeds=1)
        assert score.times > 0.99


def test_a_round_begins_when_the_last_call_of_the_one_before_is_answered() -> None:
    rounds = World(((1, 1, 1), (4,)), pause_seconds=0.5)
    went = drive(provider(), Alone(Semaphore(10)), Load((rounds,)), seed=0)
    assert 1.0 + 0.5 + 4.0 <= went.seconds < 5.52
    assert (went.sends, went.peak) == (7, 3)


def test_calls_overtake_one_another_only_with_jitter() -> None:
    plain = drive(provider(), Alone(Semaphore(1)), flood(5), seed=0)
    late = drive(provider(), Alone(Semaphore(1)), flood(5), seed=0, jitter_seconds=0.1)
    assert 5.0 <= plain.seconds < 5.01
    assert late.seconds > 5.3
