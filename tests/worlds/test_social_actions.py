"""What each action does, and when it is refused."""

from __future__ import annotations

import json

import pytest

from shoal.types import Action, Decision
from shoal.worlds.social.actions.rules import NEEDS
from tests.worlds.drivers import PlatformDriver, ids, make_feed

EVERYTHING = make_feed(followed=10, recommended=10, recommendation="hot", comments=10)


@pytest.fixture
def platform() -> PlatformDriver:
    """Six people; 1 to 5 follow 0, and all are shown everything."""
    return PlatformDriver(follows=[(agent, 0) for agent in range(1, 6)], feed=EVERYTHING, products=("tea", "lamp"))


def test_there_are_the_29_actions_of_oasis() -> None:
    assert len(NEEDS) == 29


# Writing


def test_a_post_is_seen_with_its_words_and_author(platform: PlatformDriver) -> None:
    post_id = platform.post(0, "I love gardening.")
    seen = platform.find(1, post_id)
    assert (seen.author_id, seen.author, seen.content) == (0, "Mira Berg", "I love gardening.")
    assert (seen.quote, seen.original_author, seen.topics, seen.age) == (None, None, ("gardening",), 1)
    assert platform.rows("SELECT post_id, user_id, original_post_id, content, quote_content, created_at FROM post") == [
        (post_id, 0, None, "I love gardening.", None, 1)
    ]


def test_a_post_is_about_the_subject_also_beside_two_topics(platform: PlatformDriver) -> None:
    post_id = platform.post(0, "Gardening and football matter more than the campus curfew.")
    assert platform.find(1, post_id).topics == ("gardening", "football", "the campus curfew")


@pytest.mark.parametrize("text", ["", "  \n"])
def test_nothing_that_is_written_can_be_empty(platform: PlatformDriver, text: str) -> None:
    post_id = platform.post(0)
    group_id = platform.succeed(1, "CREATE_GROUP", group_name="Club")["group_id"]
    assert platform.fail(1, "CREATE_POST", content=text) == "a post cannot be empty"
    assert platform.fail(1, "QUOTE_POST", post_id=post_id, quote_content=text) == "a quote cannot be empty"
    assert platform.fail(1, "CREATE_COMMENT", post_id=post_id, content=text) == "a comment cannot be empty"
    assert platform.fail(1, "CREATE_GROUP", group_name=text) == "a group needs a name"
    assert platform.fail(1, "SEND_TO_GROUP", group_id=group_id, message=text) == "a message cannot be empty"
    assert platform.find(1, post_id).shares == 0


def test_a_repost_shows_the_words_of_the_original_and_counts_as_a_share(platform: PlatformDriver) -> None:
    post_id = platform.post(1, "Mine.")
    args = platform.succeed(0, "REPOST", post_id=post_id)
    assert args == {
        "post_id": post_id, "new_post_id": args["new_post_id"], "original_content": "Mine.",
        "original_author_name": "Bo Li",
    }  # fmt: skip
    seen = platform.find(2, args["new_post_id"])
    assert (seen.author, seen.content, seen.original_author, seen.shares) == ("Mira Berg", "Mine.", "Bo Li", 1)
    new_post = f"SELECT original_post_id, content, quote_content FROM post WHERE post_id = {args['new_post_id']}"
    assert platform.rows(new_post) == [(post_id, "Mine.", None)]
    assert platform.rows(f"SELECT num_shares FROM post WHERE post_id = {post_id}") == [(1,)]


def test_nothing_is_shared_twice(platform: PlatformDriver) -> None:
    post_id = platform.post(0)
    repost_id = platform.repost(1, post_id)
    assert platform.fail(1, "REPOST", post_id=post_id) == "this was already shared"
    assert platform.fail(1, "REPOST", post_id=repost_id) == "this was already shared"
    assert platform.fail(1, "QUOTE_POST", post_id=post_id, quote_content="Again.") == "this was already shared"
    assert platform.find(2, post_id).shares == 1


