"""What calls say about a limit."""

from __future__ import annotations

import tracemalloc

import pytest

from shoal.slots.adaptive.evidence import PROOF_REFUSALS, PROOF_SECONDS, Evidence


def test_a_call_that_began_well_before_a_refused_one_was_let_in() -> None:
    evidence = Evidence()
    early, late = evidence.begin(0.0, 100), evidence.begin(1.0, 100)
    assert list(evidence.on_refusal(late, 0.02)) == [early]


def test_a_call_that_began_with_a_refused_one_may_be_refused_yet() -> None:
    evidence = Evidence()
    evidence.begin(1.0, 100)
    assert list(evidence.on_refusal(evidence.begin(1.001, 100), 0.02)) == []


def test_a_call_is_let_in_when_a_refusal_would_long_have_come() -> None:
    evidence = Evidence()
    list(evidence.on_refusal(evidence.begin(0.0, 100), 0.1))
    sent = evidence.begin(1.0, 100)
    proof = PROOF_REFUSALS * 0.1 + PROOF_SECONDS
    assert evidence.proof_in(sent, 1.1) == pytest.approx(proof - 0.1)
    assert list(evidence.take_proven(1.0 + proof - 0.01)) == []
    assert list(evidence.take_proven(1.0 + proof + 0.01)) == [sent]
    assert list(evidence.take_proven(5.0)) == []


def test_without_a_refusal_only_answers_prove_anything() -> None:
    evidence = Evidence()
    sent = evidence.begin(0.0, 100)
    assert list(evidence.take_proven(1000.0)) == []
    assert evidence.on_answer(sent, 1000.0)


def test_an_answer_is_no_news_of_a_call_that_was_known_to_be_let_in() -> None:
    evidence = Evidence()
    early = evidence.begin(0.0, 100)
    list(evidence.on_refusal(evidence.begin(1.0, 100), 0.02))
    assert not evidence.on_answer(early, 2.0)


def test_a_refused_call_was_never_in_work_for_those_after_it() -> None:
    evidence = Evidence()
    evidence.begin(0.0, 100)
    refused, later = evidence.begin(0.5, 100), evidence.begin(0.5, 100)
    assert (refused.level, later.level) == (2, 3)
    list(evidence.on_refusal(refused, 0.02))
    assert later.level == 2
    assert evidence.held == 2


def test_calls_that_began_together_may_have_come_in_in_any_order() -> None:
    """Of 32 that were sent at once, 8 are refused: 24 were let in, whichever they are."""
    evidence = Evidence()
    sent = [evidence.begin(0.0, 100) for _ in range(32)]
    levels = []
    for place in (12, 2, 1, 30, 5, 31, 20, 7):
        list(evidence.on_refusal(sent[place], 0.02))
        levels.append(sent[place].level)
    assert levels == [32, 31, 30, 29, 28, 27, 26, 25]


def test_a_mark_counts_what_was_let_in_before_a_refusal() -> None:
    evidence = Evidence()
    for _ in range(3):
        evidence.begin(0.0, 100)
    first = evidence.begin(0.0, 700)
    list(evidence.on_refusal(first, 0.02))
    evidence.begin(1.0, 200)
    second = evidence.begin(2.0, 300)
    list(evidence.on_refusal(second, 0.02))
    mark = evidence.mark(second)
    assert (mark.at, mark.requests, mark.tokens, mark.size) == (2.0, 4, 500, 300)
    assert evidence.accepted == (4, 500)
    assert evidence.begun == (6, 1500)


def test_what_was_lost_is_neither_let_in_nor_refused() -> None:
    evidence = Evidence()
    evidence.on_loss(evidence.begin(0.0, 100))
    assert list(evidence.on_refusal(evidence.begin(1.0, 100), 0.02)) == []
    assert evidence.held == 0


def test_means_follow_what_is_seen() -> None:
    evidence = Evidence()
    for _ in range(200):
        evidence.on_answer(evidence.begin(0.0, 100), 2.0)
    assert evidence.round_trip == pytest.approx(2.0)
    for _ in range(200):
        evidence.on_answer(evidence.begin(0.0, 300), 4.0)
    assert evidence.round_trip == pytest.approx(4.0, rel=0.01)
    assert evidence.mean_size == pytest.approx(200)


def test_nothing_is_kept_of_calls_that_have_ended() -> None:
    evidence = Evidence()
    tracemalloc.start()
    try:
        for n in range(20_000):
            evidence.on_answer(evidence.begin(float(n), 100), 0.5)
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()
