"""Searching, trends, and doing nothing. What is found is in the agent's next observation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from shoal.worlds.base import Rejected
from shoal.worlds.social.observations import LookedUp, PostView
from shoal.worlds.social.posts import Posts
from shoal.worlds.social.state import Actor, Done, State
from shoal.worlds.social.view_builder import show_posts, without_muted

#: A search looks through this many of the newest posts, so that its cost does not grow with the run.
_POSTS_SEARCHED = 1000
_POSTS_FOUND = 5
_USERS_FOUND = 5


def search_posts(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    query = _query(args)
    rows = _unmuted(state, actor.agent, _find_posts(state.posts, query))
    found = _shown(state, actor, list(islice(rows, _POSTS_FOUND)))
    state.answer(actor, LookedUp("SEARCH_POSTS", query, posts=found))
    return Done({"query": query}, {"query": query, "posts": [post.post_id for post in found]})


def search_user(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    query = _query(args)
    found = state.index.search(query)[:_USERS_FOUND]
    state.answer(actor, LookedUp("SEARCH_USER", query, users=tuple((agent, state.names[agent]) for agent in found)))
    return Done({"query": query}, {"query": query, "users": found})


def trend(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    """The most liked post of the last days."""
    rows = [] if state.trending is None else [state.trending]
    found = _shown(state, actor, list(_unmuted(state, actor.agent, rows)))
    state.answer(actor, LookedUp("TREND", "", posts=found))
    return Done({}, {"posts": [post.post_id for post in found]})


def refresh(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    """Nothing to do: every turn starts with a fresh feed."""
    return Done({}, {})


def do_nothing(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    return Done({}, {})


def interview(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    """A question put to the agent, kept in the trace with its answer."""
    answer = str(args.get("response", ""))
    return Done({"prompt": args["prompt"], "response": answer}, {"prompt": args["prompt"], "response": answer})


def _find_posts(posts: Posts, query: str) -> Iterator[int]:
    """Yield the rows of recent posts whose own words contain the query, newest first."""
    wanted = query.casefold()
    for row in range(posts.count - 1, max(posts.count - _POSTS_SEARCHED, 0) - 1, -1):
        said = posts.quote[row] or (posts.content[row] if posts.root[row] == row else "")
        if wanted in said.casefold():
            yield row


def _query(args: dict[str, Any]) -> str:
    query = str(args["query"]).strip()
    if not query:
        raise Rejected("there is nothing to search for")
    return query


def _unmuted(state: State, agent: int, rows: Iterable[int]) -> Iterator[int]:
    """Without what people wrote whom the agent has muted, also where others quote it."""
    posts = state.posts
    for row in rows:
        wrote = {int(posts.author[row]), int(posts.author[posts.root[row]])}
        if not any(state.feed.is_muted(agent, author) for author in wrote):
            yield row


def _shown(state: State, actor: Actor, rows: list[int]) -> tuple[PostView, ...]:
    posts = show_posts(state, rows, actor.round, state.comments_shown)
    return tuple(without_muted(state, actor.agent, post) for post in posts)
