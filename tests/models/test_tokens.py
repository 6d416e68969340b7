"""Counting tokens without a tokenizer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.tokens import estimate, shorten


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("word", 1),
        ("The harbour will close on Friday.", 9),
        ("Гавань закроют", 7),
        ("港口星期五关闭", 5),
        ("港口 closes", 4),
    ],
)
def test_tokens_are_estimated_by_script(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


@given(st.text(), st.text())
def test_two_texts_together_take_no_more_than_both(one: str, other: str) -> None:
    assert max(estimate(one), estimate(other)) <= estimate(one + other) <= estimate(one) + estimate(other)


@given(st.text(), st.integers(0, 50))
def test_a_shortened_text_fits_and_is_a_beginning(text: str, tokens: int) -> None:
    short = shorten(text, tokens)
    assert estimate(short) <= tokens
    assert short == text or text.startswith(short.removesuffix("…"))


def test_as_much_is_kept_as_fits() -> None:
    assert shorten("one two three four five six", 4) == "one two three…"
