"""Calls in flight: rising, holding, falling."""

from __future__ import annotations

import math

import pytest

from shoal.slots.adaptive.evidence import Evidence, Sent
from shoal.slots.adaptive.window import (
    BREAKS,
    EASED,
    FIRST_PROBE,
    PROBE_WAITING,
    PROBES,
    START,
    ConcurrencyWindow,
    Mode,
)

ANSWER_SECONDS, REFUSAL_SECONDS = 1.0, 0.02
MANY = 1000


class Server:
    """Tells a window what becomes of calls, one by one."""

    def __init__(self) -> None:
        self.evidence = Evidence()
        self.window = ConcurrencyWindow(self.evidence)
        self.now = 0.0
        self.under_way: list[Sent] = []

    def send(self) -> Sent:
        sent = self.evidence.begin(self.now, 100)
        self.window.begin(sent)
        self.under_way.append(sent)
        return sent

    def fill(self) -> None:
        """Send what may be sent, and nothing beyond; many are waiting."""
        while self.window.wait(self.now, MANY) == 0 and not self._would_probe():
            self.send()

    def _would_probe(self) -> bool:
        return self.window.mode is Mode.HOLDING and self.evidence.held >= int(self.window.limit)

    def answer(self, count: int = 1) -> None:
        for _ in range(count):
            sent = self.under_way.pop(0)
            if self.evidence.on_answer(sent, ANSWER_SECONDS):
                self.window.on_accepted(sent, self.now)
            self.window.on_answer(sent, self.now)

    def refuse(self, sent: Sent) -> bool:
        self.under_way.remove(sent)
        for earlier in self.evidence.on_refusal(sent, REFUSAL_SECONDS):
            self.window.on_accepted(earlier, self.now)
        return self.window.on_refusal(sent, self.now)

    def prove(self) -> None:
        self.now += 1.0
        for sent in self.evidence.take_proven(self.now):
            self.window.on_accepted(sent, self.now)

    def find_wall(self) -> None:
        """At START: one too many is refused."""
        self.fill()
        self.now += ANSWER_SECONDS
        self.answer()
        self.fill()
        self.now += REFUSAL_SECONDS
        self.refuse(self.under_way[-1])


@pytest.fixture
def server() -> Server:
    return Server()


def test_it_rises_by_one_with_each_answer(server: Server) -> None:
    server.fill()
    assert len(server.under_way) == START
    for _ in range(10):
        server.answer()
        server.fill()
    assert len(server.under_way) == START + 10


def test_it_does_not_rise_while_it_is_not_used(server: Server) -> None:
    for _ in range(50):
        server.send()
        server.answer()
    assert server.window.limit == START


def test_the_refused_call_says_where_the_wall_is(server: Server) -> None:
    server.find_wall()
    assert server.window.mode is Mode.HOLDING
    assert server.window.limit == server.window.highest == START
    assert server.window.wait(server.now, 0) == math.inf


def test_after_a_while_one_call_more_is_tried(server: Server) -> None:
    server.find_wall()
    assert server.window.wait(server.now, MANY) == pytest.approx(FIRST_PROBE * ANSWER_SECONDS)
    server.now += FIRST_PROBE * ANSWER_SECONDS
    assert server.window.wait(server.now, MANY) == 0
    probe = server.send()
    assert server.window.wait(server.now, MANY) == math.inf
    server.now += REFUSAL_SECONDS
    server.refuse(probe)
    assert server.window.limit == START
    assert server.window.wait(server.now, MANY) == pytest.approx(2 * FIRST_PROBE * ANSWER_SECONDS)


def test_nothing_is_tried_when_few_are_waiting(server: Server) -> None:
    server.find_wall()
    server.now += 100
    assert server.window.wait(server.now, PROBE_WAITING - 1) == math.inf


