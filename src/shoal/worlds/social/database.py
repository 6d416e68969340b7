"""The platform's database: tables and columns as OASIS names them, so that existing analysis works; and its summary."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate, chain
from typing import Any

from shoal.types import MAX_ACTIONS_PER_TURN, Versioned, Writes
from shoal.worlds.base import SIGN_UP, SIGN_UP_LATER, TRACE
from shoal.worlds.clock import Clock
from shoal.worlds.lexicon import TextReader
from shoal.worlds.world_kind import SummaryContext

SCHEMA = """
CREATE TABLE user (user_id INTEGER PRIMARY KEY, agent_id INTEGER, user_name TEXT, name TEXT, bio TEXT, created_at,
    num_followings INTEGER DEFAULT 0, num_followers INTEGER DEFAULT 0);
CREATE TABLE post (post_id INTEGER PRIMARY KEY, user_id INTEGER, original_post_id INTEGER, content TEXT DEFAULT '',
    quote_content TEXT, created_at, num_likes INTEGER DEFAULT 0, num_dislikes INTEGER DEFAULT 0,
    num_shares INTEGER DEFAULT 0, num_reports INTEGER DEFAULT 0);
CREATE TABLE comment (comment_id INTEGER PRIMARY KEY, post_id INTEGER, user_id INTEGER, content TEXT, created_at,
    num_likes INTEGER DEFAULT 0, num_dislikes INTEGER DEFAULT 0);
CREATE TABLE "like" (like_id INTEGER PRIMARY KEY, user_id INTEGER, post_id INTEGER, created_at);
CREATE TABLE dislike (dislike_id INTEGER PRIMARY KEY, user_id INTEGER, post_id INTEGER, created_at);
CREATE TABLE comment_like (comment_like_id INTEGER PRIMARY KEY, user_id INTEGER, comment_id INTEGER, created_at);
CREATE TABLE comment_dislike (comment_dislike_id INTEGER PRIMARY KEY, user_id INTEGER, comment_id INTEGER, created_at);
CREATE TABLE follow (follow_id INTEGER PRIMARY KEY, follower_id INTEGER, followee_id INTEGER, created_at);
CREATE TABLE mute (mute_id INTEGER PRIMARY KEY, muter_id INTEGER, mutee_id INTEGER, created_at);
CREATE TABLE report (report_id INTEGER PRIMARY KEY, user_id INTEGER, post_id INTEGER, report_reason TEXT, created_at);
CREATE TABLE trace (user_id INTEGER, created_at, action TEXT, info TEXT);
CREATE TABLE rec (user_id INTEGER, post_id INTEGER, PRIMARY KEY (user_id, post_id)) WITHOUT ROWID;
CREATE TABLE product (product_id INTEGER PRIMARY KEY, product_name TEXT, sales INTEGER DEFAULT 0);
CREATE TABLE chat_group (group_id INTEGER PRIMARY KEY, name TEXT, created_at);
CREATE TABLE group_members (group_id INTEGER, agent_id INTEGER, joined_at, PRIMARY KEY (group_id, agent_id));
CREATE TABLE group_messages (message_id INTEGER PRIMARY KEY, group_id INTEGER, sender_id INTEGER, content TEXT,
    sent_at);
