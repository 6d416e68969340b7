"""A rumour with and without a fact-check, over many seeds: python examples/misinformation.py [SEEDS]."""

import sys
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

import shoal
from shoal.experiments.statistics.student import find_t
from shoal.scenario import load

SCENARIO = load(Path(__file__).with_name("misinformation.yaml"))
ARMS = {"fact-check": SCENARIO, "no answer": SCENARIO.model_copy(update={"interventions": ()})}
FIGURES = {"belief": ("mean", "closing"), "reach": ("reach", "closing"), "inequality": ("inequality", "")}


def measure(arm: str, seed: int) -> dict[str, float]:
    """Run one arm with one seed, and return its figures at the end."""
    scenario = ARMS[arm].model_copy(update={"seed": seed})
    run = shoal.run(scenario, out=f"runs/{arm.replace(' ', '-')}-{seed}", quiet=True)
    found = {(each.name, each.about): each.last for each in run.summary().worlds[0].outcomes}
    return {name: found[figure] for name, figure in FIGURES.items()}


def describe(values: list[float]) -> str:
    """Return the mean with its 95 % interval. A run is one observation, however many people are in it."""
    half = find_t(0.05, len(values) - 1) * stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{fmean(values):.3f} ± {half:.3f}"


def main(seeds: int) -> None:
    print("arm".ljust(12), *(name.rjust(16) for name in FIGURES))
    ends = {arm: [measure(arm, seed) for seed in range(1, seeds + 1)] for arm in ARMS}
    for arm, found in ends.items():
        print(arm.ljust(12), *(describe([end[name] for end in found]).rjust(16) for name in FIGURES))
    pairs = zip(ends["fact-check"], ends["no answer"], strict=True)
    effect = [one["belief"] - other["belief"] for one, other in pairs]
    print(f"\nthe fact-check changes the mean belief by {describe(effect)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
