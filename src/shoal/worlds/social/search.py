"""Finding posts by their words and people by their names."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.worlds.social.posts import Posts


class Index:
    """Which posts contain which words, and which people have which names. Brought up to date when it is asked."""

    def __init__(self, posts: Posts, names: Sequence[str]) -> None:
        self._posts = posts
        self._names = names
        self._rows_of: dict[str, list[int]] = {}
        self._rows_read = 0
        self._people_of: dict[str, list[int]] = {}

    def posts(self, query: str) -> list[int]:
        """Rows of posts that contain every word of the query, newest first."""
        self._read_posts()
        found = [self._rows_of.get(word, []) for word in words(query)]
        if not found:
            return []
        rarest = min(found, key=len)
        others = [set(rows) for rows in found if rows is not rarest]
        return [row for row in reversed(rarest) if all(row in rows for rows in others)]

    def people(self, query: str) -> list[int]:
        """Agents whose name contains every word of the query."""
        if not self._people_of:
            self._read_people()
        found = [self._people_of.get(word, []) for word in words(query)]
        return sorted(set(found[0]).intersection(*found[1:])) if found else []

    def _read_posts(self) -> None:
        posts = self._posts
        for row in range(self._rows_read, posts.count):
            said = posts.quote[row]
            if said is None and posts.root[row] == row:
                said = posts.content[row]
            for word in set(words(said or "")):
                self._rows_of.setdefault(word, []).append(row)
        self._rows_read = posts.count

    def _read_people(self) -> None:
        for agent, name in enumerate(self._names):
            for word in words(name):
                self._people_of.setdefault(word, []).append(agent)


def words(text: str) -> list[str]:
    return [bare for word in text.lower().split() if (bare := word.strip(".,;:!?\"'()[]#@"))]
