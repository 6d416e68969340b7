"""The table of all actions on a platform: how prompts describe them, and the rules that carry them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from shoal.worlds.base import Needs
from shoal.worlds.social.actions import lookup, people, posting
from shoal.worlds.social.state import Actor, Done, State
from shoal.worlds.world_kind import ActionCard, Argument

_POST = Argument("post_id", int, names="post")
_COMMENT = Argument("comment_id", int, names="comment")
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
    ActionCard("UNDO_DISLIKE_POST", (_POST,), "take a dislike back", "no longer dislike"),
    ActionCard("REPORT_POST", (_POST, Argument("report_reason")), "report a post that breaks the rules", "reported"),
    ActionCard("LIKE_COMMENT", (_COMMENT,), "like a comment", "liked comment"),
    ActionCard("UNLIKE_COMMENT", (_COMMENT,), "take that back", "no longer like comment"),
    ActionCard("DISLIKE_COMMENT", (_COMMENT,), "dislike a comment", "disliked comment"),
    ActionCard("UNDO_DISLIKE_COMMENT", (_COMMENT,), "take that back", "no longer dislike comment"),
    ActionCard("FOLLOW", (_FOLLOWEE,), "see this person's posts from now on", "followed"),
    ActionCard("UNFOLLOW", (_FOLLOWEE,), "see them no longer", "unfollowed"),
    ActionCard("MUTE", (_MUTEE,), "never be shown this person again", "muted"),
    ActionCard("UNMUTE", (_MUTEE,), "take that back", "no longer mute"),
    ActionCard("SEARCH_POSTS", (_QUERY,), "look for posts with these words", "searched for"),
    ActionCard("SEARCH_USER", (_QUERY,), "look for people by name", "looked for"),
    ActionCard("TREND", (), "see the most liked post of the last days", "looked at what is liked most"),
    ActionCard("CREATE_GROUP", (Argument("group_name"),), "open a group chat", "opened the group"),
    ActionCard("JOIN_GROUP", (_GROUP,), "enter a group", "entered group"),
    ActionCard("LEAVE_GROUP", (_GROUP,), "leave a group", "left group"),
    ActionCard("SEND_TO_GROUP", (_GROUP, Argument("message")), "write to a group you are in", "wrote"),
    ActionCard("LISTEN_FROM_GROUP", (), "read what your groups wrote", "read what your groups wrote"),
    ActionCard(
        "PURCHASE_PRODUCT", (Argument("product_name"), Argument("purchase_num", int)), "buy some of a product on sale"
    ),
)

Rule = Callable[[State, Actor, dict[str, Any]], Done]

#: Kind of action -> the rule that carries it out.
RULES: Mapping[str, Rule] = {
    "CREATE_POST": posting.create_post,
    "REPOST": posting.repost,
    "QUOTE_POST": posting.quote_post,
    "CREATE_COMMENT": posting.create_comment,
    "LIKE_POST": partial(posting.rate, by="likes"),
    "UNLIKE_POST": partial(posting.unrate, by="likes"),
    "DISLIKE_POST": partial(posting.rate, by="dislikes"),
    "UNDO_DISLIKE_POST": partial(posting.unrate, by="dislikes"),
    "REPORT_POST": posting.report_post,
    "LIKE_COMMENT": partial(posting.rate, by="comment_likes"),
    "UNLIKE_COMMENT": partial(posting.unrate, by="comment_likes"),
    "DISLIKE_COMMENT": partial(posting.rate, by="comment_dislikes"),
    "UNDO_DISLIKE_COMMENT": partial(posting.unrate, by="comment_dislikes"),
    "FOLLOW": people.follow,
    "UNFOLLOW": people.unfollow,
    "MUTE": people.mute,
    "UNMUTE": people.unmute,
    "SEARCH_POSTS": lookup.search_posts,
    "SEARCH_USER": lookup.search_user,
    "TREND": lookup.trend,
    "REFRESH": lookup.do_nothing,
    "DO_NOTHING": lookup.do_nothing,
    "INTERVIEW": lookup.interview,
    "PURCHASE_PRODUCT": people.purchase_product,
    "CREATE_GROUP": people.create_group,
    "JOIN_GROUP": people.join_group,
    "LEAVE_GROUP": people.leave_group,
    "SEND_TO_GROUP": people.send_to_group,
    "LISTEN_FROM_GROUP": people.listen_from_group,
}

#: Kind of action -> the names and types of the arguments it needs.
NEEDS: Mapping[str, Needs] = {
    **{kind: {} for kind in RULES},
    "INTERVIEW": {"prompt": str},
    **{card.kind: card.needs for card in CARDS},
}
