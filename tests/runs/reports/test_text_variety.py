from __future__ import annotations

from pathlib import Path

from shoal.runs.reports import assess_run, summarize
from shoal.runs.reports.text_variety import measure_variety
from tests.models.local.small_table import write_small_table
from tests.runs.reports.test_quality import run_script

VARIED = ["the bridge", "bread and cake", "the river"]


def test_texts_that_say_the_same_are_counted_whatever_their_words(tmp_path: Path) -> None:
    table = write_small_table(tmp_path / "table")
    varied = measure_variety(run_script(tmp_path / "varied", VARIED), table)
    same = measure_variety(run_script(tmp_path / "same", ["the bridge", "bridge the the", "The bridge"]), table)

    assert varied is not None
    assert same is not None
    assert varied.texts == same.texts == 3
    assert varied.diversity > same.diversity
    assert same.repetition > varied.repetition == 0


def test_fewer_than_two_texts_have_no_variety(tmp_path: Path) -> None:
    table = write_small_table(tmp_path / "table")

    assert measure_variety(run_script(tmp_path / "run", ["the bridge"]), table) is None


def test_with_a_table_a_text_without_the_words_of_the_topic_is_on_it(tmp_path: Path) -> None:
    run = run_script(tmp_path / "run", ["the river"] * 3)
    (tmp_path / "run" / "run_state.json").unlink()
    table = write_small_table(tmp_path / "table")

    by_words, by_meaning = ({finding.what for finding in assess_run(run, chosen).findings} for chosen in (None, table))

    assert "off_topic" in by_words
    assert "off_topic" not in by_meaning


def test_a_summary_has_the_variety_only_with_a_table(tmp_path: Path) -> None:
    run = run_script(tmp_path / "run", VARIED)

    with_table = summarize(run, write_small_table(tmp_path / "table"))

    assert summarize(run).variety is None
    assert with_table.variety is not None
    talk = with_table.worlds[0].talk
    assert talk is not None
    assert talk.posts_by_round == (0, 2, 0, 0, 0)
