"""What tuning leaves behind: figures, a picture and a setting."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from shoal.runs.tuning.chart import draw_chart
from shoal.runs.tuning.knee import MeasuredLevel, find_knee
from shoal.runs.tuning.result import TuneResult
from tests.runs.tuning.fake_servers import level, measure_all, queueing, refusing

TITLES = ("some/model: calls at once", "answers per second", "seconds per answer")
SVG = "{http://www.w3.org/2000/svg}"


def make_result(levels: list[MeasuredLevel], kind: str = "calls") -> TuneResult:
    return TuneResult(
        kind=kind,
        name="some/model",
        where="http://127.0.0.1:1/v1",
        levels=tuple(levels),
        measured_at="2026-03-02T18:00:00+00:00",
    )


def picture(levels: list[MeasuredLevel]) -> ElementTree.Element:
    return ElementTree.fromstring(draw_chart(levels, find_knee(levels), TITLES))


def words(picture: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in picture.iter(f"{SVG}text")]


def test_everything_is_kept_in_files(tmp_path: Path) -> None:
    levels = measure_all(refusing(48))
    written = make_result(levels).write(tmp_path)
    assert [path.name for path in written] == ["tune.json", "tune.svg", "setting.yaml"]
    kept = json.loads((tmp_path / "tune.json").read_text())
    assert [each["at_once"] for each in kept["levels"]] == [1, 2, 4, 8, 16, 32, 48, 56, 64]
    assert kept["knee"]["at_once"] == 48
    assert kept["levels"][-1]["failures"] == levels[6].failures


def test_the_setting_is_yaml_that_says_when_and_against_what_it_was_measured(tmp_path: Path) -> None:
    make_result(measure_all(refusing(48))).write(tmp_path)
    text = (tmp_path / "setting.yaml").read_text()
    assert yaml.safe_load(text) == {"max_workers": 48}
    assert "2026-03-02T18:00, with some/model at http://127.0.0.1:1/v1" in text
    assert "the server refuses" in text


def test_simulations_at_once_are_no_setting_of_a_scenario(tmp_path: Path) -> None:
    written = make_result(measure_all(queueing(2)), "simulations").write(tmp_path)
    assert [path.name for path in written] == ["tune.json", "tune.svg"]


def test_where_nothing_works_there_is_no_setting(tmp_path: Path) -> None:
    written = make_result([level(1, 0.0, tried=9, failures={"500 transient": 9}, p50=0.0, p95=0.0)]).write(tmp_path)
    assert [path.name for path in written] == ["tune.json", "tune.svg"]
    assert json.loads((tmp_path / "tune.json").read_text())["knee"] is None


# The picture


def test_the_picture_marks_the_knee_and_shades_what_fails() -> None:
    shown = picture(measure_all(refusing(48)))
    assert "48 at once" in words(shown)
    assert "25% fail" in words(shown)
    shades = [rect for rect in shown.iter(f"{SVG}rect") if rect.get("class") == "fails"]
    assert len(shades) == 2 * 2, "two levels, in two panels"
    assert float(shades[0].get("opacity", "0")) < float(shades[-1].get("opacity", "0"))


def test_the_picture_has_powers_of_two_below_it_and_the_knee() -> None:
    shown = words(picture(measure_all(refusing(48))))
    assert shown[shown.index("at once") - 8 : shown.index("at once")] == "1 2 4 8 16 32 64 48".split()


@pytest.mark.parametrize("levels", [[level(1, 3.0)], [level(1, 0.0, p50=0.0, p95=0.0)], measure_all(queueing(3))])
def test_everything_is_drawn_within_the_picture(levels: list[MeasuredLevel]) -> None:
    shown = picture(levels)
    for circle in shown.iter(f"{SVG}circle"):
        assert 0 < float(circle.get("cx", "nan")) < 720
        assert 0 < float(circle.get("cy", "nan")) < 520


def test_names_do_not_become_markup() -> None:
    text = draw_chart([level(1, 1.0)], None, ('<b>"&', "a", "b"))
    assert "<b>" not in text
    assert words(ElementTree.fromstring(text))[0] == '<b>"&'


def test_of_nothing_there_is_no_picture() -> None:
    assert draw_chart([], None, TITLES) == ""
