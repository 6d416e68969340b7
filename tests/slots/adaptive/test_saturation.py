"""Where more calls in flight bring no more answers."""

from __future__ import annotations

import pytest

from shoal.slots.adaptive.saturation import SaturationDetector


def rise(plateau: SaturationDetector, most_per_second: float, *, first: int = 32, rounds: int = 8) -> float | None:
    """Rounds with twice as many in flight each, of a server that takes a second and gives so many answers at most."""
    in_flight = first
    for _ in range(rounds):
        for _ in range(in_flight):
            seconds = max(in_flight / most_per_second, 1.0)
            if (enough := plateau.add_answer(in_flight, in_flight, seconds)) is not None:
                return enough
        in_flight *= 2
    return None


def test_a_server_that_gives_ever_more_is_not_full() -> None:
    assert rise(SaturationDetector(), 1e9) is None


@pytest.mark.parametrize("most", [20, 70, 200])
def test_the_knee_is_where_almost_everything_is_reached_that_can_be(most: int) -> None:
    enough = rise(SaturationDetector(), most)
    assert enough is not None
    assert most * 0.9 <= enough <= max(most * 2, 32)


def test_a_server_that_gets_slowly_fuller_is_not_full() -> None:
    """Twice the calls still bring half as many more answers."""
    plateau = SaturationDetector()
    for step in range(8):
        in_flight = 32 * 2**step
        for _ in range(in_flight):
            assert plateau.add_answer(in_flight, in_flight, (2 / 1.5) ** step) is None


def test_a_next_rise_is_compared_with_what_was_found() -> None:
    """So that it ends sooner than the first."""
    plateau = SaturationDetector()
    enough = rise(plateau, 70)
    assert enough is not None
    assert rise(plateau, 70, first=2 * int(enough), rounds=3) == enough


def test_what_is_known_can_be_forgotten() -> None:
    plateau = SaturationDetector()
    rise(plateau, 70)
    plateau.restart()
    assert rise(plateau, 1e9) is None


def test_answers_that_took_no_time_say_nothing() -> None:
    plateau = SaturationDetector()
    assert all(plateau.add_answer(4, 4, 0.0) is None for _ in range(100))
