"""What the heuristic mind's people write."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain

import pytest

from shoal.agents.heuristic import phrases
from shoal.agents.heuristic.perception import TextReadings
from shoal.agents.heuristic.writing import Family, Voice, address, label
from shoal.worlds.lexicon import TextReader
from tests.agents.people import SUBJECT, TOPICS, Feed, crowd, live, mind_of, people, text_of

READER = TextReader(TOPICS, SUBJECT)


def sign(number: float) -> int:
    return (number > 0) - (number < 0)


def texts_of(voice: Voice, lean: int, count: int, about: str) -> Iterator[str]:
    for nth in range(count):
        yield voice.post(nth % 7, nth, lean, about)
        yield voice.news(nth % 7, nth, lean, about)
        yield voice.quote(nth % 7, nth, lean, about)
        yield voice.message(nth % 7, nth, lean, about)
        for tone in (-1, 0, 1):
            yield voice.comment(nth % 7, nth, tone, lean, ", Mira", about)


@pytest.mark.parametrize("lean", phrases.LEANINGS)
@pytest.mark.parametrize("about", [SUBJECT, "gardening", "“parking”", "this"])
def test_the_leaning_of_a_text_can_be_read_from_it(lean: int, about: str) -> None:
    for text in texts_of(Voice(1, "twitter"), lean, 400, about):
        assert sign(READER.slant(text)) == sign(lean), text


@pytest.mark.parametrize("sign", [-1, 1])
def test_firm_texts_lean_further_than_mild_ones(sign: int) -> None:
    voice = Voice(1, "twitter")
    mild = [abs(READER.slant(voice.post(0, nth, sign, SUBJECT))) for nth in range(300)]
    firm = [abs(READER.slant(voice.post(0, nth, 2 * sign, SUBJECT))) for nth in range(300)]
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
    reader = TextReader((), subject)
    about = TextReadings(reader).subject
    assert about is not None
    for text in texts_of(Voice(1, "twitter"), lean, 100, about):
        assert sign(reader.slant(text)) == sign(lean), text
        assert reader.topics(text) == (0,)


def test_the_phrases_outside_a_leaning_are_neutral() -> None:
    neutral = (
        *phrases.POST_OPENERS,
        *phrases.POST_CLOSERS,
        *phrases.POST_REASONS[1],
        *phrases.POST_REASONS[0],
        *phrases.HOBBY_MIDDLES,
        *phrases.NEWS_OPENERS,
        *phrases.AGREEING_OPENERS,
        *phrases.DISAGREEING_OPENERS,
        *phrases.OPEN_OPENERS,
        *phrases.REPLY_CLOSERS[1],
        *phrases.REPLY_CLOSERS[0],
        *phrases.QUOTE_OPENERS,
        *phrases.MESSAGE_OPENERS,
    )
    assert [phrase for phrase in neutral if READER.slant(phrase) != 0] == []


def test_no_phrase_is_listed_twice_where_it_could_make_two_texts_equal() -> None:
    lists = [value for value in vars(phrases).values() if isinstance(value, tuple) and isinstance(value[0], str)]
    tables = [value for value in vars(phrases).values() if isinstance(value, dict) and 1 in value]
    for table in tables:
        lists += table.values()
    assert all(len(set(texts)) == len(texts) for texts in lists)
    middles = [*phrases.POST_MIDDLES.values(), *phrases.REPLY_MIDDLES.values(), phrases.HOBBY_MIDDLES]
    assert [text for text, count in Counter(chain.from_iterable(middles)).items() if count > 1] == []


def test_a_family_has_no_two_equal_texts_and_varies_them_when_it_begins_again() -> None:
    family = Family(("A.", "B."), ("C.", "D.", "E."), ("F.",))
    assert family.size == 6
    texts = [family.text(index) for index in range(4 * family.size)]
    assert len(set(texts)) == len(texts)


def test_nobody_writes_the_same_text_twice_even_when_a_family_is_used_up() -> None:
    voice = Voice(1, "twitter")
    texts = [voice.comment(3, nth, 1, 1, "", SUBJECT) for nth in range(12_000)]
    assert len(set(texts)) == len(texts)
    assert any("said this once before" in text for text in texts)


def test_one_agent_never_repeats_itself_in_two_thousand_turns() -> None:
    history = live(mind_of(people(0.7), talkativeness=3.0), 1, 2_000, Feed())
    texts = [text for _, decision in history for action in decision.actions if (text := text_of(action))]
    assert len(texts) > 1_000
    assert len(set(texts)) == len(texts)


def test_different_agents_rarely_write_the_same() -> None:
    history = live(mind_of(crowd(100)), 100, 40, Feed())
    texts = [text for _, decision in history for action in decision.actions if (text := text_of(action))]
    assert len(texts) > 1_000
    assert len(set(texts)) > 0.99 * len(texts)


def test_texts_are_clean_sentences() -> None:
    history = live(mind_of(crowd(100)), 100, 40, Feed())
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
