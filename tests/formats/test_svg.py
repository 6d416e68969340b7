"""The building blocks of SVG pictures."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from shoal.formats import Axis, choose_step, draw_circle, draw_text, wrap_svg


@pytest.mark.parametrize(("span", "step"), [(1, 0.5), (0.4, 0.1), (24, 10), (1000, 500), (0, 5e-10)])
def test_steps_are_round_and_about_four_fill_the_span(span: float, step: float) -> None:
    assert choose_step(span) == pytest.approx(step)


def test_an_axis_places_its_ends_and_ticks_between_them() -> None:
    axis = Axis(-1, 1, 100, 300)
    assert (axis.at(-1), axis.at(0), axis.at(1)) == (100, 200, 300)
    assert axis.ticks() == [-1, -0.5, 0, 0.5, 1]


def test_an_axis_without_extent_has_a_place_for_its_value() -> None:
    assert Axis(3, 3, 10, 20).at(3) == 10


def test_texts_cannot_leave_their_element() -> None:
    hostile = '</text><script>alert("1")</script>'
    svg = wrap_svg([draw_text(1, 2, hostile), draw_circle((1, 2), 3, 'class="a"', hostile)], (10, 20), hostile, "")
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label") == hostile
    assert [element.tag for element in root.iter() if element.tag.endswith("script")] == []
