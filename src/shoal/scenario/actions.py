"""The actions that people can take on a social platform, with the arguments that each needs."""

from __future__ import annotations

from collections.abc import Mapping

_NEEDS: Mapping[str, tuple[str, ...]] = {
    "CREATE_POST": ("content",),
    "LIKE_POST": ("post_id",),
    "UNLIKE_POST": ("post_id",),
    "DISLIKE_POST": ("post_id",),
    "UNDO_DISLIKE_POST": ("post_id",),
    "REPOST": ("post_id",),
    "QUOTE_POST": ("post_id", "quote_content"),
    "REPORT_POST": ("post_id", "report_reason"),
    "CREATE_COMMENT": ("post_id", "content"),
    "LIKE_COMMENT": ("comment_id",),
    "UNLIKE_COMMENT": ("comment_id",),
    "DISLIKE_COMMENT": ("comment_id",),
    "UNDO_DISLIKE_COMMENT": ("comment_id",),
    "FOLLOW": ("followee_id",),
    "UNFOLLOW": ("followee_id",),
    "MUTE": ("mutee_id",),
    "UNMUTE": ("mutee_id",),
    "SEARCH_POSTS": ("query",),
    "SEARCH_USER": ("query",),
    "TREND": (),
    "REFRESH": (),
    "DO_NOTHING": (),
    "PURCHASE_PRODUCT": ("product_name", "purchase_num"),
    "INTERVIEW": ("prompt",),
    "CREATE_GROUP": ("group_name",),
    "JOIN_GROUP": ("group_id",),
    "LEAVE_GROUP": ("group_id",),
    "SEND_TO_GROUP": ("group_id", "message"),
    "LISTEN_FROM_GROUP": (),
}


def known_actions() -> Mapping[str, tuple[str, ...]]:
    """Kind of action -> the arguments it needs."""
    return _NEEDS
