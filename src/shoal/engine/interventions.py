"""Scheduled happenings of one world, and interventions, which happen when a condition on its history holds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from shoal.engine.facts import Facts
from shoal.engine.functions import FunctionCaller, InterventionFailed, OwnFunction
from shoal.journal import JournalKey, digest
from shoal.types import Event, Happening, Notice

#: The kind of happening that ends the world's history.
STOP = "stop"
#: Kinds of notices: an intervention happens, or could not be decided upon.
INTERVENTION, FAILURE = "intervention", "intervention_failed"
#: So much of a rule's key stands in the keys of the journal.
RULE_CHARS = 12
#: Purposes of keys in the journal: whether something happens, and what.
CHECK, CALL = "check", "call"


class ClaimCheck(Protocol):
    """Judges whether something holds that no figure tells, such as a claim that a language model judges."""

    async def judge(self, round: int) -> bool:
        """Return whether it holds when a round begins; raise InterventionFailed where this cannot be told."""
        ...


#: Turns what a function returned, as the journal holds it, into what happens in a round.
ReadHappenings = Callable[[int, Any], Sequence[Happening]]


@dataclass(frozen=True, slots=True)
class Rule:
    """An intervention: if its condition holds after a round, it happens in the next round that is not yet decided."""

    #: Identifies it, also across forks.
    key: str
    name: str
    condition: Callable[[Facts], bool]
    happenings: tuple[Happening, ...]
    #: How often it may happen, and for how many rounds it then pauses.
    times: int = 1
    pause: int = 0
    #: It is in force in rounds from `since`, before `until`.
    since: int = 0
    until: int | None = None
    #: Words whose mentions the condition counts.
    words: tuple[str, ...] = ()
    #: What must hold besides: what a function returns, and what is judged. Each is asked only where all before it hold.
    check: OwnFunction | None = None
    judge: ClaimCheck | None = None
    #: Returns what happens besides, and how that is read.
    call: OwnFunction | None = None
    read: ReadHappenings | None = None

    def may_happen(self, round: int, earlier: Sequence[int]) -> bool:
        """Return whether it may happen in a round, given the rounds in which it has happened."""
        is_in_force = self.since <= round and (self.until is None or round < self.until)
        has_paused = not earlier or round - earlier[-1] > self.pause
        return is_in_force and len(earlier) < self.times and has_paused


class Schedule:
    """Decides what is due in each round. Asked once per round, in order."""

    def __init__(
        self,
        scheduled: Iterable[tuple[int, Happening]] = (),
        rules: Sequence[Rule] = (),
        world: str = "",
        listeners: Sequence[Callable[[Sequence[Event | Notice]], None]] = (),
    ) -> None:
        self._scheduled: defaultdict[int, list[Happening]] = defaultdict(list)
        for round, happening in scheduled:
            self._scheduled[round].append(happening)
        self._rules = rules
        self._fired: dict[str, list[int]] = {}
        #: Rule -> how it failed last, so that the same failure in every round is noted once.
        self._failed: dict[str, str] = {}
        #: Are given what happened in each round that is over.
        self._listeners = listeners
        self.facts = Facts(world)
        self.facts.track_words([word for rule in rules for word in rule.words])

    @property
    def watches(self) -> bool:
        """Whether any intervention depends on what happens."""
        return bool(self._rules)

    def reschedule(self, after: int, scheduled: Iterable[tuple[int, Happening]]) -> None:
        """Replace what is scheduled after a round."""
        for round in [round for round in self._scheduled if round > after]:
            del self._scheduled[round]
        for round, happening in scheduled:
            if round > after:
                self._scheduled[round].append(happening)

    def forget_functions(self) -> None:
        """Let conditions hold whatever functions would return, for a plan, which calls none."""
        self._rules = [replace(rule, check=None, call=None) for rule in self._rules]

    @property
    def asks(self) -> bool:
        """Whether what is due may depend on functions of the user's own, or on what is judged."""
        return any(rule.check or rule.judge or rule.call for rule in self._rules)

    def due(self, round: int) -> list[Happening]:
        """Return what is scheduled, then what interventions do, each of them preceded by a notice of it."""
        due = self._scheduled.pop(round, [])
        for rule in self._list_holding(round):
            due += self._begin(rule, round, rule.happenings)
        return due

    async def find_due(self, round: int, caller: FunctionCaller, history: str) -> list[Happening]:
        """Return the same where interventions ask something.

        `history` is the digest of all rounds that are over, by which a fork knows whether it may ask the same again.
        """
        due = self._scheduled.pop(round, [])
        for rule in self._list_holding(round):
            try:
                happenings = await self._find_effects(rule, round, caller, history)
                self._failed.pop(rule.key, None)
            except InterventionFailed as failure:
                if self._failed.get(rule.key) != str(failure):
                    self._failed[rule.key] = str(failure)
                    said = str(failure) if str(failure).startswith(rule.name) else f"{rule.name}: {failure}"
                    due.append(Happening(FAILURE, said))
                continue
            if happenings is not None:
                due += self._begin(rule, round, happenings)
        return due

    def _list_holding(self, round: int) -> Iterator[Rule]:
        """Yield the rules that may happen in a round, and whose figures hold."""
        for rule in self._rules:
            if (
                round > 0
                and rule.may_happen(round, self._fired.setdefault(rule.key, []))
                and rule.condition(self.facts)
            ):
                yield rule

    def _begin(self, rule: Rule, round: int, happenings: Sequence[Happening]) -> list[Happening]:
        self._fired[rule.key].append(round)
        return [Happening(INTERVENTION, rule.name), *happenings]

    async def _find_effects(
        self, rule: Rule, round: int, caller: FunctionCaller, history: str
    ) -> Sequence[Happening] | None:
        """Return what happens by a rule whose figures hold; None where nothing does."""

        async def ask(function: OwnFunction, purpose: str) -> Any:
            key = JournalKey(self.facts.world, round, rule.key[:RULE_CHARS], purpose)
            return await caller.call(function, key, digest((rule.key, history)), self.facts)

        if rule.check is not None and not await ask(rule.check, CHECK):
            return None
        if rule.judge is not None and not await rule.judge.judge(round):
            return None
        if rule.call is None or rule.read is None:
            return rule.happenings
        return [*rule.happenings, *rule.read(round, await ask(rule.call, CALL))]

    def add_round(
        self,
        round: int,
        hours: float,
        happened: Sequence[Event | Notice],
        failures: Counter[str],
    ) -> None:
        """Add a round that is over."""
        if self._rules:
            events = [one for one in happened if isinstance(one, Event)]
            self.facts.add_round(round, hours, events, failures)
        for listen in self._listeners:
            listen(happened)
