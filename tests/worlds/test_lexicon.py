"""Reading short texts by their words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.worlds.lexicon import MEMORY_TEXTS, TextReader, content_words, is_cue

TOPICS = ("gardening", "machine learning", "football", "housing crisis", "AI", "city politics")
READER = TextReader(TOPICS, "campus curfew rumour", edition=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My garden is full of weeds.", (0,)),
        ("Gardeners of the world!", (0,)),
        ("MACHINE LEARNING is everywhere", (1,)),
        ("Machines that learn and learning machines", (1,)),
        ("A machine stopped working.", ()),
        ("Football after gardening, then city politics.", (2, 0)),
        ("What will AI do next?", (4,)),
        ("The mail said nothing.", ()),
        ("", ()),
        ("今天天气很好，我们去公园吧。", ()),
        ("Das glaube ich nicht.", ()),
    ],
)
def test_topics_are_found_by_their_words(text: str, expected: tuple[int, ...]) -> None:
    assert READER.topics(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("They announced a curfew on campus.", True),
        ("The curfew is only a rumour.", True),
        ("Rumours about the campus", True),
        ("A curfew in another town", False),
        ("Nothing to do with it", False),
    ],
)
def test_the_subject_is_recognised_by_part_of_its_words(text: str, expected: bool) -> None:
    assert (READER.subject in READER.topics(text)) is expected


@pytest.mark.parametrize(
    ("subject", "text", "expected"),
    [
        ("closing the old bridge", "They want to close the old bridge!", True),
        ("closing the old bridge", "I grew up beside the old bridge.", True),
        ("closing the old bridge", "The bridge is old, and I like it.", True),
        ("closing the old bridge", "A new bridge for the railway", False),
        ("closing the old bridge", "My old bicycle needs oil.", False),
        ("the art fair", "Party tonight", False),
        ("关闭旧桥", "我反对关闭旧桥。", True),
        ("关闭旧桥", "今天天气很好。", False),
        ("of the", "Some of the people", False),
        (None, "Anything", False),
    ],
)
def test_a_text_is_on_topic_if_it_has_half_of_the_subjects_words_or_two(
    subject: str | None, text: str, expected: bool
) -> None:
    assert TextReader((), subject).is_on_topic(text) is expected
    assert TextReader(TOPICS, subject).is_on_topic(text) is expected


def test_the_subject_comes_after_at_most_two_topics() -> None:
    text = "Football, AI and gardening matter more than the campus curfew."
    assert READER.topics(text) == (2, 4, 6)
    assert [READER.vocabulary[topic] for topic in READER.topics(text)] == ["football", "AI", "campus curfew rumour"]


def test_a_subject_that_is_a_topic_keeps_its_place() -> None:
    reader = TextReader(TOPICS, "Football")
    assert reader.vocabulary == TOPICS
    assert reader.topics("football tonight") == (2,)


@pytest.mark.parametrize("subject", [None, "", "the", "今天"])
def test_a_subject_without_words_to_find_is_harmless(subject: str | None) -> None:
    assert TextReader(TOPICS, subject).topics("the football of the day") == (2,)


@pytest.mark.parametrize(
    "text",
    [
        "I trust them.",
        "I believe it is true.",
        "No doubt about it.",
        "I don't doubt it",
        "That isn’t fake.",
        "No, I support this.",
        "Not sure yet. I hope so.",
    ],
)
def test_belief_and_approval_lean_one_way(text: str) -> None:
    assert READER.slant(text) > 0


@pytest.mark.parametrize(
    "text",
    [
        "I doubt that.",
        "What a hoax!",
        "I do not believe it.",
        "I can’t really trust them",
        "Nobody believes this",
        "They are lying, it is nonsense.",
        "I am angry and worried.",
    ],
)
def test_doubt_and_anger_lean_the_other_way(text: str) -> None:
    assert READER.slant(text) < 0


@pytest.mark.parametrize("text", ["", "The train leaves at nine.", "不相信", "I hope so but I doubt it."])
def test_what_shows_no_side_or_both_leans_nowhere(text: str) -> None:
    assert READER.slant(text) == 0.0


def test_more_and_stronger_words_lean_further() -> None:
    mild, strong, stronger = (READER.slant(t) for t in ("I hope so.", "I love it.", "I love it, it is true and great."))
    assert 0 < mild < strong < stronger < 1


def test_the_name_of_the_subject_does_not_lean() -> None:
    reader = TextReader(["housing crisis"], "The vaccine hoax", edition=1)
    assert reader.slant("Did you hear about the vaccine hoax?") == 0.0
    assert reader.slant("I support the vaccine hoax") > 0
    assert reader.slant("It is a hoax") < 0


def test_readings_are_remembered_within_bounds() -> None:
    reader = TextReader(TOPICS, None)
    for number in range(MEMORY_TEXTS + 10):
        reader.topics(f"football {number}")
        reader.slant(f"trust {number}")
    assert len(reader._topics) == len(reader._slants) == 10
    assert reader.topics("football 0") == (2,)


def test_content_words_are_kept_as_written_and_once() -> None:
    assert content_words("The Garden and the garden of Mira, the Garden!") == ["Garden", "garden", "Mira"]


def test_cues_and_negations_are_recognised_in_any_case() -> None:
    assert is_cue("Trust")
    assert is_cue("never")
    assert not is_cue("garden")


@given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=4), st.none() | st.text(max_size=30))
def test_any_text_can_be_read(text: str, topics: list[str], subject: str | None) -> None:
    reader = TextReader(topics, subject)
    found = reader.topics(text)
    assert len(found) <= 3
    assert all(0 <= topic < len(reader.vocabulary) for topic in found)
    assert -1 <= reader.slant(text) <= 1
    assert (found, reader.slant(text)) == (
        TextReader(topics, subject).topics(text),
        TextReader(topics, subject).slant(text),
    )
