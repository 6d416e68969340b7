"""Liking, disliking and reporting, and taking it back."""

from __future__ import annotations

from typing import Any

from shoal.worlds.base import Rejected
from shoal.worlds.social import database
from shoal.worlds.social.actions.posting import describe_post, find_post
from shoal.worlds.social.state import Actor, Done, Ratings, State


def rate_post(state: State, actor: Actor, args: dict[str, Any], *, by: str) -> Done:
    """Like or dislike a post. `by` names the ratings of the state that it belongs to."""
    row, ratings = find_post(state, args["post_id"]), getattr(state, by)
    if not state.self_rating and state.posts.author[row] == actor.agent:
        raise Rejected("agents cannot rate their own posts here")
    rating_id = _give(actor, row, ratings, state.posts)
    state.reacted.setdefault(actor.agent, set()).add(row)
    state.touched_posts.add(row)
    about = describe_post(state, row)
    state.rows.add(ratings.kind.insert, rating_id, actor.agent, about["post_id"], actor.created_at)
    if by == "likes":
        state.ranking.learn(actor.agent, int(state.posts.lean[row]))
    return Done(about, {"post_id": about["post_id"], ratings.kind.id_name: rating_id})


def unrate_post(state: State, actor: Actor, args: dict[str, Any], *, by: str) -> Done:
    row, ratings = find_post(state, args["post_id"]), getattr(state, by)
    rating_id = _take_back(state, actor, row, ratings, state.posts)
    if not any(other.has(actor.agent, row) for other in (state.likes, state.dislikes, state.shares)):
        state.reacted[actor.agent].remove(row)
    state.touched_posts.add(row)
    about = describe_post(state, row)
    return Done(about, {"post_id": about["post_id"], ratings.kind.id_name: rating_id})


def report_post(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    row = find_post(state, args["post_id"])
    about, reason = describe_post(state, row), args["report_reason"]
    report_id = _give(actor, row, state.reports, state.posts)
    state.touched_posts.add(row)
    state.rows.add(database.REPORT, report_id, actor.agent, about["post_id"], reason, actor.created_at)
    trace = {"post_id": about["post_id"], "report_id": report_id, "report_reason": reason}
    return Done({**about, "report_reason": reason}, trace)


def rate_comment(state: State, actor: Actor, args: dict[str, Any], *, by: str) -> Done:
    row, ratings = _find_comment(state, args["comment_id"]), getattr(state, by)
    if not state.self_rating and state.comments.author[row] == actor.agent:
        raise Rejected("agents cannot rate their own comments here")
    rating_id = _give(actor, row, ratings, state.comments)
    about = _touch_comment(state, row)
    state.rows.add(ratings.kind.insert, rating_id, actor.agent, about["comment_id"], actor.created_at)
    return Done(about, {"comment_id": about["comment_id"], ratings.kind.id_name: rating_id})


def unrate_comment(state: State, actor: Actor, args: dict[str, Any], *, by: str) -> Done:
    row, ratings = _find_comment(state, args["comment_id"]), getattr(state, by)
    rating_id = _take_back(state, actor, row, ratings, state.comments)
    about = _touch_comment(state, row)
    return Done(about, {"comment_id": about["comment_id"], ratings.kind.id_name: rating_id})


def _give(actor: Actor, row: int, ratings: Ratings, store: object) -> int:
    if ratings.has(actor.agent, row):
        raise Rejected(f"this was already {ratings.kind.done}")
    rating_id = actor.new_id()
    ratings.give(actor.agent, row, rating_id)
    getattr(store, ratings.kind.counter)[row] += 1
    return rating_id


def _take_back(state: State, actor: Actor, row: int, ratings: Ratings, store: object) -> int:
    if not ratings.has(actor.agent, row):
        raise Rejected(f"this was not {ratings.kind.done}")
    rating_id = ratings.take_back(actor.agent, row)
    getattr(store, ratings.kind.counter)[row] -= 1
    state.rows.add(ratings.kind.delete, rating_id)
    return rating_id


def _find_comment(state: State, comment_id: int) -> int:
    row = state.comments.row_of.get(comment_id)
    if row is None:
        raise Rejected(f"there is no comment {comment_id}")
    return row


def _touch_comment(state: State, row: int) -> dict[str, Any]:
    """Note that a comment changed, and return it as the stream shows it beside an action on it."""
    comments = state.comments
    state.touched_comments.add(row)
    comments.shown.pop(comments.post[row], None)
    return {
        "comment_id": comments.comment_id[row],
        "comment_content": comments.content[row],
        "comment_author_name": state.names[comments.author[row]],
    }
