"""Reading what texts say of claims and topics: on labelled sentences, and where it must not guess."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.types import Claim, Mention
from shoal.worlds.clauses import is_english
from shoal.worlds.lexicon import TextReader
from shoal.worlds.reading import StatementReader, read_attitude

#: 202 sentences of our own. Rules were written with every third of them in sight; the others only count.
LABELLED: list[dict[str, Any]] = msgspec.json.decode(
    (Path(__file__).parent / "data/labelled_sentences.json").read_bytes()
)
HELD_OUT = [sentence for sentence in LABELLED if sentence["held_out"]]
#: Leans nearer to zero than this say neither.
NEITHER = 0.3
BRIDGE = Claim("closing", "The old bridge will be closed for good")


def read_sign(sentence: dict[str, Any]) -> int | str | None:
    """Return 1, 0 or -1, why a text is unread, or None where it is said to be about something else."""
    about = sentence["about"]
    meaning = (
        StatementReader(about["claim"]).read(sentence["text"]) if "claim" in about else read_attitude(sentence["text"])
    )
    if meaning is None or meaning.lean is None:
        return None if meaning is None else meaning.unread
    return 0 if abs(meaning.lean) < NEITHER else 1 if meaning.lean > 0 else -1


def test_two_thirds_of_two_hundred_sentences_are_held_out() -> None:
    assert len(LABELLED) >= 200
    assert len(HELD_OUT) >= len(LABELLED) * 0.66


def test_nine_of_ten_held_out_sentences_are_read_with_the_right_sign() -> None:
    plain = [sentence for sentence in HELD_OUT if sentence["kind"] not in ("sarcasm", "language")]
    right = [sentence for sentence in plain if read_sign(sentence) == sentence["sign"]]
    assert len(right) >= 0.9 * len(plain)


@pytest.mark.parametrize("kind", ["plain", "negation", "reported", "question"])
def test_each_kind_of_sentence_is_read_well(kind: str) -> None:
    sentences = [sentence for sentence in HELD_OUT if sentence["kind"] == kind]
    assert sum(read_sign(sentence) == sentence["sign"] for sentence in sentences) >= 0.8 * len(sentences)


@pytest.mark.parametrize("kind", ["sarcasm", "language"])
def test_what_cannot_be_read_is_unknown_and_not_wrong(kind: str) -> None:
    assert {read_sign(sentence) for sentence in LABELLED if sentence["kind"] == kind} == {kind}


@pytest.mark.parametrize(
    ("text", "lean"),
    [
        ("They say the old bridge will be closed for good!", 0.4),
        ("Not true. The old bridge stays open", -0.8),
        ("Fact-check: the old bridge stays open, repairs take two weeks.", -0.8),
        ("Is it true that the old bridge will be closed?", -0.25),
        ("I grew up beside the old bridge.", None),
        ("It is a lie that the old bridge is dangerous.", None),
        ("Die alte Brücke wird nicht geschlossen, das ist alles gelogen.", None),
    ],
)
def test_claims_of_the_examples_are_not_read_backwards(text: str, lean: float | None) -> None:
    expected = None if lean is None else Mention("closing", lean)
    assert TextReader((), "the old bridge", [BRIDGE]).find_mention(text) == expected


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("They say the old bridge will be closed for good!", 0),
        ("Not true. The old bridge stays open", 0),
        ("It is a lie that the old bridge is dangerous", 1),
        ("I am all for the old bridge", 1),
    ],
)
def test_the_topic_is_valued_by_what_is_said_of_it(text: str, sign: int) -> None:
    lean = TextReader((), "the old bridge").slant(text)
    assert (lean > 0) - (lean < 0) == sign


@pytest.mark.parametrize(
    ("claim", "text", "sign"),
    [
        ("School uniforms should be banned", "School uniforms are overpriced and ugly.", 1),
        ("School uniforms should be banned", "School uniforms create a sense of fairness.", -1),
        ("School uniforms should be banned", "Banning school uniforms would be a disaster.", -1),
        ("School uniforms should not be banned", "Banning school uniforms would be a disaster.", 1),
        ("Ban the night buses", "The night buses reduce crime.", -1),
        ("Voting must become compulsory", "Compulsory voting would violate our freedom.", -1),
        ("Voting must become compulsory", "I doubt that compulsory voting is good.", -1),
        ("The death penalty is justified", "The death penalty is cruel.", -1),
    ],
)
def test_praise_and_blame_of_what_a_claim_demands_count_for_or_against_it(claim: str, text: str, sign: int) -> None:
    assert read_sign({"about": {"claim": claim}, "text": text}) == sign


def test_a_claim_of_fact_is_not_supported_by_praise() -> None:
    assert StatementReader("The old bridge will be closed").read("The old bridge is beautiful.") is None


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("The cameras prevent a great deal of crime.", 1),
        ("The cameras do not prevent crime.", -1),
        ("The cameras undermine our freedom.", -1),
        ("The cameras protect us from violence.", 1),
        ("The cameras do more harm than good.", -1),
        ("I have seen cameras that work better than these.", -1),
        ("I was not really impressed.", -1),
        ("I do not think it is useful.", -1),
        ("We need the cameras.", 1),
        ("The cameras look like owls.", 0),
        ("The camera is right next to the door.", 0),
    ],
)
def test_the_words_around_a_valued_word_decide_what_it_says(text: str, sign: int) -> None:
    assert read_sign({"about": {"topic": "the cameras"}, "text": text}) == sign


def test_words_of_the_topic_do_not_value_it() -> None:
    reader = TextReader((), "poverty relief")
    assert reader.slant("Read this about poverty relief.") == 0.0
    assert reader.slant("I love poverty relief.") > 0.0


def load_set(name: str) -> list[tuple[str, str, int | str | None]]:
    """Return kind, sign and what was read of each sentence of a set that was written without the rules in sight."""
    sentences, about = [], {}
    for line in (Path(__file__).parent / f"data/sentences_{name}.txt").read_text().splitlines():
        if line.startswith("# "):
            what, subject = line.removeprefix("# ").split(": ", 1)
            about = {what: subject}
            continue
        head, text = line.split(" | ", 1)
        sign, kind = head.split()
        sentences.append((kind, sign[-1], read_sign({"about": about, "text": text})))
    return sentences


def share_right(sentences: list[tuple[str, str, int | str | None]], *kinds: str) -> float:
    signs: dict[str, set[int | str | None]] = {"+": {1}, "-": {-1}, "0": {0, None}}
    chosen = [read in signs[sign] for kind, sign, read in sentences if kind in kinds]
    return sum(chosen) / len(chosen)


@pytest.mark.parametrize("name", ["second", "third", "unseen"])
def test_negation_denial_of_denials_and_reported_speech_are_read_right_in_sets_written_without_the_rules(
    name: str,
) -> None:
    assert share_right(load_set(name), "negation", "double", "reported", "question") >= 0.8


@pytest.mark.parametrize(("name", "share"), [("second", 0.9), ("third", 0.9), ("unseen", 0.8)])
def test_plain_sentences_count_too(name: str, share: float) -> None:
    assert share_right(load_set(name), "plain", "negation", "double", "reported", "question") >= share


@pytest.mark.parametrize("name", ["second", "third", "unseen"])
def test_few_sentences_are_read_backwards(name: str) -> None:
    plain = [(sign, read) for kind, sign, read in load_set(name) if kind not in ("sarcasm", "language")]
    assert sum((sign, read) in (("+", -1), ("-", 1)) for sign, read in plain) <= 0.1 * len(plain)


def test_what_the_scenario_declares_of_a_text_counts_more_than_its_words() -> None:
    text = "The old bridge stays open."
    reader = TextReader((), None, [BRIDGE], {text: Mention("closing", 0.2)})
    assert reader.find_mention(text) == Mention("closing", 0.2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The water is safe.", True),
        ("OK!", True),
        ("Ich glaube nicht, dass das Wasser gut ist.", False),
        ("水は安全です。", False),
        ("Вода в городе безопасна.", False),
    ],
)
def test_other_languages_are_recognised(text: str, expected: bool) -> None:
    assert is_english(text) is expected
