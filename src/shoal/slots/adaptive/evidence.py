"""What calls show about a limit: which of them were accepted, and how much was accepted between two refusals.

A refusal comes back much sooner than an answer. So a call that is in flight for a few times as long, or that began
before one that was just refused, has been accepted; its answer need not be waited for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

#: A call counts as accepted after this many times the duration of a refusal, plus these seconds for jitter.
PROOF_REFUSALS = 3.0
PROOF_SECONDS = 0.005
#: A call that began before a refused one by less than this share of a refusal's duration may still be refused.
ORDER_SHARE = 0.25
#: Calls that began within this time may reach the server in any order.
TOGETHER_SECONDS = 0.001
#: How fast means follow: answers vary much, refusals little.
_ANSWER_GAIN, _REFUSAL_GAIN = 0.05, 0.2


@dataclass(slots=True, eq=False)
class Sent:
    """One call that has begun."""

    at: float
    tokens: int
    #: How many calls were in flight, itself included.
    level: int
    #: How many calls and tokens had begun so far, itself included.
    calls: int
    total: int
    #: Whether it is known to be accepted.
    proven: bool = False
    #: Whether it has ended, whatever the outcome.
    ended: bool = False


class Mark(NamedTuple):
    """A refusal: when that call began, and how much had been accepted before it."""

    at: float
    requests: float
    tokens: float
    #: Tokens of the refused call.
    size: int


class Evidence:
    """Counts the calls of one pool and decides which are known to be accepted."""

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
        """Return the seconds until this call counts as accepted if it does not end before."""
        return max(sent.at + self._proof_seconds - now, 0.0)

    @property
    def _proof_seconds(self) -> float:
        refusal = self.refusal_seconds if self.refusal_seconds is not None else self.round_trip
        return PROOF_REFUSALS * refusal + PROOF_SECONDS

    def take_proven(self, now: float) -> Iterator[Sent]:
        """Yield calls that now count as accepted because they are in flight longer than a refusal takes."""
        if self.refusal_seconds is not None:
            yield from self._take_proven_before(now - self._proof_seconds)

    def on_answer(self, sent: Sent, seconds: float) -> bool:
        """Count an answer; return whether it is the first proof that this call was accepted."""
        self._end(sent)
        self.answer_seconds = _follow(self.answer_seconds, seconds, _ANSWER_GAIN)
        is_news, sent.proven = not sent.proven, True
        return is_news

    def on_loss(self, sent: Sent) -> None:
        """Count an end that says nothing about the limit."""
        self._end(sent)

    def on_refusal(self, sent: Sent, seconds: float) -> Iterator[Sent]:
        """Count a refusal; yield calls that now count as accepted because they began before it."""
        self._end(sent)
        self.refusal_seconds = _follow(self.refusal_seconds, seconds, _REFUSAL_GAIN)
        self._refused_calls += 1
        self._refused_total += sent.tokens
        yield from self._take_proven_before(sent.at - ORDER_SHARE * self.refusal_seconds)
        for later in self._unproven:
            if later.ended or later.calls < sent.calls:
                continue
            if later.at <= sent.at + TOGETHER_SECONDS:
                # It may have reached the server first.
                sent.level += 1
            # The refused call was never in work, so later ones were one fewer.
            later.level -= 1

    def mark(self, sent: Sent) -> Mark:
        """Return how much had been accepted before a refused call."""
        requests = sent.calls - self._refused_calls
        return Mark(sent.at, requests, sent.total - self._refused_total, sent.tokens)

    def _take_proven_before(self, at: float) -> Iterator[Sent]:
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
