"""What the heuristic mind's people write."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain

import pytest

from shoal.agents.heuristic.perception import TextReadings
from shoal.agents.heuristic.writing import (
    LEANINGS,
    TONES,
    Family,
    Voice,
    address,
    build_social_families,
    label,
    load_phrases,
)
from shoal.worlds.lexicon import TextReader
from tests.agents.people import SUBJECT, TOPICS, Feed, crowd, mind_of, people, take_turns, text_of

READER = TextReader(TOPICS, SUBJECT, edition=1)


def sign(number: float) -> int:
    return (number > 0) - (number < 0)


def voice() -> Voice:
    return Voice(1, "twitter", build_social_families())


def texts_of(lean: int, count: int, about: str) -> Iterator[str]:
    writer = voice()
    for nth in range(count):
        for kind in ("post", "news", "quote", "message"):
            yield writer.write((kind, lean), nth % 7, nth, about)
        for tone in TONES:
            yield writer.write(("comment", tone, lean), nth % 7, nth, about, ", Mira")


@pytest.mark.parametrize("lean", LEANINGS)
@pytest.mark.parametrize("about", [SUBJECT, "gardening", "“parking”", "this"])
def test_the_leaning_of_a_text_can_be_read_from_it(lean: int, about: str) -> None:
    for text in texts_of(lean, 400, about):
        assert sign(READER.slant(text)) == sign(lean), text


@pytest.mark.parametrize("sign", [-1, 1])
def test_firm_texts_lean_further_than_mild_ones(sign: int) -> None:
    writer = voice()
    mild = [abs(READER.slant(writer.write(("post", sign), 0, nth, SUBJECT))) for nth in range(300)]
    firm = [abs(READER.slant(writer.write(("post", 2 * sign), 0, nth, SUBJECT))) for nth in range(300)]
    assert max(mild) < 0.7
    assert min(firm) > 0.6
    assert sum(firm) > 1.3 * sum(mild)


@pytest.mark.parametrize(
    "subject",
    [
        "the vaccine hoax",
        "Should the city ban cars?",
        "trust_in_science",
        "The dean lied to the students.",
        "no-fly zone",
    ],
)
@pytest.mark.parametrize("lean", [-1, 0, 1])
def test_a_loaded_subject_does_not_hide_the_leaning(subject: str, lean: int) -> None:
    reader = TextReader((), subject, edition=1)
    about = TextReadings(reader).subject
    assert about is not None
    for text in texts_of(lean, 100, about):
        assert sign(reader.slant(text)) == sign(lean), text
        assert reader.topics(text) == (0,)


#: Lists of phrases by leaning that contain cues, and the leanings in which they do.
LEANING = {"post_middles": (1, -1), "post_reasons": (2, -2), "reply_middles": (1, -1), "reply_closers": (2, -2)}
#: Hobbies are talked about with warmth, reports name what is wrong, and verdicts are never read back.
COLOURED = {"hobby_reasons", "report_reasons", *(("verdicts", number) for number in range(4))}


@pytest.mark.parametrize(("table", "lists"), [("social", 26), ("room", 11), ("dialogue", 24)])
def test_phrases_outside_a_leaning_are_neutral_and_no_list_has_one_twice(table: str, lists: int) -> None:
    found = load_phrases(table)
    assert len(found) >= lists
    assert [key for key, texts in found.items() if len(set(texts)) < len(texts)] == []
    neutral = [
        texts
        for key, texts in found.items()
        if key not in COLOURED and not (isinstance(key, tuple) and key[1] in LEANING.get(key[0], ()))
    ]
    assert [phrase for phrase in chain.from_iterable(neutral) if READER.slant(phrase) != 0] == []


def test_no_middle_is_listed_twice_as_it_could_make_two_texts_equal() -> None:
    found = load_phrases("social")
    ways = [found[name, way] for name in ("post_middles", "reply_middles") for way in TONES]
    middles = [*ways, found["hobby_middles"]]
    assert [text for text, count in Counter(chain.from_iterable(middles)).items() if count > 1] == []


def test_a_family_has_no_two_equal_texts_and_varies_them_when_it_begins_again() -> None:
    family = Family(("A.", "B."), ("C.", "D.", "E."), ("F.",))
    assert family.size == 6
    texts = [family.write(index) for index in range(4 * family.size)]
    assert len(set(texts)) == len(texts)


def test_nobody_writes_the_same_text_twice_even_when_a_family_is_used_up() -> None:
    writer = voice()
    texts = [writer.write(("comment", 1, 1), 3, nth, SUBJECT) for nth in range(12_000)]
    assert len(set(texts)) == len(texts)
    assert any("said this once before" in text for text in texts)


def test_one_agent_never_repeats_itself_in_two_thousand_turns() -> None:
    history = take_turns(mind_of(people(0.7), talkativeness=3.0), 1, 2_000, Feed())
    texts = [text for _, decision in history for action in decision.actions if (text := text_of(action))]
    assert len(texts) > 1_000
    assert len(set(texts)) == len(texts)


def test_different_agents_rarely_write_the_same() -> None:
    history = take_turns(mind_of(crowd(100)), 100, 40, Feed())
    texts = [text for _, decision in history for action in decision.actions if (text := text_of(action))]
    assert len(texts) > 1_000
    assert len(set(texts)) > 0.97 * len(texts)


def test_texts_are_clean_sentences() -> None:
    history = take_turns(mind_of(crowd(100)), 100, 40, Feed())
    for _, decision in history:
        for text in filter(None, map(text_of, decision.actions)):
            assert re.fullmatch(r"[A-Z“].*[.?!”)]", text), text
            assert not re.search(r"[{}]|  | ,|\.\.|\bthe the\b|\d", text), text
            assert 20 < len(text) < 280, text


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("the campus curfew", "the campus curfew"),
        ("housing_crisis", "housing crisis"),
        ("Should the city ban cars?", "the question “Should the city ban cars?”"),
        ("The university will close.", "the claim “The university will close”"),
    ],
)
def test_any_subject_becomes_a_noun_phrase(subject: str, expected: str) -> None:
    assert label(subject) == expected


def test_a_very_long_subject_is_cut_at_a_word() -> None:
    name = label("the plan of the council " * 20)
    assert name.endswith(" …”")
    assert len(name) < 110


@pytest.mark.parametrize(
    ("author", "expected"),
    [
        ("Mira Berg", ", Mira"),
        ("Bo", ", Bo"),
        ("Hope Diaz", ""),
        ("City Council", ""),
        ("mira_77", ""),
        ("王伟", ""),
        ("", ""),
        ("Dr. Li", ""),
    ],
)
def test_only_people_are_addressed_by_their_first_name(author: str, expected: str) -> None:
    assert address(author) == expected
