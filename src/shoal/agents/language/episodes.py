"""Turns as an agent remembers them: a sentence or two about what stood out, and about what the agent did."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.text import clip, join_words, quote
from shoal.types import Decision, Observation
from shoal.worlds import PAST_VERBS, find_written, renderer_for

_MAX_NEWS_CHARS = 100
_MAX_THOUGHT_CHARS = 90
#: After this much of what was done in one turn, the rest is only counted.
_MAX_DONE_CHARS = 240

#: How much a turn matters: one that only looked on, one that said something, one in which there were news.
_QUIET, _SPOKEN, _NEWS = 1.0, 1.5, 2.0


def summarise_turn(
    observation: Observation, decision: Decision, thought: str, names: Sequence[str]
) -> tuple[str, float]:
    """Return the turn as text, and how much it matters.

    `names` says who the people are that actions give by number.
    """
    renderer = renderer_for(observation)
    done = []
    for action in decision.actions:
        verb = PAST_VERBS.get(action.kind, action.kind.replace("_", " ").lower())
        done.append(renderer.recall_action(action, verb, observation, names))
    # Where the agent thought something, that says what struck it.
    before = clip(f"You thought: {thought}", _MAX_THOUGHT_CHARS) if thought else renderer.recall_sight(observation)
    announcements = getattr(observation, "announcements", ())
    news = f"Announced: {quote(announcements[-1], _MAX_NEWS_CHARS)}." if announcements else ""
    importance = _SPOKEN if any(map(find_written, decision.actions)) else _QUIET
    text = " ".join(part for part in (news, before, f"You {_join_done(done)}.") if part)
    return text, _NEWS if announcements else importance


def _join_done(done: Sequence[str]) -> str:
    """Name the first thing that was done, and as many more as there is room for."""
    chars = 0
    for number, one in enumerate(done):
        chars += len(one)
        if number and chars > _MAX_DONE_CHARS:
            return join_words(done, number)
    return ", ".join(done)
