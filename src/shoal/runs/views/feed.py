"""The feed of a social platform as pages show it: posts, their comments and what is talked about, after any round.

What a page costs depends on the page, not on the length of the run: posts are found by their numbers, which grow with
the rounds, and reactions by indexes. A run that goes on has no indexes yet, so a look into its past reads more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any, Literal

from shoal.runs.directory import RunDirectory
from shoal.runs.reports import open_world
from shoal.runs.store import has_table
from shoal.runs.views.figures import OpinionPast, name_subject
from shoal.runs.views.pages import ViewPage, check_world, make_placeholders, parse_cursor
from shoal.scenario import count_by_round
from shoal.worlds import content_words
from shoal.worlds.social import TurnNumbers

Sort = Literal["new", "shared", "liked"]

_EVER = 1 << 62
#: Of a round in the past, the posts that most reacted to are found among this many of them.
_MAX_RANKED = 1_000
#: What is talked about is read from this many of the latest posts.
_RECENT_POSTS = 500
_MAX_TRENDS = 8
_LEAST_POSTS = 3
#: Shorter words seldom tell what a post is about.
_LEAST_CHARS = 6
_MAX_COMMENTS = 500
_SORT_COLUMNS = {"shared": "num_shares", "liked": "num_likes"}
#: Table of reactions -> the column of its numbers, and that of what was reacted to.
_REACTIONS = {
    "like": ("like_id", "post_id"),
    "dislike": ("dislike_id", "post_id"),
    "comment": ("comment_id", "post_id"),
    "post": ("post_id", "original_post_id"),
    "comment_like": ("comment_like_id", "comment_id"),
    "comment_dislike": ("comment_dislike_id", "comment_id"),
}


@dataclass(frozen=True, slots=True)
class PostCard:
    """A post as it was after a round. A post that was shared or quoted stands inside the one that passes it on."""

    post_id: int
    agent_id: int
    name: str
    round: int
    time: str
    text: str
    claim: str | None
    #: Whether it supports (above 0) or denies (below 0) the claim; without a claim, the topic.
    lean: float | None
    quoted: PostCard | None
    shared: PostCard | None
    likes: int
    dislikes: int
    shares: int
    comments: int
    #: The author's, when it was written.
    opinion: float | None


@dataclass(frozen=True, slots=True)
class CommentCard:
    """A comment below a post."""

    comment_id: int
    agent_id: int
    name: str
    round: int
    time: str
    text: str
    likes: int
    dislikes: int
    opinion: float | None


@dataclass(frozen=True, slots=True)
class TrendCount:
    """Something that is talked about, and how many of the latest posts speak of it."""

    text: str
    posts: int


@dataclass(frozen=True, slots=True)
class FeedFilter:
    """Which posts are wanted, and in which order."""

    claim: str | None = None
    agent: int | None = None
    sort: Sort = "new"


_Row = dict[str, Any]


class PlatformReader:
    """Reads one platform's database as it was after a round."""

    def __init__(self, run: RunDirectory, database: Connection, until: int | None) -> None:
        self._run = run
        self._database = database
        self._clock = run.clock
        self._numbers = TurnNumbers(count_by_round(run.scenario_versions))
        #: The first number that nothing has which was written up to the round; None: as it is now.
        (last,) = database.execute("SELECT max(round) FROM shoal_round").fetchone()
        is_past = until is not None and last is not None and until < last
        self._end = self._numbers.find_end(until) if until is not None and is_past else None
        self._about = name_subject(run)
        self._columns = (
            "post_id, user_id, original_post_id, content, quote_content, num_likes, num_dislikes, num_shares"
        )
        self._meaning = ", claim, lean" if has_columns(database, "post", "claim") else ", NULL AS claim, NULL AS lean"

    def list_posts(self, wanted: FeedFilter, limit: int, before: int | None) -> ViewPage[PostCard]:
        """List posts, the newest first, or those that most people reacted to."""
        if wanted.sort == "new":
            rows = self._find_posts(wanted, "post_id DESC", limit + 1, before)
            following = str(rows[limit - 1]["post_id"]) if len(rows) > limit else None
            return ViewPage(self._describe(rows[:limit]), None, following)
        start = before or 0
        if self._end is None:
            order = f"{_SORT_COLUMNS[wanted.sort]} DESC, post_id DESC"
            rows = self._find_posts(wanted, order, limit + 1, None, start)
            cards = self._describe(rows)
        else:
            order = f"{_SORT_COLUMNS[wanted.sort]} DESC, post_id DESC"
            cards = self._describe(self._find_posts(wanted, order, _MAX_RANKED, None))
            reactions = "shares" if wanted.sort == "shared" else "likes"
            cards.sort(key=lambda card: (-getattr(card, reactions), -card.post_id))
            cards = cards[start : start + limit + 1]
        following = str(start + limit) if len(cards) > limit else None
        return ViewPage(cards[:limit], None, following)

    def list_comments(self, post: int) -> ViewPage[CommentCard]:
        """List the comments of a post, the oldest first."""
        query = """SELECT comment_id, user_id, content, num_likes, num_dislikes FROM comment
        WHERE post_id = ? AND comment_id < ? ORDER BY comment_id LIMIT ?"""
        rows = list(self._ask(query, (post, self._limit, _MAX_COMMENTS)))
        (total,) = self._database.execute(
            "SELECT count(*) FROM comment WHERE post_id = ? AND comment_id < ?", (post, self._limit)
        ).fetchone()
        authors = {row["user_id"] for row in rows}
        names, opinions = self._find_names(authors), self._read_opinions(authors)
        likes = self._count("comment_like", rows, "comment_id", "num_likes")
        dislikes = self._count("comment_dislike", rows, "comment_id", "num_dislikes")
        cards = []
        for row in rows:
            number, author = row["comment_id"], row["user_id"]
            round = self._numbers.find_round(number)
            cards.append(
                CommentCard(
                    comment_id=number,
                    agent_id=author,
                    name=names.get(author, f"person {author}"),
                    round=round,
                    time=self._clock.stamp(round),
                    text=row["content"] or "",
                    likes=likes.get(number, 0),
                    dislikes=dislikes.get(number, 0),
                    opinion=opinions.find(author, round),
                )
            )
        return ViewPage(cards, total, None)

    def list_reactions(self, posts: Sequence[int]) -> dict[str, dict[int, list[int]]]:
        """Return the rounds of all reactions to some posts, by the kind of reaction."""
        kinds = {"likes": "like", "dislikes": "dislike", "shares": "post", "comments": "comment"}
        found: dict[str, dict[int, list[int]]] = {kind: {} for kind in kinds}
        for kind, table in kinds.items():
            number, about = _REACTIONS[table]
            for start in range(0, len(posts), _RECENT_POSTS):
                part = posts[start : start + _RECENT_POSTS]
                query = f"""SELECT {about}, {number} FROM "{table}" WHERE {about} IN ({make_placeholders(len(part))})
                AND {number} < ? ORDER BY {number}"""
                for post, reaction in self._database.execute(query, (*part, self._limit)):
                    found[kind].setdefault(post, []).append(self._numbers.find_round(reaction))
        return found

    def list_trends(self) -> list[TrendCount]:
        """List what the latest posts speak of: the topic, claims, marks such as #bridge, or words that many share."""
        query = f"""SELECT coalesce(quote_content, content) AS words{self._meaning} FROM post
        WHERE post_id < ? AND (original_post_id IS NULL OR quote_content IS NOT NULL) ORDER BY post_id DESC LIMIT ?"""
        scenario = self._run.scenario
        claims = {claim.id: claim.text for claim in scenario.claims}
        topic = scenario.topic or ""
        about = {word.casefold() for word in content_words(topic)}
        counts: Counter[str] = Counter()
        for row in self._ask(query, (self._limit, _RECENT_POSTS)):
            words = {word.casefold() for word in content_words(row["words"])}
            if about and about <= words:
                counts[topic] += 1
            marks = {word for word in row["words"].split() if word.startswith("#") and len(word) > 1}
            said = claims.get(row["claim"])
            counts.update({said} if said else marks or (word for word in words - about if len(word) >= _LEAST_CHARS))
        often = [TrendCount(text, posts) for text, posts in counts.most_common(_MAX_TRENDS) if posts >= _LEAST_POSTS]
        return sorted(often, key=lambda trend: (-trend.posts, trend.text))

    @property
    def _limit(self) -> int:
        return _EVER if self._end is None else self._end

    def _ask(self, query: str, values: Sequence[Any]) -> Iterator[_Row]:
        found = self._database.execute(query, values)
        names = [name for name, *_ in found.description]
        return (dict(zip(names, row, strict=True)) for row in found)

    def _find_posts(
        self, wanted: FeedFilter, order: str, limit: int, before: int | None, offset: int = 0
    ) -> list[_Row]:
        conditions, values = ["post_id < ?"], [min(self._limit, _EVER if before is None else before)]
        if wanted.agent is not None:
            conditions.append("user_id = ?")
            values.append(wanted.agent)
        if wanted.claim is not None:
            if "NULL" in self._meaning:
                return []
            conditions.append("claim = ?")
        if wanted.sort != "new":
            # A post that only passes another one on has no reactions itself.
            conditions.append(f"{_SORT_COLUMNS[wanted.sort]} > 0")
        given = [*values, *([] if wanted.claim is None else [wanted.claim])]
        where = " AND ".join(conditions)
        query = f"SELECT {self._columns}{self._meaning} FROM post WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?"
        return list(self._ask(query, (*given, limit, offset)))

    def _describe(self, rows: Sequence[_Row]) -> list[PostCard]:
        roots = {row["original_post_id"] for row in rows} - {row["post_id"] for row in rows} - {None}
        query = f"SELECT {self._columns}{self._meaning} FROM post WHERE post_id IN ({make_placeholders(len(roots))})"
        every = [*rows, *self._ask(query, list(roots))]
        authors = {row["user_id"] for row in every}
        names, opinions = self._find_names(authors), self._read_opinions(authors)
        counts = {
            "likes": self._count("like", every, "post_id", "num_likes"),
            "dislikes": self._count("dislike", every, "post_id", "num_dislikes"),
            "shares": self._count("post", every, "post_id", "num_shares"),
            "comments": self._count("comment", every, "post_id", None),
        }
        originals: dict[int, PostCard] = {}
        for row in sorted(every, key=lambda row: row["original_post_id"] is not None):
            originals[row["post_id"]] = self._describe_post(row, (names, opinions), counts, originals)
        return [originals[row["post_id"]] for row in rows]

    def _describe_post(
        self,
        row: _Row,
        people: tuple[dict[int, str], OpinionPast],
        counts: dict[str, dict[int, int]],
        originals: dict[int, PostCard],
    ) -> PostCard:
        names, opinions = people
        number, author = row["post_id"], row["user_id"]
        round, original = self._numbers.find_round(number), originals.get(row["original_post_id"])
        is_share = row["original_post_id"] is not None and row["quote_content"] is None
        is_quote = row["quote_content"] is not None
        return PostCard(
            post_id=number,
            agent_id=author,
            name=names.get(author, f"person {author}"),
            round=round,
            time=self._clock.stamp(round),
            text="" if is_share else (row["quote_content"] if is_quote else row["content"]) or "",
            claim=row["claim"],
            lean=row["lean"],
            quoted=original if is_quote else None,
            shared=original if is_share else None,
            opinion=opinions.find(author, round),
            **{name: found.get(number, 0) for name, found in counts.items()},
        )

    def _find_names(self, agents: Collection[int]) -> dict[int, str]:
        query = f"SELECT user_id, name FROM user WHERE user_id IN ({make_placeholders(len(agents))})"
        return dict(self._database.execute(query, list(agents)).fetchall())

    def _read_opinions(self, agents: Collection[int]) -> OpinionPast:
        return OpinionPast.read(self._database, self._about, agents)

    def _count(self, table: str, rows: Sequence[_Row], key: str, column: str | None) -> dict[int, int]:
        """Count the reactions to some posts or comments: now, as they are counted there, or up to the round."""
        if self._end is None and column is not None:
            return {row[key]: row[column] for row in rows}
        number, about = _REACTIONS[table]
        wanted = [row[key] for row in rows]
        query = f"""SELECT {about}, count(*) FROM "{table}" WHERE {about} IN ({make_placeholders(len(wanted))})
        AND {number} < ? GROUP BY 1"""
        return dict(self._database.execute(query, (*wanted, self._limit)).fetchall())


