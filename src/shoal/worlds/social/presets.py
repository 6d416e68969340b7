"""What is customary on each platform, where a scenario does not say otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.worlds.social.feed import FeedShape
from shoal.worlds.social.ranking import RankingWeights
from shoal.worlds.social.settings import FeedSettings, SocialSettings

TWITTER = FeedSettings(
    followed=5, recommended=3, recommendation="interest", comments=2,
    recency=0.4, popularity=0.3, relevance=0.3, echo_chamber=0.5, viral_threshold=10,
)  # fmt: skip
REDDIT = FeedSettings(
    followed=0, recommended=8, recommendation="hot", comments=4,
    recency=0.3, popularity=0.4, relevance=0.3, echo_chamber=0.6, viral_threshold=15,
)  # fmt: skip

#: A post this much newer may have a tenth of the engagement and be as hot; Reddit's own formula has 45,000 seconds.
_TWITTER_DECADE_MINUTES = 360
_REDDIT_DECADE_MINUTES = 750


@dataclass(frozen=True, slots=True)
class PlatformPreset:
    """Everything that makes one platform differ from another."""

    shape: FeedShape
    weights: RankingWeights
    decade_minutes: int
    #: Whether the database tells time as a date; otherwise as the number of the round. As OASIS does.
    dated: bool


def preset_for(settings: SocialSettings) -> PlatformPreset:
    """The platform's custom with what the scenario changes about it."""
    on_reddit = settings.kind == "reddit"
    feed = feed_of(settings)
    return PlatformPreset(
        shape=_shape(feed),
        weights=_weights(feed),
        decade_minutes=_REDDIT_DECADE_MINUTES if on_reddit else _TWITTER_DECADE_MINUTES,
        dated=on_reddit,
    )


def feed_of(settings: SocialSettings) -> FeedSettings:
    """All that the scenario and the platform's custom say about feeds."""
    custom = REDDIT if settings.kind == "reddit" else TWITTER
    return custom.model_copy(update=settings.feed.model_dump(exclude_none=True))


def _shape(feed: FeedSettings) -> FeedShape:
    return FeedShape(feed.followed or 0, feed.recommended or 0, feed.recommendation or "none", feed.comments or 0)


def _weights(feed: FeedSettings) -> RankingWeights:
    return RankingWeights(
        recency=_thousandths(feed.recency),
        popularity=_thousandths(feed.popularity),
        relevance=_thousandths(feed.relevance),
        echo_chamber=_thousandths(feed.echo_chamber),
        viral_threshold=feed.viral_threshold or 1,
    )


def _thousandths(weight: float | None) -> int:
    return round(1000 * (weight or 0.0))