CREATE INDEX comment_by_post ON comment (post_id);
CREATE INDEX follow_by_follower ON follow (follower_id);
CREATE INDEX trace_of_ties ON trace (action) WHERE action IN ('follow', 'unfollow');
"""
#: Holds for the rows of the trace that this index has: few, however long a run is.
IS_TIE_CHANGE = "action IN ('follow', 'unfollow')"

CLAIM_COLUMNS = """
ALTER TABLE post ADD COLUMN claim TEXT;
ALTER TABLE post ADD COLUMN lean REAL;
ALTER TABLE comment ADD COLUMN claim TEXT;
ALTER TABLE comment ADD COLUMN lean REAL;
CREATE INDEX post_by_claim ON post (claim) WHERE claim IS NOT NULL;
"""

#: Made at the end: keeping them up to date would touch a page per agent and round.
INDEXES = """
CREATE INDEX IF NOT EXISTS post_by_user ON post (user_id, num_likes, num_shares);
CREATE INDEX IF NOT EXISTS trace_by_user ON trace (user_id);
CREATE INDEX IF NOT EXISTS post_by_original ON post (original_post_id) WHERE original_post_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS post_by_likes ON post (num_likes) WHERE num_likes > 0;
CREATE INDEX IF NOT EXISTS post_by_shares ON post (num_shares) WHERE num_shares > 0;
CREATE INDEX IF NOT EXISTS like_by_post ON "like" (post_id);
CREATE INDEX IF NOT EXISTS dislike_by_post ON dislike (post_id);
CREATE INDEX IF NOT EXISTS comment_like_by_comment ON comment_like (comment_id);
CREATE INDEX IF NOT EXISTS comment_dislike_by_comment ON comment_dislike (comment_id);
"""

USER = "INSERT INTO user VALUES (?,?,?,?,?,?,?,?)"
POST = "INSERT INTO post (post_id,user_id,original_post_id,content,quote_content,created_at) VALUES (?,?,?,?,?,?)"
COMMENT = "INSERT INTO comment (comment_id,post_id,user_id,content,created_at) VALUES (?,?,?,?,?)"
#: The same with what is known of their meaning: a claim, and how they lean on it; without a claim, on the topic.
CLAIMING_POST = """INSERT INTO post (post_id,user_id,original_post_id,content,quote_content,created_at,claim,lean)
    VALUES (?,?,?,?,?,?,?,?)"""
CLAIMING_COMMENT = """INSERT INTO comment (comment_id,post_id,user_id,content,created_at,claim,lean)
    VALUES (?,?,?,?,?,?,?)"""
#: Table of a kind of ratings -> the statements that give one and take one back.
_RATINGS = ("like", "dislike", "comment_like", "comment_dislike")
RATE = {table: f'INSERT INTO "{table}" VALUES (?,?,?,?)' for table in _RATINGS}
UNRATE = {table: f'DELETE FROM "{table}" WHERE {table}_id=?' for table in _RATINGS}
FOLLOW = "INSERT INTO follow VALUES (?,?,?,?)"
UNFOLLOW = "DELETE FROM follow WHERE follower_id=? AND followee_id=?"
MUTE = "INSERT INTO mute VALUES (?,?,?,?)"
UNMUTE = "DELETE FROM mute WHERE mute_id=?"
REPORT = "INSERT INTO report VALUES (?,?,?,?,?)"
PRODUCT = "INSERT INTO product VALUES (?,?,?)"
PRODUCT_SALES = "UPDATE product SET sales=? WHERE product_name=?"
GROUP = "INSERT INTO chat_group VALUES (?,?,?)"
GROUP_JOIN = "INSERT INTO group_members VALUES (?,?,?)"
GROUP_LEAVE = "DELETE FROM group_members WHERE group_id=? AND agent_id=?"
GROUP_MESSAGE = "INSERT INTO group_messages VALUES (?,?,?,?,?)"
POST_COUNTS = "UPDATE post SET num_likes=?,num_dislikes=?,num_shares=?,num_reports=? WHERE post_id=?"
COMMENT_COUNTS = "UPDATE comment SET num_likes=?,num_dislikes=? WHERE comment_id=?"
#: What the platform recommends to a person now, as OASIS keeps it.
UNRECOMMEND = "DELETE FROM rec WHERE user_id=?"
RECOMMEND = "INSERT OR IGNORE INTO rec VALUES (?,?)"
USER_COUNTS = "UPDATE user SET num_followings=?,num_followers=? WHERE user_id=?"

#: The order of writing: a row that is dropped and made anew in a round must be deleted before it is inserted.
ORDER = (
    UNFOLLOW, GROUP_LEAVE, USER, SIGN_UP, SIGN_UP_LATER, PRODUCT, POST, CLAIMING_POST, COMMENT, CLAIMING_COMMENT,
    *RATE.values(),
    FOLLOW, MUTE, REPORT, TRACE, GROUP, GROUP_JOIN, GROUP_MESSAGE, *UNRATE.values(),
    UNMUTE, PRODUCT_SALES, POST_COUNTS, COMMENT_COUNTS, USER_COUNTS,
    UNRECOMMEND, RECOMMEND,
)  # fmt: skip

#: Numbers for new things that one agent can use in one round: half for its turn, half for events in its name.
NUMBERS_PER_TURN = 2 * MAX_ACTIONS_PER_TURN

Row = tuple[Any, ...]


class TurnNumbers:
    """Numbers the turns of a run. What is written in a turn is numbered after it, so numbers grow with the rounds.

    `sizes`: how many people there are in each round, as some may join the run later.
    """

    def __init__(self, sizes: Versioned[int]) -> None:
        self._sizes = sizes

    def number(self, round: int, agent: int) -> int:
        """Return a number for an agent's turn that no other has."""
        turns, since, people = 0, 0, self._sizes.first
        for start, size in self._sizes.changes:
            if start <= round:
                turns, since, people = turns + (start - since) * people, start, size
        return turns + (round - since) * people + agent

    def find_end(self, round: int) -> int:
        """Return the first number that nothing has which was written up to a round."""
        return self.number(round + 1, 0) * NUMBERS_PER_TURN

    def find_round(self, number: int) -> int:
        """Return the round in which something with this number was written."""
        turn, since, people = number // NUMBERS_PER_TURN, 0, self._sizes.first
        for start, size in self._sizes.changes:
            if turn < (start - since) * people:
                break
            turn, since, people = turn - (start - since) * people, start, size
        return since + turn // max(people, 1)