def has_columns(database: Connection, table: str, column: str) -> bool:
    """Return whether a table has a column, which runs of Shoal 0.2 may lack."""
    return any(found[1] == column for found in database.execute(f"PRAGMA table_info({table})"))


@contextmanager
def open_platform(run: RunDirectory, world: str, until: int | None) -> Iterator[PlatformReader | None]:
    """Open a platform as it was after a round; None where the world is no platform, or has no round yet."""
    check_world(run, world)
    with open_world(run, world) as database:
        is_platform = database is not None and has_table(database, "post")
        yield PlatformReader(run, database, until) if database is not None and is_platform else None


def read_feed(
    run: RunDirectory,
    world: str,
    wanted: FeedFilter,
    until: int | None = None,
    limit: int = 30,
    before: str | None = None,
) -> ViewPage[PostCard]:
    """Read a page of a platform's posts."""
    place = parse_cursor(before)
    with open_platform(run, world, until) as platform:
        return ViewPage([], 0, None) if platform is None else platform.list_posts(wanted, limit, place)


def read_thread(run: RunDirectory, world: str, post: int, until: int | None = None) -> ViewPage[CommentCard]:
    """Read the comments of a post."""
    with open_platform(run, world, until) as platform:
        return ViewPage([], 0, None) if platform is None else platform.list_comments(post)


def read_trends(run: RunDirectory, world: str, until: int | None = None) -> list[TrendCount]:
    """Read what is talked about on a platform."""
    with open_platform(run, world, until) as platform:
        return [] if platform is None else platform.list_trends()
