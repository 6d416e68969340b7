"""What is made to happen in one world: what is scheduled, and what becomes due when a condition comes true."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

from shoal.types import Event, Happening

#: Turns in which nothing was done.
_NOTHING = "DO_NOTHING"


class Facts:
    """The history up to a round. `round` is the last one that is over."""

    def __init__(self) -> None:
        self.round = 0
        self.hours = 0.0
        #: Of the last round, and of all rounds so far.
        self.actions = self.total_actions = 0
        self.rejected = self.total_rejected = 0
        #: Turns without a decision.
        self.errors = self.total_errors = 0
        self.timeouts = self.total_timeouts = 0
        self._kinds: Counter[str] = Counter()
        self._all_kinds: Counter[str] = Counter()
        self._by: Counter[str] = Counter()
        self._last_act: dict[str, int] = {}
        self._texts: list[str] = []
        self._opinions: Callable[[], Sequence[float]] = tuple
        self._said: Counter[str] = Counter()

    def listen_for(self, words: Sequence[str]) -> None:
        """Words whose mentions are counted from the start."""
        self._said.update(dict.fromkeys(map(str.casefold, words), 0))

    def read_opinions(self, opinions: Callable[[], Sequence[float]]) -> None:
        """Where opinions are found when a condition asks for them."""
        self._opinions = opinions

    def take_in(self, round: int, hours: float, events: Sequence[Event], failures: Counter[str] | None = None) -> None:
        """A round is over. Failures are turns without a decision, by what went wrong."""
        self._count_failures(failures or Counter())
        self.round, self.hours = round, hours
        done = [event for event in events if event.success and event.action_type != _NOTHING]
        self.actions = len(done)
        self.rejected = sum(not event.success for event in events) - self.errors - self.timeouts
        self.total_actions += self.actions
        self.total_rejected += self.rejected
        self._kinds = Counter(event.action_type for event in done)
        self._all_kinds.update(self._kinds)
        self._by.update(event.agent_name for event in done)
        self._last_act.update((event.agent_name, round) for event in done)
        self._texts = [text.casefold() for event in done for text in _texts(event)]
        for word in self._said:
            self._said[word] += self.said(word)

    def _count_failures(self, failures: Counter[str]) -> None:
        self.timeouts = failures["timeout"]
        self.errors = failures.total() - self.timeouts
        self.total_timeouts += self.timeouts
        self.total_errors += self.errors

    def count(self, kind: str) -> int:
        """How often something was done in the last round, for example `count("CREATE_POST")`."""
        return self._kinds[kind]

    def total(self, kind: str) -> int:
        """How often something was done so far."""
        return self._all_kinds[kind]

    def by(self, name: str) -> int:
        """How much somebody has done so far."""
        return self._by[name]

    def quiet(self, name: str) -> int:
        """For how many rounds somebody has done nothing."""
        return self.round - self._last_act.get(name, 0)

    def said(self, words: str) -> int:
        """In how many texts of the last round these words occur."""
        needle = words.casefold()
        return sum(needle in text for text in self._texts)

    def total_said(self, words: str) -> int:
        """In how many texts so far."""
        return self._said[words.casefold()]

    @property
    def mean_opinion(self) -> float:
        opinions = self._opinions()
        return fmean(opinions) if len(opinions) else 0.0

    @property
    def opinion_spread(self) -> float:
        """Standard deviation of opinions: 0 when all agree, 1 when one half is at each end."""
        opinions, mean = self._opinions(), self.mean_opinion
        return sqrt(fmean((opinion - mean) ** 2 for opinion in opinions)) if len(opinions) else 0.0


def _texts(event: Event) -> list[str]:
    """What was written or said in an action, but not what it refers to."""
    args = event.action_args
    return [args[name] for name in ("content", "quote_content", "message") if isinstance(args.get(name), str)]


#: Happenings that end the world's history.
STOP = "stop"


@dataclass(frozen=True, slots=True)
class Rule:
    """An intervention: when the condition holds after a round, this happens in the next one that is not yet decided."""

    #: What tells it from others, also across forks.
    key: str
    name: str
    condition: Callable[[Facts], bool]
    happenings: tuple[Happening, ...]
    #: How often at most, and for how many rounds not again.
    times: int = 1
    pause: int = 0
    #: Rounds in which it is in force: from the first, before the second.
    since: int = 0
    until: int | None = None
    #: Words whose mentions the condition counts.
    words: tuple[str, ...] = ()

    def in_force(self, round: int) -> bool:
        return self.since <= round and (self.until is None or round < self.until)


class Schedule:
    """Says what is due in a round. Asked once per round, in order."""

    def __init__(self, scheduled: Iterable[tuple[int, Happening]] = (), rules: Sequence[Rule] = ()) -> None:
        self._scheduled: defaultdict[int, list[Happening]] = defaultdict(list)
        for round, happening in scheduled:
            self._scheduled[round].append(happening)
        self._rules = rules
        self._fired: dict[str, list[int]] = {}
        self.facts = Facts()
        self.facts.listen_for([word for rule in rules for word in rule.words])

    @property
    def watches(self) -> bool:
        """Whether anything depends on what happens."""
        return bool(self._rules)

    def reschedule(self, after: int, scheduled: Iterable[tuple[int, Happening]]) -> None:
        """Replace what is scheduled after a round."""
        for round in [round for round in self._scheduled if round > after]:
            del self._scheduled[round]
        for round, happening in scheduled:
            if round > after:
                self._scheduled[round].append(happening)

    def due(self, round: int) -> list[Happening]:
        """What is scheduled, then what interventions do; each of those is preceded by a notice of it."""
        return [*self._scheduled.pop(round, ()), *self._interventions(round)]

    def take_in(self, round: int, hours: float, events: Sequence[Event], failures: Counter[str]) -> None:
        """A round is over."""
        if self._rules:
            self.facts.take_in(round, hours, events, failures)

    def _interventions(self, round: int) -> Iterator[Happening]:
        for rule in self._rules:
            fired = self._fired.setdefault(rule.key, [])
            if round > 0 and self._may_fire(rule, round, fired) and rule.condition(self.facts):
                fired.append(round)
                yield Happening("intervention", rule.name)
                yield from rule.happenings

    @staticmethod
    def _may_fire(rule: Rule, round: int, fired: Sequence[int]) -> bool:
        rested = not fired or round - fired[-1] > rule.pause
        return rule.in_force(round) and len(fired) < rule.times and rested
