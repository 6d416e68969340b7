"""Turning rows into what agents see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.worlds.social.feed import Shape
from shoal.worlds.social.recommend import Rows, Weights
from shoal.worlds.social.state import Group, State
from shoal.worlds.social.views import CommentView, GroupView, MessageView, PostView

#: Reports from which on a post is shown with a warning.
_REPORTS_TO_FLAG = 2
_MESSAGES_SHOWN = 5
_GROUPS_SHOWN = 3


class Page(NamedTuple):
    """What one agent is shown of posts."""

    followed: tuple[PostView, ...]
    recommended: tuple[PostView, ...]
    strangers: tuple[int, ...]
    reacted: tuple[int, ...]


class Window:
    """Shows the platform to agents. Everybody who is shown a post in a round is shown the same object."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._biggest_groups: list[Group] = []

    def open(self, round: int, agents: NDArray[np.int64], shape: Shape, weights: Weights) -> list[Page]:
        state = self._state
        self._biggest_groups = sorted(state.groups.values(), key=lambda g: (-len(g.members), g.group_id))[
            :_GROUPS_SHOWN
        ]
        followed, recommended = state.feed.choose(round, agents, shape, weights)
        rows = np.unique(np.concatenate([followed.ravel(), recommended.ravel()]))
        rows = rows[rows >= 0]
        views = dict(zip(rows.tolist(), show_posts(state, rows, round, shape.comments), strict=True))
        strangers = self._strangers(agents, recommended)
        roots = dict(zip(rows.tolist(), state.posts.root[rows].tolist(), strict=True))
        muters = state.feed.muters()
        pages = []
        for agent, above, below, unknown in zip(
            agents.tolist(), followed.tolist(), recommended.tolist(), strangers.tolist(), strict=True
        ):
            seen: set[int] = set()
            top = _different(above, roots, seen, shape.followed)
            rest = _different(below, roots, seen, shape.recommended)
            page = Page(
                tuple([views[row] for row in top]),
                tuple([views[row] for row in rest]),
                tuple([views[row].author_id for row, new in zip(below, unknown, strict=True) if new and row in rest]),
                tuple([views[row].post_id for row in (*top, *rest) if self._reacted(agent, row, roots[row])]),
            )
            pages.append(self._without_muted(agent, page) if agent in muters else page)
        return pages

    def groups(self, agent: int) -> tuple[GroupView, ...]:
        """The biggest groups, and all that the agent is in."""
        state = self._state
        if not state.groups:
            return ()
        joined = [state.groups[group_id] for group_id in state.group_ids_of.get(agent, ())]
        others = [group for group in self._biggest_groups if agent not in group.members]
        return tuple(show_group(state, group, agent) for group in joined + others)

    def _strangers(self, agents: NDArray[np.int64], recommended: Rows) -> NDArray[np.bool_]:
        authors = self._state.posts.author[np.maximum(recommended, 0)].astype(np.int64)
        who = np.broadcast_to(agents[:, None], recommended.shape)
        known = self._state.follows.are(who.ravel(), authors.ravel()).reshape(recommended.shape)
        return np.asarray((recommended >= 0) & ~known)

    def _reacted(self, agent: int, row: int, root: int) -> bool:
        state = self._state
        target = row if state.posts.quote[row] is not None else root
        return (
            state.likes.given(agent, target) or state.shares.given(agent, root) or state.dislikes.given(agent, target)
        )

    def _without_muted(self, agent: int, page: Page) -> Page:
        state = self._state
        return page._replace(
            followed=tuple(without_muted(state, agent, post) for post in page.followed),
            recommended=tuple(without_muted(state, agent, post) for post in page.recommended),
        )


def _different(rows: list[int], roots: dict[int, int], seen: set[int], count: int) -> list[int]:
    """The first rows that do not repeat what was already seen; a quote says something of its own, a repost does not."""
    chosen: list[int] = []
    for row in rows:
        if row < 0 or len(chosen) == count:
            break
        root = roots[row]
        if root not in seen:
            seen.add(root)
            chosen.append(row)
    return chosen


def show_posts(state: State, rows: Sequence[int] | Rows, round: int, comments_shown: int) -> list[PostView]:
    """The posts in these rows, as everybody sees them who is shown them."""
    if not len(rows):
        return []
    posts, names = state.posts, state.names
    at = np.asarray(rows, np.int64)
    root = posts.root[at]
    columns = (
        posts.post_id[at], posts.author[at], root, posts.author[root], round - posts.round[at],
        posts.likes[root], posts.dislikes[root], posts.shares[root], posts.comments[root], posts.reports[root],
    )  # fmt: skip
    return [
        PostView(
            post_id, author, names[author], posts.content[root], posts.quote[row],
            None if root == row else names[wrote], age, likes, dislikes, shares, comments,
            reports >= _REPORTS_TO_FLAG, _topics(state, root),
            show_comments(state, row, root, comments_shown) if comments else (),
        )
        for row, post_id, author, root, wrote, age, likes, dislikes, shares, comments, reports in zip(
            at.tolist(), *(column.tolist() for column in columns), strict=True
        )
    ]  # fmt: skip


def _topics(state: State, row: int) -> tuple[str, ...]:
    first, second = state.posts.topics[row].tolist()
    if first < 0:
        return ()
    names = state.topics
    return (names[first],) if second < 0 else (names[first], names[second])


def show_comments(state: State, row: int, root: int, count: int) -> tuple[CommentView, ...]:
    comments = state.comments
    said_under = row if state.posts.quote[row] is not None else root
    return tuple(
        CommentView(
            comments.comment_id[c], comments.author[c], state.names[comments.author[c]], comments.content[c],
            comments.likes[c], comments.dislikes[c],
        )
        for c in comments.best(said_under, count)
    )  # fmt: skip


def without_muted(state: State, agent: int, post: PostView) -> PostView:
    """The post without what people said under it whom the agent has muted."""
    heard = tuple(reply for reply in post.replies if not state.feed.is_muted(agent, reply.author_id))
    return post if len(heard) == len(post.replies) else msgspec.structs.replace(post, replies=heard)


def show_group(state: State, group: Group, agent: int) -> GroupView:
    joined = agent in group.members
    messages = tuple(
        MessageView(author, state.names[author], content)
        for author, content in (group.messages[-_MESSAGES_SHOWN:] if joined else ())
        if not state.feed.is_muted(agent, author)
    )
    return GroupView(group.group_id, group.name, len(group.members), joined, messages)
