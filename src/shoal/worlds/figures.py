"""Figures that worlds measure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def measure_inequality(shares: Sequence[float] | NDArray[np.integer] | NDArray[np.floating]) -> float:
    """Return the Gini coefficient: 0 where all have the same, near 1 where one has everything, 0 where none has any."""
    ordered = np.sort(np.asarray(shares, np.float64))
    total = ordered.sum()
    if not total:
        return 0.0
    ranks = np.arange(1, len(ordered) + 1)
    return float((2 * (ranks * ordered).sum() / total - (len(ordered) + 1)) / len(ordered))
