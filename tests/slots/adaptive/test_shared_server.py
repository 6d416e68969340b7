"""What the limit makes of a server whose calls share a machine: more of them only make one another slower."""

from __future__ import annotations

import math

import pytest

from shoal.slots.adaptive.limiter import Adaptive, Learned
from tests.slots.shared_server import SharedRun, SharedServer

SEEDS = range(4)


def answer(
    control: Adaptive, rounds: list[int], slots: int, workers: float, seed: int, sigma: float = 0.3
) -> SharedRun:
    server = SharedServer(slots, lambda calls: min(calls, workers), sigma, seed)
    return server.answer_rounds(control, rounds)


def learned(control: Adaptive) -> Learned:
    found = control.get_learned()
    assert found is not None
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("slots", [1, 2, 8])
def test_one_worker_is_found_however_many_calls_it_takes_turns_with(slots: int, seed: int) -> None:
    cold = Adaptive()
    answer(cold, [24] * 6, slots, 1.0, seed)
    assert learned(cold).in_flight <= 5
    warm = Adaptive(learned(cold))
    went = answer(warm, [24] * 4, slots, 1.0, seed + 100)
    assert went.peaks[-1] <= 5
    assert went.seconds <= 1.02 * went.work


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("calls", [24, 100])
def test_calls_that_are_slower_together_but_bring_more_are_sent_together(calls: int, seed: int) -> None:
    """As where a machine works on several calls at once with half the loss."""
    went = [
        SharedServer(8, math.sqrt, 0.3, seed).answer_rounds(control, [calls] * 4)
        for control in (Adaptive(), _Everything())
    ]
    assert went[0].seconds <= 1.08 * went[1].seconds


class _Everything(Adaptive):
    """Sends everything at once."""

    def wait(self, now: float, tokens: int, waiting: int) -> float:
        return 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_server_that_works_on_everything_at_once_is_never_held_to_be_full(seed: int) -> None:
    control = Adaptive()
    answer(control, [60] * 8, 10_000, math.inf, seed, sigma=0.6)
    assert not learned(control).is_wall
    assert learned(control).in_flight >= 60
