"""Names of sampled people: an international mix, each used once."""

from __future__ import annotations

import json
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from shoal.seeds import derive, hashes

_NAMES = json.loads((resources.files("shoal.scenario") / "data" / "names.json").read_text(encoding="utf-8"))
FEMALE, MALE, LAST = (tuple(_NAMES[words]) for words in ("female", "male", "last"))
#: Both lists of first names are used up to this length, so that a number means one name whatever the gender.
_FIRST_COUNT = min(len(FEMALE), len(MALE))
#: Names without initials.
_NAMES_PER_TIER = _FIRST_COUNT * len(LAST)
_LETTERS = 26


def draw_names(seed: int, start: int, genders: NDArray[np.int8]) -> list[str]:
    """Draw names for the people from number `start` on; gender 0 is female, 1 male, others take from both lists.

    Number -> (first, last, initials) is one to one, and no two lists share a first name at different places. So the
    name of a person does not depend on how many people there are, and no name comes twice. The first tier has plain
    names; each later one has its own middle initials.
    """
    result: list[str] = []
    stop = start + len(genders)
    while start < stop:
        tier = start // _NAMES_PER_TIER
        end = min(stop, (tier + 1) * _NAMES_PER_TIER)
        key, places = derive(seed, "names", tier), np.arange(start, end) - tier * _NAMES_PER_TIER
        shuffled = np.argsort(hashes(key, np.arange(_NAMES_PER_TIER)), kind="stable")[places]
        either = (hashes(key, places, 1) & np.uint64(1)).astype(np.int64)
        mine = genders[len(result) : len(result) + end - start]
        lists = np.where((mine < 0) | (mine > 1), either, mine).astype(np.int64)
        initials, rest = "", tier
        while rest:
            rest, letter = divmod(rest - 1, _LETTERS)
            initials = f"{chr(ord('A') + letter)}. {initials}"
        firsts = [f"{name} {initials}" for name in (*FEMALE[:_FIRST_COUNT], *MALE[:_FIRST_COUNT])]
        chosen = (lists * _FIRST_COUNT + shuffled // len(LAST)).tolist()
        lasts = (shuffled % len(LAST)).tolist()
        result += [firsts[first] + LAST[last] for first, last in zip(chosen, lasts, strict=True)]
        start = end
    return result
