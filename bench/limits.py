"""What an adaptive limit gets out of a provider whose limits it does not know, against a client that knows them all.

python -m bench.limits [NAME ...]       ours and others, in virtual time, on settings it was tuned on, and on others
python -m bench.limits pages [NAME ...] the same as tables for docs/design/adaptive-limits.md
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from math import cos, exp, log, pi, sqrt

from bench.providers import Provider, oracle_seconds
from bench.rivals import MOST, Aimd, Batches, Inspect, Semaphore, as_written
from bench.virtual import Alone, Apart, Call, Keeping, Sender, Together, drive
from shoal.rehearsal.settings import PlannedOutage, RehearsalSettings, SettingChange
from shoal.seeds import Draws, derive
from shoal.slots.adaptive.limiter import Adaptive

SEEDS = (0, 1, 2)
#: How many items the guide's loop is given as it is written, with which it runs 916.
ITS_ITEMS = 240
EVEN_TOKENS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Calls to a provider, and what may be expected."""

    name: str
    provider: RehearsalSettings
    calls: int = 2000
    processes: int = 1
    #: Whether calls differ in size.
    uneven: bool = False
    #: By how much each way to the provider and back takes longer, on average: so that calls overtake one another.
    jitter_seconds: float = 0.0
    #: Seconds against those of a client that knows the limits, calls wasted of those needed, and the least share: bars.
    times: float | None = None
    wasted: float | None = None
    least_share: float | None = None

    def tokens(self) -> list[int]:
        return [uneven_tokens(each) if self.uneven else EVEN_TOKENS for each in range(self.calls)]


def uneven_tokens(call_id: int) -> int:
    """About 650 on average, and often several times as many."""
    draws = Draws(derive(77, call_id, "tokens"))
    normal = sqrt(-2 * log(1 - draws.random())) * cos(2 * pi * draws.random())
    return int(300 * exp(0.9 * normal)) + 200


def _hidden(**settings: object) -> RehearsalSettings:
    """Answers in 0.4 s or so, refuses within 20 ms, and says only when to come back."""
    usual = {"latency_seconds": 0.4, "latency_sigma": 0.6, "refusal_seconds": 0.02, "labelled": False}
    return RehearsalSettings(**{"headers": "retry-after", **usual, **settings})  # type: ignore[arg-type]


def _falling(first: int, then: int, last: int, after: tuple[int, int]) -> dict[str, object]:
    changes = (SettingChange("cap", then, after_answers=after[0]), SettingChange("cap", last, after_answers=after[1]))
    return {"cap": first, "changes": changes}


def _per_second(requests: float, burst: float) -> dict[str, object]:
    return {"requests_per_minute": 60 * requests, "burst_seconds": burst / requests}


def _tokens_per_second(tokens: float, burst_seconds: float) -> dict[str, object]:
    return {"tokens_per_minute": 60 * tokens, "burst_seconds": burst_seconds}


#: What it was tuned on: the settings that the bars were written for.
TUNED = (
    Setting(name="cap 64", times=1.08, wasted=0.005, provider=_hidden(cap=64)),
    Setting(name="40 requests/s", times=1.05, wasted=0.01, provider=_hidden(**_per_second(40, 40))),
    Setting(
        name="40 requests/s, with headers",
        times=1.05,
        wasted=0.002,
        provider=_hidden(**_per_second(40, 40), headers="openai"),
    ),
    Setting(
        name="26,000 tokens/s, uneven prompts",
        times=1.10,
        wasted=0.01,
        uneven=True,
        provider=_hidden(**_tokens_per_second(26_000, 1)),
    ),
    Setting(
        name="cap 96, then 24, then 96", times=1.12, wasted=0.02, provider=_hidden(**_falling(96, 24, 96, (800, 1400)))
    ),
    Setting(name="cap 24, slow calls", times=1.06, calls=800, provider=_hidden(cap=24, latency_seconds=1.6)),
    Setting(name="four processes, cap 64", times=1.12, least_share=0.9, processes=4, provider=_hidden(cap=64)),
)

