"""Calls in flight: rising, holding, falling."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from shoal.slots.adaptive.attempts import (
    FIRST_DEVIATION,
    PROOF_DEVIATIONS,
    PROOF_SECONDS,
    STALL_SECONDS,
    Attempt,
    Attempts,
)
from shoal.slots.adaptive.saturation import Saturation
from shoal.slots.adaptive.window import EASED, FIRST_PROBE, PATIENT_SECONDS, PROBE_WAITING, PROBES, RISE, START, Window

ANSWER_SECONDS, REFUSAL_SECONDS = 1.0, 0.02
MANY = 1000


class Server:
    """Tells a window what becomes of calls, one by one."""

    def __init__(self) -> None:
        self.attempts = Attempts()
        self.saturation = Saturation()
        # As if calls had been seen to be worked on together.
        self.saturation.at_least = MANY
        self.window = Window(self.attempts, self.saturation)
        self.now = 0.0
        self.under_way: list[Attempt] = []

    def send(self) -> Attempt:
        attempt = self.attempts.begin(self.now, 100)
        self.window.begin(attempt)
        self.under_way.append(attempt)
        return attempt

    def fill(self) -> None:
        """Send what may be sent, and no probe; many are waiting."""
        while self.window.wait(self.now, MANY) == 0 and self.attempts.held < int(self.window.limit):
            self.send()

    def answer(self, count: int = 1) -> None:
        for _ in range(count):
            attempt = self.under_way.pop(0)
            self.attempts.answer(attempt, ANSWER_SECONDS)
            self.window.on_accepted(attempt, self.now)
            self.window.on_answer(attempt, self.now)

    def refuse(self, attempt: Attempt) -> None:
        self.under_way.remove(attempt)
        at_most = self.attempts.refuse(attempt, self.now, REFUSAL_SECONDS)
        self.window.on_refusal(attempt, at_most, self.now)

    def prove(self) -> None:
        seconds = REFUSAL_SECONDS * (1 + PROOF_DEVIATIONS * FIRST_DEVIATION) + PROOF_SECONDS
        for _ in range(math.ceil(seconds / STALL_SECONDS) + 3):
            self.now += STALL_SECONDS
            for attempt in self.attempts.take_proven(self.now):
                self.window.on_accepted(attempt, self.now)

    def find_limit(self) -> None:
        """All but one of the first calls are accepted."""
        self.fill()
        self.now += REFUSAL_SECONDS
        self.refuse(self.under_way[3])
        self.prove()


@pytest.fixture
def server() -> Server:
    return Server()


def test_it_rises_with_each_answer(server: Server) -> None:
    server.fill()
    assert len(server.under_way) == START
    for _ in range(10):
        server.answer()
        server.fill()
    assert len(server.under_way) == START + 10 * RISE


def test_it_does_not_rise_while_it_is_not_used(server: Server) -> None:
    for _ in range(50):
        server.send()
        server.answer()
    assert server.window.limit == START


def test_it_does_not_rise_far_beyond_what_is_known_to_be_worked_on(server: Server) -> None:
    server.saturation.at_least = 5
    for _ in range(100):
        server.fill()
        server.answer()
    assert START <= len(server.under_way) < 12


def test_fewer_calls_are_sent_at_first_to_a_server_that_answers_slowly(server: Server) -> None:
    """All of them are answered before an attempt is given up, even by one worker."""
    server.saturation.at_least = 1
    server.attempts.answer_seconds = 20.0
    server.fill()
    assert len(server.under_way) == PATIENT_SECONDS / 20.0


def test_a_refused_call_shows_where_the_limit_is(server: Server) -> None:
    server.find_limit()
    assert not server.window.is_rising
    assert server.window.limit == START - 1
    assert server.window.wait(server.now, 0) == math.inf


def test_all_that_are_refused_of_those_sent_at_once_are_too_many(server: Server) -> None:
    server.fill()
    server.now += REFUSAL_SECONDS
    for attempt in server.under_way[1::2]:
        server.refuse(attempt)
    assert server.window.limit == START / 2
    assert server.window.in_a_row == 1


def test_after_a_while_one_call_more_is_tried_and_then_ever_more_seldom(server: Server) -> None:
    server.attempts.answer_seconds = ANSWER_SECONDS
    server.find_limit()
    for doublings in range(2):
        trips = FIRST_PROBE * 2**doublings
        server.now = server.window._probed_at + trips * ANSWER_SECONDS - 0.1
        assert 0 < server.window.wait(server.now, MANY) <= 0.11
        server.now += 0.2
        assert server.window.wait(server.now, MANY) == 0
        probe = server.send()
        assert server.window.wait(server.now, MANY) == math.inf
        server.now += REFUSAL_SECONDS
        server.refuse(probe)
        assert server.window.limit == START - 1


def test_nothing_is_tried_when_few_are_waiting(server: Server) -> None:
    server.find_limit()
    server.now += 1000
    assert server.window.wait(server.now, PROBE_WAITING - 1) == math.inf


def test_it_rises_again_when_some_probes_were_accepted(server: Server) -> None:
    server.find_limit()
    server.now += 1000
    for _ in range(PROBES):
        assert not server.window.is_rising
        assert server.window.wait(server.now, MANY) == 0
        server.send()
        server.prove()
    assert server.window.is_rising
    assert server.window.limit == START - 1 + PROBES


def test_a_limit_that_came_down_is_found_in_larger_and_larger_steps(server: Server) -> None:
    server.window.hold(64, 0.0)
    server.fill()
    limits = []
    for _ in range(5):
        server.answer(max(1, len(server.under_way) - int(server.window.limit) + 1))
        refused = server.send()
        server.now += REFUSAL_SECONDS
        server.refuse(refused)
        limits.append(int(server.window.limit))
    steps = [before - after for before, after in pairwise(limits)]
    assert steps == sorted(steps)
    assert limits[-1] < 50


def test_an_overload_takes_a_part_once_and_it_comes_back_to_where_it_was(server: Server) -> None:
    server.window.hold(40, 0.0)
    server.fill()
    server.now += 1
    for attempt in server.under_way[:5]:
        server.window.ease(attempt, server.now)
    assert server.window.limit == 40 * EASED
    for _ in range(100):
        server.answer()
        server.fill()
    assert server.window.limit == 40
    assert not server.window.is_rising


def test_a_probe_that_was_lost_is_made_again(server: Server) -> None:
    server.find_limit()
    server.now += 1000
    probe = server.send()
    server.attempts.end(probe)
    server.window.on_end(probe)
    assert server.window.wait(server.now, MANY) == 0
