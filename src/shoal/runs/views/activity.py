"""What people did in a world, who follows them and how often others reacted to them, as of any round.

What is so now is counted in the database already. For an earlier round it is counted from the trace, whose rows are in
the order of the rounds: of a few people by an index that is made when a run is complete, of all by reading the rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection
from sqlite3 import Connection

from shoal.runs.directory import RunDirectory
from shoal.runs.store import ACTION_COUNTS, IS_DEED, NO_INTERVIEW, has_table
from shoal.runs.views.pages import make_placeholders
from shoal.scenario import count_by_round
from shoal.worlds.social import IS_TIE_CHANGE, TurnNumbers, find_round

_LAST_ROUND = "SELECT coalesce(max(round), 0) FROM shoal_round"
_LAST_ROW = "SELECT coalesce(max(rowid), 0) FROM trace"
_DATE = "SELECT created_at FROM trace WHERE rowid = ?"
_COUNTED = f"SELECT user_id, actions FROM {ACTION_COUNTS} WHERE 1 {{who}}"
_TRACED = f"SELECT user_id, count(*) FROM trace WHERE rowid <= ? AND {IS_DEED} {{who}} GROUP BY user_id"
_KINDS = f"""SELECT action, count(*) FROM trace WHERE rowid <= ? AND action != 'sign_up' AND {NO_INTERVIEW}
AND user_id = ? GROUP BY action ORDER BY count(*) DESC"""
_REACTIONS = "SELECT user_id, sum(num_likes + num_shares) FROM post WHERE 1 {who} GROUP BY user_id"
_PAST_LIKES = (
    """SELECT post.user_id, count(*) FROM post JOIN "like" USING (post_id) WHERE like_id < ? {who} GROUP BY 1"""
)
_PAST_SHARES = """SELECT post.user_id, count(*) FROM post JOIN post AS share ON share.original_post_id = post.post_id
WHERE share.post_id < ? {who} GROUP BY 1"""
_FOLLOWERS = "SELECT user_id, num_followers FROM user WHERE 1 {who}"
_FOLLOWING = "SELECT num_followings FROM user WHERE user_id = ?"
_TIE_CHANGES = f"""SELECT action, user_id, json_extract(info, '$.followee_id') FROM trace
WHERE {IS_TIE_CHANGE} AND rowid > ?"""


class WorldActivity:
    """One world of a run after a round, or as it is now."""

    def __init__(self, run: RunDirectory, database: Connection, round: int | None) -> None:
        self._run, self._database = run, database
        (last,) = database.execute(_LAST_ROUND).fetchone()
        #: None stands for now, which the database has counted.
        self._round = round if round is not None and round < last else None
        (self._end,) = database.execute(_LAST_ROW).fetchone()
        if self._round is not None:

            def find_round_of(row: int) -> int:
                (date,) = database.execute(_DATE, (row,)).fetchone()
                return find_round(date, run.clock, last)

            self._end = bisect_right(range(1, self._end + 1), self._round, key=find_round_of)
        self.is_platform = has_table(database, "post")

    def count_actions(self, agents: Collection[int] | None = None) -> Counter[int]:
        """Count what these people did, or all where none are named, beside looking on."""
        if self._round is None and has_table(self._database, ACTION_COUNTS):
            return self._count(_COUNTED, agents)
        return self._count(_TRACED, agents, self._end)

    def list_kinds(self, agent: int) -> dict[str, int]:
        """Count what a person did by its kind, the most frequent first."""
        return dict(self._database.execute(_KINDS, (self._end, agent)).fetchall())

    def count_reactions(self, agents: Collection[int] | None = None) -> Counter[int]:
        """Count how often others liked or passed on what these people wrote."""
        if not self.is_platform:
            return Counter()
        if self._round is None:
            return self._count(_REACTIONS, agents)
        limit = TurnNumbers(count_by_round(self._run.scenario_versions)).find_end(self._round)
        return self._count(_PAST_LIKES, agents, limit) + self._count(_PAST_SHARES, agents, limit)

    def count_followers(self, agents: Collection[int] | None = None) -> Counter[int]:
        if not self.is_platform:
            return Counter()
        followers = self._count(_FOLLOWERS, agents)
        for action, _, followee in self._list_later_ties():
            if followee in followers:
                followers[followee] += 1 if action == "unfollow" else -1
        return followers

    def count_following(self, agent: int) -> int:
        """Count the people that a person follows."""
        (following,) = self._database.execute(_FOLLOWING, (agent,)).fetchone() or (0,)
        later = Counter(action for action, follower, _ in self._list_later_ties() if follower == agent)
        return int(following) + later["unfollow"] - later["follow"]

    def _list_later_ties(self) -> list[tuple[str, int, int]]:
        """List what changed about the ties after the round: few rows, which an index has."""
        return [] if self._round is None else self._database.execute(_TIE_CHANGES, (self._end,)).fetchall()

    def _count(self, query: str, agents: Collection[int] | None, *values: int) -> Counter[int]:
        column = "post.user_id" if "JOIN" in query else "user_id"
        who = "" if agents is None else f"AND {column} IN ({make_placeholders(len(agents))})"
        return Counter(dict(self._database.execute(query.format(who=who), (*values, *(agents or ()))).fetchall()))