def test_a_quote_has_words_of_its_own_beside_those_of_the_original(platform: PlatformDriver) -> None:
    post_id = platform.post(1, "Mine.")
    args = platform.succeed(0, "QUOTE_POST", post_id=post_id, quote_content="So what?")
    assert args == {
        "quoted_id": post_id, "new_post_id": args["new_post_id"], "quote_content": "So what?",
        "original_content": "Mine.", "original_author_name": "Bo Li",
    }  # fmt: skip
    seen = platform.find(2, args["new_post_id"])
    assert (seen.author, seen.content, seen.quote, seen.original_author) == ("Mira Berg", "Mine.", "So what?", "Bo Li")


def test_a_quote_is_liked_commented_and_reported_by_itself(platform: PlatformDriver) -> None:
    post_id = platform.post(1, "Mine.")
    quote_id = platform.quote(0, post_id)
    platform.succeed(2, "LIKE_POST", post_id=quote_id)
    platform.comment(3, quote_id, "Under the quote.")
    for agent in (3, 4):
        platform.succeed(agent, "REPORT_POST", post_id=quote_id, report_reason="rude")
    seen = platform.find(5, quote_id)
    assert (seen.likes, seen.comments, seen.shares, seen.flagged) == (1, 1, 0, True)
    assert [reply.content for reply in seen.replies] == ["Under the quote."]
    counts = "SELECT post_id, num_likes, num_shares, num_reports FROM post ORDER BY post_id"
    assert sorted(platform.rows(counts)) == sorted([(post_id, 0, 1, 0), (quote_id, 1, 0, 2)])
    assert platform.look(2).reacted == (quote_id,)


def test_sharing_a_quote_shares_the_original(platform: PlatformDriver) -> None:
    post_id = platform.post(1, "Mine.")
    quote_id = platform.quote(0, post_id)
    assert platform.succeed(2, "REPOST", post_id=quote_id)["post_id"] == post_id
    again = platform.succeed(3, "QUOTE_POST", post_id=quote_id, quote_content="And so on.")
    assert (again["quoted_id"], again["original_author_name"]) == (post_id, "Bo Li")
    assert platform.rows("SELECT DISTINCT original_post_id FROM post WHERE original_post_id IS NOT NULL") == [
        (post_id,)
    ]
    assert platform.rows(f"SELECT num_shares FROM post WHERE post_id = {post_id}") == [(3,)]


def test_acting_on_a_repost_means_the_original(platform: PlatformDriver) -> None:
    post_id = platform.post(1, "Mine.")
    repost_id = platform.repost(0, post_id)
    for kind in ("LIKE_POST", "DISLIKE_POST"):
        assert platform.succeed(2, kind, post_id=repost_id)["post_id"] == post_id
    assert platform.succeed(2, "CREATE_COMMENT", post_id=repost_id, content="Hm.")["post_id"] == post_id
    assert platform.succeed(2, "REPORT_POST", post_id=repost_id, report_reason="spam")["post_id"] == post_id
    assert platform.succeed(3, "REPOST", post_id=repost_id)["post_id"] == post_id
    assert platform.fail(2, "LIKE_POST", post_id=post_id) == "this was already liked"
    assert platform.succeed(2, "UNLIKE_POST", post_id=repost_id)["post_id"] == post_id
    seen = platform.find(4, repost_id)
    assert (seen.likes, seen.dislikes, seen.comments, seen.shares) == (0, 1, 1, 2)


def test_a_comment_is_shown_under_its_post_and_names_what_it_answers(platform: PlatformDriver) -> None:
    post_id = platform.post(0, "Mine.")
    args = platform.succeed(1, "CREATE_COMMENT", post_id=post_id, content="Yours?")
    assert args == {
        "content": "Yours?", "comment_id": args["comment_id"], "post_id": post_id, "post_content": "Mine.",
        "post_author_name": "Mira Berg",
    }  # fmt: skip
    (reply,) = platform.find(2, post_id).replies
    assert (reply.comment_id, reply.author_id, reply.author, reply.content) == (
        args["comment_id"], 1, "Bo Li", "Yours?",
    )  # fmt: skip


