"""Social platforms as a kind of world, and their rules for language models."""

from __future__ import annotations

from shoal.worlds.social.actions.rules import ACTIONS
from shoal.worlds.social.database import summarise
from shoal.worlds.social.observations import SocialObservation
from shoal.worlds.social.platform import Platform
from shoal.worlds.social.play import SocialPlay
from shoal.worlds.social.render import SocialRenderer
from shoal.worlds.social.settings import SocialSettings
from shoal.worlds.world_kind import ActionCard, Argument, WorldKind, WorldRules

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

_POST = Argument("post_id", int, names="post")
_COMMENT = Argument("comment_id", int)
_GROUP = Argument("group_id", int, names="group")
_CONTENT = Argument("content")
_QUERY = Argument("query")
_FOLLOWEE = Argument("user", meant="followee_id", names="user")
_MUTEE = Argument("user", meant="mutee_id", names="user")

CARDS = (
    ActionCard("CREATE_POST", (_CONTENT,), "write a post of your own", "posted"),
    ActionCard("CREATE_COMMENT", (_POST, _CONTENT), "answer under a post", "commented on"),
    ActionCard("REPOST", (_POST,), "pass a post on to your followers as it is", "shared"),
    ActionCard("QUOTE_POST", (_POST, Argument("quote_content")), "pass a post on with words of your own", "quoted"),
    ActionCard("LIKE_POST", (_POST,), "like a post", "liked"),
    ActionCard("UNLIKE_POST", (_POST,), "take a like back", "no longer like"),
    ActionCard("DISLIKE_POST", (_POST,), "dislike a post", "disliked"),
    ActionCard("UNDO_DISLIKE_POST", (_POST,), "take a dislike back"),
    ActionCard("REPORT_POST", (_POST, Argument("report_reason")), "report a post that breaks the rules", "reported"),
    ActionCard("LIKE_COMMENT", (_COMMENT,), "like a comment"),
    ActionCard("UNLIKE_COMMENT", (_COMMENT,), "take that back"),
    ActionCard("DISLIKE_COMMENT", (_COMMENT,), "dislike a comment"),
    ActionCard("UNDO_DISLIKE_COMMENT", (_COMMENT,), "take that back"),
    ActionCard("FOLLOW", (_FOLLOWEE,), "see this person's posts from now on", "followed"),
    ActionCard("UNFOLLOW", (_FOLLOWEE,), "see them no longer", "unfollowed"),
    ActionCard("MUTE", (_MUTEE,), "never be shown this person again", "muted"),
    ActionCard("UNMUTE", (_MUTEE,), "take that back"),
    ActionCard("SEARCH_POSTS", (_QUERY,), "look for posts with these words", "searched for"),
    ActionCard("SEARCH_USER", (_QUERY,), "look for people by name", "looked for"),
    ActionCard("TREND", (), "see the most liked post of the last days"),
    ActionCard("CREATE_GROUP", (Argument("group_name"),), "open a group chat"),
    ActionCard("JOIN_GROUP", (_GROUP,), "enter a group"),
    ActionCard("LEAVE_GROUP", (_GROUP,), "leave a group"),
    ActionCard("SEND_TO_GROUP", (_GROUP, Argument("message")), "write to a group you are in", "wrote to a group"),
    ActionCard("LISTEN_FROM_GROUP", (), "read what your groups wrote"),
    ActionCard(
        "PURCHASE_PRODUCT", (Argument("product_name"), Argument("purchase_num", int)), "buy some of a product on sale"
    ),
)


def describe_social(settings: SocialSettings) -> WorldRules:
    """Describe the actions that the scenario allows, or all; buying only where there is something to buy."""
    hidden = () if settings.products else ("PURCHASE_PRODUCT",)
    allowed = settings.actions
    cards = [card for card in CARDS if (allowed is None or card.kind in allowed) and card.kind not in hidden]
    return WorldRules(_TWITTER if settings.kind == "twitter" else _REDDIT, tuple(cards), _NOTES)


SOCIAL = WorldKind(
    names=("twitter", "reddit"),
    settings=SocialSettings,
    observation=SocialObservation,
    build=Platform,
    actions=ACTIONS,
    events=frozenset({"post"}),
    cards=CARDS,
    rules=describe_social,
    renderer=SocialRenderer(),
    play=SocialPlay(),
    example_change="feed.echo_chamber=0.9",
    summarise=summarise,
)
