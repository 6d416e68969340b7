"""Stopping rules: they depend on results in the order of seeds, and on nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from shoal.experiments.results import Judgement, RunResult
from shoal.experiments.stopping import ArmStop, StopRule, TierStops

SEEDS = tuple(range(1, 41))


def make_result(arm: str, seed: int, value: float | None, passed: bool | None = None) -> RunResult:
    judgements = () if passed is None else (Judgement("judge", passed, None),)
    return RunResult(
        tier="tier",
        arm=arm,
        seed=seed,
        status="failed" if value is None else "completed",
        error=None,
        cost=1.0,
        calls=0,
        input_tokens=0,
        output_tokens=0,
        seconds=1.0,
        metrics={} if value is None else {"reach": value},
        judgements=judgements,
        run="",
        digest="",
    )


def make_stops(*rules: StopRule, arms: Sequence[str] = ("one", "two"), control: str | None = None) -> TierStops:
    return TierStops("tier", arms, SEEDS, rules, control)


def make_results(values: Mapping[str, Sequence[float | None]]) -> dict[str, RunResult]:
    results = [make_result(arm, seed, value) for arm, each in values.items() for seed, value in enumerate(each, 1)]
    return {result.id: result for result in results}


def draw(mean: float, spread: float, name: str) -> list[float | None]:
    source = Random(name)
    return [source.gauss(mean, spread) for _ in SEEDS]


def test_an_arm_stops_once_its_interval_is_narrow_enough() -> None:
    values = {"one": draw(0.5, 0.01, "a"), "two": draw(0.5, 0.4, "b")}
    stops = make_stops(StopRule(metric="reach", narrower=0.05)).advance(make_results(values))
    assert [(stop.arm, stop.seeds) for stop in stops] == [("one", 10)]
    assert "is narrower than 0.05" in stops[0].reason


def test_the_order_in_which_runs_end_changes_no_decision() -> None:
    rules = (StopRule(metric="reach", narrower=0.12, at_least=5), StopRule(metric="reach", cannot_win="highest"))
    values = {"one": draw(0.5, 0.1, "a"), "two": draw(0.3, 0.1, "b"), "three": draw(0.49, 0.2, "c")}
    results = make_results(values)
    at_once = make_stops(*rules, arms=list(values)).advance(results)
    assert [stop.arm for stop in at_once] == ["two", "one"]
    for shuffle in range(3):
        names, known = list(results), dict[str, RunResult]()
        Random(shuffle).shuffle(names)
        stops, found = make_stops(*rules, arms=list(values)), list[ArmStop]()
        for name in names:
            known[name] = results[name]
            found += stops.advance(known)
        assert found == at_once


def test_an_arm_that_another_one_beats_for_sure_stops_and_the_control_does_not() -> None:
    values = {"one": draw(0.9, 0.05, "a"), "two": draw(0.1, 0.05, "b"), "three": draw(0.1, 0.05, "c")}
    rule = StopRule(metric="reach", cannot_win="highest", at_least=5)
    stops = make_stops(rule, arms=list(values), control="three").advance(make_results(values))
    assert [(stop.arm, stop.seeds) for stop in stops] == [("two", 5)]
    assert "cannot win any more: reach differs from that of one" in stops[0].reason
    lowest = make_stops(StopRule(metric="reach", cannot_win="lowest", at_least=5), arms=list(values))
    assert {stop.arm for stop in lowest.advance(make_results(values))} == {"one"}


def test_arms_are_compared_only_when_the_number_of_seeds_has_doubled() -> None:
    rule = StopRule(metric="reach", cannot_win="highest", at_least=5)
    assert [seeds for seeds in SEEDS if rule.is_look(seeds)] == [5, 10, 20, 40]


def test_alike_arms_are_seldom_stopped() -> None:
    rule, stopped = StopRule(metric="reach", cannot_win="highest", at_least=5), 0
    for trial in range(60):
        values = {arm: draw(0.5, 0.2, f"{arm}{trial}") for arm in ("one", "two")}
        stopped += bool(make_stops(rule).advance(make_results(values)))
    assert stopped / 60 <= 0.25


def test_nothing_is_decided_before_all_arms_have_the_seed() -> None:
    values = {"one": draw(0.5, 0.001, "a"), "two": draw(0.5, 0.001, "b")}
    results = make_results(values)
    late = results.pop("tier/two/3")
    stops = make_stops(StopRule(metric="reach", narrower=0.1, at_least=5))
    assert stops.advance(results) == []
    results[late.id] = late
    assert {stop.arm for stop in stops.advance(results)} == {"one", "two"}


def test_failed_runs_count_as_seeds_without_a_value() -> None:
    values: dict[str, list[float | None]] = {"one": [None, *draw(0.5, 0.001, "a")[1:]], "two": draw(0.5, 0.4, "b")}
    stops = make_stops(StopRule(metric="reach", narrower=0.1, at_least=5)).advance(make_results(values))
    assert [(stop.arm, stop.seeds) for stop in stops] == [("one", 6)]


def test_the_rate_of_a_judge_has_the_interval_of_a_rate() -> None:
    results = {f"tier/one/{seed}": make_result("one", seed, 1.0, passed=True) for seed in SEEDS}
    stops = make_stops(StopRule(judge="judge", narrower=0.2, at_least=5), arms=["one"]).advance(results)
    # Of n passes out of n the interval of Wilson is z²/(n + z²) wide.
    assert [(stop.arm, stop.seeds) for stop in stops] == [("one", 16)]
    by_rate = make_stops(StopRule(metric="pass_rate", narrower=0.2, at_least=5), arms=["one"]).advance(results)
    assert [stop.seeds for stop in by_rate] == [16]


@pytest.mark.parametrize("fields", [{"metric": "a", "judge": "b", "narrower": 1.0}, {"narrower": 1.0}, {"metric": "a"}])
def test_a_rule_that_says_too_little_or_too_much_has_a_problem(fields: dict[str, object]) -> None:
    assert list(StopRule.model_validate(fields).find_problems())