def test_what_is_said_about_a_quote_names_the_words_of_the_quote(platform: PlatformDriver) -> None:
    quote_id = platform.quote(2, platform.post(0, "Mine."), "So what?")
    args = platform.succeed(1, "CREATE_COMMENT", post_id=quote_id, content="Indeed.")
    assert (args["post_id"], args["post_content"], args["post_author_name"]) == (quote_id, "So what?", "Anna Diaz")


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("LIKE_POST", {}),
        ("UNLIKE_POST", {}),
        ("DISLIKE_POST", {}),
        ("UNDO_DISLIKE_POST", {}),
        ("REPOST", {}),
        ("QUOTE_POST", {"quote_content": "x"}),
        ("CREATE_COMMENT", {"content": "x"}),
        ("REPORT_POST", {"report_reason": "x"}),
    ],
)
@pytest.mark.parametrize("post_id", [-1, 0, 3, 10**30])
def test_nothing_can_be_done_about_a_post_that_does_not_exist(
    platform: PlatformDriver, kind: str, more: dict[str, str], post_id: int
) -> None:
    assert platform.fail(1, kind, post_id=post_id, **more) == f"there is no post {post_id}"


# Rating


@pytest.mark.parametrize(
    ("give", "take_back", "counter", "done"),
    [
        ("LIKE_POST", "UNLIKE_POST", "likes", "liked"),
        ("DISLIKE_POST", "UNDO_DISLIKE_POST", "dislikes", "disliked"),
    ],
)
def test_a_post_is_rated_once_and_taken_back_once(
    platform: PlatformDriver, give: str, take_back: str, counter: str, done: str
) -> None:
    post_id = platform.post(0, "Mine.")
    about = {"post_id": post_id, "post_content": "Mine.", "post_author_name": "Mira Berg"}
    table = '"like"' if counter == "likes" else "dislike"
    assert platform.fail(1, take_back, post_id=post_id) == f"this was not {done}"
    assert platform.succeed(1, give, post_id=post_id) == about
    assert platform.fail(1, give, post_id=post_id) == f"this was already {done}"
    assert getattr(platform.find(2, post_id), counter) == 1
    assert platform.rows(f"SELECT user_id, post_id FROM {table}") == [(1, post_id)]
    assert platform.succeed(1, take_back, post_id=post_id) == about
    assert platform.fail(1, take_back, post_id=post_id) == f"this was not {done}"
    assert getattr(platform.find(2, post_id), counter) == 0
    assert platform.rows(f"SELECT user_id, post_id FROM {table}") == []


@pytest.mark.parametrize(
    ("give", "take_back", "counter", "done"),
    [
        ("LIKE_COMMENT", "UNLIKE_COMMENT", "likes", "liked"),
        ("DISLIKE_COMMENT", "UNDO_DISLIKE_COMMENT", "dislikes", "disliked"),
    ],
)
def test_a_comment_is_rated_once_and_taken_back_once(
    platform: PlatformDriver, give: str, take_back: str, counter: str, done: str
) -> None:
    post_id = platform.post(0)
    comment_id = platform.comment(3, post_id, "Under it.")
    about = {"comment_id": comment_id, "comment_content": "Under it.", "comment_author_name": "Luis Berg"}
    table = f"comment_{counter[:-1]}"
    assert platform.fail(1, take_back, comment_id=comment_id) == f"this was not {done}"
    assert platform.succeed(1, give, comment_id=comment_id) == about
    assert platform.fail(1, give, comment_id=comment_id) == f"this was already {done}"
    assert getattr(platform.find(2, post_id).replies[0], counter) == 1
    assert platform.rows(f"SELECT user_id, comment_id FROM {table}") == [(1, comment_id)]
    assert platform.succeed(1, take_back, comment_id=comment_id) == about
    assert platform.fail(1, take_back, comment_id=comment_id) == f"this was not {done}"
    assert getattr(platform.find(2, post_id).replies[0], counter) == 0
    assert platform.rows(f"SELECT user_id, comment_id FROM {table}") == []


@pytest.mark.parametrize("kind", ["LIKE_COMMENT", "UNLIKE_COMMENT", "DISLIKE_COMMENT", "UNDO_DISLIKE_COMMENT"])
def test_nothing_can_be_done_about_a_comment_that_does_not_exist(platform: PlatformDriver, kind: str) -> None:
    post_id = platform.post(0)
    assert platform.fail(1, kind, comment_id=post_id) == f"there is no comment {post_id}"


