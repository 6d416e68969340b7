"""Searching, trends, and doing nothing. What is found is in the agent's next observation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from shoal.worlds.base import Rejected
from shoal.worlds.social.search import find_posts
from shoal.worlds.social.show import show_posts, without_muted
from shoal.worlds.social.state import Done, State, Turn
from shoal.worlds.social.views import Answer, PostView

_POSTS_FOUND = 5
_USERS_FOUND = 5


def search_posts(state: State, turn: Turn, args: dict[str, Any]) -> Done:
    query = _query(args)
    rows = _unmuted(state, turn.agent, find_posts(state.posts, query))
    found = _shown(state, turn, list(islice(rows, _POSTS_FOUND)))
    state.answer(turn, Answer("SEARCH_POSTS", query, posts=found))
    return Done({"query": query}, {"query": query, "posts": [post.post_id for post in found]})


def search_user(state: State, turn: Turn, args: dict[str, Any]) -> Done:
    query = _query(args)
    found = state.directory.find(query)[:_USERS_FOUND]
    state.answer(turn, Answer("SEARCH_USER", query, users=tuple((agent, state.names[agent]) for agent in found)))
    return Done({"query": query}, {"query": query, "users": found})


def trend(state: State, turn: Turn, args: dict[str, Any]) -> Done:
    """The most liked post of the last days."""
    rows = [] if state.trending is None else [state.trending]
    found = _shown(state, turn, list(_unmuted(state, turn.agent, rows)))
    state.answer(turn, Answer("TREND", "", posts=found))
    return Done({}, {"posts": [post.post_id for post in found]})


def refresh(state: State, turn: Turn, args: dict[str, Any]) -> Done:
    """Nothing to do: every turn starts with a fresh feed."""
    return Done({}, {})


def do_nothing(state: State, turn: Turn, args: dict[str, Any]) -> Done:
    return Done({}, {})


def interview(state: State, turn: Turn, args: dict[str, Any]) -> Done:
    """A question put to the agent, kept in the trace with its answer."""
    answer = str(args.get("response", ""))
    return Done({"prompt": args["prompt"], "response": answer}, {"prompt": args["prompt"], "response": answer})


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


def _shown(state: State, turn: Turn, rows: list[int]) -> tuple[PostView, ...]:
    posts = show_posts(state, rows, turn.round, state.comments_shown)
    return tuple(without_muted(state, turn.agent, post) for post in posts)
