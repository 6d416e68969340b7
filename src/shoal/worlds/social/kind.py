"""Social platforms as a kind of world, and their rules for language models."""

from __future__ import annotations

from shoal.worlds.social.actions.rules import CARDS, NEEDS
from shoal.worlds.social.database import summarise
from shoal.worlds.social.observations import SocialObservation
from shoal.worlds.social.platform import Platform
from shoal.worlds.social.render import SocialRenderer
from shoal.worlds.social.settings import SocialSettings
from shoal.worlds.world_kind import WorldKind

_TWITTER = """\
# The place
A platform of short public posts, like Twitter. You see posts by people you follow, and some that the platform
recommends to you. Others see what you do some time later. Posts are a sentence or two, up to 280 characters. What is
shared or quoted reaches the followers of whoever shares it; likes and comments make a post more visible."""

_REDDIT = """\
# The place
A discussion platform like Reddit. You see the posts that the platform ranks highest, with some of their comments.
Others see what you do some time later. Posts open a discussion in a few sentences; comments answer them, and people
reply to the point. Likes and dislikes are votes, which decide how many others see a post or comment."""

_NOTES = """\
post_id, comment_id and group_id are the numbers in [brackets], as in [12]. A user is somebody's name, as it is shown;
a star after a name marks somebody whom you do not follow. Searching shows you what it found in your next turn. To
answer somebody, comment on their post; under a post that somebody shares, you answer whoever wrote it. What you have
liked, disliked or shared says so; it cannot be done twice.

# What people usually do
In most turns people like one post, or none, and move on. They comment when something concerns them, when they know
better, or when they know the author. They pass on what they want others to see, also when it is not certain, and quote
what they want to contradict. They write a post of their own when they have something new to say: what they think, what
they did or heard, a question. They follow somebody of whom they want to see more, and leave or mute somebody who
annoys them again and again. Hardly anybody reports a post, searches in every turn, or answers everything. Friends are
addressed by their first name. Not every post is about the news of the day: people also have work, hobbies and
families."""

_BRIEF_TWITTER = """\
# The place
A platform of short posts, like Twitter. A post is a sentence or two."""

_BRIEF_REDDIT = """\
# The place
A discussion platform like Reddit. Posts open a discussion, comments answer them, likes and dislikes are votes."""

_BRIEF_NOTES = """\
post_id, comment_id and group_id are the numbers in [brackets]. user is a name. To answer somebody, comment on their
post. Mostly people like a post and move on; they write when they have something to say."""

SOCIAL = WorldKind(
    places={"twitter": _TWITTER, "reddit": _REDDIT},
    notes=_NOTES,
    brief_places={"twitter": _BRIEF_TWITTER, "reddit": _BRIEF_REDDIT},
    brief_notes=_BRIEF_NOTES,
    settings=SocialSettings,
    observation=SocialObservation,
    build=Platform,
    actions=NEEDS,
    events=frozenset({"post", "join", "leave", "suspend", "cut"}),
    cards=CARDS,
    renderer=SocialRenderer(),
    example_change="feed.echo_chamber=0.9",
    summarise=summarise,
)
