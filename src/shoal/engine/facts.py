"""Figures of the history of one world, for the conditions of interventions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isnan, sqrt
from statistics import fmean

from shoal.types import Event

#: The action of a turn in which nothing is done.
_NOTHING = "DO_NOTHING"


class Facts:
    """Figures of the history, for conditions. `round` is the last round that is over."""

    def __init__(self, world: str = "") -> None:
        self.world = world
        self.round = 0
        self.hours = 0.0
        #: Counts of the last round, and of all rounds so far.
        self.actions = self.total_actions = 0
        self.rejected = self.total_rejected = 0
        #: Turns without a decision.
        self.errors = self.total_errors = 0
        self.timeouts = self.total_timeouts = 0
        self._kinds: Counter[str] = Counter()
        self._all_kinds: Counter[str] = Counter()
        self._by: Counter[str] = Counter()
        self._last_act: dict[str, int] = {}
        #: What was done in the last round, refused actions included.
        self.events: Sequence[Event] = ()
        self._texts: list[str] = []
        self._opinions: Callable[[], Sequence[float]] = tuple
        self._said: Counter[str] = Counter()
        self._figures: Mapping[tuple[str, str], float] = {}
        self._beliefs: Callable[[], Mapping[str, Sequence[float]]] = dict

    def track_words(self, words: Sequence[str]) -> None:
        """Count the mentions of these words from the start."""
        self._said.update(dict.fromkeys(map(str.casefold, words), 0))

    def set_opinions(
        self, opinions: Callable[[], Sequence[float]], beliefs: Callable[[], Mapping[str, Sequence[float]]] = dict
    ) -> None:
        """Set the functions that return all opinions and beliefs when a condition needs them."""
        self._opinions = opinions
        self._beliefs = beliefs

    def set_figures(self, figures: Mapping[tuple[str, str], float]) -> None:
        """Set the figures of the world after the last round."""
        self._figures = figures

    def add_round(
        self, round: int, hours: float, events: Sequence[Event], failures: Counter[str] | None = None
    ) -> None:
        """Add a round that is over. Failures are turns without a decision, by what went wrong."""
        failures = failures or Counter()
        self.timeouts = failures["timeout"]
        self.errors = failures.total() - self.timeouts
        self.total_timeouts += self.timeouts
        self.total_errors += self.errors
        self.round, self.hours, self.events = round, hours, events
        done = [event for event in events if event.success and event.action_type != _NOTHING]
        self.actions = len(done)
        self.rejected = sum(not event.success for event in events) - self.errors - self.timeouts
        self.total_actions += self.actions
        self.total_rejected += self.rejected
        self._kinds = Counter(event.action_type for event in done)
        self._all_kinds.update(self._kinds)
        self._by.update(event.agent_name for event in done)
        self._last_act.update((event.agent_name, round) for event in done)
        # What was written or said, but not what it refers to.
        written = (event.action_args.get(name) for event in done for name in ("content", "quote_content", "message"))
        self._texts = [text.casefold() for text in written if isinstance(text, str)]
        for word in self._said:
            self._said[word] += self.said(word)

    def count(self, kind: str) -> int:
        """Return how often an action was done in the last round, for example `count("CREATE_POST")`."""
        return self._kinds[kind]

    def total(self, kind: str) -> int:
        """Return how often an action was done so far."""
        return self._all_kinds[kind]

    def by(self, name: str) -> int:
        """Return how many actions an agent has done so far."""
        return self._by[name]

    def quiet(self, name: str) -> int:
        """Return for how many rounds an agent has done nothing."""
        return self.round - self._last_act.get(name, 0)

    def said(self, words: str) -> int:
        """Return in how many texts of the last round these words occur."""
        needle = words.casefold()
        return sum(needle in text for text in self._texts)

    def total_said(self, words: str) -> int:
        """Return in how many texts these words have occurred so far."""
        return self._said[words.casefold()]

    def reach(self, claim: str) -> float:
        """Return which share of the people had to do with a claim so far."""
        return self._figures.get(("reach", claim), 0.0)

    def belief(self, claim: str) -> float:
        """Return what people think of a claim on average, -1 to 1."""
        return _average(self._beliefs().get(claim, ()))

    @property
    def mean_opinion(self) -> float:
        return _average(self._opinions())

    @property
    def opinion_spread(self) -> float:
        """Standard deviation of opinions: 0 when all agree, 1 when one half is at each end."""
        opinions, mean = [opinion for opinion in self._opinions() if not isnan(opinion)], self.mean_opinion
        return sqrt(fmean((opinion - mean) ** 2 for opinion in opinions)) if opinions else 0.0


def _average(values: Sequence[float]) -> float:
    """Return the mean of the values that are known; 0 where none is."""
    known = [value for value in values if not isnan(value)]
    return fmean(known) if known else 0.0
