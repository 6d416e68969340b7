"""Ends a run whose model cannot do what it is asked, after its first turns and not at its end."""

from __future__ import annotations

import math
from collections import defaultdict

from shoal.errors import EveryTurnFailed
from shoal.text import clip

#: This many first turns without a usable reply show that the model cannot do this.
HOPELESS_TURNS = 10
_MAX_REASON_CHARS = 500


class UnusableTurns:
    """Counts the turns of each model that came to nothing, until one of its replies was used.

    Turns that were recorded as lost are not decided again, so a run that is resumed counts from 0.
    """

    def __init__(self) -> None:
        self._counts: defaultdict[str, float] = defaultdict(float)

    def count(self, model: str, why: str) -> None:
        """Count a turn that came to nothing; raise EveryTurnFailed if a model's first turns all do."""
        self._counts[model] += 1
        if self._counts[model] >= HOPELESS_TURNS:
            raise EveryTurnFailed(HOPELESS_TURNS, clip(why, _MAX_REASON_CHARS), model)

    def clear(self, model: str) -> None:
        """Stop counting: a reply was used."""
        self._counts[model] = -math.inf
