"""What is made to happen in one world: what is scheduled, and what becomes due when a condition comes true."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from shoal.engine.facts import Facts
from shoal.types import Event, Happening

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


class Agenda:
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
