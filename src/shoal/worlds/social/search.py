"""Finding posts by their words and people by their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shoal.worlds.social.posts import Posts

#: A search looks through this many of the newest posts, so that its cost does not grow with the run.
_POSTS_SEARCHED = 1000


def find_posts(posts: Posts, query: str) -> Iterator[int]:
    """Rows of recent posts whose own words contain the query, newest first."""
    wanted = query.casefold()
    for row in range(posts.count - 1, max(posts.count - _POSTS_SEARCHED, 0) - 1, -1):
        said = posts.quote[row] or (posts.content[row] if posts.root[row] == row else "")
        if wanted in said.casefold():
            yield row


class Directory:
    """Who has which name. Made when it is first asked."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._people_of: dict[str, list[int]] = {}

    def find(self, query: str) -> list[int]:
        """Agents whose name contains every word of the query."""
        if not self._people_of:
            self._read()
        found = [self._people_of.get(word, []) for word in query.casefold().split()]
        return sorted(set(found[0]).intersection(*found[1:])) if found else []

    def _read(self) -> None:
        for agent, name in enumerate(self._names):
            for word in name.casefold().split():
                self._people_of.setdefault(word, []).append(agent)