class Rows:
    """Gathers the rows of a round, statement by statement."""

    def __init__(self) -> None:
        self._streams: dict[str, Iterable[Row]] = {}
        self._clear()

    def _clear(self) -> None:
        self._lists: dict[str, list[Row]] = {statement: [] for statement in ORDER}
        self._keyed: dict[str, dict[tuple[int, int], Row]] = {FOLLOW: {}, GROUP_JOIN: {}}

    def add(self, statement: str, *row: Any) -> None:
        self._lists[statement].append(row)

    def extend(self, statement: str, rows: Iterable[Row]) -> None:
        self._lists[statement].extend(rows)

    def put(self, statement: str, key: tuple[int, int], *row: Any) -> None:
        """Add a row that may be taken back within the round."""
        self._keyed[statement][key] = row

    def drop(self, statement: str, key: tuple[int, int], deletion: str) -> None:
        """Take back the row of this round, and delete that of an earlier one."""
        self._keyed[statement].pop(key, None)
        self._lists[deletion].append(key)

    def stream(self, statement: str, rows: Iterable[Row]) -> None:
        """Add rows that are too many to hold at once."""
        self._streams[statement] = rows

    def take(self) -> Writes:
        """Return everything gathered since the last call, in the order in which it must be written."""
        taken: dict[str, Iterable[Row]] = {}
        for statement in ORDER:
            rows = [*self._lists[statement], *self._keyed.get(statement, {}).values()]
            if rows or statement in self._streams:
                taken[statement] = chain(self._streams.pop(statement, ()), rows)
        self._clear()
        return taken


# What a summary reads from it

#: How many posts are named.
_MAX_NAMED = 5

#: Reactions to a repost count for the post that it passes on.
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
    top_posts = tuple(TopPost(*(*row[:-1], find_round(row[-1], context.clock, context.last_round))) for row in rows)
    return {"top_posts": top_posts, "talk": _read_talk(context.topic, context) if context.topic else None}


def _read_talk(topic: str, context: SummaryContext) -> Talk:
    database, reader = context.database, TextReader((), topic, compare=context.compare)
    database.create_function(
        "on_topic", 1, lambda text: text is not None and reader.is_on_topic(text), deterministic=True
    )
    database.execute(_MAKE_ABOUT)
    posts, newcomers = (_count_by_round(query, context) for query in (_ABOUT_BY_DATE, _NEWCOMERS_BY_DATE))
    camps = {name: agents for name, agents in (context.camps or {}).items() if agents}
    database.execute(_MAKE_CAMP)
    for name, agents in camps.items():
        database.executemany("INSERT INTO camp VALUES (?, ?)", ((agent, name) for agent in agents))
    posts_of = dict(database.execute(_POSTS_BY_CAMP).fetchall())
    likes_of = {name: (given, within) for name, given, within in database.execute(_LIKES_BY_CAMP)}
    return Talk(
        topic=topic,
        posts_by_round=tuple(posts),
        people_by_round=tuple(accumulate(newcomers)),
        camps=tuple(
            Camp(name, len(agents), posts_of.get(name, 0), *likes_of.get(name, (0, 0)))
            for name, agents in camps.items()
        ),
    )


def _count_by_round(query: str, context: SummaryContext) -> list[int]:
    """Turn counts by date into one count for each round, 0 to the last."""
    counts = [0] * (context.last_round + 1)
    for created_at, count in context.database.execute(query):
        counts[find_round(created_at, context.clock, context.last_round)] += count
    return counts


def find_round(created_at: int | str, clock: Clock, last_round: int) -> int:
    """Return the round of a row. Some platforms date their rows by round, others by simulated time."""
    if isinstance(created_at, int):
        return min(created_at, last_round)
    date = datetime.fromisoformat(created_at).replace(tzinfo=UTC)
    return min(max(bisect_right(range(1, last_round + 1), date, key=clock.at), 1), last_round)
