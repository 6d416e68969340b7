"""How fast many conversations go on side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.bars import Bar, probe

PAIRS, TURNS = 1_000, 20


def many_pairs() -> dict[str, Any]:
    """A thousand pairs who talk for twenty turns and then say how it went."""
    return {
        "topic": "the old bridge",
        "rounds": TURNS + 1,
        "population": {"count": 2 * PAIRS},
        "worlds": {"dialogue": {"turns": TURNS}},
    }


def dialogues(folder: Path) -> list[Bar]:
    """1,000 pairs of 20 turns, heuristic mind, one process, everything committed."""
    measured = probe(folder / "run", many_pairs())
    talking = [r for r in measured["rounds"] if 1 <= r["round"] <= TURNS]
    turns, seconds = sum(r["steps"] for r in talking), sum(r["wall"] for r in talking)
    told = f"{PAIRS:,} pairs of {TURNS} turns, SQLite and JSONL committed, one process"
    return [Bar("turns of conversation per second", turns / seconds, "/s", 8_000, True, told)]
