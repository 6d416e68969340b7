"""What an adaptive limit gets out of a provider whose limits it does not know, on the calls of runs, in virtual time.

python -m bench.limits [NAME ...]        each setting cold, and again with what was learned, beside its goal
python -m bench.limits pages [NAME ...]  the same as tables for docs/design/adaptive-limits.md
python -m bench.limits rivals [NAME ...] other ways to decide how many calls at once, as a table

The oracle is the best of several fixed numbers and of a client that knows every limit, on the same calls. The floor of
a cold start is what that client gets if it must not overfill a queue, as nobody knows at first whether there is one.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from bench.bars import Bar
from bench.loads import Load, dialogues, flood, rooms, rounds, rumour, together
from bench.providers import KnownLimits, ProvenLimits, Provider
from bench.rivals import Aimd, Batches, Inspect, Semaphore
from bench.virtual import Alone, Apart, Drive, Keeping, Learning, Sender, Together, drive
from shoal.rehearsal.settings import PlannedOutage, RehearsalSettings, SettingChange
from shoal.slots.adaptive.limiter import Adaptive, Learned
from shoal.slots.adaptive.window import START

SEEDS = 10
#: At most so many times as many calls in flight as a queue has workers are allowed by the goals.
BEYOND = 2.5
#: What no rehearsal does in this time, an attempt of a run is given up after.
ATTEMPT_SECONDS = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The calls of runs to a provider, and what may be expected."""

    name: str
    provider: RehearsalSettings
    load: Load
    #: By how much each way to the provider and back takes longer, on average: so that calls overtake one another.
    jitter_seconds: float = 0.0
    #: Fixed numbers that are tried for the oracle.
    sweep: tuple[int, ...] = ()
    #: The goals: seconds against those of the oracle, calls wasted of those needed, and how many in flight at most.
    times: float | None = None
    wasted: float | None = None
    most_in_flight: float | None = None

    @property
    def has_floor(self) -> bool:
        """Whether one number of calls at once is the limit all the time, so that one client has to find it."""
        provider = self.provider
        is_constant = bool(provider.cap) and not (provider.changes or provider.limits or provider.outages)
        is_queue = provider.queue and provider.knee is None
        return is_constant and not is_queue and self.load.processes == 1 and not self.jitter_seconds


def _hidden(**settings: object) -> RehearsalSettings:
    """Answers in 0.4 s or so, refuses within 20 ms, and says only when to come back."""
    usual = {"latency_seconds": 0.4, "latency_sigma": 0.6, "refusal_seconds": 0.02, "labelled": False}
    return RehearsalSettings(**{"headers": "retry-after", **usual, **settings})  # type: ignore[arg-type]


def _cap(cap: int, load: Load, goal: tuple[float, float], name: str, **more: object) -> Setting:
    jitter = float(more.pop("jitter_seconds", 0.0))  # type: ignore[arg-type]
    provider = _hidden(cap=cap, **more)
    sweep = (cap - 1, cap, cap + 1, cap + 2)
    title = f"cap {cap}, {name}"
    return Setting(
        name=title, provider=provider, load=load, jitter_seconds=jitter, sweep=sweep, times=goal[0], wasted=goal[1]
    )


def _falling(first: int, then: int, last: int, after: tuple[int, int]) -> dict[str, object]:
    changes = (SettingChange("cap", then, after_answers=after[0]), SettingChange("cap", last, after_answers=after[1]))
    return {"cap": first, "changes": changes}


def _per_second(requests: float, load: Load, name: str, burst: float = 40, **more: object) -> Setting:
    provider = _hidden(requests_per_minute=60 * requests, burst_seconds=burst / requests, **more)
    return Setting(name=f"{requests} requests/s, {name}", provider=provider, load=load, times=1.02, wasted=0.01)


def _tokens_per_second(tokens: float, calls: int, burst_seconds: float, **more: object) -> Setting:
    provider = _hidden(tokens_per_minute=60 * tokens, burst_seconds=burst_seconds, **more)
    name, load = f"{tokens:,} tokens/s, {calls:,} at once", flood(calls, uneven=True)
    return Setting(name=name, provider=provider, load=load, times=1.02, wasted=0.01)


