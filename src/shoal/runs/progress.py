"""Counts the committed rounds of a run: for its state file, the terminal, notebooks, and every other live view."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from shoal.engine import Metrics, RoundRecord, Seats, TurnCount
from shoal.models import Availability, Pause, Spending, Stack
from shoal.runs.directory import RunDirectory
from shoal.runs.model_limits import RunLimits
from shoal.runs.state import RunState, WorldState
from shoal.worlds import Clock

#: Rates are those of the last seconds. They are sampled at intervals, and unknown until some time has passed.
_RATE_SECONDS = 8.0
_SAMPLE_SECONDS = 0.25
_FIRST_RATE_SECONDS = 0.4

#: Called with every round, in the order in which rounds are committed.
Watch = Callable[[RoundRecord], None]
#: Called with what the run waits for now.
PauseWatch = Callable[[Pause | None], object]


@dataclass(slots=True)
class WorldProgress:
    """How far one world is, and what has happened in it."""

    name: str
    #: The last round that is planned.
    rounds: int
    #: The last round that an earlier worker committed; up to it the run is repeated from its journal.
    known: int = 0
    #: The last round whose time is in the run's metrics.
    measured_round: int = -1
    round: int = 0
    #: Simulated hours gone by.
    hours: float = 0.0
    digest: str = ""
    #: Whether the history came to its own end, and not just to the last planned round.
    ended: bool = False
    #: Agents that acted in the last round, and in all rounds.
    acting: int = 0
    steps: int = 0
    actions: int = 0
    rejected: int = 0
    errors: int = 0
    timeouts: int = 0
    #: Decisions that were asked for outside and were not in the journal.
    calls: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    #: Times of the rounds after `known`.
    metrics: Metrics = field(default_factory=Metrics)
    samples: deque[tuple[float, int, int]] = field(default_factory=deque)
    #: Counts the turns of rounds that are not committed yet, while an engine is at work.
    count_turns: Callable[[], TurnCount] = TurnCount

    @property
    def position(self) -> float:
        """The last round, and the part of the next ones that is decided."""
        return min(self.round + self.count_turns().progress, self.rounds)

    @property
    def catching_up(self) -> bool:
        return self.round < self.known

    @property
    def done(self) -> bool:
        return self.ended or self.round >= self.rounds

    @property
    def speedup(self) -> float | None:
        """Measured over the rounds after `known`."""
        return self.metrics.speedup or self.metrics.sequential_speedup

    def add_round(self, record: RoundRecord, now: float) -> None:
        tally = record.tally
        self.round, self.hours, self.digest, self.ended = record.round, record.hours, record.digest, record.last
        self.acting = tally.acting
        self.steps += tally.acting
        self.actions += tally.actions
        self.rejected += tally.rejected
        self.errors += tally.errors
        self.timeouts += tally.timeouts
        self.calls += tally.calls
        self.kinds.update(tally.kinds)
        if record.step is not None and record.round > self.known:
            self.metrics.add_step(record.step, tally.errors, tally.timeouts)
        if record.round == self.known:
            self.samples.clear()
        if not self.samples or now - self.samples[-1][0] > _SAMPLE_SECONDS:
            self.samples.append((now, self.steps, self.round))
            while now - self.samples[0][0] > _RATE_SECONDS and len(self.samples) > 2:
                self.samples.popleft()

    def rates(self, now: float) -> tuple[float, float]:
        """Return agent-steps and rounds per second, lately; zero while they are unknown."""
        since, steps, rounds = self.samples[0] if self.samples else (now, 0, 0)
        seconds = now - since
        if seconds < _FIRST_RATE_SECONDS:
            return 0.0, 0.0
        return (self.steps - steps) / seconds, (self.round - rounds) / seconds

    def seconds_left(self, now: float) -> float | None:
        per_second = self.rates(now)[1]
        return (self.rounds - self.round) / per_second if per_second > 0 and not self.catching_up else None

    def top_kinds(self, count: int) -> list[tuple[str, int]]:
        """Return the most frequent kinds of action. May be called from another thread than the one that counts."""
        kinds = dict(self.kinds)
        return sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))[:count]


class RunProgress:
    """How far all worlds of a run are.

    The worker adds every committed round. Views read the counts when they like, or watch each round.
    """

    def __init__(
        self, rounds: int, known: Mapping[str, int], clock: Clock, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.worlds = {name: WorldProgress(name, rounds, round) for name, round in known.items()}
        #: Times of all rounds of the run, those of earlier workers included.
        self.metrics = Metrics()
        self.clock = clock
        self.now = now
        self.began = now()
        #: What language models cost and what limits them, once they are open.
        self.spending: Spending | None = None
        self.limits: RunLimits | None = None
        self.availability: Availability | None = None
        #: The agents whose turns a person takes, once the simulation is built.
        self.seats: Seats | None = None
        self._watches: list[Watch] = []
        self._pause_watches: list[PauseWatch] = []

    @classmethod
    def of(
        cls, run: RunDirectory, watch: Watch | None = None, *, known: Mapping[str, int] | None = None
    ) -> RunProgress:
        """Prepare to count the rounds of a run that is about to be worked on.

        `known` is the last round of each world that will only be repeated: by default the last committed one.
        """
        progress = cls(run.scenario.rounds, run.read_last_rounds() if known is None else known, run.clock)
        if watch is not None:
            progress.watch(watch)
        return progress

    @property
    def last_round(self) -> int:
        """The last round that any world has committed."""
        return max(max(world.round, world.known) for world in self.worlds.values())

    @property
    def pause(self) -> Pause | None:
        """What the run waits for; None while it goes on."""
        return None if self.availability is None else self.availability.pause

    def watch_pauses(self, watch: PauseWatch) -> None:
        """Call this whenever a pause begins, changes or ends."""
        self._pause_watches.append(watch)

    def open_models(self, stack: Stack, limits: RunLimits) -> None:
        """Follow the language models of the run, which are open now."""
        self.spending, self.limits, self.availability = stack.spending, limits, stack.availability
        for watch in self._pause_watches:
            stack.availability.watch(watch)

    def watch(self, watch: Watch) -> None:
        """Call this with every round, once it is counted. It must cost next to nothing."""
        self._watches.append(watch)

    def unwatch(self, watch: Watch) -> None:
        self._watches.remove(watch)

    def follow_turns(self, world: str, count_turns: Callable[[], TurnCount]) -> None:
        """Look also into rounds that are not committed yet."""
        self.worlds[world].count_turns = count_turns

    def begin(self, state: RunState) -> None:
        """Count again from round 0, as a worker does that begins. Measured times of earlier workers stay."""
        self.metrics = state.metrics
        for name, world in self.worlds.items():
            measured = state.worlds.get(name, WorldState()).measured_round
            self.worlds[name] = WorldProgress(name, state.total_rounds, max(world.known, world.round), measured)

    def plan(self, rounds: int) -> None:
        """Set the last round of all worlds, as an extension of the run changes it."""
        for world in self.worlds.values():
            world.rounds = rounds

    def add_round(self, record: RoundRecord) -> None:
        """Count a committed round."""
        world = self.worlds[record.world]
        world.add_round(record, self.now())
        if record.step is not None and record.round > world.measured_round:
            world.measured_round = record.round
            self.metrics.add_step(record.step, record.tally.errors, record.tally.timeouts)
        for watch in self._watches:
            watch(record)

    def copy_to(self, state: RunState, calls_before: int = 0) -> None:
        """Copy the counts into the state of the run. `calls_before` are the calls of earlier workers."""
        worlds = self.worlds.values()
        is_running = state.runner_status.is_working
        state.worlds = {
            world.name: WorldState(
                current_round=world.round,
                simulated_hours=world.hours,
                running=is_running and not world.done,
                completed=world.done,
                ended=world.ended,
                actions_count=world.actions,
                rejected=world.rejected,
                digest=world.digest,
                measured_round=world.measured_round,
            )
            for world in worlds
        }
        state.metrics = self.metrics
        state.calls = calls_before + sum(world.calls for world in worlds)
        state.errors = sum(world.errors for world in worlds)
        state.timeouts = sum(world.timeouts for world in worlds)
        if self.spending is not None:
            state.spending = self.spending.as_dict()
            state.calls, state.cost = state.spending["calls"], state.spending["cost"]
        if self.limits is not None:
            state.limits = self.limits.as_dict()
