"""How opinions move: bounded confidence, in the two forms of the literature, and the naming game.

Opinions within an agent's confidence persuade it, others do not. With `pull`, the model of Deffuant and others, each
opinion in turn pulls the agent's own a part of the way. With `average`, the model of Hegselmann and Krause, the agent
takes the mean of all opinions within its confidence, its own included. With `naming`, the binary naming game, the sign
of an opinion is one of two words for the same thing. Who has one and hears the other has both, and who has both keeps
the one that it hears.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import numpy as np

from shoal.agents.settings import HeuristicSettings

#: Stances nearer to zero than the first are not voiced, those beyond the second are voiced firmly.
UNDECIDED, FIRM = 0.15, 0.55
#: The opinion of people who have one word in the naming game. Those who are at -1 or 1 never give it up.
ONE_WORD = 0.9
#: How little a text moves a person who is sure of the contrary.
RESISTANCE = 0.6
#: From this number of opinions on, comparing them as an array is faster.
_MANY = 32


def classify_stance(stance: float) -> int:
    """Return how a stance is voiced: 0 not at all, 1 or -1 mildly, 2 or -2 firmly."""
    if -UNDECIDED < stance < UNDECIDED:
        return 0
    strength = 2 if stance > FIRM or stance < -FIRM else 1
    return strength if stance > 0 else -strength


def believe(belief: float, lean: float, weight: float) -> float:
    """Return what a person thinks of a claim after a text that leans on it this way.

    A text moves a person part of the way, the more the stronger it is. What contradicts a person moves them less, the
    surer they are: a correction weakens a belief, and seldom turns it around.
    """
    towards = 1.0 if lean > 0 else -1.0
    resistance = RESISTANCE * abs(belief) if belief * lean < 0 else 0.0
    return belief + min(weight * abs(lean), 1.0) * (1.0 - resistance) * (towards - belief)


def hear_word(own: float, heard: float) -> float:
    """Return the opinion of a person in the naming game after it heard one word."""
    word = (heard > 0) - (heard < 0)
    if abs(own) == 1 or not word or own * word >= UNDECIDED:
        return own
    return ONE_WORD * word if classify_stance(own) == 0 else 0.0


def persuade(
    own: float, heard: Sequence[float], settings: HeuristicSettings, weights: Sequence[float] | None = None
) -> float:
    """Return the agent's opinion after it heard these, in the order in which they came.

    `weights` says how much each of them counts; the agent's own counts 1, and so do all where there are no weights.
    """
    confidence = settings.confidence
    if settings.influence_rule == "naming":
        for opinion in heard:
            own = hear_word(own, opinion)
        return own
    if settings.influence_rule == "pull":
        for place, opinion in enumerate(heard):
            if -confidence <= opinion - own <= confidence:
                pull = settings.persuasion if weights is None else min(settings.persuasion * weights[place], 1.0)
                own += pull * (opinion - own)
        return own
    if weights is not None:
        close = [(opinion, by) for opinion, by in zip(heard, weights, strict=True) if abs(opinion - own) <= confidence]
        return (own + sum(opinion * by for opinion, by in close)) / (1 + sum(by for _, by in close))
    if len(heard) < _MANY:
        near = [opinion for opinion in heard if -confidence <= opinion - own <= confidence]
    else:
        opinions = np.asarray(heard, np.float64)
        near = opinions[np.abs(opinions - own) <= confidence].tolist()
    # Exactly rounded: an array's own sum may differ in the last bit from one processor to the next.
    return fsum([own, *near]) / (1 + len(near))
