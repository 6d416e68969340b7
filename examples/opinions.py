"""Opinion dynamics, as a check on ourselves: bounded confidence must do here what it does in the literature.

A thousand people with opinions all over the scale say what they think in every round. With a wide confidence they end
in consensus, with a narrow one in separate camps. Two models: people who meet in pairs (Deffuant and others), and
people who all hear one another and take the average (Hegselmann and Krause). See docs/design/opinion-dynamics.md.

    python -m examples.opinions docs/opinions.svg    draws four trials
    python -m examples.opinions                      counts the camps over a range of confidences, three seeds each
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.runs.operations import create_run
from shoal.runs.worker import work_on_run
from shoal.scenario.loading import validate

PEOPLE = 1_000
#: Opinions this near to one another belong to one camp.
GAP = 0.02
#: Camps of at most this part of the people are stragglers.
STRAGGLERS = 0.05

MODELS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Deffuant": ({"hearing": "pairs"}, {"influence_rule": "pull", "persuasion": 0.5}),
    "Hegselmann-Krause": ({"hearing": "everyone"}, {"influence_rule": "average"}),
}


@dataclass(frozen=True)
class Trial:
    """A model and how far opinions may lie apart to persuade, on our scale from -1 to 1 (twice the literature's)."""

    model: str
    confidence: float
    rounds: int
    people: int = PEOPLE
    seed: int = 1

    def scenario(self) -> dict[str, Any]:
        room, rule = MODELS[self.model]
        return {
            "topic": "the old bridge",
            "seed": self.seed,
            "rounds": self.rounds,
            "population": {"count": self.people, "stance": {"uniform": [-1, 1]}},
            "follows": "none",
            "worlds": {"room": {"kind": "room", **room}},
            # Everybody says what they think in every round, and listens to all of it.
            "mind": {"confidence": self.confidence, "outspoken": True, "attention": self.people, **rule},
        }


SHOWN = (
    Trial("Deffuant", 1.2, rounds=20),
    Trial("Deffuant", 0.4, rounds=60),
    Trial("Hegselmann-Krause", 0.6, rounds=12),
    Trial("Hegselmann-Krause", 0.3, rounds=12),
)

SWEEP = (
    # The narrower the confidence, the more meetings come to nothing, and the longer it takes.
    *(
        Trial("Deffuant", confidence, rounds=round(30 / confidence))
        for confidence in (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2)
    ),
    *(Trial("Hegselmann-Krause", confidence, rounds=30) for confidence in (0.2, 0.3, 0.4, 0.44, 0.48, 0.52, 0.6)),
)


def live(trial: Trial, folder: Path) -> NDArray[np.float64]:
    """Run it; returns what everybody said they think, a row per round."""
    directory = create_run(validate(trial.scenario()), folder)
    asyncio.run(work_on_run(directory, asyncio.Event()))
    with closing(sqlite3.connect(directory.file("room_simulation.db"))) as database:
        rows = database.execute("SELECT opinion FROM utterance ORDER BY created_at, user_id").fetchall()
    return np.array(rows).reshape(trial.rounds, trial.people)


def camps(opinions: NDArray[np.float64]) -> list[float]:
    """Where people have gathered: the middle of each camp, without the stragglers."""
    ordered = np.sort(opinions)
    parts = np.split(ordered, np.flatnonzero(np.diff(ordered) > GAP) + 1)
    return [round(float(part.mean()), 2) for part in parts if len(part) > STRAGGLERS * len(ordered)]


# Drawing

WIDTH, HEIGHT, MARGIN = 360, 200, 40
#: Room for the histogram of the last round.
HISTOGRAM, BINS = 50, 40
LINES = 80


def plot(histories: Sequence[tuple[Trial, NDArray[np.float64]]]) -> str:
    """Panels, two in a row: how a sample of people moved, and where everybody ended."""
    panels = [
        f'<g transform="translate({n % 2 * (WIDTH + MARGIN) + MARGIN},{n // 2 * (HEIGHT + 60) + 35})">\n'
        f"{_panel(trial, history)}</g>\n"
        for n, (trial, history) in enumerate(histories)
    ]
    width, height = 2 * (WIDTH + MARGIN) + MARGIN, (len(panels) + 1) // 2 * (HEIGHT + 60) + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="11" fill="#333">\n<rect width="{width}" height="{height}" fill="#fff"/>\n{"".join(panels)}</svg>\n'
    )


def _panel(trial: Trial, history: NDArray[np.float64]) -> str:
    found = len(camps(history[-1]))
    title = f"{trial.model}, confidence {trial.confidence:g}: {'consensus' if found == 1 else f'{found} camps'}"
    labels = [f'<text x="-6" y="{_height(value) + 4:g}" text-anchor="end">{value:g}</text>' for value in (-1, 0, 1)]
    axis = f'<text x="0" y="{HEIGHT + 16}">round 1</text>'
    axis += f'<text x="{WIDTH - HISTOGRAM}" y="{HEIGHT + 16}" text-anchor="end">round {trial.rounds}</text>'
    return "\n".join([f'<text y="-10" font-size="13">{title}</text>', *labels, axis, *_paths(history), *_bars(history)])


def _paths(history: NDArray[np.float64]) -> list[str]:
    across = np.linspace(0, WIDTH - HISTOGRAM - 6, len(history))
    order = np.argsort(history[0])
    people = order[np.linspace(0, len(order) - 1, LINES).astype(int)]
    return [
        f'<path fill="none" stroke="hsl({220 + 140 * (history[0, one] + 1) / 2:.0f},60%,50%)" stroke-opacity=".5" d="M'
        + " ".join(f"{x:.0f},{_height(y):.1f}" for x, y in zip(across, history[:, one], strict=True))
        + '"/>'
        for one in people.tolist()
    ]


def _bars(history: NDArray[np.float64]) -> list[str]:
    counts, edges = np.histogram(history[-1], bins=BINS, range=(-1, 1))
    thick = HEIGHT / BINS
    return [
        f'<rect x="{WIDTH - HISTOGRAM}" y="{_height(edge) - thick:.1f}" width="{HISTOGRAM * count / counts.max():.1f}" '
        f'height="{thick - 1:g}" fill="#667"/>'
        for count, edge in zip(counts.tolist(), edges.tolist(), strict=False)
        if count
    ]


def _height(opinion: float) -> float:
    return HEIGHT * (1 - opinion) / 2


def draw(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        histories = [(trial, live(trial, Path(folder) / str(n))) for n, trial in enumerate(SHOWN)]
    target.write_text(plot(histories))


def count() -> None:
    for trial in SWEEP:
        with tempfile.TemporaryDirectory() as folder:
            trials = [replace(trial, seed=seed) for seed in (1, 2, 3)]
            found = [len(camps(live(one, Path(folder) / str(one.seed))[-1])) for one in trials]
        sys.stdout.write(f"{trial.model}, confidence {trial.confidence:g}: {found} camps\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]))
    else:
        count()
