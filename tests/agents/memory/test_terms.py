"""The words of a text by which memories are found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.memory.past import extract_terms


def test_words_are_looked_for_without_case_plural_and_fillers() -> None:
    assert extract_terms("The Bridges of THE bridge, and its glass!") == ["bridge", "glass"]


def test_scripts_without_spaces_are_looked_for_in_pairs() -> None:
    assert extract_terms("港口关闭 at 9") == ["港口", "口关", "关闭", "9"]
    assert extract_terms("橋") == ["橋"]


def test_other_alphabets_are_looked_for_in_words() -> None:
    assert extract_terms("Мост закрыт: Straße, café") == ["мост", "закрыт", "strasse", "café"]


def test_words_of_several_scripts_are_found_beside_one_another() -> None:
    assert extract_terms("«Мост» und 港口关闭, café_9…") == ["мост", "港口", "口关", "关闭", "café", "9"]


@given(st.text())
def test_every_text_has_terms_each_once(text: str) -> None:
    found = extract_terms(text)
    assert len(set(found)) == len(found)
    assert "" not in found
