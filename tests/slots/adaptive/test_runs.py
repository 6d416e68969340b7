"""What the limit gets on the calls of runs: rounds with pauses between them, cold and with what was learned.

The bounds leave room for the choice of seeds: the goals are in `bench/limits.py`.
"""

from __future__ import annotations

from statistics import mean

import pytest

from bench.limits import GOALS, OTHER, SEEN, Scores, Setting, measure

SEEDS = 2
SLACK_TIMES, SLACK_WASTED = 0.06, 0.015
#: Where the goal is not met by a limit that knows nothing yet; docs/design/adaptive-limits.md says why.
COLD_TIMES = {"cap 150, 2,000 at once": 1.25, "slower above 64, 10 rounds of 150": 1.2}
#: Those that take less than a second.
QUICK = [
    "cap 24, rumour: 12 rounds of two worlds",
    "cap 24, 10 rounds of 150",
    "cap 7, 20 rounds of 20",
    "cap 24, rumour, ways of 10 ms more or less",
    "cap 24, four runs of different kinds",
    "cap 5, 2,000 at once",
    "cap 150, 2,000 at once",
    "15 requests/s, rumour",
    "30 requests/s, 2,000 at once",
    "cap 64, then 16, then 64, 20 rounds of 100",
    "a queue behind 4 workers, 10 rounds of 12",
    "a queue behind 32 workers, 1,600 at once",
    "a queue behind 4 workers, rounds of 20, 3 s answers",
    "slower above 64, 10 rounds of 150",
]


def find_setting(name: str) -> Setting:
    return next(setting for setting in (*GOALS, *SEEN, *OTHER) if setting.name == name)


def check(setting: Setting, found: Scores) -> None:
    assert setting.times is not None
    for score in found.cold:
        assert score.times <= COLD_TIMES.get(setting.name, setting.times + SLACK_TIMES)
    for score in found.warm:
        assert score.times <= setting.times + SLACK_TIMES
    if setting.wasted is not None:
        assert max(score.wasted for score in (*found.cold, *found.warm)) <= setting.wasted + SLACK_WASTED
    if setting.most_in_flight is not None:
        assert max(score.peak for score in (*found.cold, *found.warm)) <= 1.5 * setting.most_in_flight
    assert not any(score.was_cut for score in (*found.cold, *found.warm))


@pytest.mark.parametrize("name", QUICK)
def test_a_run_takes_hardly_longer_than_with_the_best_fixed_number_and_wastes_few_calls(name: str) -> None:
    setting = find_setting(name)
    check(setting, measure(setting, SEEDS))


@pytest.mark.parametrize("name", ["cap 24, rumour: 12 rounds of two worlds", "15 requests/s, rumour"])
def test_what_is_remembered_never_makes_a_run_slower(name: str) -> None:
    found = measure(find_setting(name), SEEDS)
    for cold, warm in zip(found.cold, found.warm, strict=True):
        assert warm.times <= cold.times + 0.02
        assert warm.wasted <= cold.wasted


def test_random_refusals_do_not_keep_a_run_at_the_few_calls_of_its_beginning() -> None:
    """One refused call of the first eight stopped the rise, and two refusals below what was accepted made it a rate."""
    found = measure(find_setting("5 % refused at random, rumour"), 2 * SEEDS)
    assert mean(score.times for score in found.cold) < 1.2
    assert mean(score.times for score in found.warm) < 1.0


def test_a_cap_beside_random_refusals_is_not_overrun_each_time_these_are_recognised() -> None:
    setting = find_setting("cap 48, 4 % refused at random, 2,500 at once")
    found = measure(setting, SEEDS)
    for scores in (found.cold, found.warm):
        assert mean(score.wasted for score in scores) < setting.provider.limits + 0.03