def test_what_was_done_by_others_is_not_taken_back(platform: PlatformDriver) -> None:
    post_id = platform.post(0)
    platform.succeed(1, "LIKE_POST", post_id=post_id)
    assert platform.fail(2, "UNLIKE_POST", post_id=post_id) == "this was not liked"
    assert platform.find(2, post_id).likes == 1


def test_like_unlike_and_like_in_one_turn_leaves_one_like(platform: PlatformDriver) -> None:
    post_id = platform.post(0)
    kinds = ("LIKE_POST", "UNLIKE_POST", "LIKE_POST")
    assert all(event.success for event in platform.play(*((1, kind, {"post_id": post_id}) for kind in kinds)))
    assert platform.find(2, post_id).likes == 1
    assert platform.rows('SELECT user_id, post_id FROM "like"') == [(1, post_id)]


def test_agents_may_rate_what_they_wrote_themselves_unless_that_is_switched_off(platform: PlatformDriver) -> None:
    strict = PlatformDriver(feed=EVERYTHING, self_rating=False)
    for where in (platform, strict):
        post_id = where.post(0)
        comment_id = where.comment(0, post_id)
        for kind, args in (
            ("LIKE_POST", {"post_id": post_id}),
            ("DISLIKE_POST", {"post_id": post_id}),
            ("LIKE_COMMENT", {"comment_id": comment_id}),
            ("DISLIKE_COMMENT", {"comment_id": comment_id}),
        ):
            assert where.do(0, kind, **args).success is (where is platform)
            assert where.do(1, kind, **args).success


def test_with_self_rating_off_a_repost_of_an_own_post_cannot_be_rated_either() -> None:
    strict = PlatformDriver(self_rating=False)
    post_id = strict.post(0)
    repost_id = strict.repost(1, post_id)
    assert strict.fail(0, "LIKE_POST", post_id=repost_id) == "agents cannot rate their own posts here"
    assert strict.do(1, "LIKE_POST", post_id=repost_id).success


def test_a_post_is_flagged_when_two_people_have_reported_it(platform: PlatformDriver) -> None:
    post_id = platform.post(0, "Mine.")
    assert platform.succeed(1, "REPORT_POST", post_id=post_id, report_reason="spam") == {
        "post_id": post_id, "post_content": "Mine.", "post_author_name": "Mira Berg", "report_reason": "spam",
    }  # fmt: skip
    assert platform.fail(1, "REPORT_POST", post_id=post_id, report_reason="spam") == "this was already reported"
    assert not platform.find(3, post_id).flagged
    platform.succeed(2, "REPORT_POST", post_id=post_id, report_reason="rude")
    assert platform.find(3, post_id).flagged
    assert sorted(platform.rows("SELECT user_id, post_id, report_reason FROM report")) == [
        (1, post_id, "spam"),
        (2, post_id, "rude"),
    ]


# People


def test_following_and_unfollowing_change_the_counts_of_both(platform: PlatformDriver) -> None:
    target = {"target_user": "Bo Li", "target_user_name": "Bo Li"}
    assert platform.succeed(0, "FOLLOW", followee_id=1) == {"followee_id": 1, **target}
    assert (platform.look(0).following, platform.look(1).followers) == (1, 1)
    assert platform.fail(0, "FOLLOW", followee_id=1) == "already following"
    assert (0, 1) in platform.rows("SELECT follower_id, followee_id FROM follow")
    assert platform.rows("SELECT num_followings FROM user WHERE user_id = 0") == [(1,)]
    assert platform.succeed(0, "UNFOLLOW", followee_id=1) == {"followee_id": 1, **target}
    assert (platform.look(0).following, platform.look(1).followers) == (0, 0)
    assert platform.fail(0, "UNFOLLOW", followee_id=1) == "not following"
    assert (0, 1) not in platform.rows("SELECT follower_id, followee_id FROM follow")


