"""Whose failure a failure is, and how a server that does not answer is waited for. Time is virtual."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from shoal.errors import ProviderRefused, ProviderUnavailable, ShoalError, Stopped
from shoal.models.base import Answer, FailureKind, ModelFailed, ModelFailure, Question
from shoal.models.costs import Spending
from shoal.models.middleware.attempts import ATTEMPT_SECONDS, FIRST_SILENCE_SECONDS, SHORTEST_SILENCE_SECONDS
from shoal.models.middleware.availability import TICK_SECONDS, Availability
from shoal.models.middleware.available import Available, Watched
from shoal.models.middleware.model_gate import (
    LONGEST_GAP_SECONDS,
    REFUSED_SECONDS,
    STUCK_SECONDS,
    ModelGate,
    Pause,
)
from shoal.models.middleware.retrying import Retrying
from tests.models.fakes import MODEL, question

WAITING = [kind for kind in FailureKind if kind.remedy.value == "wait"]
COMPARED = [FailureKind.FATAL, FailureKind.CONTEXT_TOO_LONG]
#: How the server of a test is told of a control question.
CONTROL = -1
#: A run must have said what is wrong after this time.
REPORTED_SECONDS = 10.0
#: Enough turns of the loop for everything that can happen without time going by.
TURNS = 50


class SteppedClock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.time = 100.0
        self._moved = asyncio.Event()

    def now(self) -> float:
        return self.time

    def move(self, seconds: float) -> None:
        self.time += seconds
        self._moved.set()
        self._moved = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        until = self.time + seconds
        while self.time < until:
            await self._moved.wait()


class Server:
    """Answers or fails as a test says, and hangs while it is told to."""

    def __init__(self, reply: Callable[[int], FailureKind | None]) -> None:
        self.reply = reply
        self.retry_after: float | None = None
        self.asked: list[int] = []
        self.controls = 0
        self.works = asyncio.Event()
        self.works.set()

    async def answer(self, question: Question) -> Answer:
        number = int(question.key.agent or 0)
        if question.key.purpose == "control":
            self.controls += 1
            number = CONTROL
        self.asked.append(number)
        await self.works.wait()
        await asyncio.sleep(0)
        kind = self.reply(number)
        if kind is None:
            return Answer(f"answer {number}")
        raise ModelFailed(ModelFailure(kind, f"a {kind} failure", 500, self.retry_after))


class SlowQueue(Server):
    """Answers a question when a test says that it is its turn."""

    def __init__(self, reply: Callable[[int], FailureKind | None]) -> None:
        super().__init__(reply)
        self.turns: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)

    async def answer(self, question: Question) -> Answer:
        await self.turns[int(question.key.agent or 0)].wait()
        return await super().answer(question)


class Crowd:
    """Many questions at once, and the clock."""

    def __init__(self, server: Server, patience_seconds: float = 900.0) -> None:
        self.clock = SteppedClock()
        self.spending = Spending({})
        self.availability = Availability(self.spending, patience_seconds, self.clock)
        watched = Watched(server, self.availability, self.spending)
        retrying = Retrying(watched, 300.0, 1, self.spending, self.clock)
        self.model = Available(retrying, self.availability, self.spending)
        self.tasks: dict[int, asyncio.Task[Answer]] = {}

    @property
    def gate(self) -> ModelGate:
        return self.availability.gate(MODEL)

    async def ask(self, *numbers: int) -> None:
        for number in numbers:
            self.tasks[number] = asyncio.create_task(self.model.answer(question(number)))
        await self.settle()

    async def settle(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def wait(self, seconds: float) -> None:
        for _ in range(round(seconds / TICK_SECONDS)):
            self.clock.move(TICK_SECONDS)
            self.gate.tick()
            await self.settle()

    def errors(self) -> dict[int, type[BaseException] | None]:
        """How each question ended; those that did not end are left out."""
        ended = {number: task.exception() for number, task in self.tasks.items() if task.done()}
        return {number: None if error is None else type(error) for number, error in ended.items()}


@contextmanager
def closing(crowd: Crowd) -> Iterator[Crowd]:
    try:
        yield crowd
    finally:
        for task in crowd.tasks.values():
            task.cancel()


def answer_all(_: int) -> None:
    return None


# the first call


async def test_a_first_call_goes_out_alone_and_the_others_follow_its_answer() -> None:
    server = Server(answer_all)
    server.works.clear()
    with closing(Crowd(server)) as crowd:
        await crowd.ask(*range(20))
        assert server.asked == [0]
        server.works.set()
        await crowd.settle()
        assert sorted(server.asked) == list(range(20))
        assert set(crowd.errors().values()) == {None}


@pytest.mark.parametrize("kind", [FailureKind.AUTH, FailureKind.QUOTA, FailureKind.ADDRESS, FailureKind.UNREACHABLE])
async def test_what_must_be_mended_stops_everybody_after_one_call(kind: FailureKind) -> None:
    server = Server(lambda _: kind)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(*range(20))
        assert server.asked == [0]
        assert set(crowd.errors().values()) == {ProviderRefused}
        assert len(crowd.errors()) == 20
        assert crowd.spending.failures == {kind: 1}


async def test_a_first_question_that_is_cancelled_lets_the_next_one_go() -> None:
    server = Server(answer_all)
    server.works.clear()
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0, 1, 2)
        crowd.tasks[0].cancel()
        await crowd.settle()
        assert server.asked == [0, 1]


# whose failure it is


@pytest.mark.parametrize("kind", COMPARED)
async def test_a_failure_that_every_question_meets_stops_the_run(kind: FailureKind) -> None:
    server = Server(lambda _: kind)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(*range(20))
        assert len(server.asked) == 3
        assert set(crowd.errors().values()) == {ProviderRefused}


@pytest.mark.parametrize("kind", COMPARED)
async def test_a_failure_of_the_first_question_alone_is_its_own(kind: FailureKind) -> None:
    server = Server(lambda number: kind if number == 0 else None)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(*range(20))
        assert crowd.errors() == {0: ModelFailed, **dict.fromkeys(range(1, 20))}
        assert crowd.spending.unanswered == {kind: 1}


@pytest.mark.parametrize("kind", COMPARED)
async def test_failures_among_answers_belong_to_their_questions(kind: FailureKind) -> None:
    server = Server(lambda number: kind if number % 4 == 0 else None)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(1)
        await crowd.ask(*range(2, 42))
        own = {number for number, error in crowd.errors().items() if error is ModelFailed}
        assert own == set(range(4, 42, 4))


async def test_a_server_that_begins_to_refuse_everything_stops_the_run_and_nothing_is_recorded() -> None:
    server = Server(answer_all)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0, 1, 2)
        server.reply = lambda _: FailureKind.FATAL
        await crowd.ask(*range(3, 30))
        assert {error for number, error in crowd.errors().items() if number >= 3} == {ProviderRefused}


async def test_one_question_at_a_time_may_fail_by_itself_but_not_again_and_again() -> None:
    """Where people take turns there is never another question to compare with."""
    server = Server(answer_all)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0)
        server.reply = lambda number: None if number == CONTROL else FailureKind.CONTEXT_TOO_LONG
        for number in (1, 2, 3):
            await crowd.ask(number)
        assert crowd.errors() == {0: None, 1: ModelFailed, 2: ModelFailed, 3: ProviderRefused}
        assert server.controls == 2


@pytest.mark.parametrize("kind", [*COMPARED, FailureKind.UNREADABLE])
@pytest.mark.parametrize("last", [1, 4])
async def test_the_last_question_of_a_round_is_not_lost_when_the_server_begins_to_refuse_everything(
    kind: FailureKind, last: int
) -> None:
    """Questions that were sent together may reach the server in any order, and nobody is left to compare it with."""
    server = Server(answer_all)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0)
        server.reply = lambda number: kind if number in (last, CONTROL) else None
        await crowd.ask(1, 2, 3, 4)
        assert crowd.errors() == {number: ProviderRefused if number == last else None for number in range(5)}
        assert server.controls == 1


async def test_one_control_question_decides_about_all_failures_of_a_round() -> None:
    server = Server(lambda number: FailureKind.CONTEXT_TOO_LONG if number in range(10, 15) else None)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0)
        await crowd.ask(*range(1, 60))
        assert {number for number, error in crowd.errors().items() if error} == set(range(10, 15))
        assert server.controls == 1


async def test_a_server_that_dies_during_the_comparison_costs_no_question() -> None:
    server = Server(answer_all)
    with closing(Crowd(server, patience_seconds=60)) as crowd:
        await crowd.ask(0)
        server.reply = lambda number: FailureKind.TRANSIENT if number == CONTROL else FailureKind.FATAL
        await crowd.ask(1)
        await crowd.wait(90)
        assert crowd.errors() == {0: None, 1: ProviderUnavailable}


async def test_content_that_is_refused_is_an_answer_of_the_server() -> None:
    server = Server(lambda number: FailureKind.REFUSED if number == 0 else None)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0, 1, 2)
        assert crowd.errors() == {0: ModelFailed, 1: None, 2: None}


async def test_a_question_that_fails_again_and_again_while_others_are_answered_is_given_up() -> None:
    server = Server(lambda number: FailureKind.TRANSIENT if number == 1 else None)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0)
        for number in range(1, 200):
            await crowd.ask(number)
            await crowd.wait(1)
        assert crowd.errors()[1] is ModelFailed
        assert crowd.spending.pauses == 0
        assert 5 < server.asked.count(1) <= 10


async def test_the_only_question_is_given_up_when_control_questions_show_that_it_is_its_own_fault() -> None:
    """At the end of a round everybody waits for the last question, so that nobody else is there to ask."""
    server = Server(lambda number: FailureKind.TRANSIENT if number == 1 else None)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0, 1)
        await crowd.wait(300)
        assert crowd.errors() == {0: None, 1: ModelFailed}
        assert server.controls == 2


async def test_the_only_question_waits_on_when_control_questions_fail_too() -> None:
    server = Server(answer_all)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0)
        server.reply = lambda _: FailureKind.TRANSIENT
        await crowd.ask(1)
        await crowd.wait(600)
        assert crowd.errors() == {0: None}
        server.reply = answer_all
        await crowd.wait(60)
        assert crowd.errors() == {0: None, 1: None}


# pauses


@pytest.mark.parametrize("kind", [FailureKind.TRANSIENT, FailureKind.OVERLOAD, FailureKind.UNREACHABLE])
async def test_a_server_that_dies_is_tried_by_one_question_at_a_time_with_growing_gaps(kind: FailureKind) -> None:
    server = Server(answer_all)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0)
        server.reply = lambda _: kind
        await crowd.ask(*range(1, 50))
        assert crowd.availability.pause is not None
        assert crowd.availability.pause.reason == f"a {kind} failure"
        burst = len(server.asked)
        await crowd.wait(60)
        tries = len(server.asked) - burst
        assert 4 <= tries <= 6
        await crowd.wait(120)
        assert len(server.asked) - burst - tries <= 120 / LONGEST_GAP_SECONDS + 1
        server.reply = answer_all
        await crowd.wait(LONGEST_GAP_SECONDS + 1)
        assert set(crowd.errors().values()) == {None}
        assert len(crowd.errors()) == 50
        assert crowd.availability.pause is None
        assert (crowd.spending.pauses, crowd.spending.paused_seconds > 180) == (1, True)


@pytest.mark.parametrize("kind", WAITING)
async def test_patience_ends_and_nothing_is_recorded(kind: FailureKind) -> None:
    server = Server(answer_all)
    with closing(Crowd(server, patience_seconds=60)) as crowd:
        await crowd.ask(0)
        server.reply = lambda _: kind
        await crowd.ask(*range(1, 10))
        await crowd.wait(59)
        assert crowd.errors() == {0: None}
        await crowd.wait(13)
        assert crowd.errors() == {0: None, **dict.fromkeys(range(1, 10), ProviderUnavailable)}


async def test_no_patience_means_not_to_wait() -> None:
    server = Server(lambda _: FailureKind.TRANSIENT)
    with closing(Crowd(server, patience_seconds=0)) as crowd:
        await crowd.ask(0, 1)
        await crowd.wait(1)
        assert set(crowd.errors().values()) == {ProviderUnavailable}


async def test_a_pause_ends_at_once_when_the_user_stops() -> None:
    server = Server(lambda _: FailureKind.TRANSIENT)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0, 1, 2)
        await crowd.wait(5)
        crowd.availability.end_pauses()
        await crowd.settle()
        assert set(crowd.errors().values()) == {Stopped}


async def test_a_wait_that_the_server_asks_for_is_kept() -> None:
    server = Server(lambda _: FailureKind.OVERLOAD)
    server.retry_after = 100.0
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0, 1, 2)
        asked = len(server.asked)
        await crowd.wait(95)
        assert len(server.asked) == asked
        server.reply = answer_all
        await crowd.wait(10)
        assert crowd.errors() == dict.fromkeys(range(3))


async def test_a_wait_that_is_longer_than_the_patience_stops_the_run_at_once() -> None:
    server = Server(lambda _: FailureKind.LIMITED)
    server.retry_after = 86_400.0
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0, 1, 2)
        await crowd.wait(1)
        assert set(crowd.errors().values()) == {ProviderRefused}
        [message] = {str(task.exception()).partition("\n")[0] for task in crowd.tasks.values()}
        assert "it asks to wait for 24 hours, and the patience is 15 minutes" in message


async def test_watchers_learn_what_the_run_waits_for_and_when_it_goes_on() -> None:
    server, seen = Server(answer_all), list[Pause | None]()
    with closing(Crowd(server)) as crowd:
        crowd.availability.watch(seen.append)
        await crowd.ask(0)
        server.reply = lambda _: FailureKind.TRANSIENT
        await crowd.ask(*range(1, 10))
        server.reply = answer_all
        await crowd.wait(5)
        assert seen[0] is not None
        assert seen[0].model == MODEL
        assert seen[-1] is None


@pytest.mark.parametrize("kind", [*WAITING, None], ids=str)
@pytest.mark.parametrize("answers_before", [0, 1])
async def test_a_run_says_within_ten_seconds_what_it_waits_for(kind: FailureKind | None, answers_before: int) -> None:
    """None stands for a server that says nothing."""
    server = Server(answer_all)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(*range(answers_before))
        server.reply = lambda _: kind
        if kind is None:
            server.works.clear()
        await crowd.ask(*range(10, 20))
        await crowd.wait(REPORTED_SECONDS)
        is_refused = ProviderRefused in crowd.errors().values()
        assert crowd.availability.pause is not None or is_refused


# silence


async def test_silence_of_a_new_server_is_reported_and_its_late_answer_counts() -> None:
    server = Server(answer_all)
    server.works.clear()
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0, 1)
        await crowd.wait(FIRST_SILENCE_SECONDS - 1)
        assert crowd.availability.pause is None
        await crowd.wait(2)
        assert crowd.availability.pause is not None
        assert "no answer for 10 s" in crowd.availability.pause.reason
        server.works.set()
        await crowd.settle()
        assert crowd.errors() == {0: None, 1: None}
        assert server.asked == [0, 1]


async def test_a_server_that_falls_silent_is_noticed_after_a_multiple_of_the_usual_time() -> None:
    server = Server(answer_all)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0)
        server.works.clear()
        await crowd.ask(1, 2)
        await crowd.wait(SHORTEST_SILENCE_SECONDS + 1)
        assert crowd.availability.pause is not None
        assert "answers took up to 0.0 s" in crowd.availability.pause.reason
        # Everybody is under way, so the first of them is cut some time later and tries again.
        assert server.asked == [0, 1, 2]
        await crowd.wait(STUCK_SECONDS)
        assert server.asked[:4] == [0, 1, 2, 1]
        server.works.set()
        await crowd.wait(LONGEST_GAP_SECONDS)
        assert crowd.errors() == dict.fromkeys(range(3))


async def test_tries_into_a_silent_server_are_cut_and_may_take_longer_each_time() -> None:
    server = Server(answer_all)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0)
        server.works.clear()
        await crowd.ask(*range(1, 10))
        sent = len(server.asked)
        await crowd.wait(300)
        assert 4 <= len(server.asked) - sent <= 8
        assert crowd.errors() == {0: None}


async def test_attempts_from_before_a_silence_are_cut_when_the_server_answers_again() -> None:
    server = Server(answer_all)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0)
        hung, server.works = server.works, asyncio.Event()
        await crowd.ask(1)
        await crowd.wait(SHORTEST_SILENCE_SECONDS + 1)
        # The connection of question 1 is dead, and the server is back.
        server.works = hung
        await crowd.ask(2)
        await crowd.wait(2 * SHORTEST_SILENCE_SECONDS + 5)
        assert crowd.errors() == dict.fromkeys(range(3))
        assert server.asked.count(1) == 2


async def test_a_server_that_is_slow_from_the_start_gets_more_time_at_each_try_and_is_not_asked_in_between() -> None:
    server = Server(answer_all)
    with closing(Crowd(server)) as crowd:
        server.works.clear()
        await crowd.ask(0)
        await crowd.wait(ATTEMPT_SECONDS + 5)
        assert server.asked == [0, 0]
        await crowd.wait(2 * ATTEMPT_SECONDS - 10)
        assert server.asked == [0, 0]
        server.works.set()
        await crowd.settle()
        assert crowd.errors() == {0: None}


async def test_an_attempt_may_take_a_multiple_of_what_the_latest_answers_took() -> None:
    """A slow server with a full queue answers one after the other, each later than the one before."""
    server = SlowQueue(answer_all)
    with closing(Crowd(server)) as crowd:
        server.turns[0].set()
        await crowd.ask(*range(13))
        for number in range(1, 13):
            await crowd.wait(0.8 * SHORTEST_SILENCE_SECONDS * number)
            server.turns[number].set()
            await crowd.settle()
        assert crowd.clock.time - 100 > 3 * ATTEMPT_SECONDS
        assert crowd.errors() == dict.fromkeys(range(13))
        assert (crowd.gate.attempts.sent, crowd.spending.pauses) == (13, 0)


async def test_slow_answers_of_others_are_a_sign_of_life() -> None:
    server = Server(answer_all)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0)
        for number in range(1, 20):
            server.works.clear()
            await crowd.ask(number)
            await crowd.wait(SHORTEST_SILENCE_SECONDS - 1)
            server.works.set()
            await crowd.settle()
        assert crowd.spending.pauses == 0


async def test_refusals_become_a_pause_only_when_nothing_else_comes() -> None:
    server = Server(answer_all)
    with closing(Crowd(server)) as crowd:
        await crowd.ask(0)
        for number in range(1, 10):
            crowd.gate.on_failure(question(100).key, ModelFailure(FailureKind.LIMITED, "429", 429))
            await crowd.wait(REFUSED_SECONDS - 1)
            await crowd.ask(number)
        assert crowd.spending.pauses == 0
        crowd.gate.on_failure(question(100).key, ModelFailure(FailureKind.LIMITED, "429", 429))
        await crowd.wait(REFUSED_SECONDS + 1)
        assert crowd.availability.pause is not None


def test_an_error_that_stops_is_one_of_ours() -> None:
    assert issubclass(ProviderUnavailable, Stopped)
    assert issubclass(ProviderRefused, ShoalError)
