"""Whose failure it is: a failure that may belong to its question is compared with how other questions end."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from shoal.errors import ShoalError
from shoal.journal import JournalKey
from shoal.models.base import FailureKind, ModelFailure

#: This many questions that fail alike, with none answered since, show that it is not because of the question.
ALIKE = 3

#: The purpose of the key of a control question.
CONTROL = "control"


class HeldFailure(NamedTuple):
    """A failure that waits to be compared with how later questions end."""

    #: How many attempts had been sent. The server may have seen those under way together in any order.
    sent: int
    #: True: it belongs to the question. False: a control question is to show whether it does.
    verdict: asyncio.Future[bool]
    failure: ModelFailure
    key: JournalKey


class FailureComparison:
    """Holds failures until a question that was sent later is answered, or until it is clear that none will be."""

    def __init__(self, *, has_answered: bool) -> None:
        #: Whether the model answered this run before, in this session or an earlier one.
        self._has_answered = has_answered
        self._held: list[HeldFailure] = []
        #: The failed attempts of questions that are still asked.
        self._failed: dict[JournalKey, list[int]] = {}
        self._awaits_control = False
        #: Control questions in a row that were answered, with no other question answered.
        self._accepted_in_a_row = 0
        #: Turns whose failure was found to be their own since then, and how they failed.
        self._own: dict[tuple[str, int, int | str | None], str] = {}

    def __len__(self) -> int:
        return len(self._held)

    @property
    def are_many(self) -> bool:
        return len(self._held) >= ALIKE

    def on_failure(self, key: JournalKey, number: int) -> None:
        """Note that this attempt to ask a question failed."""
        self._failed.setdefault(key, []).append(number)

    def on_answer(self, key: JournalKey, number: int) -> None:
        """Note that this attempt was answered: failures of questions that were sent before it are their own."""
        self._has_answered = True
        if key.purpose == CONTROL:
            self._accepted_in_a_row += 1
        else:
            self._accepted_in_a_row = 0
            self._own.clear()
        for held in [each for each in self._held if each.sent < number]:
            self._decide(held, is_own=True)

    def on_leave(self, key: JournalKey) -> None:
        if key.purpose == CONTROL:
            self._awaits_control = False

    def fails_alone(self, key: JournalKey, last_answered: int) -> bool:
        """Return whether a question fails again and again while later ones are answered."""
        failed = self._failed.get(key, [])
        return len(failed) >= ALIKE and last_answered > failed[-2]

    def forget(self, key: JournalKey) -> None:
        """Forget the failed attempts of a question that came to its end."""
        self._failed.pop(key, None)

    def is_known(self, key: JournalKey, failure: ModelFailure) -> bool:
        """Return whether the same failure of this turn was found to be its own."""
        return self._own.get(key.turn) == failure.text

    def hold(self, key: JournalKey, failure: ModelFailure, sent: int) -> HeldFailure:
        """Keep a failure until it is decided whose it is. The caller awaits the verdict, then drops it."""
        held = HeldFailure(sent, asyncio.get_running_loop().create_future(), failure, key)
        self._held.append(held)
        return held

    def drop(self, held: HeldFailure) -> None:
        self._held = [each for each in self._held if each is not held]

    def settle(self) -> ModelFailure | None:
        """Let a control question decide, as no other can. Return the failure that every question meets, if it is clear.

        The control question of the first failure decides about the others too.
        """
        if not self._held or self._awaits_control:
            return None
        first = self._held[0]
        is_worth_asking = self._has_answered or first.failure.kind is FailureKind.UNREADABLE
        if not is_worth_asking or self._accepted_in_a_row >= ALIKE - 1:
            return first.failure
        self._awaits_control = True
        self._decide(first, is_own=False)
        return None

    def stop(self, error: ShoalError) -> None:
        """Raise this where verdicts are awaited."""
        for held in self._held:
            if not held.verdict.done():
                held.verdict.set_exception(error)

    def _decide(self, held: HeldFailure, *, is_own: bool) -> None:
        """Stop holding a failure, and answer the question that waits for the verdict on it."""
        self.drop(held)
        # Of an unclear one, only a control question that is answered lets the run go on.
        self._own[held.key.turn] = held.failure.text
        if not held.verdict.done():
            held.verdict.set_result(is_own)
