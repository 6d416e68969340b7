"""The figures of a report, and its files at every level."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.errors import RunRefused
from shoal.experiments import Judgement, RunResult
from shoal.experiments.report import describe_findings, join_sentence, read_record, report_experiment, write_report
from tests.experiments.report.harness import make_result, make_study, read_json, write_results


def lose_seed(result: RunResult) -> RunResult:
    if result.seed != 3 or result.arm != "fact-check":
        return result
    return msgspec.structs.replace(result, status="failed", error="the server is gone", metrics={}, judgements=())


def test_a_report_begins_with_the_answer(tmp_path: Path) -> None:
    report = report_experiment(read_record(make_study(tmp_path)))
    first, cheapest = (join_sentence(sentence) for sentence in describe_findings(report))
    assert first.startswith("fact-check lowers mean(closing) against nothing: 0.")
    assert "in 8 of 8 seeds" in first
    assert "corrected p = 0.008" in first
    assert cheapest.startswith("fact-check costs $0.55 per passing run (95 % interval ")


def test_every_level_has_a_report_also_where_a_run_failed(tmp_path: Path) -> None:
    write_report(make_study(tmp_path, lose_seed))
    whole, tier = read_json(tmp_path / "report.json"), read_json(tmp_path / "answer" / "report.json")
    arm = read_json(tmp_path / "answer" / "fact-check" / "report.json")
    run = read_json(tmp_path / "answer" / "fact-check" / "3" / "report.json")
    assert [each["level"] for each in (whole, tier, arm, run)] == ["experiment", "tier", "arm", "run"]
    assert (run["status"], run["error"], run["passed"]) == ("failed", "the server is gone", None)
    assert (whole["runs"], whole["completed"], whole["failed"], arm["judged"]) == (16, 15, 1, 7)
    assert len(list(tmp_path.rglob("report.json"))) == 1 + 1 + 2 + 16
    # The other seeds are compared all the same.
    assert arm["effects"]["mean(closing)"]["seeds"] == 7
    assert any("1 failed" in note for note in whole["notes"])


def test_intervals_of_shares_end_where_shares_do_unless_a_metric_of_a_user_goes_further(tmp_path: Path) -> None:
    def add_shares(result: RunResult) -> RunResult:
        share = 1 - 0.1 * (result.seed % 3 == 0)
        own = {"reach(closing)": share, "participation": share + 0.1 * result.seed}
        return msgspec.structs.replace(result, metrics={**result.metrics, **own})

    report = report_experiment(read_record(make_study(tmp_path, add_shares, seeds=5)))
    metrics = report.tiers[0].arms[0].metrics
    assert metrics["reach(closing)"].mean.high == 1 > metrics["reach(closing)"].mean.low
    assert metrics["participation"].mean.high > 1.2


def test_the_cost_of_a_pass_is_mean_cost_over_pass_rate(tmp_path: Path) -> None:
    write_report(make_study(tmp_path))
    arm = read_json(tmp_path / "answer" / "fact-check" / "report.json")
    assert arm["cost_of_pass"] == pytest.approx(arm["mean_cost"] / arm["pass_rate"])
    low, high = arm["cost_of_pass_interval"]
    assert low < arm["cost_of_pass"] < high
    tier = read_json(tmp_path / "answer" / "report.json")
    assert (tier["best_arm"], tier["cost_of_pass"]) == ("fact-check", arm["cost_of_pass"])


def test_the_cost_of_a_pass_is_null_where_nothing_passed(tmp_path: Path) -> None:
    def fail_all(result: RunResult) -> RunResult:
        judgements = tuple(msgspec.structs.replace(each, passed=False) for each in result.judgements)
        return msgspec.structs.replace(result, judgements=judgements)

    folder = make_study(tmp_path, fail_all)
    best = report_experiment(read_record(folder)).best_arm
    assert best is not None
    assert best.cost_of_pass is not None
    assert best.cost_of_pass.value == inf
    write_report(folder)
    for path in (folder, folder / "answer", folder / "answer" / "nothing"):
        found = read_json(path / "report.json")
        assert (found["passed"], found["cost_of_pass"], found["cost_of_pass_interval"][1]) == (0, None, None)
    assert "No run passed, so the cost of a pass is infinite." in (folder / "report.md").read_text()


def test_a_judge_that_failed_counts_as_no_verdict(tmp_path: Path) -> None:
    def break_judge(result: RunResult) -> RunResult:
        if result.seed != 1:
            return result
        broken = msgspec.structs.replace(result.judgements[0], passed=None, score=None, error="no verdict in the reply")
        return msgspec.structs.replace(result, judgements=(broken,))

    report = report_experiment(read_record(make_study(tmp_path, break_judge)))
    arm = report.list_arms()[1]
    assert (arm.totals.runs, arm.totals.completed, arm.totals.judged) == (8, 8, 7)
    assert arm.record.judges["believed"].failed == 1
    assert [run.seed for run in report.list_lost()] == [1, 1]


def test_notes_say_how_failed_and_unjudged_runs_count(tmp_path: Path) -> None:
    def lose(result: RunResult) -> RunResult:
        judgement = result.judgements[0]
        if result.seed == 1:
            refused = msgspec.structs.replace(judgement, passed=False, score=None, reason="the run failed")
            return msgspec.structs.replace(result, status="failed", error="gone", metrics={}, judgements=(refused,))
        if result.seed in (2, 3):
            broken = msgspec.structs.replace(judgement, passed=None, score=None, error="no verdict in the reply")
            return msgspec.structs.replace(result, judgements=(broken,))
        return msgspec.structs.replace(result, status="stopped", judgements=()) if result.seed == 4 else result

    write_report(make_study(tmp_path, lose))
    found = read_json(tmp_path / "report.json")
    assert found["notes"][:3] == [
        "Of 16 runs, 2 failed. Their cost counts, their metrics do not, and in pass rates they count as not passed.",
        "Of 16 runs, 2 stopped early. Their cost counts, and nothing else of them.",
        "4 completed runs could not be judged; the pass rate is of the other 10.",
    ]
    arm = read_json(tmp_path / "answer" / "fact-check" / "report.json")
    assert (arm["judged"], arm["pass_rate"]) == (5, pytest.approx(arm["passed"] / 5))


def test_the_report_says_how_far_the_votes_of_a_judge_agree(tmp_path: Path) -> None:
    def vote(result: RunResult) -> RunResult:
        agree = result.arm == "nothing"
        votes = Judgement("civil", agree, 6.0, votes=(7.0, 7.0, 7.0 if agree else 1.0), votes_for=3 if agree else 2)
        return msgspec.structs.replace(result, judgements=(*result.judgements, votes))

    folder = make_study(tmp_path, vote)
    write_report(folder)
    found = read_json(folder / "report.json")["judges"]["civil"]
    # All pairs agree in one arm, and one of three in the other.
    assert found["votes_agree"] == pytest.approx(2 / 3)
    assert found["kappa"] == pytest.approx((2 / 3 - 26 / 36) / (1 - 26 / 36))
    assert read_json(folder / "answer" / "fact-check" / "report.json")["judges"]["civil"]["votes_agree"] == (
        pytest.approx(1 / 3)
    )
    row = next(line for line in (folder / "report.md").read_text().splitlines() if line.startswith("| civil"))
    assert row == "| civil | 8 | 8 | 0 | 6 | 67% | -0.20 |"
    assert "Fleiss&#x27; kappa" in (folder / "report.html").read_text()


def test_an_unknown_price_makes_costs_unknown_and_not_zero(tmp_path: Path) -> None:
    write_report(make_study(tmp_path, lambda result: msgspec.structs.replace(result, cost=None)))
    found = read_json(tmp_path / "answer" / "nothing" / "report.json")
    assert (found["cost"], found["mean_cost"], found["cost_of_pass"]) == (None, None, None)


def test_arms_without_an_effect_are_not_called_different(tmp_path: Path) -> None:
    results = [make_result("answer", arm, seed) for seed in range(1, 9) for arm in ("one", "two")]
    same = [msgspec.structs.replace(each, metrics={"mean(closing)": 0.5 + 0.01 * each.seed}) for each in results]
    report = report_experiment(read_record(write_results(tmp_path, same, {"outcome": "mean(closing)"})))
    assert join_sentence(describe_findings(report)[0]).startswith("No arm differs from one in mean(closing)")


def test_comparisons_are_corrected_over_all_tiers(tmp_path: Path) -> None:
    results = [
        make_result(tier, arm, seed) for tier in ("a", "b") for seed in range(1, 9) for arm in ("nothing", "fact-check")
    ]
    design: dict[str, Any] = {"tiers": [{"name": tier, "control": "nothing", "arms": {}} for tier in ("a", "b")]}
    report = report_experiment(read_record(write_results(tmp_path, results, design)))
    for arm in (each for each in report.list_arms() if not each.is_control):
        effect = arm.effects["mean(closing)"]
        assert effect.effect.p is not None
        assert effect.corrected_p == pytest.approx(2 * effect.effect.p)


def test_a_control_that_is_not_declared_is_named(tmp_path: Path) -> None:
    results = [make_result("main", arm, seed) for seed in (1, 2, 3) for arm in ("x", "base")]
    report = write_report(write_results(tmp_path, results)).report
    assert [arm.is_control for arm in report.list_arms()] == [False, True]
    assert "Tier main declares no control; its arms are compared with base." in (tmp_path / "report.md").read_text()


def test_the_same_results_give_the_same_files(tmp_path: Path) -> None:
    write_report(make_study(tmp_path))
    before = {path: path.read_bytes() for path in tmp_path.rglob("report.*")}
    write_report(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("report.*")} == before


def test_a_tier_of_which_no_run_has_ended_is_shown(tmp_path: Path) -> None:
    design = {"tiers": [{"name": "late", "control": "a", "arms": {"a": {}, "b": {}}}]}
    report = write_report(write_results(tmp_path, [], design)).report
    assert [join_sentence(sentence) for sentence in describe_findings(report)] == ["No run has ended yet."]
    assert read_json(tmp_path / "late" / "b" / "report.json")["runs"] == 0
    (tmp_path / "results.jsonl").unlink()
    assert write_report(tmp_path).report.totals.runs == 0


@pytest.mark.parametrize("content", [None, b'{"tier": 3}\n'])
def test_a_folder_without_readable_results_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "results.jsonl").write_bytes(content)
    with pytest.raises(RunRefused, match="is no experiment" if content is None else r"results.jsonl:1: is no result"):
        write_report(tmp_path)


def test_markdown_keeps_names_from_being_marks(tmp_path: Path) -> None:
    results = [make_result("t", arm, seed) for seed in (1, 2) for arm in ("a|b", "**x** <b>")]
    write_report(write_results(tmp_path, results))
    text = (tmp_path / "report.md").read_text()
    assert "[a\\|b](t/a|b/)" in text
    assert "\\*\\*x\\*\\* \\<b\\>" in text
