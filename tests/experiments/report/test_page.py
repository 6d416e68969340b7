"""The page of a report: it stands alone, nothing in it can run, and it leads to every run."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest

from shoal.experiments import RunResult
from shoal.experiments.report import write_report
from tests.experiments.report.harness import Elements, make_result, make_study, write_results

ATTACK = "<script>alert(1)</script><img src=x onerror=alert(1)>\" onclick='alert(1)"


def write_page(folder: Path) -> str:
    return write_report(folder).page.read_text()


def test_a_page_loads_nothing_and_allows_only_its_own_style_and_script(tmp_path: Path) -> None:
    page = write_page(make_study(tmp_path))
    elements = Elements(page)
    policy = next(
        each["content"] for tag, each in elements.found if each.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        bodies = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert len(bodies) == 1
        assert f"'sha256-{b64encode(sha256(bodies[0].encode()).digest()).decode()}'" in policy
    assert not {"src", "style", "srcdoc"} & {name for _, each in elements.found for name in each}
    assert not re.search(r"url\(|@import|https?://", page.replace("http-equiv", ""))


def test_words_of_others_never_run(tmp_path: Path) -> None:
    def attack(result: RunResult) -> RunResult:
        judgements = tuple(
            msgspec.structs.replace(each, judge=ATTACK, passed=None, error=ATTACK) for each in result.judgements
        )
        metrics = {**result.metrics, ATTACK: 0.1 * result.seed}
        return msgspec.structs.replace(result, metrics=metrics, judgements=judgements)

    folder = make_study(tmp_path, attack)
    design = {"name": ATTACK, "outcome": ATTACK, "tiers": [{"name": "answer", "arms": {"nothing": {ATTACK: ATTACK}}}]}
    (folder / "experiment.json").write_bytes(msgspec.json.encode(design))
    elements = Elements(write_page(folder))
    assert [tag for tag, _ in elements.found if tag in ("script", "img")] == ["script"]
    assert not [name for _, each in elements.found for name in each if name.startswith("on")]
    assert ATTACK in elements.text


def test_an_arm_is_described_by_what_other_arms_do_not_change_alike(tmp_path: Path) -> None:
    rumour = {"post": "They say the old bridge will be closed for good, and nobody has asked us.", "by": "random"}
    arms = {name: {"events": [rumour, {"broadcast": "No.", "round": at}]} for name, at in (("late", 9), ("early", 3))}
    results = [make_result("answer", arm, seed) for arm in arms for seed in (1, 2)]
    page = write_page(write_results(tmp_path, results, {"name": "town", "tiers": [{"name": "answer", "arms": arms}]}))
    text = Elements(page).collapse()
    assert "events.1.round = 9" in text
    assert "events.1.round = 3" in text
    assert "They say" not in page


def test_the_cost_of_a_pass_is_left_out_where_nothing_was_spent(tmp_path: Path) -> None:
    paid = write_page(make_study(tmp_path / "paid"))
    free = write_page(make_study(tmp_path / "free", lambda result: msgspec.structs.replace(result, cost=0.0)))
    assert ("<dt>Cost of a pass" in paid, "<dt>Cost of a pass" in free) == (True, False)


def test_every_run_is_a_link_that_says_how_it_ended(tmp_path: Path) -> None:
    elements = Elements(write_page(make_study(tmp_path)))
    squares = {
        unquote(each["href"]): each["aria-label"]
        for _, each in elements.found
        if "sq" in each.get("class", "") and "href" in each
    }
    assert len(squares) == 16
    assert squares["answer/nothing/1/"] == "seed 1, not passed"
    assert squares["answer/fact-check/1/"] == "seed 1, passed"


def test_pictures_say_in_words_what_they_show(tmp_path: Path) -> None:
    elements = Elements(write_page(make_study(tmp_path)))
    pictures = [each for tag, each in elements.found if tag == "svg"]
    assert pictures
    assert all(each["role"] == "img" and each["aria-label"] for each in pictures)
    labels = [each["aria-label"] for each in pictures]
    assert any("95 % interval" in label and "beyond chance" in label for label in labels)
    assert any(label.startswith("Cost against pass rate.") for label in labels)


def test_names_in_any_alphabet_keep_their_direction_to_themselves(tmp_path: Path) -> None:
    results = [make_result("信任", arm, seed) for seed in (1, 2, 3) for arm in ("control", "التصحيح")]
    page = write_page(write_results(tmp_path, results))
    assert "<bdi>التصحيح</bdi>" in page
    assert "%D8%A7%D9%84%D8%AA%D8%B5%D8%AD%D9%8A%D8%AD/1/" in page


@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_few_seeds_make_no_broken_picture(tmp_path: Path, seeds: int) -> None:
    page = write_page(make_study(tmp_path, seeds=seeds))
    assert not re.search(r'"[^"]*\b(nan|inf)\b[^"]*"', re.sub(r'aria-label="[^"]*"', "", page))


def test_failed_runs_and_stopped_arms_are_listed_with_reasons(tmp_path: Path) -> None:
    def fail_one(result: RunResult) -> RunResult:
        if result.seed != 2:
            return result
        return msgspec.structs.replace(result, status="failed", error="no such model: 谣言", metrics={}, judgements=())

    folder = make_study(tmp_path, fail_one)
    stop = {"tier": "answer", "arm": "nothing", "seeds": 8, "reason": "its interval is narrow enough"}
    (folder / "experiment_state.json").write_bytes(msgspec.json.encode({"stops": [stop]}))
    text = Elements(write_page(folder)).collapse()
    assert "no such model: 谣言" in text
    assert "its interval is narrow enough" in text
    assert "shoal run town.yaml --seed 1" in text
