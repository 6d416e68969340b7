"""What an adaptive limit gets in real time: real sockets, processes and clocks, against the best fixed number.

python -m bench.real [TEXT ...]     the settings whose names contain one of these texts, each as soon as it is measured

The load of a setting is sent to a server of its own: with each fixed number of a sweep, then with a limit that knows
nothing, then with what was learned. At a rate the oracle is that of virtual time, as no fixed number is any good.
`scripts/bench limits --real [--only TEXT ...]` does the same, and keeps the figures.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.bars import Bar
from bench.limits import GOALS, REAL, Score, Scores, Setting, describe, describe_goal, find_oracle, make_bars
from bench.rehearsed import MODEL, Server, rehearsing
from bench.sending import Sent, send_all, take_sent
from shoal.rehearsal.settings import RehearsalSettings

#: So many settings are measured at the same time: they mostly wait for answers.
SIDE_BY_SIDE = 3
#: The example as a whole, from the command line.
RUN = replace(GOALS[0], name="cap 24, examples/rumour.yaml for 12 rounds", sweep=(22, 24, 26), times=1.08, wasted=0.01)
ALL = (RUN, *REAL)
ROOT = Path(__file__).parent.parent
SHOAL = str(Path(sys.executable).with_name("shoal"))


@dataclass(frozen=True, slots=True)
class RealScores:
    """What was found about one setting, and which fixed number was best, if any was tried."""

    setting: Setting
    found: Scores
    oracle_seconds: float
    best: int | None

    def __str__(self) -> str:
        cells = [f"{describe(self.setting, scores):30}" for scores in (self.found.cold, self.found.warm)]
        return " ".join([f"{self.setting.name:52}", *cells, f"{describe_goal(self.setting):20}", self.oracle])

    @property
    def oracle(self) -> str:
        return f"oracle {self.oracle_seconds:.1f} s, " + (
            "virtual time" if self.best is None else f"{self.best} at once"
        )


def run_rumour(folder: Path, server: Server, fixed: int | None) -> Sent:
    """Run the example from the command line, as a user does; `--max-workers` is the fixed number."""
    own = {"XDG_STATE_HOME": str(folder), "SHOAL_SLOTS": str(folder / "s"), "OPENAI_API_KEY": "none"}
    more = [] if fixed is None else ["--max-workers", str(fixed)]
    command = [SHOAL, "run", str(ROOT / "examples" / "rumour.yaml"), "--rounds", "12", "--model", MODEL]
    command += ["--no-cache", "--yes", "--quiet", "--out", tempfile.mkdtemp(dir=folder), *more]
    subprocess.run(command, env={**os.environ, **server.environ, **own}, check=True, stdout=subprocess.DEVNULL)
    # Only what was learned must be there for the next run.
    return take_sent(server, folder / "s" if fixed is None else None, None)


def measure(setting: Setting, send: Callable[[int | None], Sent]) -> RealScores:
    """Send with each number of the sweep, cold, and again with what was learned."""
    fixed = {size: send(size) for size in setting.sweep}
    best = min(fixed, key=lambda size: fixed[size].seconds, default=None)
    seconds = find_oracle(setting, 0)[0] if best is None else fixed[best].seconds
    found = Scores()
    for scores in (found.cold, found.warm):
        sent = send(None)
        wasted = sent.requests / sent.answers - 1
        scores.append(Score(sent.seconds / seconds, wasted, sent.peak, sent.abandoned > 0))
    return RealScores(setting, found, seconds, best)


def _measure_in(folder: Path, setting: Setting) -> RealScores:
    folder.mkdir(mode=0o700)
    with rehearsing(**_to_served(setting)) as server:

        def send(fixed: int | None) -> Sent:
            own = folder / ("learned" if fixed is None else f"fixed-{fixed}")
            own.mkdir(mode=0o700, exist_ok=True)
            if setting is RUN:
                return run_rumour(own, server, fixed)
            return send_all(own, setting.load, server, fixed)

        return measure(setting, send)


def _to_served(setting: Setting) -> dict[str, Any]:
    """Return the settings of a server, as far as they were chosen."""
    usual = asdict(RehearsalSettings())
    return {name: value for name, value in asdict(setting.provider).items() if value != usual[name]}


def measure_all(folder: Path, settings: Sequence[Setting]) -> Iterator[RealScores]:
    """Measure some settings side by side, and yield each as soon as it is measured."""
    with ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
        running = [threads.submit(_measure_in, folder / f"{n}", each) for n, each in enumerate(settings)]
        for each in as_completed(running):
            yield each.result()


def choose(texts: Sequence[str]) -> list[Setting]:
    """Return the settings whose names contain one of these texts; all without any."""
    return [each for each in ALL if not texts or any(text in each.name for text in texts)]


def limits(texts: Sequence[str], folder: Path) -> Iterator[Bar]:
    """What a limit gets that learns, in real time, against the best fixed number."""
    for scores in measure_all(folder, choose(texts)):
        print(scores, file=sys.stderr, flush=True)
        named = replace(scores.setting, name=f"real time: {scores.setting.name}")
        yield from make_bars(named, scores.found, scores.oracle)


def main(texts: Sequence[str]) -> int:
    print(f"{'':52} {'cold: time / oracle, wasted':30} {'second run':30} {'goal':20}", flush=True)
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        for scores in measure_all(Path(folder), choose(texts)):
            print(scores, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
