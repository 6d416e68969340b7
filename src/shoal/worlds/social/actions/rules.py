"""The table of all actions on a platform: their arguments, and the rules that carry them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from shoal.worlds.social.actions import following, groups, lookup, posting, reactions
from shoal.worlds.social.state import Actor, Done, State

Rule = Callable[[State, Actor, dict[str, Any]], Done]

#: Kind of action -> the arguments it needs, and the rule that carries it out.
RULES: Mapping[str, tuple[Mapping[str, type], Rule]] = {
    "CREATE_POST": ({"content": str}, posting.create_post),
    "REPOST": ({"post_id": int}, posting.repost),
    "QUOTE_POST": ({"post_id": int, "quote_content": str}, posting.quote_post),
    "CREATE_COMMENT": ({"post_id": int, "content": str}, posting.create_comment),
    "LIKE_POST": ({"post_id": int}, partial(reactions.rate_post, by="likes")),
    "UNLIKE_POST": ({"post_id": int}, partial(reactions.unrate_post, by="likes")),
    "DISLIKE_POST": ({"post_id": int}, partial(reactions.rate_post, by="dislikes")),
    "UNDO_DISLIKE_POST": ({"post_id": int}, partial(reactions.unrate_post, by="dislikes")),
    "REPORT_POST": ({"post_id": int, "report_reason": str}, reactions.report_post),
    "LIKE_COMMENT": ({"comment_id": int}, partial(reactions.rate_comment, by="comment_likes")),
    "UNLIKE_COMMENT": ({"comment_id": int}, partial(reactions.unrate_comment, by="comment_likes")),
    "DISLIKE_COMMENT": ({"comment_id": int}, partial(reactions.rate_comment, by="comment_dislikes")),
    "UNDO_DISLIKE_COMMENT": ({"comment_id": int}, partial(reactions.unrate_comment, by="comment_dislikes")),
    "FOLLOW": ({"followee_id": int}, following.follow),
    "UNFOLLOW": ({"followee_id": int}, following.unfollow),
    "MUTE": ({"mutee_id": int}, following.mute),
    "UNMUTE": ({"mutee_id": int}, following.unmute),
    "SEARCH_POSTS": ({"query": str}, lookup.search_posts),
    "SEARCH_USER": ({"query": str}, lookup.search_user),
    "TREND": ({}, lookup.trend),
    "REFRESH": ({}, lookup.do_nothing),
    "DO_NOTHING": ({}, lookup.do_nothing),
    "INTERVIEW": ({"prompt": str}, lookup.interview),
    "PURCHASE_PRODUCT": ({"product_name": str, "purchase_num": int}, groups.purchase_product),
    "CREATE_GROUP": ({"group_name": str}, groups.create_group),
    "JOIN_GROUP": ({"group_id": int}, groups.join_group),
    "LEAVE_GROUP": ({"group_id": int}, groups.leave_group),
    "SEND_TO_GROUP": ({"group_id": int, "message": str}, groups.send_to_group),
    "LISTEN_FROM_GROUP": ({}, groups.listen_from_group),
}

#: Kind of action -> names of the arguments it needs.
ACTIONS: Mapping[str, tuple[str, ...]] = {kind: tuple(needs) for kind, (needs, _) in RULES.items()}
