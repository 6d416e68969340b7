"""Random refusals: some servers refuse a share of all calls, however few there are.

Reacting to these refusals lowers the throughput without lowering their share. No cap explains them, and a rate that is
exceeded refuses many calls one after another. So a few refusals one by one that no cap explains are noise. From then on
a refusal counts only together with more others than noise explains, as at a cap or above a rate.
"""

from __future__ import annotations

from collections import deque

#: Calls that are looked at together, and the share of them that may be refused at random.
LATELY, ENOUGH, MOST_SHARE = 50, 40, 0.1
#: This many refusals one after another are no noise.
IN_A_ROW = 3
#: Noise explains refusals as long as no more are refused lately than this many times its share, and this share more.
USUAL_TIMES, USUAL_MORE = 2.0, 0.03
#: Noise is over after this many calls without a refusal: at one in forty, one time in 150.
OVER_CALLS = 200


class NoiseDetector:
    """Finds the share of calls that is refused at random."""

    def __init__(self, share: float = 0.0) -> None:
        #: The share of calls that is refused at random; 0: none.
        self.share = share
        self._ends: deque[bool] = deque(maxlen=LATELY)
        self._refused = 0
        self._accepted_since = 0

    def count(self, *, refused: bool) -> None:
        if len(self._ends) == LATELY:
            self._refused -= self._ends[0]
        self._ends.append(refused)
        self._refused += refused
        self._accepted_since = 0 if refused else self._accepted_since + 1
        if self._accepted_since > OVER_CALLS or self._lately > 2 * MOST_SHARE:
            self.share = 0.0

    @property
    def _lately(self) -> float:
        return self._refused / max(len(self._ends), ENOUGH)

    @property
    def explains_refusal(self) -> bool:
        """Whether noise is known, and no more calls are refused lately than usual."""
        return self.share > 0 and self._lately < USUAL_TIMES * self.share + USUAL_MORE

    def may_be(self, in_a_row: int) -> bool:
        """Return whether refusals are few and come one by one."""
        return in_a_row < IN_A_ROW and len(self._ends) >= ENOUGH and self._lately <= MOST_SHARE

    def suspect(self, in_a_row: int) -> bool:
        """Take refusals that neither a cap nor a rate explains for noise if they may be; return whether they are."""
        if not self.may_be(in_a_row):
            return False
        self.share = self._lately
        return True
