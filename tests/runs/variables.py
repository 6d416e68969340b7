"""Figures of the user's own, for tests."""

from __future__ import annotations

import shoal
from shoal.engine import PopulationState


@shoal.variable
def believers(state: PopulationState) -> float:
    """Return the share of people who rather believe that the bridge closes."""
    return float((state.opinions["closing"] > 0).mean())


@shoal.variable
def broken(state: PopulationState) -> float:
    return float(state.opinions["nothing"].mean())
