"""Which posts people are shown, and what else reaches them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.seeds import Draws, derive
from shoal.types import Action, Decision, Habits, Happening
from shoal.worlds.social.posts import Posts
from shoal.worlds.social.ranking import HOT_POOL_SIZE, POOL_SIZE, HotPosts, Ranking
from shoal.worlds.social.settings import FeedSettings, SocialSettings
from tests.worlds.context import TOPICS, Crowd, crowd
from tests.worlds.drivers import PlatformDriver, ids, make_feed

GARDEN, FOOTBALL, COOKING = "My garden.", "Football tonight.", "Cooking again."
TRUST, DOUBT = "I trust them, it is true.", "I doubt it, it is a hoax."
FOLLOW_0 = [(agent, 0) for agent in range(1, 6)]


def list_recommended(platform: PlatformDriver, agent: int) -> list[int]:
    return ids(platform.look(agent).recommended)


def hot(**feed: Any) -> FeedSettings:
    return make_feed(recommended=10, recommendation="hot", **feed)


# What the weights do


@pytest.mark.parametrize(("recency", "newest_first"), [(0, False), (1, True)])
def test_recency_brings_new_posts_up(recency: float, newest_first: bool) -> None:
    platform = PlatformDriver(feed=hot(recency=recency, popularity=0.5))
    older = platform.post(0)
    platform.succeed(2, "LIKE_POST", post_id=older)
    platform.pass_rounds(6)
    newer = platform.post(1)
    assert list_recommended(platform, 5) == ([newer, older] if newest_first else [older, newer])


@pytest.mark.parametrize("reaction", ["LIKE_POST", "REPOST", "CREATE_COMMENT"])
@pytest.mark.parametrize(("popularity", "popular_first"), [(0, False), (1, True)])
def test_popularity_brings_up_what_others_reacted_to(reaction: str, popularity: float, popular_first: bool) -> None:
    platform = PlatformDriver(feed=hot(popularity=popularity))
    popular, other = platform.post(0), platform.post(1)
    platform.succeed(2, reaction, post_id=popular, content="Yes.")
    assert list_recommended(platform, 5) == ([popular, other] if popular_first else [other, popular])


def test_dislikes_take_popularity_away() -> None:
    platform = PlatformDriver(feed=hot(popularity=1))
    disliked, other = platform.post(0), platform.post(1)
    for agent, post_id in ((2, disliked), (3, disliked), (4, other)):
        platform.succeed(agent, "LIKE_POST", post_id=post_id)
    for agent in (2, 3):
        platform.succeed(agent, "DISLIKE_POST", post_id=disliked)
    assert list_recommended(platform, 5) == [other, disliked]


def test_a_quote_is_as_popular_as_what_was_made_of_the_quote_itself() -> None:
    platform = PlatformDriver(feed=hot(popularity=1))
    original, liked = platform.post(0), platform.post(1)
    for agent in (1, 2, 3):
        platform.succeed(agent, "LIKE_POST", post_id=original)
    platform.succeed(2, "LIKE_POST", post_id=liked)
    quote = platform.quote(0, platform.post(3))
    for agent in (1, 2, 4):
        platform.succeed(agent, "LIKE_POST", post_id=quote)
    assert list_recommended(platform, 5)[0] == quote
    platform.succeed(3, "REPOST", post_id=original)
    assert list_recommended(platform, 5)[0] == original


@pytest.mark.parametrize(("relevance", "relevant_first"), [(0, False), (1, True)])
def test_relevance_brings_up_what_the_agent_cares_about(relevance: float, relevant_first: bool) -> None:
    platform = PlatformDriver(crowd(6, interests=(0, -1)), feed=hot(relevance=relevance))
    relevant, other = platform.post(0, GARDEN), platform.post(1, COOKING)
    assert list_recommended(platform, 5) == ([relevant, other] if relevant_first else [other, relevant])


@pytest.mark.parametrize(("said", "other"), [(TRUST, DOUBT), (DOUBT, TRUST)])
@pytest.mark.parametrize(("echo", "alike_first"), [(0, False), (1, True)])
def test_the_echo_chamber_brings_up_what_the_agent_agrees_with(
    said: str, other: str, echo: float, alike_first: bool
) -> None:
    platform = PlatformDriver(feed=hot(echo_chamber=echo))
    alike, different = platform.post(0, said), platform.post(1, other)
    platform.post(4, said)
    platform.succeed(5, "LIKE_POST", post_id=alike)
    for agent in (4, 5):
        shown = [post_id for post_id in list_recommended(platform, agent) if post_id in (alike, different)]
        assert shown == ([alike, different] if alike_first else [different, alike])


def test_both_sides_of_a_question_are_learned_alike() -> None:
    ranking = Ranking(Posts(), crowd(2), 60)
    for lean in (100, 37, 0, 100, 100, 0, 0, 0, 55, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0):
        ranking.learn(0, lean)
        ranking.learn(1, -lean)
        assert ranking.leaning[0] == -ranking.leaning[1]
    assert ranking.leaning.tolist() == [0, 0]


@pytest.mark.parametrize(("threshold", "viral_first"), [(2, True), (3, False)])
def test_a_post_that_was_shared_often_enough_counts_as_fully_popular(threshold: int, viral_first: bool) -> None:
    platform = PlatformDriver(10, feed=hot(popularity=1, viral_threshold=threshold))
    shared, liked = platform.post(0), platform.post(1)
    for agent in (2, 3):
        platform.repost(agent, shared)
    for agent in range(2, 9):
        platform.succeed(agent, "LIKE_POST", post_id=liked)
    assert list_recommended(platform, 9) == ([shared, liked] if viral_first else [liked, shared])


def test_no_popularity_is_above_that_of_a_viral_post() -> None:
    posts = Posts()
    for row in range(2):
        posts.add(row + 1, row, 1, "Hello.", None, None)
    posts.shares[0], posts.likes[1] = 10, 4000
    rules = SocialSettings(kind="twitter", feed=hot(popularity=1, viral_threshold=10)).complete_feed()
    viral, liked = Ranking(posts, crowd(2), 60).general(rules, 0, 1).tolist()
    assert viral >= liked


# How posts are recommended


def test_nothing_is_recommended_where_recommendation_is_none() -> None:
    platform = PlatformDriver(feed=make_feed(recommended=10, recommendation="none"))
    platform.post(0)
    assert [list_recommended(platform, agent) for agent in range(6)] == [[]] * 6


def two_interests() -> Crowd:
    people = crowd(30)
    people.interests[:] = [[2, -1]] * 28 + [[0, -1], [-1, -1]]
    return people


def test_recommendation_by_interest_finds_what_few_care_about() -> None:
    platform = PlatformDriver(
        two_interests(), feed=make_feed(recommended=5, recommendation="interest", relevance=1, popularity=0.1)
    )
    garden = platform.post(0, GARDEN)
    loud = [platform.post(agent, COOKING) for agent in range(1, 21)]
    for post_id in loud:
        platform.succeed(25, "LIKE_POST", post_id=post_id)
    assert list_recommended(platform, 28)[0] == garden
    assert garden not in list_recommended(platform, 26)
    assert len(list_recommended(platform, 29)) == 5
    assert garden not in list_recommended(platform, 29)


def test_recommendation_by_interest_shows_the_hottest_of_all_also_while_there_are_few() -> None:
    platform = PlatformDriver(two_interests(), feed=make_feed(recommended=5, recommendation="interest", popularity=1))
    posted = [platform.post(agent, "Hello.") for agent in range(20)]
    platform.succeed(25, "LIKE_POST", post_id=posted[-1])
    assert list_recommended(platform, 29) == [posted[-1], *posted[-2:-6:-1]]


@pytest.mark.parametrize("topics", [(), TOPICS])
def test_people_without_any_interest_are_shown_what_is_hot(topics: Sequence[str]) -> None:
    people = Crowd(np.empty((6, 0), np.int16), topics)
    platform = PlatformDriver(people, feed=make_feed(recommended=5, recommendation="interest"))
    post_id = platform.post(0)
    assert list_recommended(platform, 1) == [post_id]


def test_random_recommendation_differs_between_people_and_rounds_and_not_between_looks() -> None:
    platform = PlatformDriver(40, feed=make_feed(recommended=5, recommendation="random"))
    posted = {platform.post(agent % 20) for agent in range(40)}
    platform.quote(21, min(posted))
    looks = {agent: list_recommended(platform, agent) for agent in range(20, 40)}
    assert all(len(look) == len(set(look)) == 5 and posted.issuperset(look) for look in looks.values())
    assert len({tuple(sorted(look)) for look in looks.values()}) > 10
    assert {agent: list_recommended(platform, agent) for agent in range(20, 40)} == looks
    platform.pass_rounds(1)
    assert {agent: list_recommended(platform, agent) for agent in range(20, 40)} != looks


def test_all_authors_are_equally_likely_to_be_drawn_at_random() -> None:
    platform = PlatformDriver(40, feed=make_feed(recommended=1, recommendation="random"))
    posted = [platform.post(agent) for agent in range(4)]
    drawn = [0, 0, 0, 0]
    for _ in range(40):
        platform.pass_rounds(1)
        for seen in platform.world.observe(platform.round + 1, range(10, 40)):
            drawn[posted.index(seen.recommended[0].post_id)] += 1
    # 1,200 draws with a chance of a quarter each.
    assert all(abs(count / 1200 - 0.25) < 0.06 for count in drawn)


@pytest.mark.parametrize("recommendation", ["hot", "interest", "random"])
def test_own_posts_are_not_recommended(recommendation: str) -> None:
    platform = PlatformDriver(feed=make_feed(recommended=10, recommendation=recommendation))
    own, other = platform.post(0, GARDEN), platform.post(1, GARDEN)
    platform.succeed(0, "QUOTE_POST", post_id=other, quote_content="See.")
    assert list_recommended(platform, 0) == [other]
    assert own in list_recommended(platform, 1)


def test_people_are_recommended_how_others_quote_them() -> None:
    platform = PlatformDriver(feed=hot())
    quote = platform.quote(1, platform.post(0))
    assert list_recommended(platform, 0) == [quote]


def test_the_same_words_are_not_shown_twice() -> None:
    platform = PlatformDriver(
        follows=[(5, 1), (5, 2), (5, 3)], feed=make_feed(followed=5, recommended=5, recommendation="hot")
    )
    post_id, other = platform.post(0), platform.post(4)
    platform.repost(1, post_id)
    platform.quote(2, post_id)
    newest = platform.repost(3, post_id)
    seen = platform.look(5)
    assert (ids(seen.followed), ids(seen.recommended)) == ([newest], [other])


def test_posts_of_the_followed_reach_only_followers() -> None:
    platform = PlatformDriver(
        follows=[(1, 0), (2, 0), (2, 1)], feed=make_feed(followed=5, recommended=5, recommendation="none")
    )
    by_0, by_1 = platform.post(0), platform.post(1)
    assert [ids(platform.feed(agent)) for agent in range(4)] == [[], [by_0], [by_1, by_0], []]


def test_following_and_unfollowing_take_effect_on_the_next_look() -> None:
    platform = PlatformDriver(follows=[(1, 0)], feed=make_feed(followed=5))
    post_id = platform.post(0)
    platform.succeed(2, "FOLLOW", followee_id=0)
    platform.succeed(1, "UNFOLLOW", followee_id=0)
    assert [ids(platform.look(agent).followed) for agent in (1, 2)] == [[], [post_id]]
    platform.succeed(1, "FOLLOW", followee_id=0)
    platform.succeed(2, "UNFOLLOW", followee_id=0)
    assert [ids(platform.look(agent).followed) for agent in (1, 2)] == [[post_id], []]


def test_no_more_is_shown_than_was_asked_for() -> None:
    platform = PlatformDriver(
        20, follows=[(19, agent) for agent in range(10)], feed=make_feed(followed=3, recommended=4, comments=2)
    )
    for agent in range(18):
        platform.post(agent)
    seen = platform.look(19)
    assert (len(seen.followed), len(seen.recommended)) == (3, 4)
    assert not set(ids(seen.followed)) & set(ids(seen.recommended))


def test_an_empty_feed_and_an_empty_list_of_agents_are_possible() -> None:
    platform = PlatformDriver(follows=FOLLOW_0, feed=make_feed())
    platform.post(0)
    assert platform.feed(1) == []
    assert list(platform.world.observe(2, [])) == []


def test_the_best_liked_comments_are_shown_up_to_the_cap() -> None:
    platform = PlatformDriver(follows=FOLLOW_0, feed=make_feed(followed=1, comments=2))
    post_id = platform.post(0)
    plain_one, liked, newest = (platform.comment(agent, post_id) for agent in (1, 2, 3))
    platform.succeed(4, "LIKE_COMMENT", comment_id=liked)
    seen = platform.find(5, post_id)
    assert [reply.comment_id for reply in seen.replies] == [liked, newest]
    assert (seen.comments, plain_one in {reply.comment_id for reply in seen.replies}) == (3, False)


def test_strangers_are_recommended_authors_that_the_agent_does_not_follow() -> None:
    platform = PlatformDriver(
        follows=[(5, 0), (5, 1)], feed=make_feed(followed=1, recommended=10, recommendation="hot")
    )
    for agent in range(4):
        platform.post(agent)
    assert set(platform.look(5).strangers) == {2, 3}
    platform.succeed(5, "FOLLOW", followee_id=2)
    platform.succeed(5, "UNFOLLOW", followee_id=1)
    assert set(platform.look(5).strangers) == {1, 3}


def test_posts_are_marked_that_one_has_reacted_to() -> None:
    platform = PlatformDriver(follows=FOLLOW_0, feed=make_feed(followed=2, recommended=10, recommendation="hot"))
    liked, disliked, shared, ignored = (platform.post(agent) for agent in (0, 2, 3, 4))
    platform.succeed(1, "LIKE_POST", post_id=liked)
    platform.succeed(1, "DISLIKE_POST", post_id=disliked)
    platform.repost(1, shared)
    seen = platform.look(1)
    assert set(seen.reacted) == {liked, disliked, shared}
    assert ignored in ids(seen.recommended)
    assert platform.look(5).reacted == ()
    platform.succeed(1, "UNLIKE_POST", post_id=liked)
    platform.succeed(1, "UNDO_DISLIKE_POST", post_id=disliked)
    assert platform.look(1).reacted == (shared,)


def test_a_post_stays_marked_while_one_reaction_is_left() -> None:
    platform = PlatformDriver(follows=FOLLOW_0, feed=make_feed(followed=1))
    post_id = platform.post(0)
    for kind in ("LIKE_POST", "DISLIKE_POST", "UNLIKE_POST"):
        platform.succeed(1, kind, post_id=post_id)
    assert platform.look(1).reacted == (post_id,)


# Events


def announcements(platform: PlatformDriver, rounds: int) -> dict[tuple[int, int], tuple[str, ...]]:
    """(Round, agent) -> what the agent was told then."""
    world, told = platform.world, {}
    for round in range(1, rounds + 1):
        platform.announce(round)
        agents = [agent for group in world.turns(round) for agent in group]
        seen = world.observe(round, agents)
        told.update({(round, look.agent): look.announcements for look in seen if look.announcements})
        platform.begin(round)
        for agent in agents:
            world.apply(round, agent, Decision())
        world.writes()
    return told


def test_a_broadcast_reaches_all_agents_once() -> None:
    platform = PlatformDriver(3, events=[(2, Happening("broadcast", "News."))])
    assert announcements(platform, 4) == {(2, agent): ("News.",) for agent in range(3)}


def test_a_broadcast_to_some_reaches_only_them() -> None:
    platform = PlatformDriver(
        4, events=[(2, Happening("broadcast", "News.", to=(1, 3))), (2, Happening("broadcast", "More.", to=(3,)))]
    )
    assert announcements(platform, 4) == {(2, 1): ("News.",), (2, 3): ("News.", "More.")}


@pytest.mark.parametrize("when", [0, 1, 2, 3])
def test_an_agent_that_was_asleep_sees_the_news_on_waking_up(when: int) -> None:
    people = crowd(2)
    people.active_hours[1] = (1 << 11) | (1 << 12)
    platform = PlatformDriver(people, events=[(when, Happening("broadcast", "News."))])
    # The first round is at 8 o'clock, so person 1 wakes up in round 4.
    assert announcements(platform, 6) == {(max(when, 1), 0): ("News.",), (4, 1): ("News.",)}


def test_asking_twice_whose_turn_it_is_takes_no_news_away() -> None:
    platform = PlatformDriver(2, events=[(1, Happening("broadcast", "News."))])
    platform.announce(1)
    world = platform.world
    assert world.turns(1) == world.turns(1)
    assert [seen.announcements for seen in world.observe(1, [0, 1])] == [("News.",)] * 2


def test_an_event_can_post_in_an_agents_name() -> None:
    events = [
        (0, Happening("post", "First.", agent=0)),
        (0, Happening("post", "Second.", agent=0)),
        (2, Happening("post", "Third.", agent=0)),
    ]
    platform = PlatformDriver(follows=FOLLOW_0, feed=make_feed(followed=5), events=events)
    assert [post.content for post in platform.feed(1)] == ["Second.", "First."]
    platform.pass_rounds(2)
    assert [post.content for post in platform.feed(1)] == ["Third.", "Second."]
    assert len({getattr(event, "id", None) for event in platform.happened}) == 3


# Numbers, and changes on the way


def test_numbers_of_posts_do_not_depend_on_what_others_do() -> None:
    def later_numbers(busy: bool) -> list[int]:
        platform = PlatformDriver(events=[(2, Happening("post", "News.", agent=0))])
        platform.play(*[(0, "CREATE_POST", {"content": f"{n}"}) for n in range(32 if busy else 1)])
        posted = [platform.post(agent) for agent in (1, 2, 0)]
        return [*posted, platform.comment(3, posted[0]), platform.quote(4, posted[1])]

    assert later_numbers(True) == later_numbers(False)


def test_no_two_things_of_a_kind_have_the_same_number() -> None:
    events = [(1, Happening("post", str(number), agent=0)) for number in range(32)]
    platform = PlatformDriver(2, events=events)
    platform.play(*[(agent, "CREATE_POST", {"content": str(n)}) for agent in (0, 1) for n in range(32)])
    platform.play((0, "CREATE_POST", {"content": "Next."}))
    assert platform.rows("SELECT count(*), count(DISTINCT post_id) FROM post") == [(97, 97)]


def test_settings_that_a_fork_changes_hold_from_that_round_on() -> None:
    def settings(recommended: int, **more: Any) -> SocialSettings:
        return SocialSettings(
            kind="twitter", feed=hot(recency=1).model_copy(update={"recommended": recommended}), **more
        )

    changes = ((5, settings(1, self_rating=False)), (7, settings(0, actions=("DO_NOTHING",))))
    platform = PlatformDriver(feed=hot(), changes=changes)
    post_id = platform.post(0)
    platform.post(1)
    platform.pass_rounds(2)
    seen = [len(platform.world.observe(round, [5])[0].recommended) for round in (4, 5, 6, 7)]
    assert seen == [2, 1, 1, 0]
    # Round 5 forbids rating oneself, round 7 everything.
    assert platform.fail(0, "LIKE_POST", post_id=post_id) == "agents cannot rate their own posts here"
    assert platform.do(1, "LIKE_POST", post_id=post_id).success
    assert platform.fail(2, "LIKE_POST", post_id=post_id) == "LIKE_POST is not possible here"


# The pools of what is hot


class Pond:
    """Posts and their pools, without the rest of a platform."""

    def __init__(self, topics: int = 2, minutes: int = 60) -> None:
        self.posts = Posts()
        self.pools = HotPosts(self.posts, topics, minutes, decade_minutes=360, habits=Habits())
        self.topics = topics

    def post(self, round: int, topics: Sequence[int] = ()) -> int:
        row = self.posts.add(self.posts.count + 1, 0, round, "x", None, None)
        self.posts.describe(row, topics, 0.0)
        return row

    def hottest(self, topic: int | None, count: int) -> list[int]:
        """From scratch."""
        about = range(self.posts.count) if topic is None else self._about(topic)
        heat = self.pools.heat(np.arange(self.posts.count))
        return sorted(about, key=lambda row: (int(heat[row]), row), reverse=True)[:count]

    def agrees(self) -> bool:
        shown = [self.pools.hot, *self.pools.topics]
        wanted = [self.hottest(None, HOT_POOL_SIZE), *(self.hottest(n, POOL_SIZE) for n in range(self.topics))]
        return [rows[rows >= 0].tolist() for rows in shown] == wanted

    def _about(self, topic: int) -> list[int]:
        return [row for row in range(self.posts.count) if topic in self.posts.topics[row].tolist()]


def test_ten_reactions_are_worth_six_hours() -> None:
    pond = Pond()
    liked, *later = (pond.post(round) for round in (0, 5, 6, 7))
    pond.posts.likes[liked] = 10
    heat = pond.pools.heat(np.arange(4))
    assert heat[later[0]] < heat[liked] < heat[later[2]]
    assert heat[later[1]] == pytest.approx(heat[liked], rel=1e-4)


def test_dislikes_cool_a_post_below_one_without_any_reaction() -> None:
    pond = Pond()
    for row in range(3):
        pond.post(1)
        pond.posts.dislikes[row] = row
    heat = pond.pools.heat(np.arange(3)).tolist()
    assert heat == sorted(heat, reverse=True)
    assert len(set(heat)) == 3


def test_disliked_posts_of_the_first_rounds_are_in_the_pools_like_others() -> None:
    pond = Pond()
    for _ in range(POOL_SIZE + 4):
        pond.posts.dislikes[pond.post(0, [0])] = 3
    pond.pools.update(np.arange(pond.posts.count))
    assert pond.agrees()
    assert (pond.pools.topics[0] >= 0).all()


def test_who_cools_down_makes_room_for_who_was_left_out() -> None:
    pond = Pond()
    for _ in range(4 * HOT_POOL_SIZE):
        pond.post(1, [0])
    pond.pools.update(np.arange(pond.posts.count))
    for _ in range(4):
        cooled = pond.pools.hot.copy()
        pond.posts.dislikes[cooled] += 1
        pond.pools.update(np.sort(cooled))
        assert pond.agrees()


def test_heat_does_not_run_over_in_long_runs_of_long_rounds() -> None:
    pond = Pond(minutes=10_080)
    for round in (1, 500, 100_000):
        pond.post(round)
    pond.pools.update(np.arange(3))
    assert pond.pools.hot[:3].tolist() == [2, 1, 0]


def random_round(pond: Pond, draws: Draws, round: int) -> None:
    """Some posts are written, many reacted to, for better or worse."""
    touched = {
        pond.post(round, sorted({draws.below(2) for _ in range(draws.below(3))})) for _ in range(draws.below(30))
    }
    for _ in range(draws.below(60) if pond.posts.count else 0):
        row = draws.below(pond.posts.count)
        column = draws.choice((pond.posts.likes, pond.posts.dislikes, pond.posts.comments, pond.posts.shares))
        column[row] = max(int(column[row]) + draws.choice((-2, -1, 1, 3)), 0)
        touched.add(row)
    pond.pools.update(np.array(sorted(touched), np.int64))


@given(st.integers(0, 2**32))
def test_pools_that_are_kept_up_to_date_hold_what_counting_anew_would_find(seed: int) -> None:
    pond, draws = Pond(minutes=6), Draws(derive(seed, "pools"))
    for round in range(12):
        random_round(pond, draws, round)
        assert pond.agrees()


def test_reposts_are_not_in_the_pools_but_what_they_share_gets_hotter() -> None:
    platform = PlatformDriver(feed=hot(), minutes=1)
    shared, newer = platform.post(0), platform.post(1)
    repost_id = platform.repost(2, shared)
    state = platform.world._state
    rows = [state.posts.row_of[post_id] for post_id in (shared, newer)]
    assert state.pools.hot[state.pools.hot >= 0].tolist() == rows
    assert repost_id not in list_recommended(platform, 5)


def test_a_rejected_turn_leaves_the_pools_alone() -> None:
    platform = PlatformDriver(feed=hot())
    platform.post(0)
    before = platform.world._state.pools.hot.copy()
    platform.play((1, "LIKE_POST", {"post_id": 1}))
    platform.world.apply(platform.round, 2, Decision((Action("NO_SUCH_THING"),)))
    assert platform.world._state.pools.hot.tolist() == before.tolist()


# How far words carry, and how fast


def influential(**influences: float) -> Crowd:
    """Six people; `p0=3` makes person 0 three times as influential."""
    people = crowd(6)
    people.habits.influence = np.ones(6, np.float32)
    for name, value in influences.items():
        people.habits.influence[int(name[1:])] = value
    return people


@pytest.mark.parametrize(("influence", "first"), [(1, False), (3, True), (0.2, False)])
def test_influence_brings_posts_up(influence: float, first: bool) -> None:
    platform = PlatformDriver(influential(p0=influence), feed=hot(recency=1))
    mine, other = platform.post(0), platform.post(1)
    assert list_recommended(platform, 5) == ([mine, other] if first else [other, mine])


def test_equal_influence_changes_nothing() -> None:
    def count_shown(people: Crowd) -> list[list[int]]:
        platform = PlatformDriver(people, FOLLOW_0, feed=FeedSettings())
        for number in range(12):
            platform.post(number % 6, [GARDEN, FOOTBALL, TRUST, DOUBT][number % 4])
        return [ids(platform.feed(agent)) for agent in range(6)]

    assert count_shown(influential()) == count_shown(crowd(6))


def test_influence_decides_what_is_among_the_hottest() -> None:
    people = crowd(100)
    people.habits.influence = np.ones(100, np.float32)
    people.habits.influence[0] = 10
    platform = PlatformDriver(people, feed=hot(recency=1), kind="reddit")
    platform.play(*[(agent, "CREATE_POST", {"content": f"Post {agent}."}) for agent in range(100)])
    assert platform.find(99, list_recommended(platform, 99)[0]).author_id == 0


def test_influence_can_be_changed_while_it_runs() -> None:
    change = Happening("change", to=(0,), args={"influence": 5.0})
    platform = PlatformDriver(6, feed=hot(recency=1), events=[(3, change)])
    mine, other = platform.post(0), platform.post(1)
    assert list_recommended(platform, 5) == [other, mine]
    platform.pass_rounds(1)
    assert list_recommended(platform, 5) == [mine, other]


def make_slow(low: int, high: int) -> Crowd:
    """Make six people; the last one is slow."""
    people = crowd(6)
    people.habits.response_delay = np.zeros((6, 2), np.int32)
    people.habits.response_delay[5] = (low, high)
    return people


@pytest.mark.parametrize(
    "feed", [hot(recency=1), make_feed(followed=5), make_feed(recommended=5, recommendation="random")]
)
@pytest.mark.parametrize(("minutes", "hidden"), [(60, 2), (30, 5), (180, 0)])
def test_a_slow_person_sees_posts_later(feed: FeedSettings, minutes: int, hidden: int) -> None:
    platform = PlatformDriver(make_slow(180, 180), [(agent, 0) for agent in range(1, 6)], feed=feed, minutes=minutes)
    post = platform.post(0)
    assert post in ids(platform.feed(4))
    for _ in range(hidden):
        assert post not in ids(platform.feed(5))
        platform.pass_rounds(1)
    assert post in ids(platform.feed(5))


def test_what_is_hidden_does_not_take_the_place_of_something_else() -> None:
    platform = PlatformDriver(make_slow(240, 240), feed=make_feed(recommended=1, recommendation="hot", recency=1))
    old = platform.post(0)
    platform.pass_rounds(4)
    platform.post(1)
    assert list_recommended(platform, 5) == [old]


def test_delays_are_spread_between_least_and_most() -> None:
    platform = PlatformDriver(make_slow(60, 300), feed=make_feed(recommended=50, recommendation="hot", recency=1))
    platform.play(*[(0, "CREATE_POST", {"content": f"Post {number}."}) for number in range(30)])
    seen = []
    for _ in range(5):
        seen.append(len(platform.feed(5)))
        platform.pass_rounds(1)
    assert 0 <= seen[0] < seen[1] < seen[2] < seen[3] <= seen[4] == 30


@pytest.mark.parametrize(("counts", "shown"), [(True, 1), (False, 0)])
def test_counts_of_reactions_can_be_hidden(counts: bool, shown: int) -> None:
    platform = PlatformDriver(feed=hot(counts=counts))
    liked = platform.post(0)
    platform.succeed(2, "LIKE_POST", post_id=liked)
    [seen] = [post for post in platform.look(5).recommended if post.post_id == liked]
    assert (seen.likes, seen.dislikes, seen.shares) == (shown, 0, 0)
