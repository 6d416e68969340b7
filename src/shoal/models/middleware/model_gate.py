"""The gate that all questions to one model pass.

Until the server has answered once, one question goes out alone. When the server answers no more, the gate closes, and
one question at a time tries whether it is back. What the user must mend stops the run.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import NamedTuple, Protocol

from shoal.errors import ProviderRefused, ProviderUnavailable, ShoalError, Stopped
from shoal.journal import JournalKey
from shoal.models.base import FailureKind, ModelFailure, Remedy
from shoal.models.costs import Spending
from shoal.models.local import is_local
from shoal.models.middleware.attempts import AttemptsUnderWay, SentAttempt
from shoal.models.middleware.comparison import FailureComparison
from shoal.models.middleware.retrying import RetryClock
from shoal.text import format_wait

#: Failures in a row after which the gate closes: of a server that has answered before, and of a new one.
FAILURES, FIRST_FAILURES = 5, 2
#: Refusals because of a limit are ordinary. They become a pause when for this long nothing else came.
REFUSALS, REFUSED_SECONDS = 3, 8.0
#: The gap between two tries doubles from the first to the longest.
FIRST_GAP_SECONDS, LONGEST_GAP_SECONDS = 1.0, 30.0
#: If all questions are under way in a silent server, one of them is aborted after this time and tries again.
STUCK_SECONDS = 30.0
#: The only question left may fail this often. Then a control question shows whose fault it is.
LONE_TRIES = 3

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


class Waits(NamedTuple):
    """How long a run waits for a server that does not answer, and for one attempt."""

    patience_seconds: float
    attempt_seconds: float


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

    def __init__(self, model: str, waits: Waits, spending: Spending, clock: RetryClock, listener: GateListener) -> None:
        self.model = model
        #: None while the server answers, or has not been asked yet.
        self.pause: Pause | None = None
        self.attempts = AttemptsUnderWay(waits.attempt_seconds, clock, listener.on_quiet, is_local=is_local(model))
        self._patience_seconds = waits.patience_seconds
        self._spending = spending
        self._clock = clock
        self._listener = listener
        self._comparison = FailureComparison(has_answered=model in spending.by_model)
        #: Whether the last that was heard of the server was an answer.
        self._is_proven = False
        self._error: ShoalError | None = None
        #: Questions at the gate, and how many have passed it and are not settled.
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._inside = 0
        #: The question that goes out alone while the gate is closed, when the next may, and how long a try may take.
        self._alone: JournalKey | None = None
        self._next_at = 0.0
        self._gap_seconds = FIRST_GAP_SECONDS
        self._try_seconds: float | None = None
        #: The question that tried last, and how often in a row.
        self._tried: tuple[JournalKey | None, int] = (None, 0)
        #: Failures since the last answer that may pass: how many, since when, and the last of them.
        self._failures = 0
        self._failing_since = 0.0
        self._last_failure: ModelFailure | None = None
        #: Until when the server asked to wait.
        self._asked_until = 0.0

    @property
    def is_open(self) -> bool:
        return self._is_proven and not self._comparison.are_many and self._error is None

    # Questions

    async def enter(self, key: JournalKey) -> None:
        """Wait until the question may be asked; raise why it never will be."""
        while True:
            self.check()
            if self.is_open:
                break
            if self._alone is None and not self._is_settling and self._clock.now() >= self._next_at:
                self._alone = key
                break
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self._inside += 1

    def check(self) -> None:
        """Raise why no question can pass any more."""
        if self._error is not None:
            raise self._error

    @property
    def _is_settling(self) -> bool:
        """Whether questions are still under way that may show whose failure a held one is."""
        return 0 < len(self._comparison) < self._inside

    def leave(self, key: JournalKey) -> None:
        self._inside -= 1
        if key == self._alone:
            self._alone = None
        self._comparison.on_leave(key)
        if self._comparison or not self.is_open:
            self._settle()

    def _wake(self, count: int | None = None) -> None:
        """Let waiting questions try again, the oldest first: `count` of them, or all."""
        while self._waiting and (count is None or count > 0):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                count = None if count is None else count - 1

    # Attempts

    def admits_attempt(self, key: JournalKey) -> bool:
        """Return whether an attempt that has its slot may be sent: the gate may have closed meanwhile."""
        self.check()
        return self.is_open or (key == self._alone and self._clock.now() >= self._next_at)

    def on_sent(self, key: JournalKey) -> SentAttempt:
        """Take note of an attempt, and limit how long a try into a silent server may take."""
        return self.attempts.begin(key, self._try_seconds if key == self._alone else None)

    def on_answer(self, key: JournalKey) -> None:
        attempt = self.attempts.end_answered(key)
        self._comparison.on_answer(key, attempt.number)
        self._open()

    def on_failure(self, key: JournalKey, failure: ModelFailure) -> None:
        now = self._clock.now()
        if (attempt := self.attempts.end(key)) is not None:
            self._comparison.on_failure(key, attempt.number)
        if failure.status is not None:
            self.attempts.heard_at = now
        if failure.kind.remedy is not Remedy.WAIT:
            # The server is there, whatever it says.
            self._end_pause()
            if failure.kind.remedy is Remedy.ACCEPT:
                self._open()
            return
        if self._failures == 0:
            self._failing_since = now
        self._failures += 1
        self._last_failure = failure
        self._asked_until = now + (failure.retry_after or 0.0)
        if self.attempts.answers == 0 and failure.kind is FailureKind.UNREACHABLE:
            self.refuse(failure)
        elif self.pause is not None:
            self._postpone(key, failure)
        elif failure.kind not in _RATES and self._failures >= (FAILURES if self._is_proven else FIRST_FAILURES):
            self.begin_pause(failure)

    def describe_abort(self, key: JournalKey) -> ModelFailure:
        """Return the failure of an attempt that was aborted because the server is silent."""
        if key == self._alone and self._try_seconds is not None:
            self._try_seconds *= 2
            # A longer try may succeed, so this one says nothing about the question.
            self._tried = (None, 0)
        seconds = self.attempts.measure_age(key)
        return ModelFailure(FailureKind.TRANSIENT, f"{self.model}: no answer within {seconds:.0f} s")

    # Whose failure it is

    def answers_others(self, key: JournalKey) -> bool:
        """Return whether a question fails again and again while later ones are answered."""
        return self._comparison.fails_alone(key, self.attempts.last_answered)

    def forget(self, key: JournalKey) -> None:
        """Forget the failures of a question that came to its end."""
        self._comparison.forget(key)

    async def compare(self, key: JournalKey, failure: ModelFailure) -> bool:
        """Return whether a failure belongs to its question, as others are answered; stop if none is.

        False means that this is not clear: a control question is to show it.
        """
        if self._comparison.is_known(key, failure):
            return True
        held = self._comparison.hold(key, failure, self.attempts.sent)
        if key == self._alone:
            self._alone = None
        self._settle()
        try:
            return await held.verdict
        finally:
            self._comparison.drop(held)

    def _settle(self) -> None:
        """Decide comparisons when no other question is under way, or let the next question go out alone."""
        can_learn_more = self._is_settling or (self._waiting and not self._comparison.are_many)
        if not can_learn_more and (failure := self._comparison.settle()) is not None:
            self.refuse(failure)
        if self._alone is None and self._clock.now() >= self._next_at:
            self._wake(None if self.is_open else 1)

    def find_lone_failure(self, key: JournalKey) -> ModelFailure | None:
        """Return the failure of a question that has tried again and again, with no other left to try."""
        is_lone = self.pause is not None and not self._waiting and self._tried[0] == key
        return self._last_failure if is_lone and self._tried[1] >= LONE_TRIES else None

    # Pauses

    def begin_pause(self, failure: ModelFailure) -> None:
        """Close the gate: the server answers no more, for this reason."""
        if self.pause is not None:
            return
        now = self._clock.now()
        began = self._failing_since if self._failures else now
        self._is_proven = False
        self._gap_seconds = FIRST_GAP_SECONDS
        self.pause = Pause(self.model, failure.text, time.time() - (now - began), began, self._patience_seconds)
        self._spending.pauses += 1
        self._try_seconds, self._tried = None, (None, 0)
        self._wait_before_next_try(failure)
        self._listener.on_change()

    def _postpone(self, key: JournalKey, failure: ModelFailure) -> None:
        assert self.pause is not None
        self.pause = self.pause._replace(reason=failure.text)
        if key == self._alone:
            last, tries = self._tried
            self._tried = (key, tries + 1 if key == last else 1)
            self._gap_seconds = min(self._gap_seconds * 2, LONGEST_GAP_SECONDS)
            self._wait_before_next_try(failure)
            self._listener.on_change()

    def _wait_before_next_try(self, failure: ModelFailure) -> None:
        assert self.pause is not None
        now = self._clock.now()
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
            self.attempts.abort_all_after(self.attempts.longest_silence_seconds)
            self.pause = None
            self._listener.on_change()

    def _open(self) -> None:
        self.attempts.heard_at = self._clock.now()
        self._end_pause()
        if not self._is_proven:
            self._is_proven = True
            self._alone = None
        if self._waiting and self.is_open:
            self._wake()

    def tick(self) -> None:
        """Do what is due: notice silence, let the next question try, and stop when patience is over."""
        if self._error is not None:
            return
        self.attempts.abort_due()
        if self.pause is None:
            self._look_for_pause()
        elif self._clock.now() - self.pause.began >= self._patience_seconds:
            self.stop(ProviderUnavailable(self.pause.reason, format_wait(self._patience_seconds)))
        elif self._try_seconds is not None and self._alone is None and not self._waiting:
            # The server is silent, and no question is left to try it.
            self.attempts.abort_oldest_after(STUCK_SECONDS)
        if not self.is_open:
            self._settle()

    def _look_for_pause(self) -> None:
        now, failure = self._clock.now(), self._last_failure
        are_refusals = self._failures >= REFUSALS or (self._failures > 0 and not self.attempts)
        if failure is not None and are_refusals and now - self._failing_since >= REFUSED_SECONDS:
            self.begin_pause(failure)
            return
        silent_seconds = self.attempts.measure_silence()
        if self.attempts and silent_seconds >= self.attempts.longest_silence_seconds:
            longest = self.attempts.longest_answer_seconds
            usual = "" if longest is None else f"; answers took up to {longest:.1f} s"
            text = f"{self.model}: no answer for {silent_seconds:.0f} s{usual}"
            self._failing_since = now - silent_seconds
            self._failures += 1
            self.begin_pause(ModelFailure(FailureKind.TRANSIENT, text))
            # A server that has not answered yet may just be slow: its only question goes on.
            self._try_seconds = None if longest is None else self.attempts.longest_silence_seconds

    def refuse(self, failure: ModelFailure) -> ProviderRefused:
        """Stop because of a failure that every question meets, and return the error that says so."""
        asks_for = failure.retry_after if failure.kind is FailureKind.QUOTA else None
        error = ProviderRefused(f"{failure.text}{f': it asks to wait for {format_wait(asks_for)}' if asks_for else ''}")
        self.stop(error)
        return error

    def stop(self, error: ShoalError) -> None:
        """Let no question pass any more, and end those that wait."""
        if self._error is not None:
            return
        self._error = error
        self._listener.on_end(error)
        self._wake()
        self._comparison.stop(error)
        if isinstance(error, Stopped):
            self.attempts.abort_all()