def _queue(workers: int, load: Load, name: str, **more: object) -> Setting:
    provider = _hidden(cap=workers, queue=True, **more)
    sweep = (workers, workers + 1, 2 * workers)
    title = f"a queue behind {workers} workers, {name}"
    return Setting(
        name=title, provider=provider, load=load, sweep=sweep, times=1.02, wasted=0.0, most_in_flight=BEYOND * workers
    )


def _knee(knee: int, load: Load, name: str, **more: object) -> Setting:
    sweep = tuple(int(knee * share) for share in (0.75, 0.9, 1.0, 1.1, 1.25))
    provider = _hidden(knee=knee, cap=4 * knee, queue=True, **more)
    return Setting(name=f"slower above {knee}, {name}", provider=provider, load=load, sweep=sweep, times=1.05)


_QUICK = {"latency_seconds": 0.15}
_BURSTS, _FLOOD = (1.05, 0.015), (1.03, 0.005)
#: Runs of four kinds, started and ended at different times.
_MIXED = together(
    rumour(),
    rounds(6, 40, process=1, starts_at=2.0),
    rooms(3, 8, worlds=3, process=2, starts_at=1.0),
    dialogues(2, 10, 6, process=3, starts_at=4.0),
)

#: What it was tuned on: the settings that the goals were written for.
GOALS = (
    _cap(24, together(rumour()), _BURSTS, "rumour: 12 rounds of two worlds", **_QUICK),
    _cap(24, together(rounds(10, 150)), _BURSTS, "10 rounds of 150", **_QUICK),
    _cap(7, together(rounds(20, 20)), _BURSTS, "20 rounds of 20"),
    _cap(24, together(rumour()), _BURSTS, "rumour, ways of 10 ms more or less", jitter_seconds=0.01, **_QUICK),
    _cap(150, together(rounds(10, 200)), _BURSTS, "10 rounds of 200, ways of 10 ms", jitter_seconds=0.01),
    _cap(24, _MIXED, _BURSTS, "four runs of different kinds"),
    *(_cap(cap, flood(2000), (1.05, 0.015), "2,000 at once") for cap in (5, 7, 8)),
    _cap(5, flood(130), (1.05, 0.015), "130 at once"),
    *(_cap(cap, flood(2000), _FLOOD, "2,000 at once") for cap in (24, 64, 150)),
    *(_per_second(rate, flood(2000), "2,000 at once") for rate in (15, 30, 60)),
    _tokens_per_second(80_000, 3000, 1.0),
    _per_second(15, together(rumour()), "rumour"),
    Setting(
        name="cap 64, then 16, then 64, 2,000 at once",
        times=1.08,
        provider=_hidden(**_falling(64, 16, 64, (700, 1200))),
        load=flood(2000),
    ),
    Setting(
        name="cap 64, then 16, then 64, 20 rounds of 100",
        times=1.08,
        provider=_hidden(**_falling(64, 16, 64, (700, 1200))),
        load=together(rounds(20, 100)),
    ),
    *(_queue(workers, flood(50 * workers), f"{50 * workers:,} at once") for workers in (4, 8, 32)),
    *(_queue(workers, together(rounds(10, 3 * workers)), f"10 rounds of {3 * workers}") for workers in (4, 8, 32)),
    *(
        _queue(workers, together(rounds(4, 20, worlds=2)), "rounds of 20, 3 s answers", latency_seconds=3.0)
        for workers in (2, 4)
    ),
    _knee(64, flood(2000), "2,000 at once"),
    _knee(64, together(rounds(10, 150)), "10 rounds of 150"),
)

