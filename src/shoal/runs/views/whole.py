"""Whole histories in plain values, for bundles: what pages otherwise ask for piece by piece."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shoal.runs.directory import RunDirectory
from shoal.runs.reports import open_world
from shoal.runs.views.activity import WorldActivity
from shoal.runs.views.feed import CommentCard, FeedFilter, PostCard, open_platform
from shoal.runs.views.figures import OpinionPast, name_subject
from shoal.runs.views.people import PeopleFilter, PeopleReader, PersonCard
from shoal.runs.views.talk import TalkTurn, read_talk

_PAGE = 200


@dataclass(frozen=True, slots=True)
class WholeFeed:
    """The posts of a platform, the newest first, with the rounds of every reaction to them."""

    posts: Sequence[PostCard]
    #: `likes`, `dislikes`, `shares` or `comments` -> post -> the rounds of these reactions.
    reactions: Mapping[str, Mapping[int, Sequence[int]]]
    comments: Mapping[int, Sequence[CommentCard]]
    #: Whether older posts were left out.
    is_cut: bool


@dataclass(frozen=True, slots=True)
class WholePeople:
    """The people of a run, and what each thought and did over the rounds."""

    people: Sequence[PersonCard]
    #: Person -> the rounds in which the opinion changed, and the opinions from then on, one list for each world.
    opinions: Mapping[int, Sequence[tuple[Sequence[int], Sequence[float]]]]
    #: `actions`, `followers` or `influence` -> person -> the rounds in which it changed, and how many from then on.
    counts: Mapping[str, Mapping[int, tuple[Sequence[int], Sequence[int]]]]
    is_cut: bool


def read_whole_feed(run: RunDirectory, world: str, most: int) -> WholeFeed | None:
    """Read the latest posts of a platform with all reactions; None where the world is no platform."""
    with open_platform(run, world, None) as platform:
        if platform is None:
            return None
        posts, cursor = list[PostCard](), None
        while len(posts) < most:
            page = platform.list_posts(FeedFilter(), min(_PAGE, most - len(posts)), cursor)
            posts += page.items
            if page.next is None:
                break
            cursor = int(page.next)
        shown = {post.post_id for post in posts} | {
            inner.post_id for post in posts if (inner := post.shared or post.quoted)
        }
        every = {
            inner.post_id: inner for post in posts for inner in (post, post.shared, post.quoted) if inner is not None
        }
        comments = {number: platform.list_comments(number).items for number, post in every.items() if post.comments}
        return WholeFeed(posts, platform.list_reactions(sorted(shown)), comments, len(posts) >= most)


def read_whole_talk(run: RunDirectory, world: str, most: int) -> tuple[list[TalkTurn], bool]:
    """Read what was said in a world, the newest first, and whether older turns were left out."""
    turns, cursor = list[TalkTurn](), None
    while len(turns) < most:
        page = read_talk(run, world, None, min(_PAGE, most - len(turns)), cursor)
        turns += page.items
        if page.next is None:
            return turns, False
        cursor = page.next
    return turns, True


def read_whole_people(run: RunDirectory, reader: PeopleReader, most: int, rounds: Sequence[int]) -> WholePeople:
    """Read the people of a run, the most active ones where there are more, and what they did up to some rounds."""
    people = list[PersonCard]()
    total = len(reader.draw(run))
    wanted = PeopleFilter(order="actions" if total > most else "number")
    for offset in range(0, min(total, most), _PAGE):
        people += reader.read_page(run, wanted, offset, min(_PAGE, most - offset)).items
    opinions: dict[int, list[tuple[Sequence[int], Sequence[float]]]] = {}
    for world in run.worlds:
        with open_world(run, world) as database:
            for start in range(0, len(people) if database is not None else 0, _PAGE):
                assert database is not None
                agents = [person.agent_id for person in people[start : start + _PAGE]]
                for agent, changes in OpinionPast.read(database, name_subject(run), agents).items():
                    opinions.setdefault(agent, []).append(changes)
    people.sort(key=lambda person: person.agent_id)
    return WholePeople(
        people, opinions, _read_counts(run, [person.agent_id for person in people], rounds), total > most
    )


def _read_counts(
    run: RunDirectory, agents: Sequence[int], rounds: Sequence[int]
) -> dict[str, dict[int, tuple[list[int], list[int]]]]:
    found: dict[str, dict[int, tuple[list[int], list[int]]]] = {"actions": {}, "followers": {}, "influence": {}}
    for round in rounds:
        counts: dict[str, Counter[int]] = {name: Counter() for name in found}
        for world in run.worlds:
            with open_world(run, world) as database:
                if database is not None:
                    activity = WorldActivity(run, database, round)
                    counts["actions"] += activity.count_actions(agents)
                    counts["followers"] += activity.count_followers(agents)
                    counts["influence"] += activity.count_reactions(agents)
        for name, people in found.items():
            for agent in agents:
                changes, values = people.setdefault(agent, ([], []))
                if (values[-1] if values else 0) != counts[name][agent]:
                    changes.append(round)
                    values.append(counts[name][agent])
    return found
