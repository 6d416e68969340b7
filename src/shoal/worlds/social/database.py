"""The platform's database: tables and columns as OASIS names them, so that existing analysis works."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from shoal.types import Writes

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
"""

#: Where everybody acts in every round, keeping these up to date would touch a page per agent and round.
INDEXES = """
CREATE INDEX IF NOT EXISTS post_by_user ON post (user_id);
CREATE INDEX IF NOT EXISTS trace_by_user ON trace (user_id);
"""

USER = "INSERT INTO user VALUES (?,?,?,?,?,?,?,?)"
SIGN_UP = """INSERT INTO trace SELECT user_id, created_at, 'sign_up',
    json_object('name', name, 'user_name', user_name, 'bio', bio) FROM user"""
POST = "INSERT INTO post (post_id,user_id,original_post_id,content,quote_content,created_at) VALUES (?,?,?,?,?,?)"
COMMENT = "INSERT INTO comment (comment_id,post_id,user_id,content,created_at) VALUES (?,?,?,?,?)"
LIKE = 'INSERT INTO "like" VALUES (?,?,?,?)'
UNLIKE = 'DELETE FROM "like" WHERE like_id=?'
DISLIKE = "INSERT INTO dislike VALUES (?,?,?,?)"
UNDO_DISLIKE = "DELETE FROM dislike WHERE dislike_id=?"
COMMENT_LIKE = "INSERT INTO comment_like VALUES (?,?,?,?)"
COMMENT_UNLIKE = "DELETE FROM comment_like WHERE comment_like_id=?"
COMMENT_DISLIKE = "INSERT INTO comment_dislike VALUES (?,?,?,?)"
COMMENT_UNDO_DISLIKE = "DELETE FROM comment_dislike WHERE comment_dislike_id=?"
FOLLOW = "INSERT INTO follow VALUES (?,?,?,?)"
UNFOLLOW = "DELETE FROM follow WHERE follower_id=? AND followee_id=?"
MUTE = "INSERT INTO mute VALUES (?,?,?,?)"
UNMUTE = "DELETE FROM mute WHERE mute_id=?"
REPORT = "INSERT INTO report VALUES (?,?,?,?,?)"
TRACE = "INSERT INTO trace VALUES (?,?,?,?)"
PRODUCT = "INSERT INTO product VALUES (?,?,?)"
PRODUCT_SALES = "UPDATE product SET sales=? WHERE product_name=?"
GROUP = "INSERT INTO chat_group VALUES (?,?,?)"
GROUP_JOIN = "INSERT INTO group_members VALUES (?,?,?)"
GROUP_LEAVE = "DELETE FROM group_members WHERE group_id=? AND agent_id=?"
GROUP_MESSAGE = "INSERT INTO group_messages VALUES (?,?,?,?,?)"
POST_COUNTS = "UPDATE post SET num_likes=?,num_dislikes=?,num_shares=?,num_reports=? WHERE post_id=?"
COMMENT_COUNTS = "UPDATE comment SET num_likes=?,num_dislikes=? WHERE comment_id=?"
USER_COUNTS = "UPDATE user SET num_followings=?,num_followers=? WHERE user_id=?"

#: Within a round, a row that is dropped and made anew must be deleted before it is inserted.
ORDER = (
    UNFOLLOW, GROUP_LEAVE, USER, SIGN_UP, PRODUCT, POST, COMMENT, LIKE, DISLIKE, COMMENT_LIKE, COMMENT_DISLIKE, FOLLOW,
    MUTE, REPORT, TRACE, GROUP, GROUP_JOIN, GROUP_MESSAGE, UNLIKE, UNDO_DISLIKE, COMMENT_UNLIKE, COMMENT_UNDO_DISLIKE,
    UNMUTE, PRODUCT_SALES, POST_COUNTS, COMMENT_COUNTS, USER_COUNTS,
)  # fmt: skip

Row = tuple[Any, ...]


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
        """A row that may be taken back within the round."""
        self._keyed[statement][key] = row

    def drop(self, statement: str, key: tuple[int, int], deletion: str) -> None:
        """Take back the row of this round, and delete that of an earlier one."""
        self._keyed[statement].pop(key, None)
        self._lists[deletion].append(key)

    def stream(self, statement: str, rows: Iterable[Row]) -> None:
        """Rows too many to hold at once."""
        self._streams[statement] = rows

    def take(self) -> Writes:
        """Everything gathered since the last call, in the order in which it must be written."""
        taken: dict[str, Iterable[Row]] = {}
        for statement in ORDER:
            rows = [*self._lists[statement], *self._keyed.get(statement, {}).values()]
            if rows or statement in self._streams:
                taken[statement] = chain(self._streams.pop(statement, ()), rows)
        self._clear()
        return taken