#: What it was judged on once. Constants were later chosen with these in view, so they show nothing that is new.
SEEN = (
    _cap(41, together(rounds(12, 90)), _BURSTS, "12 rounds of 90", latency_seconds=0.7, seed=100),
    _cap(11, together(rounds(15, 30, worlds=2)), _BURSTS, "15 rounds of 30, two worlds", refusal_seconds=0.0, seed=110),
    _cap(110, together(rounds(12, 150)), _BURSTS, "12 rounds of 150", latency_seconds=1.1, latency_sigma=0.4, seed=120),
    _cap(33, _MIXED, _BURSTS, "four runs", latency_seconds=0.25, jitter_seconds=0.005, seed=130),
    _cap(19, flood(700), _FLOOD, "700 slow calls at once", latency_seconds=2.1, latency_sigma=0.5, seed=140),
    _cap(24, together(rumour()), _BURSTS, "rumour, equally long answers", latency_sigma=0.0, seed=150),
    _per_second(28, flood(2000), "2,000 at once", 70, seed=160),
    _per_second(22, together(rounds(15, 60)), "no Retry-After, 15 rounds of 60", 30, headers="none", seed=170),
    _per_second(28, together(rumour()), "OpenAI's headers, rumour", 70, headers="openai", seed=180),
    _tokens_per_second(18_000, 2000, 1.5, latency_seconds=0.6, seed=190),
    Setting(
        name="cap 72, then 18, then 72, 20 rounds of 120",
        times=1.08,
        provider=_hidden(**_falling(72, 18, 72, (900, 1500)), latency_seconds=0.55, seed=200),
        load=together(rounds(20, 120)),
    ),
    _queue(6, together(rounds(8, 25, worlds=2)), "8 rounds of 25 on two worlds", latency_seconds=1.2, seed=210),
    _queue(16, together(rounds(8, 100)), "8 rounds of 100, equally long", latency_sigma=0.0, seed=220),
    _knee(40, together(rounds(10, 120)), "10 rounds of 120", latency_seconds=0.8, seed=230),
    _knee(50, together(rounds(10, 130)), "10 rounds of 130", latency_seconds=0.6, seed=490),
    Setting(
        name="cap 48, 4 % refused at random, 2,500 at once",
        provider=_hidden(cap=48, limits=0.04, seed=500),
        load=flood(2500),
    ),
)

#: What it is judged on: nothing was chosen by how these went. Whoever chooses by them moves them to those above.
JUDGED = (
    _cap(29, together(rounds(10, 70)), _BURSTS, "10 rounds of 70", latency_seconds=0.55, seed=400),
    _cap(
        13, together(rounds(12, 35, worlds=2)), _BURSTS, "12 rounds of 35, two worlds", jitter_seconds=0.008, seed=410
    ),
    _cap(90, together(rounds(10, 130)), _BURSTS, "10 rounds of 130", latency_seconds=0.9, latency_sigma=0.5, seed=420),
    _cap(37, flood(1200), _FLOOD, "1,200 at once", latency_seconds=0.8, seed=430),
    _per_second(19, flood(1500), "1,500 at once", 50, seed=440),
    _per_second(26, together(rounds(12, 70)), "12 rounds of 70", 45, seed=450),
    _tokens_per_second(40_000, 2000, 1.2, latency_seconds=0.5, seed=460),
    _queue(5, together(rounds(8, 22)), "8 rounds of 22", latency_seconds=0.9, seed=470),
    _queue(20, flood(900), "900 at once", latency_seconds=0.7, seed=480),
)

#: What no goal is about.
OTHER = (
    Setting(name="no limit, 10 rounds of 150", provider=_hidden(seed=300), load=together(rounds(10, 150))),
    Setting(
        name="cap 64, 5 % refused at random, 3,000 at once", provider=_hidden(cap=64, limits=0.05), load=flood(3000)
    ),
    Setting(name="5 % refused at random, rumour", provider=_hidden(limits=0.05), load=together(rumour())),
    _per_second(30, together(rounds(15, 60)), "15 rounds of 60"),
    Setting(
        name="300 requests in each 20 s, 1,500 at once",
        provider=_hidden(requests_per_minute=900, window_seconds=20),
        load=flood(1500),
    ),
    Setting(
        name="cap 64, out of order for 20 s, 2,000 at once",
        provider=_hidden(cap=64, outages=(PlannedOutage(5, 20),), seed=330),
        load=flood(2000),
    ),
)

#: What takes long as it is in `GOALS`, with shorter answers or fewer calls.
_SHORTER = (
    *(_cap(cap, flood(1000), (1.05, 0.015), "1,000 at once", **_QUICK) for cap in (5, 7, 8)),
    _cap(24, flood(2000), _FLOOD, "2,000 short calls at once", **_QUICK),
    _per_second(15, flood(1000), "1,000 at once"),
    _queue(4, together(rounds(1, 20, worlds=2)), "a round of 40, 3 s answers", latency_seconds=3.0),
)
_LONG = (
    "ways of 10 ms more or less",
    *(f"cap {cap}, 2,000 at once" for cap in (5, 7, 8, 24)),
    "15 requests/s, ",
    "3 s answers",
)
#: What is measured in real time: a minute or two for each, with everything. Ways are those of the machine.
REAL = tuple(
    replace(
        each,
        name=each.name.replace(", ways of 10 ms", ""),
        jitter_seconds=0.0,
        sweep=each.sweep[1:4] if each.provider.knee else each.sweep[1:3],
    )
    for each in (*(each for each in GOALS if not any(text in each.name for text in _LONG)), *_SHORTER)
)
SETS: Mapping[str, Sequence[Setting]] = {
    "goals": GOALS,
    "seen": SEEN,
    "judged": JUDGED,
    "other": OTHER,
    "real": REAL,
}


