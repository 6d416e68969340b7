"""Posting, sharing, quoting and commenting."""

from __future__ import annotations

from typing import Any

from shoal.worlds.base import Rejected
from shoal.worlds.social import database
from shoal.worlds.social.state import Actor, Done, State


def find_post(state: State, post_id: int) -> int:
    """Return the row that an action on this post concerns: of a repost, it is the row of its root."""
    row = state.posts.row_of.get(post_id)
    if row is None:
        raise Rejected(f"there is no post {post_id}")
    return row if state.posts.is_quote[row] else int(state.posts.root[row])


def describe_post(state: State, row: int) -> dict[str, Any]:
    """Return a post as the stream shows it beside an action on it."""
    words = state.posts.quote[row] or state.posts.content[row]
    return {
        "post_id": int(state.posts.post_id[row]),
        "post_content": words,
        "post_author_name": state.names[state.posts.author[row]],
    }


def create_post(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    content = _need_text(args["content"], "a post")
    post_id = _add_post(state, actor, content, None, None)
    return Done({"content": content, "post_id": post_id}, {"content": content, "post_id": post_id})


def repost(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    root = _find_root(state, args["post_id"])
    original = _share(state, actor, root)
    post_id = _add_post(state, actor, state.posts.content[root], None, root)
    args = {"post_id": original["post_id"], "new_post_id": post_id, **_credit(original)}
    return Done(args, {"reposted_id": original["post_id"], "new_post_id": post_id})


def quote_post(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    words = _need_text(args["quote_content"], "a quote")
    root = _find_root(state, args["post_id"])
    original = _share(state, actor, root)
    post_id = _add_post(state, actor, state.posts.content[root], words, root)
    args = {"quoted_id": original["post_id"], "new_post_id": post_id, "quote_content": words, **_credit(original)}
    return Done(args, {"quoted_id": original["post_id"], "new_post_id": post_id})


def create_comment(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    content = _need_text(args["content"], "a comment")
    row = find_post(state, args["post_id"])
    about = describe_post(state, row)
    comment_id = actor.new_id()
    state.comments.add(comment_id, row, actor.agent, content)
    state.posts.comments[row] += 1
    state.touched_posts.add(row)
    state.rows.add(database.COMMENT, comment_id, about["post_id"], actor.agent, content, actor.created_at)
    return Done(
        {"content": content, "comment_id": comment_id, **about},
        {"content": content, "comment_id": comment_id, "post_id": about["post_id"]},
    )


def _need_text(value: str, what: str) -> str:
    if not value.strip():
        raise Rejected(f"{what} cannot be empty")
    return value


def _find_root(state: State, post_id: int) -> int:
    """Return the row that sharing this post concerns: also of a quote, it is the row of its root."""
    return int(state.posts.root[find_post(state, post_id)])


def _share(state: State, actor: Actor, root: int) -> dict[str, Any]:
    if state.shares.has(actor.agent, root):
        raise Rejected("this was already shared")
    state.shares.give(actor.agent, root, 0)
    state.reacted.setdefault(actor.agent, set()).add(root)
    state.posts.shares[root] += 1
    state.touched_posts.add(root)
    return describe_post(state, root)


def _credit(about: dict[str, Any]) -> dict[str, Any]:
    return {"original_content": about["post_content"], "original_author_name": about["post_author_name"]}


def _add_post(state: State, actor: Actor, content: str, quote: str | None, root: int | None) -> int:
    posts = state.posts
    post_id = actor.new_id()
    row = posts.add(post_id, actor.agent, actor.round, content, quote, root)
    if root is None or quote is not None:
        words = content if quote is None else quote
        topics = state.reader.topics(words) if root is None else [t for t in posts.topics[root].tolist() if t >= 0]
        posts.describe(row, topics, state.reader.slant(words))
    else:
        posts.topics[row] = posts.topics[root]
        posts.lean[row] = posts.lean[root]
    state.ranking.learn(actor.agent, int(posts.lean[row]))
    state.feed.add(row, actor.agent)
    state.touched_posts.add(row)
    original_id = None if root is None else int(posts.post_id[root])
    state.rows.add(database.POST, post_id, actor.agent, original_id, content, quote, actor.created_at)
    return post_id
