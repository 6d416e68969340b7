"""Whether a model's server answers: one gate for each model, which all questions of a run pass.

Until the server has answered once, one question goes out alone. When nobody is answered any more, the gate closes, and
one question at a time tries whether the server is back. What the user must mend stops the run.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from shoal.errors import ProviderRefused, ProviderUnavailable, ShoalError, Stopped
from shoal.journal import JournalKey
from shoal.models.base import FailureKind, ModelFailure, Remedy
from shoal.models.costs import Spending
from shoal.models.middleware.retrying import RealClock, RetryClock
from shoal.text import format_wait

#: How long a run waits for a server that does not answer, before it stops.
PATIENCE_SECONDS = 15 * 60.0
#: How often the gates look at the clock.
TICK_SECONDS = 0.25
#: Failures in a row after which nobody seems to be answered: of a server that has answered before, and of a new one.
FAILURES, FIRST_FAILURES = 5, 2
#: Refusals because of a limit are ordinary. They become a pause when for this long nothing else came.
REFUSALS, REFUSED_SECONDS = 3, 8.0
#: The gap between two tries doubles from the first to the longest.
FIRST_GAP_SECONDS, LONGEST_GAP_SECONDS = 1.0, 30.0
#: A server is silent if nobody is answered for this multiple of the longest of the latest answers.
SILENCE_FACTOR = 4.0
SHORTEST_SILENCE_SECONDS = 5.0
#: One attempt may take this long, or the same multiple of the longest of the latest answers if that is more.
ATTEMPT_SECONDS = 90.0
#: Before the first answer: when silence is reported.
FIRST_SILENCE_SECONDS = 10.0
#: If all questions are under way in a silent server, one of them is cut after this time and tries again.
STUCK_SECONDS = 30.0
LATEST_ANSWERS = 64
#: So often the only question may fail, with nobody else there to try. Then a control question shows whose fault it is.
LONE_TRIES = 3
#: So many questions that fail alike, with none answered since, show that it is not because of the question.
ALIKE = 3
#: A run that must stop waits this long for the answers that are on their way: they are paid for.
DRAIN_SECONDS = 5.0

#: The purpose of the key of a control question.
CONTROL = "control"

_RATES = (FailureKind.REQUEST_RATE, FailureKind.TOKEN_RATE, FailureKind.CONCURRENCY, FailureKind.LIMITED)


class Pause(NamedTuple):
    """What a run waits for."""

    model: str
    reason: str
    #: Seconds since 1970, for people; and by the clock of the gate.
    since: float
    began: float
    #: How long the run waits before it stops.
    patience_seconds: float


class HeldBack(Exception):  # not an error: the gate closed while the question was on its way
    """The gate closed before the question was sent."""


@dataclass(slots=True, eq=False)
class SentAttempt:
    """A question that was sent and is not answered yet. Attempts are numbered as they are sent."""

    number: int
    began: float
    task: asyncio.Task[Any] | None
    #: When the attempt is cut, and whether it was.
    cut_at: float = math.inf
    is_cut: bool = False

    def end_early(self) -> None:
        self.is_cut = True
        if self.task is not None:
            self.task.cancel()

    def take_cut(self) -> bool:
        """Return whether the attempt's task was cancelled to cut the attempt, and not by anybody else."""
        return self.is_cut and (self.task is None or self.task.uncancel() == 0)


class _ComparedFailure(NamedTuple):
    """A failure that waits to be compared with how later questions end."""

    #: How many attempts had been sent. Of those under way together nobody knows in which order the server saw them.
    sent: int
    #: True: it belongs to the question. False: a control question is to show whether it does.
    verdict: asyncio.Future[bool]
    failure: ModelFailure
    key: JournalKey


class GateListener(Protocol):
    """Hears what happens at a gate."""

    def on_change(self) -> object:
        """Take note that a pause began, changed or ended."""
        ...

    def on_end(self, error: ShoalError) -> object:
        """Take note that no question will pass any more."""
        ...

    def on_quiet(self) -> object:
        """Take note that no attempt is under way any more."""
        ...