def test_muting_and_unmuting_happen_once(platform: PlatformDriver) -> None:
    target = {"target_user": "Bo Li", "target_user_name": "Bo Li"}
    assert platform.fail(0, "UNMUTE", mutee_id=1) == "not muted"
    assert platform.succeed(0, "MUTE", mutee_id=1) == {"mutee_id": 1, **target}
    assert platform.fail(0, "MUTE", mutee_id=1) == "already muted"
    assert platform.rows("SELECT muter_id, mutee_id FROM mute") == [(0, 1)]
    assert platform.succeed(0, "UNMUTE", mutee_id=1) == {"mutee_id": 1, **target}
    assert platform.fail(0, "UNMUTE", mutee_id=1) == "not muted"
    assert platform.rows("SELECT muter_id, mutee_id FROM mute") == []


@pytest.mark.parametrize(
    ("kind", "argument"),
    [("FOLLOW", "followee_id"), ("UNFOLLOW", "followee_id"), ("MUTE", "mutee_id"), ("UNMUTE", "mutee_id")],
)
def test_people_deal_with_others_who_exist(platform: PlatformDriver, kind: str, argument: str) -> None:
    assert platform.fail(0, kind, **{argument: 0}) == f"nobody can {kind.lower()} themselves"
    for nobody in (-1, 6, 10**30):
        assert platform.fail(0, kind, **{argument: nobody}) == f"there is no user {nobody}"


def test_muted_people_vanish_from_everything_one_is_shown(platform: PlatformDriver) -> None:
    platform.succeed(1, "FOLLOW", followee_id=2)
    group_id = platform.succeed(2, "CREATE_GROUP", group_name="Club")["group_id"]
    platform.succeed(1, "JOIN_GROUP", group_id=group_id)
    platform.succeed(2, "SEND_TO_GROUP", group_id=group_id, message="Loud.")
    by_mutee, by_other = platform.post(2, "Loud garden."), platform.post(0, "Quiet garden.")
    quote_id, repost_id = platform.quote(3, by_mutee, "A garden, see."), platform.repost(0, by_mutee)
    platform.comment(2, by_other, "Loud too.")
    platform.succeed(4, "LIKE_POST", post_id=by_mutee)
    of_mutee = {by_mutee, quote_id, repost_id}

    def sees(agent: int) -> bool:
        shown = platform.feed(agent)
        platform.play(
            (agent, "SEARCH_POSTS", {"query": "garden"}), (agent, "TREND", {}), (agent, "LISTEN_FROM_GROUP", {})
        )
        searched, trend, heard = platform.look(agent).answers
        (group,) = platform.look(agent).groups
        signs = {
            bool(of_mutee.intersection(ids(shown))),
            any(post.replies for post in shown),
            bool(of_mutee.intersection(ids(searched.posts))),
            any(post.replies for post in searched.posts),
            ids(trend.posts) == [by_mutee],
            not group.joined or bool(group.messages),
            not group.joined or bool(heard.messages),
        }
        (everything,) = signs
        return everything

    assert sees(1)
    platform.succeed(1, "MUTE", mutee_id=2)
    assert not sees(1)
    assert sees(5)
    assert by_other in ids(platform.feed(1))
    platform.succeed(1, "UNMUTE", mutee_id=2)
    assert sees(1)


# Looking things up


def test_search_finds_words_in_any_case_newest_first(platform: PlatformDriver) -> None:
    first, second = platform.post(0, "A GARDEN in spring"), platform.post(1, "my gardens")
    quote_id = platform.quote(2, platform.post(3, "Nothing."), "Straße with a Garden")
    platform.repost(4, first)
    assert platform.succeed(5, "SEARCH_POSTS", query=" garden ") == {"query": "garden"}
    answer = platform.answer(5)
    assert (answer.action, answer.query, ids(answer.posts)) == ("SEARCH_POSTS", "garden", [quote_id, second, first])
    platform.succeed(5, "SEARCH_POSTS", query="STRASSE")
    assert ids(platform.answer(5).posts) == [quote_id]
    platform.succeed(5, "SEARCH_POSTS", query="no such thing")
    assert platform.answer(5).posts == ()


def test_search_finds_at_most_five(platform: PlatformDriver) -> None:
    found = [platform.post(agent, "garden") for agent in (0, 1, 2, 3, 4, 0, 1)]
    platform.succeed(5, "SEARCH_POSTS", query="garden")
    assert ids(platform.answer(5).posts) == found[:1:-1]


