"""Minds that react to one thing."""

from __future__ import annotations

from typing import cast

from shoal.types import Action, Decision, Mind, Observation
from shoal.worlds.social.observations import SocialObservation

_NOTHING = Decision((Action("DO_NOTHING"),))


class Liking(Mind):
    """Agent 0 posts in round 1; whoever hears news likes what it sees; whoever sees a like says so."""

    def decide(self, observation: Observation) -> Decision:
        seen = cast(SocialObservation, observation)
        if seen.agent == 0:
            return Decision((Action("CREATE_POST", {"content": "hello"}),)) if seen.round == 1 else _NOTHING
        if seen.announcements:
            return Decision(tuple(Action("LIKE_POST", {"post_id": post.post_id}) for post in seen.followed))
        if any(post.likes for post in seen.followed) and not seen.reacted:
            return Decision((Action("CREATE_POST", {"content": "people like that"}),))
        return _NOTHING


class Echoing(Mind):
    """Says what comes in, if anything."""

    def decide(self, observation: Observation) -> Decision:
        words = [stimulus.content for stimulus in getattr(observation, "stimuli", ())]
        return Decision((Action("TALK", {"content": words[0]}),)) if words else _NOTHING
