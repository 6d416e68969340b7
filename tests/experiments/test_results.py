"""Results of runs: when a run has passed."""

from math import inf

import msgspec
import pytest

from shoal.experiments import Judgement, RunResult, list_counted, measure_arm
from shoal.experiments.statistics import estimate_cost_of_pass


def _result(*verdicts: bool | None, status: str = "completed") -> RunResult:
    judgements = tuple(
        Judgement(f"judge {number}", verdict, None, error=None if verdict is not None else "why")
        for number, verdict in enumerate(verdicts)
    )
    return RunResult("main", "control", 3, status, None, 0.1, 1, 10, 5, 0.5, {"reach": 0.4}, judgements, "run", "abc")


@pytest.mark.parametrize(
    ("verdicts", "passed"),
    [((True, True), True), ((True, False), False), ((True, None), None), ((False, None), False), ((), None)],
)
def test_a_run_passes_when_every_judge_passes_it(verdicts: tuple[bool | None, ...], passed: bool | None) -> None:
    assert _result(*verdicts).passed is passed


def test_a_score_alone_is_no_verdict() -> None:
    scored = Judgement("score", None, 3.0)
    assert msgspec.structs.replace(_result(True), judgements=(scored, *_result(True).judgements)).passed is True
    assert msgspec.structs.replace(_result(), judgements=(scored,)).passed is None


def test_a_run_that_failed_counts_with_its_cost_and_one_that_is_not_judged_does_not() -> None:
    runs = [_result(True), _result(True), _result(False, status="failed"), _result(None), _result(status="stopped")]
    assert [run.passed for run in runs] == [True, True, False, None, None]
    assert list_counted(runs) == runs[:3]
    assert measure_arm(runs, "pass_rate") == pytest.approx(2 / 3)
    # Three runs at 0.1 were paid for two passes.
    assert measure_arm(runs, "cost_of_pass") == pytest.approx(0.3 / 2)
    costs, passed = [run.cost or 0.0 for run in runs[:3]], [bool(run.passed) for run in runs[:3]]
    assert estimate_cost_of_pass(costs, passed).value == pytest.approx(0.3 / 2)
    assert measure_arm(runs[2:], "cost_of_pass") == inf
    assert measure_arm(runs[3:], "cost_of_pass") is None


def test_what_judging_took_is_counted_apart() -> None:
    paid = Judgement("model", True, 7.0, cost=0.02, calls=3)
    run = msgspec.structs.replace(_result(True), judgements=(paid, paid))
    assert (run.cost, run.judging_cost) == (0.1, 0.04)
    assert msgspec.structs.replace(run, judgements=(paid, Judgement("b", True, 1, cost=None))).judging_cost is None


def test_a_figure_is_found_by_its_short_name() -> None:
    run = msgspec.structs.replace(_result(True), metrics={"mean(topic)": 0.5, "mean(a)": 1.0, "reach(a)": 0.1})
    assert [run.read_figure(name) for name in ("mean", "mean(a)", "reach", "virality")] == [0.5, 1.0, 0.1, None]


def test_a_result_is_named_by_its_place_and_survives_its_line() -> None:
    result = _result(True)
    assert result.id == "main/control/3"
    assert msgspec.json.decode(msgspec.json.encode(result), type=RunResult) == result