#: What it is judged on: nothing was chosen by how these went.
JUDGED = (
    Setting(
        name="cap 41",
        times=1.08,
        wasted=0.005,
        provider=_hidden(cap=41, latency_seconds=0.7, latency_sigma=0.7, refusal_seconds=0.035, seed=100),
    ),
    Setting(
        name="cap 110",
        times=1.08,
        wasted=0.005,
        calls=4000,
        provider=_hidden(cap=110, latency_seconds=1.1, latency_sigma=0.4, refusal_seconds=0.08, seed=110),
    ),
    Setting(
        name="28 requests/s",
        times=1.05,
        wasted=0.01,
        provider=_hidden(**_per_second(28, 70), latency_seconds=0.9, latency_sigma=0.5, seed=120),
    ),
    Setting(
        name="75 requests/s, no Retry-After",
        times=1.05,
        wasted=0.01,
        calls=3000,
        provider=_hidden(**_per_second(75, 60), headers="none", latency_sigma=0.8, seed=130),
    ),
    Setting(
        name="28 requests/s, OpenAI's headers",
        times=1.05,
        wasted=0.002,
        provider=_hidden(**_per_second(28, 70), headers="openai", latency_seconds=0.9, seed=140),
    ),
    Setting(
        name="55 requests/s, Anthropic's headers",
        times=1.05,
        wasted=0.002,
        provider=_hidden(**_per_second(55, 30), headers="anthropic", latency_seconds=0.6, seed=150),
    ),
    Setting(
        name="18,000 tokens/s",
        times=1.10,
        wasted=0.01,
        uneven=True,
        provider=_hidden(**_tokens_per_second(18_000, 1.5), latency_seconds=0.6, latency_sigma=0.7, seed=160),
    ),
    Setting(
        name="34,000 tokens/s, refusals that say so",
        times=1.10,
        wasted=0.01,
        uneven=True,
        provider=_hidden(**_tokens_per_second(34_000, 0.8), labelled=True, latency_seconds=0.5, seed=170),
    ),
    Setting(
        name="cap 72, then 18, then 72",
        times=1.12,
        wasted=0.02,
        provider=_hidden(**_falling(72, 18, 72, (700, 1150)), latency_seconds=0.55, seed=180),
    ),
    Setting(
        name="cap 130, then 45, then 100",
        times=1.12,
        wasted=0.02,
        calls=3000,
        provider=_hidden(**_falling(130, 45, 100, (1100, 1900)), latency_seconds=0.8, latency_sigma=0.7, seed=190),
    ),
    Setting(
        name="cap 19, slow calls",
        times=1.06,
        calls=700,
        provider=_hidden(cap=19, latency_seconds=2.1, latency_sigma=0.5, seed=200),
    ),
    Setting(
        name="four processes, cap 50",
        times=1.12,
        least_share=0.9,
        processes=4,
        provider=_hidden(cap=50, latency_seconds=0.6, latency_sigma=0.7, seed=210),
    ),
)

#: What no bar is about: looked at while it was made, like the tuned ones.
OTHER = (
    Setting(name="cap 64, ways of 5 ms more or less", jitter_seconds=0.005, provider=_hidden(cap=64, seed=340)),
    Setting(
        name="40 requests/s, ways of 5 ms more or less",
        jitter_seconds=0.005,
        provider=_hidden(**_per_second(40, 40), seed=350),
    ),
    Setting(
        name="cap 96, 24, 96, ways of 5 ms more or less",
        jitter_seconds=0.005,
        provider=_hidden(**_falling(96, 24, 96, (800, 1400)), seed=360),
    ),
    Setting(name="no limit", calls=5000, provider=_hidden(seed=300)),
    Setting(name="slower above 48", calls=3000, provider=_hidden(knee=48, seed=310)),
    Setting(name="300 requests in each 20 s", calls=1500, provider=_hidden(requests_per_minute=900, window_seconds=20)),
    Setting(name="cap 64, out of order for 20 s", provider=_hidden(cap=64, outages=(PlannedOutage(5, 20),), seed=330)),
)
SETS: Mapping[str, Sequence[Setting]] = {"tuned": TUNED, "judged": JUDGED, "other": OTHER}


# who sends


def _fixed(size: int) -> Callable[[int], Sender]:
    return lambda processes: Apart([Keeping(Semaphore(size)) for _ in range(processes)])


def _batches(most: int) -> Callable[[int], Sender]:
    return lambda processes: Apart([Alone(Batches(most)) for _ in range(processes)])


def _inspect(processes: int) -> Sender:
    return Apart([Keeping(Inspect()) for _ in range(processes)])


def _aimd(processes: int) -> Sender:
    return Apart([Alone(Aimd()) for _ in range(processes)])


def _ours(processes: int) -> Sender:
    return Alone(Adaptive()) if processes == 1 else Together(Adaptive())


OURS, AS_WRITTEN = "Shoal", "guide's loop, as written"
STRATEGIES: Mapping[str, Callable[[int], Sender]] = {
    **{f"fixed {size}": _fixed(size) for size in (4, 16, 64, 256)},
    AS_WRITTEN: _batches(MOST),
    **{f"guide's loop, meant, up to {most}": _batches(most) for most in (16, 256)},
    "Inspect": _inspect,
    "AIMD": _aimd,
    OURS: _ours,
}


