"""How opinions move: bounded confidence, in the two forms in which the literature knows it.

What lies within an agent's confidence persuades, what lies further away does not. `pull` is the model of Deffuant and
others: each opinion, one after another, pulls the agent's own a part of the way. `average` is that of Hegselmann and
Krause: the agent takes the mean of all opinions within its confidence, its own included.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import numpy as np

from shoal.agents.settings import HeuristicSettings

#: From so many opinions on, comparing them as an array is faster.
_MANY = 32


def persuade(own: float, heard: Sequence[float], settings: HeuristicSettings) -> float:
    """The agent's opinion after it heard these. A pure function; what is heard is in the order in which it came."""
    if settings.influence_rule == "average":
        return _averaged(own, heard, settings.confidence)
    return _pulled(own, heard, settings.confidence, settings.persuasion)


def weigh_opinions(own: float, heard: Sequence[float], weights: Sequence[float], settings: HeuristicSettings) -> float:
    """The same where some people's opinions count more than others'; the agent's own counts 1."""
    near = settings.confidence
    if settings.influence_rule == "average":
        close = [(opinion, by) for opinion, by in zip(heard, weights, strict=True) if abs(opinion - own) <= near]
        return (own + sum(opinion * by for opinion, by in close)) / (1 + sum(by for _, by in close))
    for opinion, by in zip(heard, weights, strict=True):
        if -near <= opinion - own <= near:
            own += min(settings.persuasion * by, 1.0) * (opinion - own)
    return own


def _pulled(own: float, heard: Sequence[float], confidence: float, persuasion: float) -> float:
    for opinion in heard:
        if -confidence <= opinion - own <= confidence:
            own += persuasion * (opinion - own)
    return own


def _averaged(own: float, heard: Sequence[float], confidence: float) -> float:
    if len(heard) < _MANY:
        near = [opinion for opinion in heard if -confidence <= opinion - own <= confidence]
    else:
        opinions = np.asarray(heard, np.float64)
        near = opinions[np.abs(opinions - own) <= confidence].tolist()
    # Exactly rounded: an array's own sum may differ in the last bit from one processor to the next.
    return fsum([own, *near]) / (1 + len(near))
