"""The settings of memory in a scenario."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class MemorySettings(BaseModel):
    """How much of its past an agent is shown. The three budgets together are the most that a prompt ever holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    recent_tokens: int = Field(default=500, ge=50, le=100_000, description="For the latest turns, word for word.")
    recalled_tokens: int = Field(
        default=300,
        ge=0,
        le=100_000,
        description="For older turns that bear on what the agent sees; they also take what the other two leave.",
    )
    insights_tokens: int = Field(default=200, ge=0, le=100_000, description="For what the agent made of its past.")
    episodes_shown: int = Field(
        default=6,
        ge=1,
        le=10_000,
        description="A prompt holds no more than this many turns of usual length, so it soon stops growing.",
    )
    episodes_kept: int = Field(
        default=400, ge=1, le=100_000, description="Turns that can be recalled; then the oldest goes."
    )
    consolidate_every: int | None = Field(
        default=12, ge=0, le=100_000, description="Turns after which the agent draws conclusions; 0: never."
    )
    lag_rounds: int = Field(
        default=3,
        ge=1,
        le=1000,
        description="Rounds until conclusions count, so that nobody has to wait while they are drawn.",
    )
    model: str | None = Field(default=None, description="Model that draws conclusions; default: that of the mind.")
    embeddings: str | None = Field(
        default=None, description="Embedding model that judges what bears on what; default: the words in common."
    )

    @property
    def total_tokens(self) -> int:
        return self.recent_tokens + self.recalled_tokens + self.insights_tokens