# measuring


@dataclass(frozen=True, slots=True)
class Score:
    """Seconds against those of a client that knows the limits, calls wasted of those needed, and the least share."""

    times: float
    wasted: float
    least_share: float

    def holds(self, setting: Setting) -> bool:
        return (
            (setting.times is None or self.times <= setting.times)
            and (setting.wasted is None or self.wasted <= setting.wasted)
            and (setting.least_share is None or self.least_share >= setting.least_share)
        )


def calls_of(setting: Setting, strategy: str) -> list[Call]:
    tokens = setting.tokens()
    ids = as_written(len(tokens)) if strategy == AS_WRITTEN else range(len(tokens))
    return [Call(each, tokens[each], each % setting.processes) for each in ids]


def score(setting: Setting, strategy: str, seed: int) -> Score:
    if strategy == AS_WRITTEN:
        setting = replace(setting, calls=ITS_ITEMS)
    chosen = replace(setting.provider, seed=setting.provider.seed + seed)
    sender, calls = STRATEGIES[strategy](setting.processes), calls_of(setting, strategy)
    went = drive(Provider(chosen), sender, calls, seed, jitter_seconds=setting.jitter_seconds)
    ideal = oracle_seconds(Provider(chosen), setting.tokens())
    return Score(went.seconds / ideal, went.sends / setting.calls - 1, went.least_share)


def scores(settings: Sequence[Setting], strategies: Sequence[str]) -> Iterator[tuple[Setting, str, list[Score]]]:
    """Each strategy on each setting, with each seed, on all processors."""
    cells = list(product(settings, strategies))
    with ProcessPoolExecutor() as workers:
        found = workers.map(_scored, *zip(*cells, strict=True), chunksize=1)
        for (setting, strategy), each in zip(cells, found, strict=True):
            yield setting, strategy, each


def _scored(setting: Setting, strategy: str) -> list[Score]:
    return [score(setting, strategy, seed) for seed in SEEDS]


def _line(setting: Setting, strategy: str, found: Sequence[Score]) -> str:
    times, wasted = [each.times for each in found], [each.wasted * 100 for each in found]
    told = f"  {strategy:32} {statistics.mean(times):7.2f} {max(times):7.2f}   "
    told += f"{statistics.mean(wasted):7.2f} {max(wasted):7.2f}"
    if setting.processes > 1:
        told += f"   least share {min(each.least_share for each in found):.2f}"
    if strategy == OURS and setting.times is not None:
        told += f"   {'holds' if all(each.holds(setting) for each in found) else 'MISSED'}"
    return told


def _title(setting: Setting) -> str:
    bars = [f"{setting.times:g} x" if setting.times else "", f"{setting.wasted:.1%}" if setting.wasted else ""]
    bars.append(f"least share {setting.least_share:g}" if setting.least_share else "")
    told = ", ".join(each for each in bars if each)
    return f"{setting.name}: {setting.calls:,} calls" + (f"; at most {told}" if told else "")


def _table(name: str) -> Iterator[str]:
    """A row for each setting, a column for each strategy: mean of the seeds, and what was wasted."""
    yield "| " + " | ".join([name, "calls", *STRATEGIES]) + " |"
    yield "|---|---:|" + "---:|" * len(STRATEGIES)
    row: list[str] = []
    for setting, strategy, found in scores(SETS[name], tuple(STRATEGIES)):
        times, wasted = (statistics.mean(getattr(each, what) for each in found) for what in ("times", "wasted"))
        cell = f"{times:.2f}" + (f", {wasted:.1%}" if wasted else "")
        row.append(f"**{cell}**" if strategy == OURS else cell)
        if len(row) == len(STRATEGIES):
            yield "| " + " | ".join([setting.name, f"{setting.calls:,}", *row]) + " |"
            row.clear()


def pages(names: Sequence[str]) -> int:
    for name in names or SETS:
        print("\n".join(_table(name)), flush=True)
    return 0


def main(names: Sequence[str]) -> int:
    if names and names[0] == "pages":
        return pages(names[1:])
    for name in names or SETS:
        print(f"\n{name.upper()}{'':31} x mean   worst    wasted % mean   worst")
        before = None
        for setting, strategy, found in scores(SETS[name], tuple(STRATEGIES)):
            if setting is not before:
                print(_title(setting))
                before = setting
            print(_line(setting, strategy, found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
