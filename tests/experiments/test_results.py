"""Results of runs: when a run has passed."""

import msgspec
import pytest

from shoal.experiments import Judgement, RunResult


def _result(*verdicts: bool | None, status: str = "completed") -> RunResult:
    judgements = tuple(Judgement(f"judge {number}", verdict, None) for number, verdict in enumerate(verdicts))
    return RunResult("main", "control", 3, status, None, 0.1, 1, 10, 5, 0.5, {"reach": 0.4}, judgements, "run", "abc")


@pytest.mark.parametrize(
    ("verdicts", "passed"),
    [((True, True), True), ((True, False), False), ((True, None), None), ((False, None), None), ((), None)],
)
def test_a_run_passes_when_every_judge_passes_it(verdicts: tuple[bool | None, ...], passed: bool | None) -> None:
    assert _result(*verdicts).passed is passed


def test_a_run_that_failed_neither_passes_nor_not() -> None:
    assert _result(True, status="failed").passed is None


def test_a_result_is_named_by_its_place_and_survives_its_line() -> None:
    result = _result(True)
    assert result.id == "main/control/3"
    assert msgspec.json.decode(msgspec.json.encode(result), type=RunResult) == result
