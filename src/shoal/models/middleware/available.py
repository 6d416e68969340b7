"""Asks as long as it takes: waits while a server does not answer, and passes on only the question's own failures."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from shoal.errors import ProviderRefused
from shoal.journal import JournalKey
from shoal.models.base import Answer, FailureKind, Message, Model, ModelFailed, ModelFailure, Question, Remedy
from shoal.models.costs import Spending
from shoal.models.middleware.availability import Availability
from shoal.models.middleware.comparison import CONTROL
from shoal.models.middleware.model_gate import ModelGate

_log = logging.getLogger(__name__)

#: What is asked to find out whether a server answers anything at all. An embedding of it is as good as an answer.
CONTROL_MESSAGES = (Message("user", "Say yes."),)
#: The server may have come back just before it answered the first of these.
CONTROLS = 2


class HeldBack(Exception):  # not an error: the gate closed while the question was on its way
    """The gate closed before the question was sent."""


class Available:
    """Lets a question pass its gate. A failure that is not the question's own ends the run or is waited out."""

    def __init__(self, inner: Model, availability: Availability, spending: Spending) -> None:
        self._inner = inner
        self._availability = availability
        self._spending = spending

    async def answer(self, question: Question) -> Answer:
        gate = self._availability.gate(question.model)
        try:
            return await self._ask(gate, question)
        except ProviderRefused:
            # This error ends the run, so first let the answers come in that others paid for.
            await self._availability.drain()
            raise
        finally:
            gate.forget(question.key)

    async def _ask(self, gate: ModelGate, question: Question) -> Answer:
        controls = 0
        while True:
            if (failure := gate.find_lone_failure(question.key)) is not None:
                controls += await self._ask_control(gate, question) is None
                if controls >= CONTROLS:
                    raise self._give_up(question, ModelFailed(failure))
            await gate.enter(question.key)
            first = gate.attempts.sent
            try:
                return await self._inner.answer(question)
            except HeldBack:
                continue
            except ModelFailed as caught:
                failed = caught
                with self._charge_if_stopped(question, failed.failure):
                    is_own = await _is_own(
                        gate, question, failed.failure, is_answering=gate.attempts.last_answered > first
                    )
            finally:
                gate.leave(question.key)
            if is_own is None:
                with self._charge_if_stopped(question, failed.failure):
                    is_own = await self._is_own_by_control(gate, question)
            if is_own:
                raise self._give_up(question, failed) from failed

    @contextmanager
    def _charge_if_stopped(self, question: Question, failure: ModelFailure) -> Iterator[None]:
        """Charge what was paid for the question where the run ends: its budget never hears of it."""
        try:
            yield
        except BaseException:
            if failure.usage is not None:
                self._spending.charge_unreadable(question.model, failure.usage)
            raise

    async def _is_own_by_control(self, gate: ModelGate, question: Question) -> bool:
        """Return whether a failure is the question's own, as a control question is answered."""
        failure = await self._ask_control(gate, question)
        if failure is not None and failure.kind.remedy in (Remedy.MEND, Remedy.COMPARE):
            raise gate.refuse(failure)
        return failure is None or failure.kind.remedy is Remedy.ACCEPT

    async def _ask_control(self, gate: ModelGate, question: Question) -> ModelFailure | None:
        """Ask in the same form for one word. Return why even that is not answered, None where it is."""
        key = JournalKey(*question.key.turn, CONTROL)
        control = msgspec.structs.replace(question, key=key, messages=CONTROL_MESSAGES)
        while True:
            await gate.enter(key)
            try:
                answer = await self._inner.answer(control)
            except HeldBack:
                continue
            except ModelFailed as failed:
                if failed.failure.usage is not None:
                    self._spending.charge_unreadable(question.model, failed.failure.usage)
                return failed.failure
            finally:
                gate.leave(key)
                gate.forget(key)
            self._spending.charge(question.model, answer.usage)
            return None

    def _give_up(self, question: Question, failed: ModelFailed) -> ModelFailed:
        if failed.failure.usage is None:
            self._spending.unanswered[failed.failure.kind] += 1
        _log.warning("%s: given up: %s", question.key, failed)
        return failed


async def _is_own(gate: ModelGate, question: Question, failure: ModelFailure, *, is_answering: bool) -> bool | None:
    """Return whether a failure is the question's own, None if that is not clear; raise if every question meets it.

    `is_answering` says whether the server answered others meanwhile.
    """
    match failure.kind.remedy:
        case Remedy.ACCEPT:
            return True
        case Remedy.MEND:
            raise gate.refuse(failure)
        case Remedy.COMPARE:
            return await gate.compare(question.key, failure) or None
    if failure.kind is FailureKind.TRANSIENT and gate.answers_others(question.key):
        return True
    if failure.retry_after is not None or not is_answering:
        gate.begin_pause(failure)
    return False


class Watched:
    """Reports each attempt to the gate of its model, and aborts it where the gate says so."""

    def __init__(self, inner: Model, availability: Availability, spending: Spending) -> None:
        self._inner = inner
        self._availability = availability
        self._spending = spending

    async def answer(self, question: Question) -> Answer:
        gate, key = self._availability.gate(question.model), question.key
        if not gate.admits_attempt(key):
            raise HeldBack
        attempt = gate.on_sent(key)
        try:
            answer = await self._inner.answer(question)
        except (ModelFailed, asyncio.CancelledError) as failed:
            if not isinstance(failed, ModelFailed) and not attempt.take_abort():
                gate.attempts.end(key)
                raise
            failure = failed.failure if isinstance(failed, ModelFailed) else gate.describe_abort(key)
            if failure.usage is None:
                # What was paid for is counted with its price.
                self._spending.failures[failure.kind] += 1
            gate.on_failure(key, failure)
            gate.check()
            raise ModelFailed(failure) from failed
        except BaseException:
            gate.attempts.end(key)
            raise
        gate.on_answer(key)
        return answer
