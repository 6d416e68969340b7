"""Which of several things to do is the likelier, by its name alone."""

from __future__ import annotations

from functools import lru_cache

RARE, UNLIKELY, LIKELY, ASKED_FOR = 0.01, 0.25, 3.0, 100.0
#: What ends something, or has its own time.
_RARE = ("LEAVE", "RATE", "QUIT", "EXIT")
#: What nobody does all day, and what is a way out rather than an action.
_IDLE = ("NOTHING", "DONE", "REFRESH", "MUTE", "REPORT")
_UNDOING = ("UN", "DIS")
_LIVELY = ("CREATE_POST", "LIKE_POST", "CREATE_COMMENT", "QUOTE", "TALK", "SAY", "SPEAK", "REACH_OUT")


@lru_cache(maxsize=4096)
def liking(word: str) -> float:
    upper = word.upper()
    if upper.startswith(_RARE):
        return RARE
    if upper.startswith(_UNDOING) or any(idle in upper for idle in _IDLE):
        return UNLIKELY
    return LIKELY if any(lively in upper for lively in _LIVELY) else 1.0
