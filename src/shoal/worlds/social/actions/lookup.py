"""Searching, trends, and doing nothing. The agent sees what it found in its next observation."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.worlds.base import Rejected
from shoal.worlds.social.observations import LookedUp, PostView
from shoal.worlds.social.state import Actor, Done, State
from shoal.worlds.social.view_builder import drop_hidden_replies, show_posts

#: A search looks through this many of the newest posts, so that its cost does not grow with the run.
_POSTS_SEARCHED = 1000
_POSTS_FOUND = 5
_USERS_FOUND = 5


def search_posts(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    """Show recent posts whose own words contain the query, newest first; or those closest to it in meaning."""
    query = _need_query(args)
    posts, wanted, rows = state.posts, query.casefold(), list[int]()
    newest = range(posts.count - 1, max(posts.count - _POSTS_SEARCHED, 0) - 1, -1)
    if state.searches_meaning and state.meanings is not None:
        numbers = np.array(newest, np.int64)
        own = numbers[posts.find_rated(numbers) == numbers].tolist()
        shown = np.array([row for row in own if not _is_hidden(state, actor, row)], np.int64)
        rows = state.meanings.search(query, shown, _POSTS_FOUND)
    else:
        for row in newest:
            said = posts.quote[row] or (posts.content[row] if posts.root[row] == row else "")
            if wanted in said.casefold() and not _is_hidden(state, actor, row):
                rows.append(row)
                if len(rows) == _POSTS_FOUND:
                    break
    found = _show(state, actor, rows)
    state.answer(actor, LookedUp("SEARCH_POSTS", query, posts=found))
    return Done({"query": query}, {"query": query, "posts": [post.post_id for post in found]})


def search_user(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    """Show the people whose name has every word of the query, and who are there."""
    query = _need_query(args)
    found = [agent for agent in state.index.search(query) if agent not in state.unknown and agent not in state.gone]
    found = found[:_USERS_FOUND]
    state.answer(actor, LookedUp("SEARCH_USER", query, users=tuple((agent, state.names[agent]) for agent in found)))
    return Done({"query": query}, {"query": query, "users": found})


def trend(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    """Show the most liked post of the last days."""
    rows = [row for row in (state.trending,) if row is not None and not _is_hidden(state, actor, row)]
    found = _show(state, actor, rows)
    state.answer(actor, LookedUp("TREND", "", posts=found))
    return Done({}, {"posts": [post.post_id for post in found]})


def do_nothing(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    """Do nothing. Refreshing does nothing either: every turn starts with a fresh feed."""
    return Done({}, {})


def interview(state: State, actor: Actor, args: dict[str, Any]) -> Done:
    """Keep a question to the agent and its answer in the trace."""
    answer = str(args.get("response", ""))
    return Done({"prompt": args["prompt"], "response": answer}, {"prompt": args["prompt"], "response": answer})


def _need_query(args: dict[str, Any]) -> str:
    query = str(args["query"]).strip()
    if not query:
        raise Rejected("there is nothing to search for")
    return query


def _is_hidden(state: State, actor: Actor, row: int) -> bool:
    """Return whether an author of the post is muted or suspended, also where others quote them."""
    posts = state.posts
    return any(state.feed.is_hidden(actor.agent, int(posts.author[each])) for each in (row, posts.root[row]))


def _show(state: State, actor: Actor, rows: list[int]) -> tuple[PostView, ...]:
    posts = show_posts(state, rows, actor.round, state.comments_shown, state.counts_shown)
    return tuple(drop_hidden_replies(state, actor.agent, post) for post in posts)