def test_it_rises_again_when_some_probes_were_let_in(server: Server) -> None:
    server.find_wall()
    server.now += 100
    for _ in range(PROBES):
        assert server.window.mode is Mode.HOLDING
        assert server.window.wait(server.now, MANY) == 0
        server.send()
        server.prove()
    assert server.window.mode is Mode.RISING
    assert server.window.limit == START + PROBES


def test_a_refusal_below_the_wall_makes_it_try_one_call_at_a_time(server: Server) -> None:
    server.find_wall()
    server.now += 1
    server.answer(8)
    refused = server.send()
    server.now += REFUSAL_SECONDS
    server.refuse(refused)
    assert server.window.mode is Mode.DOUBTING
    server.now += ANSWER_SECONDS
    server.answer(4)
    assert server.window.wait(server.now, MANY) == 0
    server.send()
    assert 0 < server.window.wait(server.now, MANY) < 0.1


def test_a_wall_that_came_down_is_found_by_halving(server: Server) -> None:
    server.find_wall()
    limits = []
    for _ in range(4):
        server.now += ANSWER_SECONDS
        server.answer(max(1, len(server.under_way) - int(server.window.limit) + 1))
        refused = server.send()
        server.now += REFUSAL_SECONDS
        server.refuse(refused)
        limits.append(int(server.window.limit))
    assert server.window.mode is Mode.FALLEN
    assert limits == [START - 1, 15, 7, 3]


def test_what_is_refused_and_let_in_by_turns_is_a_rate(server: Server) -> None:
    server.find_wall()
    verdicts = []
    for _ in range(BREAKS):
        server.now += ANSWER_SECONDS
        server.answer(8)
        refused = server.send()
        server.now += REFUSAL_SECONDS
        verdicts.append(server.refuse(refused))
        server.now += ANSWER_SECONDS
        server.answer(4)
        server.send()
        server.prove()
    assert verdicts == [False] * (BREAKS - 1) + [True]
    server.window.give_way(80)
    assert server.window.limit == 80


def test_refusals_of_calls_that_were_under_way_say_nothing_new(server: Server) -> None:
    server.fill()
    server.now += REFUSAL_SECONDS
    for _ in range(10):
        assert not server.refuse(server.under_way[-1])
    assert server.window.limit == START - 10
    assert server.window.mode is Mode.HOLDING


def test_an_overload_takes_a_part_once(server: Server) -> None:
    server.fill()
    server.now += 1
    for sent in server.under_way[:5]:
        server.window.ease(sent, server.now)
    assert server.window.limit == START * EASED


def test_it_rises_for_all_who_wait_if_these_are_few(server: Server) -> None:
    """People who take turns would all wait for the last of them."""
    server.fill()
    server.now += ANSWER_SECONDS
    assert server.window.wait(server.now, 10) == math.inf
    server.answer()
    assert server.window.limit == START + 10


def test_after_many_overloads_it_comes_back_to_where_it_was(server: Server) -> None:
    for _ in range(6):
        server.fill()
        server.now += 1
        server.window.ease(server.send(), server.now + 0.5)
        server.now += 1
        while server.under_way:
            server.evidence.on_loss(server.under_way.pop())
    assert server.window.limit < START / 3
    for _ in range(60):
        server.fill()
        server.now += 0.1
        server.answer(len(server.under_way))
    assert server.window.limit == START


def test_after_an_outage_it_comes_back_to_where_it_was(server: Server) -> None:
    server.window.start_at(100, is_wall=True)
    server.window.restart()
    assert server.window.limit == START
    for _ in range(40):
        server.fill()
        server.now += 0.1
        server.answer(10)
    assert server.window.limit == 100
    assert server.window.mode is Mode.HOLDING


def test_a_probe_that_was_lost_is_made_again(server: Server) -> None:
    server.find_wall()
    server.now += 100
    probe = server.send()
    server.evidence.on_loss(probe)
    server.window.on_end(probe)
    assert server.window.wait(server.now, MANY) == 0
