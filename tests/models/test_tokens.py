"""Counting tokens without a tokenizer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.memory.terms import terms
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


# what to look for


def test_words_are_looked_for_without_case_plural_and_fillers() -> None:
    assert terms("The Bridges of THE bridge, and its glass!") == ["bridge", "glass"]


def test_scripts_without_spaces_are_looked_for_in_pairs() -> None:
    assert terms("港口关闭 at 9") == ["港口", "口关", "关闭", "9"]
    assert terms("橋") == ["橋"]


def test_other_alphabets_are_looked_for_in_words() -> None:
    assert terms("Мост закрыт: Straße, café") == ["мост", "закрыт", "strasse", "café"]


def test_words_of_several_scripts_are_found_beside_one_another() -> None:
    assert terms("«Мост» und 港口关闭, café_9…") == ["мост", "港口", "口关", "关闭", "café", "9"]


@given(st.text())
def test_every_text_has_terms_each_once(text: str) -> None:
    found = terms(text)
    assert len(set(found)) == len(found)
    assert "" not in found
