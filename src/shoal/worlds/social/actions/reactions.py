"""Liking, disliking and reporting, and taking it back."""

from __future__ import annotations

from typing import Any

from shoal.worlds.base import Rejected
from shoal.worlds.social import database
from shoal.worlds.social.actions.posting import about_post, find_post
from shoal.worlds.social.state import Actor, Done, Ratings, State


def like_post(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    row = find_post(state, args["post_id"])
    done = _rate_post(state, actor, row, state.likes)
    state.ranking.learn(actor.agent, int(state.posts.lean[row]))
    return done


def unlike_post(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    return _unrate_post(state, actor, args, state.likes)


def dislike_post(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    return _rate_post(state, actor, find_post(state, args["post_id"]), state.dislikes)


def undo_dislike_post(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    return _unrate_post(state, actor, args, state.dislikes)


def report_post(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    row = find_post(state, args["post_id"])
    about, reason = about_post(state, row), args["report_reason"]
    report_id = _give(actor, row, state.reports, state.posts)
    state.touched_posts.add(row)
    state.rows.add(database.REPORT, report_id, actor.agent, about["post_id"], reason, actor.created_at)
    trace = {"post_id": about["post_id"], "report_id": report_id, "report_reason": reason}
    return Done({**about, "report_reason": reason}, trace)


def like_comment(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    return _rate_comment(state, actor, args, state.comment_likes)


def unlike_comment(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    return _unrate_comment(state, actor, args, state.comment_likes)


def dislike_comment(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    return _rate_comment(state, actor, args, state.comment_dislikes)


def undo_dislike_comment(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    return _unrate_comment(state, actor, args, state.comment_dislikes)


def _rate_post(state: State, actor: Actor, row: int, ratings: Ratings) -> Done:
    if not state.self_rating and state.posts.author[row] == actor.agent:
        raise Rejected("agents cannot rate their own posts here")
    rating_id = _give(actor, row, ratings, state.posts)
    state.reacted.setdefault(actor.agent, set()).add(row)
    state.touched_posts.add(row)
    about = about_post(state, row)
    state.rows.add(ratings.kind.insert, rating_id, actor.agent, about["post_id"], actor.created_at)
    return Done(about, {"post_id": about["post_id"], ratings.kind.id_name: rating_id})


def _unrate_post(state: State, actor: Actor, args: dict[str, Any], ratings: Ratings) -> Done:
    row = find_post(state, args["post_id"])
    rating_id = _take_back(state, actor, row, ratings, state.posts)
    if not any(other.given(actor.agent, row) for other in (state.likes, state.dislikes, state.shares)):
        state.reacted[actor.agent].remove(row)
    state.touched_posts.add(row)
    about = about_post(state, row)
    return Done(about, {"post_id": about["post_id"], ratings.kind.id_name: rating_id})


def _rate_comment(state: State, actor: Actor, args: dict[str, Any], ratings: Ratings) -> Done:
    row = _find_comment(state, args["comment_id"])
    if not state.self_rating and state.comments.author[row] == actor.agent:
        raise Rejected("agents cannot rate their own comments here")
    rating_id = _give(actor, row, ratings, state.comments)
    _touch_comment(state, row)
    about = _about_comment(state, row)
    state.rows.add(ratings.kind.insert, rating_id, actor.agent, about["comment_id"], actor.created_at)
    return Done(about, {"comment_id": about["comment_id"], ratings.kind.id_name: rating_id})


def _unrate_comment(state: State, actor: Actor, args: dict[str, Any], ratings: Ratings) -> Done:
    row = _find_comment(state, args["comment_id"])
    rating_id = _take_back(state, actor, row, ratings, state.comments)
    _touch_comment(state, row)
    about = _about_comment(state, row)
    return Done(about, {"comment_id": about["comment_id"], ratings.kind.id_name: rating_id})


def _give(actor: Actor, row: int, ratings: Ratings, store: object) -> int:
    if ratings.given(actor.agent, row):
        raise Rejected(f"this was already {ratings.kind.done}")
    rating_id = actor.new_id()
    ratings.give(actor.agent, row, rating_id)
    getattr(store, ratings.kind.counter)[row] += 1
    return rating_id


def _take_back(state: State, actor: Actor, row: int, ratings: Ratings, store: object) -> int:
    if not ratings.given(actor.agent, row):
        raise Rejected(f"this was not {ratings.kind.done}")
    rating_id = ratings.take_back(actor.agent, row)
    getattr(store, ratings.kind.counter)[row] -= 1
    state.rows.add(ratings.kind.delete, rating_id)
    return rating_id


def _touch_comment(state: State, row: int) -> None:
    state.touched_comments.add(row)
    state.comments.shown.pop(state.comments.post[row], None)


def _find_comment(state: State, comment_id: int) -> int:
    row = state.comments.row_of.get(comment_id)
    if row is None:
        raise Rejected(f"there is no comment {comment_id}")
    return row


def _about_comment(state: State, row: int) -> dict[str, Any]:
    comments = state.comments
    return {
        "comment_id": comments.comment_id[row],
        "comment_content": comments.content[row],
        "comment_author_name": state.names[comments.author[row]],
    }
