"""Folders of experiments whose results are written by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec

from shoal.experiments import Judgement, RunResult

#: Belief of each arm with some seed, before what the seed brings.
BELIEFS = {"nothing": 0.6, "fact-check": 0.3}
SHIFTS = (0.02, -0.03, 0.05, -0.01, 0.04, -0.05, 0.01, 0.0)


def make_result(tier: str, arm: str, seed: int, **changes: Any) -> RunResult:
    """One run of an arm that a judge passes where belief is low."""
    belief = BELIEFS.get(arm, 0.5) + SHIFTS[seed % len(SHIFTS)] + 0.003 * (seed % 3) * len(arm)
    values: dict[str, Any] = {
        "tier": tier,
        "arm": arm,
        "seed": seed,
        "status": "completed",
        "error": None,
        "cost": 0.4 + 0.01 * (seed % 4),
        "calls": 12,
        "input_tokens": 900,
        "output_tokens": 100,
        "seconds": 2.5,
        "metrics": {"activity": 0.2, "mean(closing)": belief},
        "judgements": (Judgement("believed", belief < 0.35 or seed == 2, belief),),
        "run": f"elsewhere/{tier}/{arm}/{seed}",
        "digest": "abc",
        "command": f"shoal run town.yaml --seed {seed}",
    }
    return RunResult(**{**values, **changes})


def write_results(folder: Path, results: Sequence[RunResult], design: dict[str, Any] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.jsonl").write_bytes(b"".join(msgspec.json.encode(result) + b"\n" for result in results))
    if design is not None:
        (folder / "experiment.json").write_bytes(msgspec.json.encode(design))
    return folder


def make_study(folder: Path, change: Callable[[RunResult], RunResult] = lambda result: result, seeds: int = 8) -> Path:
    """Two arms over some seeds, the first of them the control."""
    results = [make_result("answer", arm, seed) for seed in range(1, seeds + 1) for arm in BELIEFS]
    tiers = [{"name": "answer", "control": "nothing", "arms": {"nothing": {"interventions": []}, "fact-check": {}}}]
    design = {"name": "town", "file": "town.yaml", "outcome": "mean(closing)", "tiers": tiers}
    return write_results(folder, [change(result) for result in results], design)


def read_json(path: Path) -> Any:
    return msgspec.json.decode(path.read_bytes())


class Elements(HTMLParser):
    """The elements of a page, each with its attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def list_values(self, attribute: str) -> list[str]:
        return [attributes[attribute] for _, attributes in self.found if attribute in attributes]

    def collapse(self) -> str:
        return re.sub(r"\s+", " ", self.text)
