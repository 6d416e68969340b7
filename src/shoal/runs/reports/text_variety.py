"""Measures by their meaning how much the texts of a run vary, and how often the same is said again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.models.local import WordTable, compare_texts
from shoal.runs.directory import RunDirectory
from shoal.runs.stream import is_own
from shoal.types import Action
from shoal.worlds import find_written

#: Texts that are compared with one another, the first of a run.
MAX_COMPARED = 2000
#: Texts that are so much alike say the same, in the same or in other words.
SAME_FROM = 0.95


@dataclass(frozen=True, slots=True)
class TextVariety:
    """How much the texts of a run vary."""

    texts: int
    #: 0: all texts say the same; near 1: they have nothing in common.
    diversity: float
    #: The share of texts that say what an earlier text said.
    repetition: float


def measure_variety(directory: RunDirectory, table: WordTable) -> TextVariety | None:
    """Compare the texts that people wrote or said; None where there are fewer than two."""
    texts: list[str] = []
    for world in directory.worlds:
        for event in filter(is_own, directory.open_stream(world).read_actions()):
            text = find_written(Action("", event.action_args)) if event.success else None
            if text and len(texts) < MAX_COMPARED:
                texts.append(text)
    if len(texts) < 2:
        return None
    alike = compare_texts(*[table.embed(texts)] * 2)
    earlier = np.tril(alike, k=-1)
    diversity = 1 - float(earlier.sum()) / (len(texts) * (len(texts) - 1) / 2)
    repeated = int((earlier >= SAME_FROM).any(axis=1).sum())
    return TextVariety(len(texts), round(diversity, 3), round(repeated / len(texts), 3))
