"""How a prompt's room for memory is shared out between its three parts, each with its heading."""

from __future__ import annotations

from math import ceil

from shoal.agents.memory.settings import MemorySettings
from shoal.models.tokens import estimate

LEARNED = "What you have learned:\n"
LATELY = "What happened to you lately:\n"
REMINDED = "From longer ago, as far as it comes to mind:\n"

LATELY_TOKENS = estimate(LATELY)
REMINDED_TOKENS = estimate(REMINDED)
_LEARNED_TOKENS = estimate(LEARNED)
_HEADING_TOKENS = LATELY_TOKENS + REMINDED_TOKENS + _LEARNED_TOKENS


def allowance(settings: MemorySettings, usual_tokens: float) -> int:
    """Tokens for everything: some episodes of usual length, and never more than the budgets together."""
    return min(settings.total_tokens, ceil(settings.episodes_shown * usual_tokens) + _HEADING_TOKENS)


def for_recent(settings: MemorySettings, allowed: int) -> int:
    """Tokens for the lines about recent turns."""
    return allowed * settings.recent_tokens // settings.total_tokens - LATELY_TOKENS


def for_insights(settings: MemorySettings, allowed: int) -> int:
    """Tokens for the lines about what was learned."""
    return allowed * settings.insights_tokens // settings.total_tokens - _LEARNED_TOKENS


def section(heading: str, lines: list[str]) -> str:
    return heading + "".join(lines) if lines else ""
