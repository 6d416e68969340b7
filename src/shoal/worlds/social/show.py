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
        self._biggest_groups: list[tuple[Group, GroupView]] = []

    def open(self, round: int, agents: NDArray[np.int64], shape: Shape, weights: Weights) -> list[Page]:
        state = self._state
        self._biggest_groups = _biggest_groups(state)
        followed, recommended = state.feed.choose(round, agents, shape, weights)
        shown, places = np.unique(np.concatenate([followed, recommended], axis=1), return_inverse=True)
        views = np.empty(len(shown), object)
        known = shown >= 0
        views[known] = show_posts(state, shown[known], round, shape.comments)
        above, below = np.split(views[places.reshape(len(agents), -1)], [followed.shape[1]], axis=1)
        targets = self._targets(np.concatenate([followed, recommended], axis=1))
        pages = map(
            self._page, agents.tolist(), above.tolist(), below.tolist(), self._strangers(agents, recommended).tolist(),
            targets.tolist(),
        )  # fmt: skip
        muters = state.feed.muters()
        return [self._without_muted(page, agent, muters) for page, agent in zip(pages, agents.tolist(), strict=True)]

    def groups(self, agent: int) -> tuple[GroupView, ...]:
        """All groups that the agent is in, and the biggest others."""
        state = self._state
        joined = state.group_ids_of.get(agent)
        others = [view for group, view in self._biggest_groups if agent not in group.members]
        return (*(show_group(state, state.groups[group_id], agent) for group_id in joined or ()), *others)

    def _page(
        self,
        agent: int,
        above: list[PostView | None],
        below: list[PostView | None],
        strangers: list[int],
        targets: list[int],
    ) -> Page:
        followed = tuple([post for post in above if post is not None])
        recommended = tuple([post for post in below if post is not None])
        reacted, people = self._state.reacted, self._state.people
        return Page(
            followed,
            recommended,
            tuple([author for author in strangers if author >= 0]),
            tuple([
                post.post_id
                for post, row in zip(above + below, targets, strict=True)
                if post is not None and row * people + agent in reacted
            ]),
        )  # fmt: skip

    def _targets(self, rows: Rows) -> Rows:
        """The rows that reactions to these posts would concern."""
        posts = self._state.posts
        shown = np.maximum(rows, 0)
        return np.where(posts.is_quote[shown], shown, posts.root[shown])

    def _strangers(self, agents: NDArray[np.int64], recommended: Rows) -> NDArray[np.int64]:
        """Authors of recommended posts whom the agent does not follow; -1 for the others."""
        authors = self._state.posts.author[np.maximum(recommended, 0)].astype(np.int64)
        who = np.broadcast_to(agents[:, None], recommended.shape)
        known = self._state.follows.are(who.ravel(), authors.ravel()).reshape(recommended.shape)
        return np.where((recommended >= 0) & ~known, authors, -1)

    def _without_muted(self, page: Page, agent: int, muters: set[int]) -> Page:
        if agent not in muters:
            return page
        return page._replace(
            followed=tuple(without_muted(self._state, agent, post) for post in page.followed),
            recommended=tuple(without_muted(self._state, agent, post) for post in page.recommended),
        )


def _biggest_groups(state: State) -> list[tuple[Group, GroupView]]:
    """The biggest groups, as those see them who are not in them."""
    biggest = sorted(state.groups.values(), key=lambda group: (-len(group.members), group.group_id))[:_GROUPS_SHOWN]
    return [(group, GroupView(group.group_id, group.name, len(group.members), False, ())) for group in biggest]


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
    said_under = row if state.posts.is_quote[row] else root
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
    """A group as its members see it."""
    messages = tuple(
        MessageView(author, state.names[author], content)
        for author, content in group.messages[-_MESSAGES_SHOWN:]
        if not state.feed.is_muted(agent, author)
    )
    return GroupView(group.group_id, group.name, len(group.members), True, messages)
