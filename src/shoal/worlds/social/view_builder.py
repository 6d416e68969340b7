"""Turning rows into what agents see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.worlds.social.feed import FeedShape
from shoal.worlds.social.observations import CommentView, GroupView, MessageView, PostView
from shoal.worlds.social.ranking import RankingWeights, Rows
from shoal.worlds.social.state import GroupChat, State

#: Reports from which on a post is shown with a warning.
_REPORTS_TO_FLAG = 2
_MESSAGES_SHOWN = 5
_GROUPS_SHOWN = 3
_JOINED_SHOWN = 5
#: By lean: 0 to 100, then -100 to -1. Shared, so that views of many posts point to few numbers.
_SLANTS = tuple((lean if lean <= 100 else lean - 201) / 100 for lean in range(201))

Theme = tuple[str, ...]


class Page(NamedTuple):
    """What one agent is shown of posts."""

    followed: tuple[PostView, ...]
    recommended: tuple[PostView, ...]
    strangers: tuple[int, ...]
    reacted: tuple[int, ...]


class ViewBuilder:
    """The platform at one moment, as agents see it. Everybody who is shown a post is shown the same object."""

    def __init__(self, state: State, round: int, shape: FeedShape, weights: RankingWeights) -> None:
        self._state = state
        self._shape = shape
        self._picture = state.feed.picture(round, weights)
        self._biggest_groups = _biggest_groups(state)
        self._joined_groups: dict[int, GroupView] = {}
        # One place more than there are posts, for row -1: nothing.
        self._views = np.full(state.posts.count + 1, None, object)
        self._is_made = np.zeros(state.posts.count + 1, np.bool_)
        self._is_made[-1] = True

    def pages(self, agents: NDArray[np.int64]) -> list[Page]:
        """What each of them is shown of posts."""
        followed, recommended = self._state.feed.choose(self._picture, agents, self._shape)
        rows = np.concatenate([followed, recommended], axis=1)
        above, below = np.split(self._show(rows), [followed.shape[1]], axis=1)
        pages = map(
            self._page, agents.tolist(), above.tolist(), below.tolist(), self._strangers(agents, recommended).tolist(),
            self._state.posts.rated(np.maximum(rows, 0)).tolist(),
        )  # fmt: skip
        return [self._without_muted(page, agent) for page, agent in zip(pages, agents.tolist(), strict=True)]

    def groups(self, agent: int) -> tuple[GroupView, ...]:
        """The groups that the agent joined last, and the biggest others."""
        state = self._state
        others = [view for group, view in self._biggest_groups if agent not in group.members]
        joined = state.group_ids_of.get(agent)
        if not joined:
            return tuple(others)
        return (*(self._show_group(state.groups[group_id], agent) for group_id in joined[-_JOINED_SHOWN:]), *others)

    def _show_group(self, group: GroupChat, agent: int) -> GroupView:
        """Members who muted nobody all see the same."""
        if agent in self._picture.muters:
            return show_group(self._state, group, agent)
        view = self._joined_groups.get(group.group_id)
        if view is None:
            view = self._joined_groups[group.group_id] = show_group(self._state, group, agent)
        return view

    def _show(self, rows: Rows) -> NDArray[np.object_]:
        """What is in these rows; None where there is nothing."""
        new = np.unique(rows[~self._is_made[rows]])
        self._views[new] = show_posts(self._state, new, self._picture.round, self._shape.comments)
        self._is_made[new] = True
        return self._views[rows]

    def _page(
        self,
        agent: int,
        above: list[PostView | None],
        below: list[PostView | None],
        strangers: list[int],
        rated: list[int],
    ) -> Page:
        reacted = self._state.reacted.get(agent)
        known = [n for n, row in enumerate(rated) if row in reacted] if reacted else ()
        posts = above + below
        return Page(
            tuple([post for post in above if post is not None]),
            tuple([post for post in below if post is not None]),
            tuple([author for author in strangers if author >= 0]),
            tuple([post.post_id for n in known if (post := posts[n]) is not None]),
        )

    def _strangers(self, agents: NDArray[np.int64], recommended: Rows) -> NDArray[np.int64]:
        """Authors of recommended posts whom the agent does not follow; -1 for the others."""
        authors = self._state.posts.author[np.maximum(recommended, 0)].astype(np.int64)
        who = np.broadcast_to(agents[:, None], recommended.shape)
        known = self._state.follows.are(who.ravel(), authors.ravel()).reshape(recommended.shape)
        return np.where((recommended >= 0) & ~known, authors, -1)

    def _without_muted(self, page: Page, agent: int) -> Page:
        if agent not in self._picture.muters:
            return page
        return page._replace(
            followed=tuple(without_muted(self._state, agent, post) for post in page.followed),
            recommended=tuple(without_muted(self._state, agent, post) for post in page.recommended),
        )


def _biggest_groups(state: State) -> list[tuple[GroupChat, GroupView]]:
    """The biggest groups, as those see them who are not in them."""
    biggest = sorted(state.groups.values(), key=lambda group: (-len(group.members), group.group_id))[:_GROUPS_SHOWN]
    return [(group, GroupView(group.group_id, group.name, len(group.members), False, ())) for group in biggest]


def show_posts(state: State, rows: Sequence[int] | Rows, round: int, comments_shown: int) -> list[PostView]:
    """The posts in these rows, as everybody sees them who is shown them."""
    if not len(rows):
        return []
    posts, names, topics, themes = state.posts, state.names, state.topics, state.themes
    at = np.asarray(rows, np.int64)
    root, rated = posts.root[at], posts.rated(at)
    columns = (
        posts.post_id[at], posts.author[at], root, posts.topics[root], posts.lean[at], rated, posts.author[root],
        round - posts.round[at], posts.likes[rated], posts.dislikes[rated], posts.shares[rated], posts.comments[rated],
        posts.reports[rated],
    )  # fmt: skip
    return [
        PostView(
            post_id, author, names[author], posts.content[root], posts.quote[row],
            None if root == row else names[wrote], age, likes, dislikes, shares, comments,
            reports >= _REPORTS_TO_FLAG, _interned(themes, tuple([topics[topic] for topic in about if topic >= 0])),
            _SLANTS[lean], show_comments(state, rated, comments_shown) if comments else (),
        )
        for (
            row, post_id, author, root, about, lean, rated, wrote, age, likes, dislikes, shares, comments, reports
        ) in zip(at.tolist(), *(column.tolist() for column in columns), strict=True)
    ]  # fmt: skip


def _interned(known: dict[Theme, Theme], theme: Theme) -> Theme:
    """One object for equal ones, so that there are few to look at."""
    return known.setdefault(theme, theme)


def show_comments(state: State, row: int, count: int) -> tuple[CommentView, ...]:
    """The best comments under the post in this row; the same objects until one of them changes."""
    comments = state.comments
    shown = comments.shown.get(row)
    if shown is None or shown[0] != count:
        shown = comments.shown[row] = (count, tuple(_comment(state, c) for c in comments.best(row, count)))
    return shown[1]


def _comment(state: State, row: int) -> CommentView:
    comments = state.comments
    author = comments.author[row]
    return CommentView(
        comments.comment_id[row], author, state.names[author], comments.content[row], comments.likes[row],
        comments.dislikes[row],
    )  # fmt: skip


def without_muted(state: State, agent: int, post: PostView) -> PostView:
    """The post without what people said under it whom the agent has muted."""
    heard = tuple(reply for reply in post.replies if not state.feed.is_muted(agent, reply.author_id))
    return post if len(heard) == len(post.replies) else msgspec.structs.replace(post, replies=heard)


def show_group(state: State, group: GroupChat, agent: int) -> GroupView:
    """A group as its members see it."""
    messages = tuple(
        MessageView(author, state.names[author], content)
        for author, content in group.messages[-_MESSAGES_SHOWN:]
        if not state.feed.is_muted(agent, author)
    )
    return GroupView(group.group_id, group.name, len(group.members), True, messages)
