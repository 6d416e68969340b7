"""Posts and comments in columns. Rows are numbered in the order in which they were written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.types import Mention
from shoal.worlds.lexicon import MAX_TOPICS
from shoal.worlds.social.observations import CommentView

_FIRST_CAPACITY = 1024
#: Topics kept of a text: as many as a reader finds, with the subject.
_TOPICS_KEPT = MAX_TOPICS + 1


#: All figures of one post side by side, in one line of the processor's cache: most rules need several of them.
_POST = np.dtype(
    {
        "names": ["post_id", "author", "root", "round", "likes", "dislikes", "shares", "reports", "comments", "topics",
                  "lean", "is_quote"],
        "formats": ["i8", "i4", "i4", "i4", "i4", "i4", "i4", "i4", "i4", ("i2", (_TOPICS_KEPT,)), "i2", "?"],
        "itemsize": 64,
    }
)  # fmt: skip


class Posts:
    """Every post. A repost or quote points to the row of the post at its root."""

    post_id: NDArray[np.int64]
    author: NDArray[np.int32]
    root: NDArray[np.int32]
    round: NDArray[np.int32]
    likes: NDArray[np.int32]
    dislikes: NDArray[np.int32]
    shares: NDArray[np.int32]
    reports: NDArray[np.int32]
    comments: NDArray[np.int32]
    topics: NDArray[np.int16]
    #: Which way it leans, -100 to 100.
    lean: NDArray[np.int16]
    is_quote: NDArray[np.bool_]

    def __init__(self) -> None:
        self.count = 0
        self.content: list[str] = []
        self.quote: list[str | None] = []
        #: What each says of a claim.
        self.mention: list[Mention | None] = []
        self.row_of: dict[int, int] = {}
        self._use(np.zeros(_FIRST_CAPACITY, _POST))

    def add(self, post_id: int, author: int, round: int, content: str, quote: str | None, root: int | None) -> int:
        """Append a post and return its row. Its counters start at zero."""
        row = self.count
        if row == len(self.post_id):
            grown = np.zeros(2 * len(self._table), _POST)
            grown[: len(self._table)] = self._table
            self._use(grown)
        self.count = row + 1
        self.content.append(content)
        self.quote.append(quote)
        self.mention.append(None)
        self.row_of[post_id] = row
        self.post_id[row] = post_id
        self.author[row] = author
        self.root[row] = row if root is None else root
        self.is_quote[row] = quote is not None
        self.round[row] = round
        return row

    def describe(self, row: int, topics: Sequence[int], slant: float, mention: Mention | None = None) -> None:
        """Set what the words of a post are about, which way they lean, and what they say of a claim."""
        self.mention[row] = mention
        self.topics[row, : len(topics)] = topics
        self.lean[row] = round(slant * 100)

    def find_rated(self, rows: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return where reactions to these posts are counted: a quote has its own, a repost has those of its root."""
        return np.where(self.is_quote[rows], rows, self.root[rows])

    def engagement(self, rows: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return how strongly people reacted to these posts: a share counts twice, a dislike takes one back."""
        total = self.likes[rows] + 2 * self.shares[rows] + self.comments[rows] - self.dislikes[rows]
        return np.asarray(total, np.int32)

    def _use(self, table: NDArray[np.void]) -> None:
        """Give each column its name."""
        self._table = table
        table["topics"][self.count :] = -1
        for name in table.dtype.names or ():
            setattr(self, name, table[name])


class Comments:
    """Every comment."""

    def __init__(self) -> None:
        self.row_of: dict[int, int] = {}
        self.comment_id: list[int] = []
        self.post: list[int] = []
        self.author: list[int] = []
        self.content: list[str] = []
        self.mention: list[Mention | None] = []
        self.likes: list[int] = []
        self.dislikes: list[int] = []
        self._under: dict[int, list[int]] = {}
        #: Post -> the comments last shown under it, and the most that could be shown; removed when out of date.
        self.shown: dict[int, tuple[int, tuple[CommentView, ...]]] = {}

    def add(self, comment_id: int, post: int, author: int, content: str, mention: Mention | None = None) -> int:
        row = len(self.comment_id)
        self.row_of[comment_id] = row
        self.comment_id.append(comment_id)
        self.post.append(post)
        self.author.append(author)
        self.content.append(content)
        self.mention.append(mention)
        self.likes.append(0)
        self.dislikes.append(0)
        self._under.setdefault(post, []).append(row)
        self.shown.pop(post, None)
        return row

    def best(self, post: int, count: int, of_newest: int = 24) -> list[int]:
        """Return the best liked of the newest comments under a post; newer ones first among equals."""
        under = self._under.get(post)
        if not under or not count:
            return []
        newest = under[-of_newest:]
        return sorted(newest, key=lambda row: (self.dislikes[row] - self.likes[row], -row))[:count]