# measuring


@dataclass(frozen=True, slots=True)
class Score:
    """Seconds against those of the oracle, calls wasted of those needed, and the most in flight."""

    times: float
    wasted: float
    peak: int
    #: Whether an attempt took so long that a run would have given it up.
    was_cut: bool = False

    def holds(self, setting: Setting) -> bool:
        return (
            (setting.times is None or self.times <= setting.times)
            and (setting.wasted is None or self.wasted <= setting.wasted)
            and (setting.most_in_flight is None or self.peak <= setting.most_in_flight)
            and not self.was_cut
        )


@dataclass(slots=True)
class Scores:
    """Those of several seeds, cold and warm."""

    cold: list[Score] = field(default_factory=list)
    warm: list[Score] = field(default_factory=list)
    #: What no client that knows nothing can be better than, as time / oracle, where that is known.
    floors: list[float] = field(default_factory=list)


def _drive(setting: Setting, seed: int, make_sender: Callable[[Provider], Sender]) -> Drive:
    provider = Provider(replace(setting.provider, seed=setting.provider.seed + 1000 * seed))
    return drive(provider, make_sender(provider), setting.load, seed, jitter_seconds=setting.jitter_seconds)


def find_oracle(setting: Setting, seed: int) -> tuple[float, int | None]:
    """Return the seconds of the best that is known, and the fixed number that gave them, if it was one."""
    best: int | None = None
    least = _drive(setting, seed, lambda provider: Alone(KnownLimits(provider))).seconds
    for size in setting.sweep:
        sender = Keeping(Semaphore(size))
        if (seconds := _drive(setting, seed, lambda provider, sender=sender: sender).seconds) < least:  # type: ignore[misc]
            best, least = size, seconds
    return least, best


def learn(setting: Setting, seed: int, learned: Learned | None = None) -> tuple[Drive, Learned | None]:
    """Run with a limit that knows nothing, or this; return how it went, and what it knows then."""
    control = Adaptive(learned)
    sender = Learning(control) if setting.load.processes == 1 else Together(control)
    return _drive(setting, seed, lambda provider: sender), control.get_learned()


def _score(setting: Setting, went: Drive, oracle: float) -> Score:
    wasted = went.sends / setting.load.calls - 1
    return Score(went.seconds / oracle, wasted, went.peak, went.longest_seconds > ATTEMPT_SECONDS)


def measure(setting: Setting, seeds: int = SEEDS) -> Scores:
    found = Scores()
    for seed in range(seeds):
        oracle, _ = find_oracle(setting, seed)
        if setting.has_floor:
            floor = _drive(setting, seed, lambda provider: Alone(ProvenLimits(provider, START, BEYOND)))
            found.floors.append(floor.seconds / oracle)
        cold, learned = learn(setting, seed)
        found.cold.append(_score(setting, cold, oracle))
        found.warm.append(_score(setting, learn(setting, seed, learned)[0], oracle))
    return found


def measure_all(settings: Sequence[Setting]) -> Iterator[tuple[Setting, Scores]]:
    with ProcessPoolExecutor() as workers:
        yield from zip(settings, workers.map(measure, settings), strict=True)


# rivals


def _make_fixed(size: int) -> Callable[[int], Sender]:
    return lambda processes: Apart([Keeping(Semaphore(size)) for _ in range(processes)])


RIVALS: Mapping[str, Callable[[int], Sender]] = {
    **{f"fixed {size}": _make_fixed(size) for size in (4, 16, 64, 256)},
    "guide's loop": lambda processes: Apart([Alone(Batches(256)) for _ in range(processes)]),
    "Inspect": lambda processes: Apart([Keeping(Inspect()) for _ in range(processes)]),
    "AIMD": lambda processes: Apart([Alone(Aimd()) for _ in range(processes)]),
}


