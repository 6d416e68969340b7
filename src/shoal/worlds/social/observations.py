"""What agents on a social platform get to see."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import msgspec

from shoal.types import Mention, Observation


class CommentView(msgspec.Struct, frozen=True, gc=False):
    comment_id: int
    author_id: int
    author: str
    content: str
    likes: int
    dislikes: int
    #: What it says of a claim.
    mention: Mention | msgspec.UnsetType = msgspec.UNSET


class PostView(msgspec.Struct, frozen=True, gc=False):
    """A post, as all agents see it that are shown it in this round."""

    post_id: int
    author_id: int
    author: str
    content: str
    #: What the author added to another person's post; None unless this is a quote.
    quote: str | None
    #: The author of `content`, where this post is a repost or a quote.
    original_author: str | None
    #: Rounds since it was written.
    age: int
    likes: int
    dislikes: int
    shares: int
    comments: int
    #: Reported at least twice.
    flagged: bool
    #: What it is about, in the words of the scenario's topics.
    topics: tuple[str, ...]
    #: Which way it leans, from -1 (doubt, denial, anger) to 1 (belief, approval, trust).
    slant: float
    replies: tuple[CommentView, ...]
    #: What it says of a claim; a quote speaks of the claim of the post that it quotes.
    mention: Mention | msgspec.UnsetType = msgspec.UNSET


class MessageView(msgspec.Struct, frozen=True, gc=False):
    author_id: int
    author: str
    content: str


class GroupView(msgspec.Struct, frozen=True, gc=False):
    group_id: int
    name: str
    members: int
    joined: bool
    #: The newest messages; only members see them.
    messages: tuple[MessageView, ...]


class LookedUp(msgspec.Struct, frozen=True, gc=False):
    """What the agent found when it looked something up in its last turn."""

    action: str
    query: str
    posts: tuple[PostView, ...] = ()
    users: tuple[tuple[int, str], ...] = ()
    messages: tuple[MessageView, ...] = ()


class SocialObservation(Observation, frozen=True, kw_only=True):
    """A look at the platform."""

    #: Posts by people the agent follows, best first.
    followed: tuple[PostView, ...]
    #: Posts the platform chose, best first.
    recommended: tuple[PostView, ...]
    #: Authors of recommended posts that the agent does not follow.
    strangers: tuple[int, ...] = ()
    #: Posts shown here that the agent has already liked, disliked or shared.
    reacted: tuple[int, ...] = ()
    followers: int = 0
    following: int = 0
    #: News to all, or to this agent, since its last turn.
    announcements: tuple[str, ...] = ()
    answers: tuple[LookedUp, ...] = ()
    groups: tuple[GroupView, ...] = ()
    #: Products on sale and how many were sold.
    products: tuple[tuple[str, int], ...] = ()

    def posts(self) -> Iterator[PostView]:
        """Yield every post in sight: those of the feed, then those that were looked up."""
        yield from self.followed
        yield from self.recommended
        for answer in self.answers:
            yield from answer.posts

    def sources(self) -> Iterator[tuple[int, object]]:
        """Yield what people wrote, said or passed on, with its author. Counts of likes have no author."""
        for post in self.posts():
            yield post.author_id, ("post", post.post_id, post.content, post.quote)
            for reply in post.replies:
                yield reply.author_id, ("comment", reply.comment_id, reply.content)
        messages = [*(group.messages for group in self.groups), *(answer.messages for answer in self.answers)]
        for message in chain.from_iterable(messages):
            yield message.author_id, ("message", message.content)