class ModelGate:
    """Lets questions to one model pass while its server answers."""

    def __init__(
        self,
        model: str,
        patience_seconds: float,
        attempt_seconds: float,
        spending: Spending,
        clock: RetryClock,
        listener: GateListener,
    ) -> None:
        self.model = model
        #: None while the server answers, or has not been asked yet.
        self.pause: Pause | None = None
        self._patience_seconds = patience_seconds
        self._attempt_seconds = attempt_seconds
        self._spending = spending
        self._clock = clock
        self._listener = listener
        #: Whether the last that was heard of the server was an answer.
        self._is_proven = False
        self._error: ShoalError | None = None
        #: Questions at the gate, and how many have passed it and are not settled.
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._inside = 0
        #: The question that goes out alone while the gate is closed, and when the next may.
        self._alone: JournalKey | None = None
        self._next_at = 0.0
        self._gap_seconds = FIRST_GAP_SECONDS
        self._try_seconds: float | None = None
        #: The question that tried last, and how often in a row.
        self._tried: tuple[JournalKey | None, int] = (None, 0)
        self._sent: dict[JournalKey, SentAttempt] = {}
        #: How many attempts were made, and the latest that was answered.
        self.attempts = 0
        self.answered = 0
        #: Whether any attempt is to be cut.
        self._has_cuts = False
        #: The failed attempts of questions that are still asked.
        self._failed: dict[JournalKey, list[int]] = {}
        self._compared: list[_ComparedFailure] = []
        self._awaits_control = False
        #: Control questions in a row that were answered, with no other question answered.
        self._accepted_in_a_row = 0
        #: Turns whose failure was found to be their own since then, and how they failed.
        self._own: dict[tuple[str, int, int | str | None], str] = {}
        #: Whether the model answered this run before, in this session or an earlier one.
        self._has_answered = model in spending.by_model
        #: Failures since the last answer that may pass: how many, since when, and the last of them.
        self._failures = 0
        self._failing_since = 0.0
        self._last_failure: ModelFailure | None = None
        #: Until when the server asked to wait.
        self._asked_until = 0.0
        self._heard_at = 0.0
        self.answers = 0
        self._answer_seconds: deque[float] = deque(maxlen=LATEST_ANSWERS)
        #: Attempts since the last answer that took too long. Each doubles what the others may take.
        self._overdue = 0

    @property
    def is_open(self) -> bool:
        return self._is_proven and len(self._compared) < ALIKE and self._error is None

    # Questions

    async def enter(self, key: JournalKey) -> None:
        """Wait until the question may be asked; raise why it never will be."""
        while not self._admit(key):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self._inside += 1

    def check(self) -> None:
        """Raise why no question can pass any more."""
        if self._error is not None:
            raise self._error

    def _admit(self, key: JournalKey) -> bool:
        self.check()
        if self.is_open:
            return True
        if self._alone is None and not self._is_settling and self._clock.now() >= self._next_at:
            self._alone = key
            return True
        return False

    @property
    def _is_settling(self) -> bool:
        """Whether questions are still under way that may show to whom a failure belongs."""
        return bool(self._compared) and self._inside > len(self._compared)

    def leave(self, key: JournalKey) -> None:
        self._inside -= 1
        if key == self._alone:
            self._alone = None
        if key.purpose == CONTROL:
            self._awaits_control = False
        if self._compared or not self.is_open:
            self._settle()

    def admits_attempt(self, key: JournalKey) -> bool:
        """Return whether an attempt that has its slot may be sent: the gate may have closed meanwhile."""
        self.check()
        return self.is_open or (key == self._alone and self._clock.now() >= self._next_at)

    def _wake(self, count: int | None = None) -> None:
        while self._waiting and (count is None or count > 0):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                count = None if count is None else count - 1

    # Attempts

    def on_sent(self, key: JournalKey) -> SentAttempt:
        """Take note of an attempt, and limit how long a try into a silent server may take."""
        self.attempts += 1
        attempt = self._sent[key] = SentAttempt(self.attempts, self._clock.now(), asyncio.current_task())
        if self._try_seconds is not None and key == self._alone:
            self._end_attempts_after([attempt], self._try_seconds)
        return attempt

    def _end_attempts_after(self, attempts: Iterable[SentAttempt], seconds: float) -> None:
        self._has_cuts = True
        for attempt in attempts:
            attempt.cut_at = self._clock.now() + seconds

    def on_answer(self, key: JournalKey) -> None:
        attempt, now = self._take_sent(key), self._clock.now()
        assert attempt is not None
        self.answers += 1
        self.answered = max(self.answered, attempt.number)
        self._answer_seconds.append(now - attempt.began)
        self._overdue = 0
        self._has_answered = True
        if key.purpose == CONTROL:
            self._accepted_in_a_row += 1
        else:
            self._accepted_in_a_row = 0
            self._own.clear()
        for compared in [each for each in self._compared if each.sent < attempt.number]:
            self._decide(compared, is_own=True)
        self._open(now)

    def on_failure(self, key: JournalKey, failure: ModelFailure) -> None:
        now = self._clock.now()
        if (attempt := self._take_sent(key)) is not None:
            self._failed.setdefault(key, []).append(attempt.number)
        if failure.status is not None:
            self._heard_at = now
        if failure.kind.remedy is not Remedy.WAIT:
            # The server is there, whatever it says.
            self._end_pause()
            if failure.kind.remedy is Remedy.ACCEPT:
                self._open(now)
            return
        if self._failures == 0:
            self._failing_since = now
        self._failures += 1
        self._last_failure = failure
        self._asked_until = now + (failure.retry_after or 0.0)
        if self.answers == 0 and failure.kind is FailureKind.UNREACHABLE:
            self.refuse(failure)
        elif self.pause is not None:
            self._postpone(key, failure, now)
        elif failure.kind not in _RATES and self._failures >= (FAILURES if self._is_proven else FIRST_FAILURES):
            self.begin_pause(failure)

    def describe_cut(self, key: JournalKey) -> ModelFailure:
        """Return the failure of an attempt that was cut because the server is silent."""
        seconds = self._clock.now() - self._sent[key].began
        if key == self._alone and self._try_seconds is not None:
            self._try_seconds *= 2
            # A longer try may succeed, so this one says nothing about the question.
            self._tried = (None, 0)
        return ModelFailure(FailureKind.TRANSIENT, f"{self.model}: no answer within {seconds:.0f} s")

    def on_end(self, key: JournalKey) -> None:
        """Forget an attempt that ended without showing anything."""
        self._take_sent(key)

    def _take_sent(self, key: JournalKey) -> SentAttempt | None:
        attempt = self._sent.pop(key, None)
        if not self._sent:
            self._listener.on_quiet()
        return attempt

    @property
    def is_quiet(self) -> bool:
        """Whether no attempt is under way."""
        return not self._sent

    # Whose failure it is

    def answers_others(self, key: JournalKey) -> bool:
        """Return whether a question fails again and again while later ones are answered."""
        failed = self._failed.get(key, [])
        return len(failed) >= ALIKE and self.answered > failed[-2]

    def forget(self, key: JournalKey) -> None:
        """Forget the failures of a question that came to its end."""
        self._failed.pop(key, None)

    async def compare(self, key: JournalKey, failure: ModelFailure) -> bool:
        """Return whether a failure belongs to its question, as others are answered; stop if nobody is.

        False means that this is not clear: a control question is to show it.
        """
        if self._own.get(key.turn) == failure.text:
            return True
        verdict: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._compared.append(_ComparedFailure(self.attempts, verdict, failure, key))
        if key == self._alone:
            self._alone = None
        self._settle()
        try:
            return await verdict
        finally:
            self._compared = [each for each in self._compared if each.verdict is not verdict]

    def _settle(self) -> None:
        """Decide comparisons when no other question is under way, or let the next question go out alone."""
        are_many = len(self._compared) >= ALIKE or not self._waiting
        if self._compared and are_many and not self._is_settling and not self._awaits_control:
            first = self._compared[0]
            is_worth_asking = self._has_answered or first.failure.kind is FailureKind.UNREADABLE
            if is_worth_asking and self._accepted_in_a_row < ALIKE - 1:
                # Its control question decides about the others too.
                self._awaits_control = True
                self._decide(first, is_own=False)
            else:
                self.refuse(first.failure)
        if self._alone is None and self._clock.now() >= self._next_at:
            self._wake(None if self.is_open else 1)

    def _decide(self, compared: _ComparedFailure, *, is_own: bool) -> None:
        self._compared.remove(compared)
        # Of an unclear one, only a control question that is answered lets the run go on.
        self._own[compared.key.turn] = compared.failure.text
        if not compared.verdict.done():
            compared.verdict.set_result(is_own)

    def find_lone_failure(self, key: JournalKey) -> ModelFailure | None:
        """Return the failure of a question that has tried again and again, with nobody else there to try."""
        is_lone = self.pause is not None and not self._waiting and self._tried[0] == key
        return self._last_failure if is_lone and self._tried[1] >= LONE_TRIES else None

    # Pauses

    def begin_pause(self, failure: ModelFailure) -> None:
        """Close the gate: nobody is answered, for this reason."""
        if self.pause is not None:
            return
        now = self._clock.now()
        began = self._failing_since if self._failures else now
        self._is_proven = False
        self._gap_seconds = FIRST_GAP_SECONDS
        self.pause = Pause(self.model, failure.text, time.time() - (now - began), began, self._patience_seconds)
        self._spending.pauses += 1
        self._try_seconds, self._tried = None, (None, 0)
        self._wait_before_next_try(failure, now)
        self._listener.on_change()

    def _postpone(self, key: JournalKey, failure: ModelFailure, now: float) -> None:
        assert self.pause is not None
        self.pause = self.pause._replace(reason=failure.text)
        if key == self._alone:
            last, tries = self._tried
            self._tried = (key, tries + 1 if key == last else 1)
            self._gap_seconds = min(self._gap_seconds * 2, LONGEST_GAP_SECONDS)
            self._wait_before_next_try(failure, now)
            self._listener.on_change()

    def _wait_before_next_try(self, failure: ModelFailure, now: float) -> None:
        assert self.pause is not None
        self._next_at = max(now + self._gap_seconds, self._asked_until)
        asked_seconds = self._asked_until - now
        if asked_seconds > self._gap_seconds and self._asked_until >= self.pause.began + self._patience_seconds:
            wait, patience = format_wait(asked_seconds), format_wait(self._patience_seconds)
            self.stop(ProviderRefused(f"{failure.text}: it asks to wait for {wait}, and the patience is {patience}"))

    def _end_pause(self) -> None:
        self._failures = 0
        self._next_at = 0.0
        self._try_seconds = None
        if self.pause is not None:
            self._spending.paused_seconds += self._clock.now() - self.pause.began
            # A try was answered that was sent later than these, so theirs are probably lost.
            self._end_attempts_after(self._sent.values(), self._silence_seconds)
            self.pause = None
            self._listener.on_change()

    def _open(self, now: float) -> None:
        self._heard_at = now
        self._end_pause()
        if not self._is_proven:
            self._is_proven = True
            self._alone = None
        if self._waiting and self.is_open:
            self._wake()

    @property
    def _silence_seconds(self) -> float:
        if not self._answer_seconds:
            return FIRST_SILENCE_SECONDS
        return max(SHORTEST_SILENCE_SECONDS, SILENCE_FACTOR * max(self._answer_seconds))

    def _end_overdue_attempts(self, now: float) -> None:
        """Cut the oldest attempt if it takes too long even for a slow server whose queue we filled ourselves."""
        oldest = next(iter(self._sent.values()), None)
        usual_seconds = SILENCE_FACTOR * max(self._answer_seconds, default=0.0)
        limit_seconds = max(self._attempt_seconds * 2**self._overdue, usual_seconds)
        if oldest is not None and not oldest.is_cut and now - oldest.began >= limit_seconds:
            self._overdue += 1
            oldest.end_early()

    def tick(self) -> None:
        """Do what is due: notice silence, let the next question try, and stop when patience is over."""
        now = self._clock.now()
        if self._error is not None:
            return
        if self._has_cuts:
            due = [attempt for attempt in self._sent.values() if attempt.cut_at <= now and not attempt.is_cut]
            for attempt in due:
                attempt.end_early()
            self._has_cuts = any(attempt.cut_at < math.inf for attempt in self._sent.values())
        self._end_overdue_attempts(now)
        if self.pause is None:
            self._look_for_pause(now)
        elif now - self.pause.began >= self._patience_seconds:
            self.stop(ProviderUnavailable(self.pause.reason, format_wait(self._patience_seconds)))
        elif self._try_seconds is not None and self._alone is None and self._sent and not self._waiting:
            # The server is silent, and no question is left to try it.
            oldest = min(self._sent.values(), key=lambda attempt: attempt.began)
            if now - oldest.began >= STUCK_SECONDS and not oldest.is_cut:
                oldest.end_early()
        if not self.is_open:
            self._settle()

    def _look_for_pause(self, now: float) -> None:
        failure, is_clear = self._last_failure, self._failures >= REFUSALS or not self._sent
        if failure is not None and self._failures and now - self._failing_since >= REFUSED_SECONDS and is_clear:
            self.begin_pause(failure)
        elif self._sent:
            oldest = min(attempt.began for attempt in self._sent.values())
            silent_seconds = now - max(oldest, self._heard_at)
            if silent_seconds >= self._silence_seconds:
                usual = f"; answers took up to {max(self._answer_seconds):.1f} s" if self._answer_seconds else ""
                text = f"{self.model}: no answer for {silent_seconds:.0f} s{usual}"
                self._failing_since = now - silent_seconds
                self._failures += 1
                self.begin_pause(ModelFailure(FailureKind.TRANSIENT, text))
                # A server that has not answered yet may just be slow: its only question goes on.
                self._try_seconds = self._silence_seconds if self._answer_seconds else None

    def refuse(self, failure: ModelFailure) -> ProviderRefused:
        """Stop because of a failure that every question meets, and return the error that says so."""
        error = ProviderRefused(failure.text)
        self.stop(error)
        return error

    def stop(self, error: ShoalError) -> None:
        """Let no question pass any more, and end those that wait."""
        if self._error is not None:
            return
        self._error = error
        self._listener.on_end(error)
        self._wake()
        for each in list(self._compared):
            if not each.verdict.done():
                each.verdict.set_exception(error)
        if isinstance(error, Stopped):
            for attempt in self._sent.values():
                attempt.end_early()