def test_people_are_found_by_the_words_of_their_names(platform: PlatformDriver) -> None:
    assert platform.succeed(5, "SEARCH_USER", query="BERG") == {"query": "BERG"}
    assert platform.answer(5).users == ((0, "Mira Berg"), (3, "Luis Berg"))
    platform.succeed(5, "SEARCH_USER", query="berg luis")
    assert platform.answer(5).users == ((3, "Luis Berg"),)
    platform.succeed(5, "SEARCH_USER", query="Nobody")
    assert platform.answer(5).users == ()


@pytest.mark.parametrize("kind", ["SEARCH_POSTS", "SEARCH_USER"])
def test_a_search_needs_something_to_search_for(platform: PlatformDriver, kind: str) -> None:
    assert platform.fail(0, kind, query=" ") == "there is nothing to search for"


def test_answers_are_seen_in_the_next_turn_only(platform: PlatformDriver) -> None:
    platform.succeed(1, "TREND")
    assert len(platform.look(1).answers) == 1
    assert platform.look(2).answers == ()
    platform.succeed(1, "DO_NOTHING")
    assert platform.look(1).answers == ()


def test_trend_is_the_most_liked_post_of_the_last_seven_days() -> None:
    platform = PlatformDriver(feed=EVERYTHING, minutes=24 * 60)
    old, newer, newest = (platform.post(agent) for agent in (0, 1, 2))
    for agent, post_id in ((0, old), (1, old), (2, old), (0, newer), (1, newer), (0, newest)):
        platform.world.apply(platform.round, agent, Decision((Action("LIKE_POST", {"post_id": post_id}),)))
    platform.succeed(3, "TREND")
    assert ids(platform.answer(3).posts) == [old]
    platform.pass_rounds(4)
    platform.succeed(3, "TREND")
    assert ids(platform.answer(3).posts) == [newer]


def test_trend_is_nothing_before_anything_was_posted(platform: PlatformDriver) -> None:
    assert platform.succeed(1, "TREND") == {}
    assert platform.answer(1).posts == ()


def test_refreshing_and_doing_nothing_change_nothing(platform: PlatformDriver) -> None:
    platform.post(0)
    before = platform.world.observe(9, range(6))
    assert platform.succeed(1, "REFRESH") == {}
    assert platform.succeed(1, "DO_NOTHING") == {}
    assert platform.world.observe(9, range(6)) == before
    assert platform.rows("SELECT action, info FROM trace WHERE action <> 'sign_up' AND user_id = 1") == [
        ("refresh", "{}"),
        ("do_nothing", "{}"),
    ]


def test_an_interview_is_traced_with_its_answer(platform: PlatformDriver) -> None:
    assert platform.succeed(1, "INTERVIEW", prompt="Why?", response="Because.") == {
        "prompt": "Why?",
        "response": "Because.",
    }
    ((info,),) = platform.rows("SELECT info FROM trace WHERE action = 'interview' AND user_id = 1")
    assert json.loads(info) == {"prompt": "Why?", "response": "Because."}


# Groups and products


def test_who_makes_a_group_is_in_it(platform: PlatformDriver) -> None:
    args = platform.succeed(0, "CREATE_GROUP", group_name=" Club ")
    assert args == {"group_id": args["group_id"], "group_name": "Club"}
    (inside,), (outside,) = platform.look(0).groups, platform.look(1).groups
    assert (inside.name, inside.members, inside.joined) == ("Club", 1, True)
    assert (outside.name, outside.members, outside.joined) == ("Club", 1, False)
    assert platform.rows("SELECT group_id, agent_id FROM group_members") == [(args["group_id"], 0)]


def test_a_group_is_joined_once_and_left_once(platform: PlatformDriver) -> None:
    group_id = platform.succeed(0, "CREATE_GROUP", group_name="Club")["group_id"]
    about = {"group_id": group_id, "group_name": "Club"}
    assert platform.fail(1, "LEAVE_GROUP", group_id=group_id) == "not a member of this group"
    assert platform.succeed(1, "JOIN_GROUP", group_id=group_id) == about
    assert platform.fail(1, "JOIN_GROUP", group_id=group_id) == "already a member of this group"
    assert platform.look(1).groups[0].members == 2
    assert platform.succeed(1, "LEAVE_GROUP", group_id=group_id) == about
    assert platform.fail(1, "LEAVE_GROUP", group_id=group_id) == "not a member of this group"
    assert platform.look(1).groups[0].members == 1


