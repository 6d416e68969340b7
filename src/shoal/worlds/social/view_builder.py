"""Turns rows into what agents see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.worlds.social.observations import CommentView, GroupView, MessageView, PostView
from shoal.worlds.social.ranking import Rows
from shoal.worlds.social.settings import FeedRules
from shoal.worlds.social.state import GroupChat, State

#: Reports from which on a post is shown with a warning.
_REPORTS_TO_FLAG = 2
_MESSAGES_SHOWN = 5
_GROUPS_SHOWN = 3
_JOINED_SHOWN = 5
#: By lean: 0 to 100, then -100 to -1. Shared, so that views of many posts point to few numbers.
_SLANTS = tuple((lean if lean <= 100 else lean - 201) / 100 for lean in range(201))


class Page(NamedTuple):
    """The posts that one agent is shown."""

    followed: tuple[PostView, ...]
    recommended: tuple[PostView, ...]
    strangers: tuple[int, ...]
    reacted: tuple[int, ...]


class ViewBuilder:
    """The platform at one moment, as agents see it. All agents that are shown a post share one view of it."""

    def __init__(self, state: State, round: int, rules: FeedRules) -> None:
        self._state = state
        self._picture = state.feed.take_picture(round, rules)
        biggest = sorted(state.groups.values(), key=lambda group: (-len(group.members), group.group_id))[:_GROUPS_SHOWN]
        #: The biggest groups, as agents outside see them.
        self._biggest_groups = [
            (group, GroupView(group.group_id, group.name, len(group.members), False, ())) for group in biggest
        ]
        self._joined_groups: dict[int, GroupView] = {}
        # One place more than there are posts, for row -1: nothing.
        self._views = np.full(state.posts.count + 1, None, object)
        self._is_made = np.zeros(state.posts.count + 1, np.bool_)
        self._is_made[-1] = True

    def pages(self, agents: NDArray[np.int64]) -> Iterator[Page]:
        """Yield the posts that each agent is shown."""
        state, picture = self._state, self._picture
        followed, recommended = state.feed.choose(picture, agents)
        rows = np.concatenate([followed, recommended], axis=1)
        new = np.unique(rows[~self._is_made[rows]])
        self._views[new] = show_posts(state, new, picture.round, picture.rules.comments, picture.rules.counts)
        self._is_made[new] = True
        # Authors of recommended posts that the agent does not follow; -1 for the others.
        authors = state.posts.author[np.maximum(recommended, 0)].astype(np.int64)
        who = np.broadcast_to(agents[:, None], recommended.shape)
        known = state.follows.are(who.ravel(), authors.ravel()).reshape(recommended.shape)
        if state.gone:
            # They cannot be followed any more.
            known = known | np.isin(authors, list(state.gone))
        strangers = np.where((recommended >= 0) & ~known, authors, -1)
        rated = state.posts.find_rated(np.maximum(rows, 0))
        columns = (agents, self._views[rows], strangers, rated)
        for agent, views, unknown, rated_rows in zip(*(column.tolist() for column in columns), strict=True):
            reacted = state.reacted.get(agent, ())
            known_posts = zip(views, rated_rows, strict=True) if reacted else ()
            if agent in picture.muters or len(picture.suspended):
                views = [post and drop_hidden_replies(state, agent, post) for post in views]
            yield Page(
                tuple([post for post in views[: followed.shape[1]] if post is not None]),
                tuple([post for post in views[followed.shape[1] :] if post is not None]),
                tuple([author for author in unknown if author >= 0]),
                tuple([post.post_id for post, row in known_posts if post and row in reacted]),
            )

    def groups(self, agent: int) -> tuple[GroupView, ...]:
        """Return the groups that the agent joined last, and the biggest others."""
        state = self._state
        others = [view for group, view in self._biggest_groups if agent not in group.members]
        joined = state.group_ids_of.get(agent)
        if not joined:
            return tuple(others)
        views = []
        for group_id in joined[-_JOINED_SHOWN:]:
            # All members that muted no one see the same.
            view = None if agent in self._picture.muters else self._joined_groups.get(group_id)
            if view is None:
                view = show_group(state, state.groups[group_id], agent)
                if agent not in self._picture.muters:
                    self._joined_groups[group_id] = view
            views.append(view)
        return (*views, *others)


def show_posts(
    state: State, rows: Sequence[int] | Rows, round: int, comments_shown: int, counts_shown: bool = True
) -> list[PostView]:
    """Return views of the posts in these rows, which all agents share; without counts of reactions where wanted."""
    if not len(rows):
        return []
    posts, names, topics, themes = state.posts, state.names, state.topics, state.themes
    at = np.asarray(rows, np.int64)
    root, rated = posts.root[at], posts.find_rated(at)
    shown = 1 if counts_shown else 0
    columns = (
        posts.post_id[at], posts.author[at], root, posts.topics[root], posts.lean[at], rated, posts.author[root],
        round - posts.round[at], shown * posts.likes[rated], shown * posts.dislikes[rated], shown * posts.shares[rated],
        posts.comments[rated],
        posts.reports[rated],
    )  # fmt: skip
    return [
        PostView(
            post_id, author, names[author], posts.content[root], posts.quote[row],
            None if root == row else names[wrote], age, likes, dislikes, shares, comments,
            reports >= _REPORTS_TO_FLAG,
            themes.setdefault(theme := tuple([topics[topic] for topic in about if topic >= 0]), theme),
            _SLANTS[lean], show_comments(state, rated, comments_shown) if comments else (),
            posts.mention[row] or msgspec.UNSET,
        )
        for (
            row, post_id, author, root, about, lean, rated, wrote, age, likes, dislikes, shares, comments, reports
        ) in zip(at.tolist(), *(column.tolist() for column in columns), strict=True)
    ]  # fmt: skip


def show_comments(state: State, row: int, count: int) -> tuple[CommentView, ...]:
    """Return the best comments under the post in this row; the same objects until one of them changes."""
    comments = state.comments
    shown = comments.shown.get(row)
    if shown is None or shown[0] != count:
        views = tuple(
            CommentView(
                comments.comment_id[c], comments.author[c], state.names[comments.author[c]], comments.content[c],
                comments.likes[c], comments.dislikes[c], comments.mention[c] or msgspec.UNSET,
            )
            for c in comments.best(row, count)
        )  # fmt: skip
        shown = comments.shown[row] = (count, views)
    return shown[1]


def drop_hidden_replies(state: State, agent: int, post: PostView) -> PostView:
    """Return the post without comments by people that the agent has muted or that are suspended."""
    heard = tuple(reply for reply in post.replies if not state.feed.is_hidden(agent, reply.author_id))
    return post if len(heard) == len(post.replies) else msgspec.structs.replace(post, replies=heard)


def show_group(state: State, group: GroupChat, agent: int) -> GroupView:
    """Return a group as its members see it."""
    messages = tuple(
        MessageView(author, state.names[author], content)
        for author, content in group.messages[-_MESSAGES_SHOWN:]
        if (agent, author) not in state.feed.mutes
    )
    return GroupView(group.group_id, group.name, len(group.members), True, messages)
