"""Searching, trends, and doing nothing. What is found is in the agent's next observation."""

from __future__ import annotations

from itertools import islice
from typing import Any

from shoal.worlds.social.search import find_posts
from shoal.worlds.social.show import show_posts
from shoal.worlds.social.state import Done, Rejected, State, Turn
from shoal.worlds.social.views import Answer

_POSTS_FOUND = 5
_USERS_FOUND = 5


def search_posts(state: State, turn: Turn, args: dict[str, Any]) -> Done:
    query = _query(args)
    heard = (
        row
        for row in find_posts(state.posts, query)
        if not state.feed.is_muted(turn.agent, int(state.posts.author[row]))
    )
    found = tuple(show_posts(state, list(islice(heard, _POSTS_FOUND)), turn.round, state.comments_shown))
    _answer(state, turn, Answer("SEARCH_POSTS", query, posts=found))
    return Done({"query": query}, {"query": query, "posts": [post.post_id for post in found]})


def search_user(state: State, turn: Turn, args: dict[str, Any]) -> Done:
    query = _query(args)
    found = state.directory.find(query)[:_USERS_FOUND]
    _answer(state, turn, Answer("SEARCH_USER", query, users=tuple((agent, state.names[agent]) for agent in found)))
    return Done({"query": query}, {"query": query, "users": found})


def trend(state: State, turn: Turn, args: dict[str, Any]) -> Done:
    """The most liked post of the last days."""
    row = state.trending(turn.round)
    found = () if row is None else tuple(show_posts(state, [row], turn.round, state.comments_shown))
    _answer(state, turn, Answer("TREND", "", posts=found))
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


def _answer(state: State, turn: Turn, answer: Answer) -> None:
    state.answers.setdefault(turn.agent, []).append(answer)