@pytest.mark.parametrize(
    ("kind", "more"), [("JOIN_GROUP", {}), ("LEAVE_GROUP", {}), ("SEND_TO_GROUP", {"message": "x"})]
)
def test_there_must_be_a_group(platform: PlatformDriver, kind: str, more: dict[str, str]) -> None:
    assert platform.fail(1, kind, group_id=5, **more) == "there is no group 5"


def test_messages_reach_the_members_of_a_group_only(platform: PlatformDriver) -> None:
    group_id = platform.succeed(0, "CREATE_GROUP", group_name="Club")["group_id"]
    assert platform.fail(1, "SEND_TO_GROUP", group_id=group_id, message="Hi.") == "not a member of this group"
    platform.succeed(1, "JOIN_GROUP", group_id=group_id)
    assert platform.succeed(0, "SEND_TO_GROUP", group_id=group_id, message="Hi.") == {
        "group_id": group_id, "group_name": "Club", "message": "Hi.",
    }  # fmt: skip
    assert [message.content for message in platform.look(1).groups[0].messages] == ["Hi."]
    assert platform.look(2).groups[0].messages == ()
    assert platform.rows("SELECT group_id, sender_id, content FROM group_messages") == [(group_id, 0, "Hi.")]


def test_listening_brings_the_newest_messages_of_ones_groups(platform: PlatformDriver) -> None:
    group_id = platform.succeed(0, "CREATE_GROUP", group_name="Club")["group_id"]
    for number in range(12):
        platform.succeed(0, "SEND_TO_GROUP", group_id=group_id, message=str(number))
    platform.succeed(0, "LISTEN_FROM_GROUP")
    assert [message.content for message in platform.answer(0).messages] == [str(number) for number in range(2, 12)]
    platform.succeed(1, "LISTEN_FROM_GROUP")
    assert platform.answer(1).messages == ()


def test_agents_see_the_biggest_groups_and_always_their_own(platform: PlatformDriver) -> None:
    groups = [platform.succeed(agent, "CREATE_GROUP", group_name=f"Club {agent}")["group_id"] for agent in range(5)]
    for group_id in groups[2:]:
        platform.succeed(5, "JOIN_GROUP", group_id=group_id)
    assert [(group.group_id, group.joined) for group in platform.look(0).groups] == [
        (groups[0], True), *((group_id, False) for group_id in groups[2:]),
    ]  # fmt: skip


def test_sales_are_counted(platform: PlatformDriver) -> None:
    assert platform.succeed(0, "PURCHASE_PRODUCT", product_name="tea", purchase_num=2) == {
        "product_name": "tea", "purchase_num": 2,
    }  # fmt: skip
    platform.succeed(1, "PURCHASE_PRODUCT", product_name="tea", purchase_num=3)
    assert platform.look(2).products == (("tea", 5), ("lamp", 0))
    assert platform.rows("SELECT product_name, sales FROM product ORDER BY product_id") == [("tea", 5), ("lamp", 0)]


def test_only_what_is_on_sale_can_be_bought_in_numbers_that_make_sense(platform: PlatformDriver) -> None:
    assert platform.fail(0, "PURCHASE_PRODUCT", product_name="car", purchase_num=1) == "there is no product 'car'"
    for number in (0, -1, 10**30):
        assert platform.fail(0, "PURCHASE_PRODUCT", product_name="tea", purchase_num=number)
    assert platform.look(2).products == (("tea", 0), ("lamp", 0))


# What a platform allows


def test_only_the_actions_that_a_world_allows_are_possible() -> None:
    platform = PlatformDriver(actions=("CREATE_POST",))
    post_id = platform.post(0)
    assert platform.fail(1, "LIKE_POST", post_id=post_id) == "LIKE_POST is not possible here"
    assert platform.look(1).reacted == ()
