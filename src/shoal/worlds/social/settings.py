"""What a scenario may say about a social platform."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from shoal.worlds.world_kind import WorldSettings

Recommendation = Literal["hot", "interest", "meaning", "random", "none"]


class FeedSettings(BaseModel):
    """What an agent is shown. Weights are relative to one another."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    followed: int | None = Field(default=None, ge=0, le=50, description="Posts by people the agent follows, at most.")
    recommended: int | None = Field(default=None, ge=0, le=50, description="Posts chosen by recommendation, at most.")
    recommendation: Recommendation | None = Field(
        default=None, description="How posts are recommended; meaning needs `shoal model get wordllama`."
    )
    comments: int | None = Field(default=None, ge=0, le=50, description="Comments shown under a post, at most.")
    recency: float | None = Field(default=None, ge=0, le=1, description="Weight of how new a post is.")
    popularity: float | None = Field(default=None, ge=0, le=1, description="Weight of likes, shares and comments.")
    relevance: float | None = Field(default=None, ge=0, le=1, description="Weight of the agent's interests.")
    echo_chamber: float | None = Field(
        default=None, ge=0, le=1, description="Weight of agreeing with what the agent liked and wrote before."
    )
    counts: bool = Field(
        default=True, description="Whether agents see how many people liked, disliked and shared a post."
    )
    viral_threshold: int | None = Field(
        default=None, ge=1, description="Shares from which on a post counts as popular as can be."
    )


@dataclass(frozen=True, slots=True)
class FeedRules:
    """What an agent is shown: the settings of a feed, with what is customary where a scenario says nothing."""

    followed: int
    recommended: int
    recommendation: Recommendation
    comments: int
    recency: float
    popularity: float
    relevance: float
    echo_chamber: float
    viral_threshold: int
    counts: bool = True


_CUSTOMARY = {
    "twitter": FeedRules(
        followed=5, recommended=3, recommendation="interest", comments=2,
        recency=0.4, popularity=0.3, relevance=0.3, echo_chamber=0.5, viral_threshold=10,
    ),
    "reddit": FeedRules(
        followed=0, recommended=8, recommendation="hot", comments=4,
        recency=0.3, popularity=0.4, relevance=0.3, echo_chamber=0.6, viral_threshold=15,
    ),
}  # fmt: skip


class SocialSettings(WorldSettings):
    """One social platform. What is not set follows the platform's custom."""

    kind: Literal["twitter", "reddit"] = Field(description="Which platform this world is.")
    visibility: int = Field(default=1, ge=1, le=64, description="Rounds until others see an action.")
    feed: FeedSettings = Field(default=FeedSettings(), description="What agents are shown.")
    search: Literal["words", "meaning"] = Field(
        default="words",
        description="Whether a search finds its words or what it means, which needs `shoal model get wordllama`.",
    )
    self_rating: bool = Field(
        default=True, description="Whether agents may like or dislike what they wrote themselves."
    )
    products: tuple[str, ...] = Field(default=(), description="Products that can be bought with PURCHASE_PRODUCT.")
    actions: tuple[str, ...] | None = Field(
        default=None, description="The only actions allowed; default: all of the platform."
    )

    def offers(self, action: str) -> bool:
        """Return whether the scenario allows the action, and for buying, whether there is something to buy."""
        is_allowed = self.actions is None or action in self.actions
        return is_allowed and (bool(self.products) or action != "PURCHASE_PRODUCT")

    @property
    def compares_meaning(self) -> bool:
        return self.search == "meaning" or self.complete_feed().recommendation == "meaning"

    def complete_feed(self) -> FeedRules:
        return replace(_CUSTOMARY[self.kind], **self.feed.model_dump(exclude_none=True))