class Availability:
    """The gates of all models of a run."""

    def __init__(
        self,
        spending: Spending,
        patience_seconds: float = PATIENCE_SECONDS,
        clock: RetryClock | None = None,
        attempt_seconds: float = ATTEMPT_SECONDS,
    ) -> None:
        self._clock = clock or RealClock()
        self._watches: list[Callable[[Pause | None], object]] = []
        self._spending = spending
        self._patience_seconds = patience_seconds
        self._attempt_seconds = attempt_seconds
        self._gates: dict[str, ModelGate] = {}
        self._is_ending = False
        self._error: ShoalError | None = None
        self._has_ended = asyncio.Event()
        #: Whether nothing is awaited any more after the end, and when that is so at the latest.
        self._is_quiet = asyncio.Event()
        self._drained_at = math.inf

    def gate(self, model: str) -> ModelGate:
        if model not in self._gates:
            waits = (self._patience_seconds, self._attempt_seconds)
            self._gates[model] = ModelGate(model, *waits, self._spending, self._clock, self)
        return self._gates[model]

    @property
    def pause(self) -> Pause | None:
        """What the run waits for, the longest wait first; None while every server answers."""
        pauses = [gate.pause for gate in self._gates.values() if gate.pause is not None]
        return min(pauses, default=None, key=lambda pause: pause.began)

    def watch(self, watch: Callable[[Pause | None], object]) -> None:
        """Call this whenever a pause begins, changes or ends."""
        self._watches.append(watch)

    async def wait_for_end(self) -> None:
        """Wait until a server is given up, and raise why."""
        await self._has_ended.wait()
        await self.drain()
        assert self._error is not None
        raise self._error

    async def drain(self) -> None:
        """Wait for the answers that are on their way when a server is given up, but not long."""
        await self._is_quiet.wait()

    def on_end(self, error: ShoalError) -> None:
        self._error = self._error or error
        self._drained_at = min(self._drained_at, self._clock.now() + DRAIN_SECONDS)
        self._has_ended.set()
        self.on_quiet()

    def on_quiet(self) -> None:
        is_late = self._clock.now() >= self._drained_at
        if self._has_ended.is_set() and (is_late or all(gate.is_quiet for gate in self._gates.values())):
            self._is_quiet.set()

    def on_change(self) -> None:
        for watch in self._watches:
            watch(self.pause)
        if self._is_ending:
            self.end_pauses()

    async def follow(self) -> None:
        """Look at the clock again and again."""
        while True:
            await self._clock.sleep(TICK_SECONDS)
            for gate in list(self._gates.values()):
                gate.tick()
            self.on_quiet()

    def end_pauses(self) -> None:
        """End the wait for servers that do not answer, and wait for none any more: the user asked to stop."""
        self._is_ending = True
        for gate in self._gates.values():
            if gate.pause is not None:
                gate.stop(Stopped(f"stopped while it waited for {gate.model}"))
