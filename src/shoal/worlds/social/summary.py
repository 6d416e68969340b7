"""Reads from the database of a platform which posts people reacted to, and how far the scenario's topic went."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

from shoal.worlds.lexicon import TextReader
from shoal.worlds.world_kind import SummaryContext

#: How many posts are named.
_MAX_NAMED = 5

#: A post that only passes on another one has no reactions of its own.
_TOP_POSTS = """
SELECT post_id, name, coalesce(quote_content, content), num_likes, num_dislikes, num_shares,
    (SELECT count(*) FROM comment WHERE comment.post_id = post.post_id) AS comments, post.created_at
FROM post JOIN user USING (user_id) WHERE original_post_id IS NULL OR quote_content IS NOT NULL
ORDER BY num_likes + num_shares + comments DESC, post_id LIMIT ?
"""
#: Posts that speak of the topic or pass it on. `on_topic` is a function that `_read_talk` defines.
_MAKE_ABOUT = """
CREATE TEMP TABLE about AS SELECT post_id, user_id, created_at FROM post
WHERE on_topic(content) OR on_topic(quote_content) ORDER BY post_id
"""
_ABOUT_BY_DATE = "SELECT created_at, count(*) FROM about GROUP BY 1"
_NEWCOMERS_BY_DATE = """
SELECT first, count(*) FROM (SELECT user_id, min(created_at) AS first FROM (
    SELECT user_id, created_at FROM about
    UNION ALL SELECT user_id, created_at FROM "like" WHERE post_id IN (SELECT post_id FROM about)
    UNION ALL SELECT user_id, created_at FROM comment WHERE post_id IN (SELECT post_id FROM about)
) GROUP BY user_id) GROUP BY first
"""
_MAKE_CAMP = "CREATE TEMP TABLE camp (user_id INTEGER PRIMARY KEY, name TEXT)"
_POSTS_BY_CAMP = "SELECT name, count(*) FROM about JOIN camp USING (user_id) GROUP BY name"
_LIKES_BY_CAMP = """
SELECT liker.name, count(*), sum(liker.name = author.name) FROM "like"
JOIN about USING (post_id) JOIN camp AS liker ON liker.user_id = "like".user_id
JOIN camp AS author ON author.user_id = about.user_id GROUP BY liker.name
"""


@dataclass(frozen=True, slots=True)
class TopPost:
    """A post that many reacted to."""

    post_id: int
    author: str
    text: str
    likes: int
    dislikes: int
    shares: int
    comments: int
    round: int


@dataclass(frozen=True, slots=True)
class Camp:
    """People of one opinion at the start, and how far they keep to themselves."""

    name: str
    people: int
    posts: int
    #: Likes they gave to posts on the topic, and how many of these went to people of their own opinion.
    likes: int
    likes_within: int


@dataclass(frozen=True, slots=True)
class Talk:
    """How far the scenario's topic went."""

    topic: str
    #: Posts that speak of it or pass it on, by round.
    posts_by_round: tuple[int, ...]
    #: People who wrote about it, passed it on, liked or commented it, up to each round.
    people_by_round: tuple[int, ...]
    camps: tuple[Camp, ...]


def summarise(context: SummaryContext) -> Mapping[str, Any]:
    """Read the fields `top_posts` and `talk` of a world's summary."""
    rows = context.database.execute(_TOP_POSTS, (_MAX_NAMED,))
    top_posts = tuple(TopPost(*(*row[:-1], _find_round(row[-1], context))) for row in rows)
    return {"top_posts": top_posts, "talk": _read_talk(context.topic, context) if context.topic else None}


def _read_talk(topic: str, context: SummaryContext) -> Talk:
    database, reader = context.database, TextReader((), topic)
    database.create_function(
        "on_topic", 1, lambda text: text is not None and reader.is_on_topic(text), deterministic=True
    )
    database.execute(_MAKE_ABOUT)
    newcomers = _count_by_round(database.execute(_NEWCOMERS_BY_DATE).fetchall(), context)
    return Talk(
        topic=topic,
        posts_by_round=tuple(_count_by_round(database.execute(_ABOUT_BY_DATE).fetchall(), context)),
        people_by_round=tuple(accumulate(newcomers)),
        camps=_count_camps(context),
    )


def _count_camps(context: SummaryContext) -> tuple[Camp, ...]:
    if context.camps is None:
        return ()
    database = context.database
    database.execute(_MAKE_CAMP)
    for name, agents in context.camps.items():
        database.executemany("INSERT INTO camp VALUES (?, ?)", ((agent, name) for agent in agents))
    posts = dict(database.execute(_POSTS_BY_CAMP).fetchall())
    likes = {name: (given, within) for name, given, within in database.execute(_LIKES_BY_CAMP)}
    return tuple(
        Camp(name, len(agents), posts.get(name, 0), *likes.get(name, (0, 0)))
        for name, agents in context.camps.items()
        if agents
    )


def _count_by_round(rows: Sequence[tuple[int | str, int]], context: SummaryContext) -> list[int]:
    """Turn counts by date into one count for each round, 0 to the last."""
    counts = [0] * (context.last_round + 1)
    for created_at, count in rows:
        counts[min(_find_round(created_at, context), context.last_round)] += count
    return counts


def _find_round(created_at: int | str, context: SummaryContext) -> int:
    """Return the round of a row. Some platforms date their rows by round, others by simulated time."""
    if isinstance(created_at, int):
        return created_at
    date = datetime.fromisoformat(created_at).replace(tzinfo=UTC)
    return max(bisect_right(range(1, context.last_round + 1), date, key=context.clock.at), 1)
