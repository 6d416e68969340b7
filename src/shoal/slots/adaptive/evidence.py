"""What calls say about a limit: which of them were let in, and how much was let in between two refusals.

A refusal comes back much sooner than an answer. So a call that is still out after a few times as long, or that began
before one that was just refused, has been let in; one need not wait for its answer to know.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

#: How many times as long as a refusal takes a call must be out to count as let in, and what is added for jitter.
PROOF_REFUSALS = 3.0
PROOF_SECONDS = 0.005
#: A call that began before a refused one by less than this share of the time a refusal takes may be refused yet.
ORDER_SHARE = 0.25
#: Calls that began within so many seconds may come in in any order.
TOGETHER_SECONDS = 0.001
#: How fast means follow: answers vary much, refusals little.
_ANSWER_GAIN, _REFUSAL_GAIN = 0.05, 0.2


@dataclass(slots=True, eq=False)
class Sent:
    """One call that has begun."""

    at: float
    tokens: int
    #: How many were in flight with it.
    level: int
    #: How many calls and tokens had begun, with it.
    calls: int
    total: int
    #: Known to be let in; or ended, in whichever way.
    proven: bool = False
    ended: bool = False


class Mark(NamedTuple):
    """A refusal: when that call began, and how much had been let in before it."""

    at: float
    requests: float
    tokens: float
    #: How large the refused call was.
    size: int


class Evidence:
    """Keeps count."""

    def __init__(self) -> None:
        self.held = 0
        self.answer_seconds: float | None = None
        self.refusal_seconds: float | None = None
        self._unproven: deque[Sent] = deque()
        self._calls = 0
        self._total = 0
        self._refused_calls = 0
        self._refused_total = 0

    def begin(self, now: float, tokens: int) -> Sent:
        self.held += 1
        self._calls += 1
        self._total += tokens
        sent = Sent(now, tokens, self.held, self._calls, self._total)
        self._unproven.append(sent)
        return sent

    @property
    def round_trip(self) -> float:
        return self.answer_seconds if self.answer_seconds is not None else 0.5

    @property
    def mean_size(self) -> float:
        return self._total / self._calls if self._calls else 1.0

    @property
    def begun(self) -> tuple[int, int]:
        """Calls and tokens, so far."""
        return self._calls, self._total

    @property
    def accepted(self) -> tuple[int, int]:
        """Calls and tokens that were not refused, so far."""
        return self._calls - self._refused_calls, self._total - self._refused_total

    def proof_in(self, sent: Sent, now: float) -> float:
        """Seconds until this call will count as let in, if nothing is heard of it."""
        return max(sent.at + self._proof_seconds - now, 0.0)

    @property
    def _proof_seconds(self) -> float:
        refusal = self.refusal_seconds if self.refusal_seconds is not None else self.round_trip
        return PROOF_REFUSALS * refusal + PROOF_SECONDS

    def proven(self, now: float) -> Iterator[Sent]:
        """Calls that turn out to have been let in, as nothing was heard of them for so long."""
        if self.refusal_seconds is not None:
            yield from self._proven_before(now - self._proof_seconds)

    def answered(self, sent: Sent, seconds: float) -> bool:
        """Whether the answer is the first proof that this call was let in."""
        self._end(sent)
        self.answer_seconds = _follow(self.answer_seconds, seconds, _ANSWER_GAIN)
        is_news, sent.proven = not sent.proven, True
        return is_news

    def lost(self, sent: Sent) -> None:
        """One that ended in a way that says nothing."""
        self._end(sent)

    def refused(self, sent: Sent, seconds: float) -> Iterator[Sent]:
        """Calls that turn out to have been let in, as they began before this one and were not refused."""
        self._end(sent)
        self.refusal_seconds = _follow(self.refusal_seconds, seconds, _REFUSAL_GAIN)
        self._refused_calls += 1
        self._refused_total += sent.tokens
        yield from self._proven_before(sent.at - ORDER_SHARE * self.refusal_seconds)
        for later in self._unproven:
            if later.ended or later.calls < sent.calls:
                continue
            if later.at <= sent.at + TOGETHER_SECONDS:
                # It may have come in first.
                sent.level += 1
            # The refused one was never in work, so those after it were one fewer.
            later.level -= 1

    def mark(self, sent: Sent) -> Mark:
        """What had been let in before a call that was refused."""
        requests = sent.calls - self._refused_calls
        return Mark(sent.at, requests, sent.total - self._refused_total, sent.tokens)

    def _proven_before(self, at: float) -> Iterator[Sent]:
        unproven = self._unproven
        while unproven and (unproven[0].ended or unproven[0].at < at):
            sent = unproven.popleft()
            if not sent.ended and not sent.proven:
                sent.proven = True
                yield sent

    def _end(self, sent: Sent) -> None:
        self.held -= 1
        sent.ended = True
        while self._unproven and self._unproven[0].ended:
            self._unproven.popleft()


def _follow(mean: float | None, value: float, gain: float) -> float:
    return value if mean is None else mean + gain * (value - mean)