def compare(setting: Setting, rival: str, seeds: int = 3) -> list[Score]:
    processes, found = setting.load.processes, []
    for seed in range(seeds):
        went = _drive(setting, seed, lambda provider: RIVALS[rival](processes))
        found.append(_score(setting, went, find_oracle(setting, seed)[0]))
    return found


# printing


def _average(scores: Sequence[Score]) -> tuple[float, float]:
    return statistics.mean(each.times for each in scores), statistics.mean(each.wasted for each in scores)


def describe_goal(setting: Setting) -> str:
    goals = [f"{setting.times:g}" if setting.times else "", f"{setting.wasted:.1%}" if setting.wasted else ""]
    goals.append(f"{setting.most_in_flight:g} in flight" if setting.most_in_flight else "")
    return ", ".join(each for each in goals if each)


def describe(setting: Setting, scores: Sequence[Score]) -> str:
    times, wasted = [each.times for each in scores], [each.wasted for each in scores]
    said = f"{statistics.mean(times):.2f}" + (f" ({max(times):.2f})" if len(times) > 1 else "")
    if max(wasted) > 0:
        said += f", {statistics.mean(wasted):.1%}"
    if setting.most_in_flight is not None:
        said += f", {max(each.peak for each in scores)} in flight"
    return said + (", CUT" if any(each.was_cut for each in scores) else "")


def _describe_floor(found: Scores) -> str:
    return f"{statistics.mean(found.floors):.2f}" if found.floors else ""


def print_pages(names: Sequence[str]) -> None:
    for name in names:
        print(f"| {name} | calls | cold | second run | goal | floor of cold |\n|---|---:|---:|---:|---:|---:|")
        for setting, found in measure_all(SETS[name]):
            cells = (describe(setting, found.cold), describe(setting, found.warm), describe_goal(setting))
            print(
                f"| {setting.name} | {setting.load.calls:,} | {' | '.join(cells)} | {_describe_floor(found)} |",
                flush=True,
            )
        print()


def print_rivals(names: Sequence[str]) -> None:
    for name in names:
        print("| " + " | ".join([name, *RIVALS]) + " |\n|---|" + "---:|" * len(RIVALS))
        cells = list(product(SETS[name], RIVALS))
        with ProcessPoolExecutor() as workers:
            row: list[str] = []
            found = workers.map(compare, *zip(*cells, strict=True))
            for (setting, _), scores in zip(cells, found, strict=True):
                times, wasted = _average(scores)
                row.append(f"{times:.2f}" + (f", {wasted:.0%}" if wasted >= 0.005 else ""))
                if len(row) == len(RIVALS):
                    print("| " + " | ".join([setting.name, *row]) + " |", flush=True)
                    row.clear()
        print()


def print_scores(names: Sequence[str]) -> None:
    for name in names:
        print(f"\n{name.upper():52} {'cold: mean (worst), wasted':32} {'second run':32} {'goal':18} floor of cold")
        for setting, found in measure_all(SETS[name]):
            cells = (describe(setting, found.cold), describe(setting, found.warm), describe_goal(setting))
            print(f"{setting.name:52} {cells[0]:32} {cells[1]:32} {cells[2]:18} {_describe_floor(found)}", flush=True)


def limits(folder: Path) -> Iterator[Bar]:
    """What a limit gets that learns, in virtual time: the mean of the seeds against each goal."""
    for setting, found in measure_all(GOALS):
        yield from make_bars(setting, found, "virtual time")


def make_bars(setting: Setting, found: Scores, how: str) -> Iterator[Bar]:
    for state, scores in (("cold", found.cold), ("second run", found.warm)):
        title = f"{setting.name}, {state}"
        times, wasted = _average(scores)
        if setting.times is not None:
            is_bounded = found.floors and scores is found.cold
            floor = f"; no client that knows nothing gets below {_describe_floor(found)}" if is_bounded else ""
            yield Bar(f"{title}: time / oracle", times, "x", setting.times, False, f"{how}{floor}")
        if setting.wasted:
            yield Bar(f"{title}: wasted", wasted * 100, "%", setting.wasted * 100, False, how)
        if setting.most_in_flight is not None:
            yield Bar(f"{title}: in flight", max(s.peak for s in scores), "", setting.most_in_flight, False, how)


def main(arguments: Sequence[str]) -> int:
    printers = {"pages": print_pages, "rivals": print_rivals}
    first = arguments[0] if arguments else ""
    names = arguments[1:] if first in printers else arguments
    printers.get(first, print_scores)(names or list(SETS))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
