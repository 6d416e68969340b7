"""What each action does, and when it is refused."""

from __future__ import annotations

import json

import pytest

from shoal.types import Action, Decision
from shoal.worlds.social.actions import ACTIONS
from tests.worlds.stage import Stage, ids, plain

EVERYTHING = plain(followed=10, recommended=10, recommendation="hot", comments=10)


@pytest.fixture
def stage() -> Stage:
    """Six people; 1 to 5 follow 0, and everybody is shown everything."""
    return Stage(follows=[(agent, 0) for agent in range(1, 6)], feed=EVERYTHING, products=("tea", "lamp"))


def test_there_are_the_29_actions_of_oasis() -> None:
    assert len(ACTIONS) == 29


# Writing


def test_a_post_is_seen_with_its_words_and_author(stage: Stage) -> None:
    post_id = stage.post(0, "I love gardening.")
    seen = stage.find(1, post_id)
    assert (seen.author_id, seen.author, seen.content) == (0, "Mira Berg", "I love gardening.")
    assert (seen.quote, seen.original_author, seen.topics, seen.age) == (None, None, ("gardening",), 1)
    assert stage.rows("SELECT post_id, user_id, original_post_id, content, quote_content, created_at FROM post") == [
        (post_id, 0, None, "I love gardening.", None, 1)
    ]


def test_a_post_is_about_the_subject_also_beside_two_topics(stage: Stage) -> None:
    post_id = stage.post(0, "Gardening and football matter more than the campus curfew.")
    assert stage.find(1, post_id).topics == ("gardening", "football", "the campus curfew")


@pytest.mark.parametrize("text", ["", "  \n"])
def test_nothing_that_is_written_can_be_empty(stage: Stage, text: str) -> None:
    post_id = stage.post(0)
    group_id = stage.done(1, "CREATE_GROUP", group_name="Club")["group_id"]
    assert stage.refused(1, "CREATE_POST", content=text) == "a post cannot be empty"
    assert stage.refused(1, "QUOTE_POST", post_id=post_id, quote_content=text) == "a quote cannot be empty"
    assert stage.refused(1, "CREATE_COMMENT", post_id=post_id, content=text) == "a comment cannot be empty"
    assert stage.refused(1, "CREATE_GROUP", group_name=text) == "a group needs a name"
    assert stage.refused(1, "SEND_TO_GROUP", group_id=group_id, message=text) == "a message cannot be empty"
    assert stage.find(1, post_id).shares == 0


def test_a_repost_shows_the_words_of_the_original_and_counts_as_a_share(stage: Stage) -> None:
    post_id = stage.post(1, "Mine.")
    args = stage.done(0, "REPOST", post_id=post_id)
    assert args == {
        "post_id": post_id, "new_post_id": args["new_post_id"], "original_content": "Mine.",
        "original_author_name": "Bo Li",
    }  # fmt: skip
    seen = stage.find(2, args["new_post_id"])
    assert (seen.author, seen.content, seen.original_author, seen.shares) == ("Mira Berg", "Mine.", "Bo Li", 1)
    new_post = f"SELECT original_post_id, content, quote_content FROM post WHERE post_id = {args['new_post_id']}"
    assert stage.rows(new_post) == [(post_id, "Mine.", None)]
    assert stage.rows(f"SELECT num_shares FROM post WHERE post_id = {post_id}") == [(1,)]


def test_nothing_is_shared_twice(stage: Stage) -> None:
    post_id = stage.post(0)
    repost_id = stage.repost(1, post_id)
    assert stage.refused(1, "REPOST", post_id=post_id) == "this was already shared"
    assert stage.refused(1, "REPOST", post_id=repost_id) == "this was already shared"
    assert stage.refused(1, "QUOTE_POST", post_id=post_id, quote_content="Again.") == "this was already shared"
    assert stage.find(2, post_id).shares == 1


def test_a_quote_has_words_of_its_own_beside_those_of_the_original(stage: Stage) -> None:
    post_id = stage.post(1, "Mine.")
    args = stage.done(0, "QUOTE_POST", post_id=post_id, quote_content="So what?")
    assert args == {
        "quoted_id": post_id, "new_post_id": args["new_post_id"], "quote_content": "So what?",
        "original_content": "Mine.", "original_author_name": "Bo Li",
    }  # fmt: skip
    seen = stage.find(2, args["new_post_id"])
    assert (seen.author, seen.content, seen.quote, seen.original_author) == ("Mira Berg", "Mine.", "So what?", "Bo Li")


def test_a_quote_is_liked_commented_and_reported_by_itself(stage: Stage) -> None:
    post_id = stage.post(1, "Mine.")
    quote_id = stage.quote(0, post_id)
    stage.done(2, "LIKE_POST", post_id=quote_id)
    stage.comment(3, quote_id, "Under the quote.")
    for agent in (3, 4):
        stage.done(agent, "REPORT_POST", post_id=quote_id, report_reason="rude")
    seen = stage.find(5, quote_id)
    assert (seen.likes, seen.comments, seen.shares, seen.flagged) == (1, 1, 0, True)
    assert [reply.content for reply in seen.replies] == ["Under the quote."]
    counts = "SELECT post_id, num_likes, num_shares, num_reports FROM post ORDER BY post_id"
    assert sorted(stage.rows(counts)) == sorted([(post_id, 0, 1, 0), (quote_id, 1, 0, 2)])
    assert stage.look(2).reacted == (quote_id,)


def test_sharing_a_quote_shares_the_original(stage: Stage) -> None:
    post_id = stage.post(1, "Mine.")
    quote_id = stage.quote(0, post_id)
    assert stage.done(2, "REPOST", post_id=quote_id)["post_id"] == post_id
    again = stage.done(3, "QUOTE_POST", post_id=quote_id, quote_content="And so on.")
    assert (again["quoted_id"], again["original_author_name"]) == (post_id, "Bo Li")
    assert stage.rows("SELECT DISTINCT original_post_id FROM post WHERE original_post_id IS NOT NULL") == [(post_id,)]
    assert stage.rows(f"SELECT num_shares FROM post WHERE post_id = {post_id}") == [(3,)]


def test_acting_on_a_repost_means_the_original(stage: Stage) -> None:
    post_id = stage.post(1, "Mine.")
    repost_id = stage.repost(0, post_id)
    for kind in ("LIKE_POST", "DISLIKE_POST"):
        assert stage.done(2, kind, post_id=repost_id)["post_id"] == post_id
    assert stage.done(2, "CREATE_COMMENT", post_id=repost_id, content="Hm.")["post_id"] == post_id
    assert stage.done(2, "REPORT_POST", post_id=repost_id, report_reason="spam")["post_id"] == post_id
    assert stage.done(3, "REPOST", post_id=repost_id)["post_id"] == post_id
    assert stage.refused(2, "LIKE_POST", post_id=post_id) == "this was already liked"
    assert stage.done(2, "UNLIKE_POST", post_id=repost_id)["post_id"] == post_id
    seen = stage.find(4, repost_id)
    assert (seen.likes, seen.dislikes, seen.comments, seen.shares) == (0, 1, 1, 2)


def test_a_comment_is_shown_under_its_post_and_names_what_it_answers(stage: Stage) -> None:
    post_id = stage.post(0, "Mine.")
    args = stage.done(1, "CREATE_COMMENT", post_id=post_id, content="Yours?")
    assert args == {
        "content": "Yours?", "comment_id": args["comment_id"], "post_id": post_id, "post_content": "Mine.",
        "post_author_name": "Mira Berg",
    }  # fmt: skip
    (reply,) = stage.find(2, post_id).replies
    assert (reply.comment_id, reply.author_id, reply.author, reply.content) == (
        args["comment_id"], 1, "Bo Li", "Yours?",
    )  # fmt: skip


def test_what_is_said_about_a_quote_names_the_words_of_the_quote(stage: Stage) -> None:
    quote_id = stage.quote(2, stage.post(0, "Mine."), "So what?")
    args = stage.done(1, "CREATE_COMMENT", post_id=quote_id, content="Indeed.")
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
    stage: Stage, kind: str, more: dict[str, str], post_id: int
) -> None:
    assert stage.refused(1, kind, post_id=post_id, **more) == f"there is no post {post_id}"


# Rating


@pytest.mark.parametrize(
    ("give", "take_back", "counter", "done"),
    [
        ("LIKE_POST", "UNLIKE_POST", "likes", "liked"),
        ("DISLIKE_POST", "UNDO_DISLIKE_POST", "dislikes", "disliked"),
    ],
)
def test_a_post_is_rated_once_and_taken_back_once(
    stage: Stage, give: str, take_back: str, counter: str, done: str
) -> None:
    post_id = stage.post(0, "Mine.")
    about = {"post_id": post_id, "post_content": "Mine.", "post_author_name": "Mira Berg"}
    table = '"like"' if counter == "likes" else "dislike"
    assert stage.refused(1, take_back, post_id=post_id) == f"this was not {done}"
    assert stage.done(1, give, post_id=post_id) == about
    assert stage.refused(1, give, post_id=post_id) == f"this was already {done}"
    assert getattr(stage.find(2, post_id), counter) == 1
    assert stage.rows(f"SELECT user_id, post_id FROM {table}") == [(1, post_id)]
    assert stage.done(1, take_back, post_id=post_id) == about
    assert stage.refused(1, take_back, post_id=post_id) == f"this was not {done}"
    assert getattr(stage.find(2, post_id), counter) == 0
    assert stage.rows(f"SELECT user_id, post_id FROM {table}") == []


@pytest.mark.parametrize(
    ("give", "take_back", "counter", "done"),
    [
        ("LIKE_COMMENT", "UNLIKE_COMMENT", "likes", "liked"),
        ("DISLIKE_COMMENT", "UNDO_DISLIKE_COMMENT", "dislikes", "disliked"),
    ],
)
def test_a_comment_is_rated_once_and_taken_back_once(
    stage: Stage, give: str, take_back: str, counter: str, done: str
) -> None:
    post_id = stage.post(0)
    comment_id = stage.comment(3, post_id, "Under it.")
    about = {"comment_id": comment_id, "comment_content": "Under it.", "comment_author_name": "Luis Berg"}
    table = f"comment_{counter[:-1]}"
    assert stage.refused(1, take_back, comment_id=comment_id) == f"this was not {done}"
    assert stage.done(1, give, comment_id=comment_id) == about
    assert stage.refused(1, give, comment_id=comment_id) == f"this was already {done}"
    assert getattr(stage.find(2, post_id).replies[0], counter) == 1
    assert stage.rows(f"SELECT user_id, comment_id FROM {table}") == [(1, comment_id)]
    assert stage.done(1, take_back, comment_id=comment_id) == about
    assert stage.refused(1, take_back, comment_id=comment_id) == f"this was not {done}"
    assert getattr(stage.find(2, post_id).replies[0], counter) == 0
    assert stage.rows(f"SELECT user_id, comment_id FROM {table}") == []


@pytest.mark.parametrize("kind", ["LIKE_COMMENT", "UNLIKE_COMMENT", "DISLIKE_COMMENT", "UNDO_DISLIKE_COMMENT"])
def test_nothing_can_be_done_about_a_comment_that_does_not_exist(stage: Stage, kind: str) -> None:
    post_id = stage.post(0)
    assert stage.refused(1, kind, comment_id=post_id) == f"there is no comment {post_id}"


def test_what_was_done_by_others_is_not_taken_back(stage: Stage) -> None:
    post_id = stage.post(0)
    stage.done(1, "LIKE_POST", post_id=post_id)
    assert stage.refused(2, "UNLIKE_POST", post_id=post_id) == "this was not liked"
    assert stage.find(2, post_id).likes == 1


def test_like_unlike_and_like_in_one_turn_leaves_one_like(stage: Stage) -> None:
    post_id = stage.post(0)
    kinds = ("LIKE_POST", "UNLIKE_POST", "LIKE_POST")
    assert all(event.success for event in stage.play(*((1, kind, {"post_id": post_id}) for kind in kinds)))
    assert stage.find(2, post_id).likes == 1
    assert stage.rows('SELECT user_id, post_id FROM "like"') == [(1, post_id)]


def test_agents_may_rate_what_they_wrote_themselves_unless_that_is_switched_off(stage: Stage) -> None:
    strict = Stage(feed=EVERYTHING, self_rating=False)
    for where in (stage, strict):
        post_id = where.post(0)
        comment_id = where.comment(0, post_id)
        for kind, args in (
            ("LIKE_POST", {"post_id": post_id}),
            ("DISLIKE_POST", {"post_id": post_id}),
            ("LIKE_COMMENT", {"comment_id": comment_id}),
            ("DISLIKE_COMMENT", {"comment_id": comment_id}),
        ):
            assert where.do(0, kind, **args).success is (where is stage)
            assert where.do(1, kind, **args).success


def test_with_self_rating_off_a_repost_of_ones_own_post_cannot_be_rated_either() -> None:
    strict = Stage(self_rating=False)
    post_id = strict.post(0)
    repost_id = strict.repost(1, post_id)
    assert strict.refused(0, "LIKE_POST", post_id=repost_id) == "agents cannot rate their own posts here"
    assert strict.do(1, "LIKE_POST", post_id=repost_id).success


def test_a_post_is_flagged_when_two_people_have_reported_it(stage: Stage) -> None:
    post_id = stage.post(0, "Mine.")
    assert stage.done(1, "REPORT_POST", post_id=post_id, report_reason="spam") == {
        "post_id": post_id, "post_content": "Mine.", "post_author_name": "Mira Berg", "report_reason": "spam",
    }  # fmt: skip
    assert stage.refused(1, "REPORT_POST", post_id=post_id, report_reason="spam") == "this was already reported"
    assert not stage.find(3, post_id).flagged
    stage.done(2, "REPORT_POST", post_id=post_id, report_reason="rude")
    assert stage.find(3, post_id).flagged
    assert sorted(stage.rows("SELECT user_id, post_id, report_reason FROM report")) == [
        (1, post_id, "spam"),
        (2, post_id, "rude"),
    ]


# People


def test_following_and_unfollowing_change_the_counts_of_both(stage: Stage) -> None:
    target = {"target_user": "Bo Li", "target_user_name": "Bo Li"}
    assert stage.done(0, "FOLLOW", followee_id=1) == {"followee_id": 1, **target}
    assert (stage.look(0).following, stage.look(1).followers) == (1, 1)
    assert stage.refused(0, "FOLLOW", followee_id=1) == "already following"
    assert (0, 1) in stage.rows("SELECT follower_id, followee_id FROM follow")
    assert stage.rows("SELECT num_followings FROM user WHERE user_id = 0") == [(1,)]
    assert stage.done(0, "UNFOLLOW", followee_id=1) == {"followee_id": 1, **target}
    assert (stage.look(0).following, stage.look(1).followers) == (0, 0)
    assert stage.refused(0, "UNFOLLOW", followee_id=1) == "not following"
    assert (0, 1) not in stage.rows("SELECT follower_id, followee_id FROM follow")


def test_muting_and_unmuting_happen_once(stage: Stage) -> None:
    target = {"target_user": "Bo Li", "target_user_name": "Bo Li"}
    assert stage.refused(0, "UNMUTE", mutee_id=1) == "not muted"
    assert stage.done(0, "MUTE", mutee_id=1) == {"mutee_id": 1, **target}
    assert stage.refused(0, "MUTE", mutee_id=1) == "already muted"
    assert stage.rows("SELECT muter_id, mutee_id FROM mute") == [(0, 1)]
    assert stage.done(0, "UNMUTE", mutee_id=1) == {"mutee_id": 1, **target}
    assert stage.refused(0, "UNMUTE", mutee_id=1) == "not muted"
    assert stage.rows("SELECT muter_id, mutee_id FROM mute") == []


@pytest.mark.parametrize(
    ("kind", "argument"),
    [("FOLLOW", "followee_id"), ("UNFOLLOW", "followee_id"), ("MUTE", "mutee_id"), ("UNMUTE", "mutee_id")],
)
def test_people_deal_with_others_who_exist(stage: Stage, kind: str, argument: str) -> None:
    assert stage.refused(0, kind, **{argument: 0}) == f"nobody can {kind.lower()} themselves"
    for nobody in (-1, 6, 10**30):
        assert stage.refused(0, kind, **{argument: nobody}) == f"there is no user {nobody}"


def test_muted_people_vanish_from_everything_one_is_shown(stage: Stage) -> None:
    stage.done(1, "FOLLOW", followee_id=2)
    group_id = stage.done(2, "CREATE_GROUP", group_name="Club")["group_id"]
    stage.done(1, "JOIN_GROUP", group_id=group_id)
    stage.done(2, "SEND_TO_GROUP", group_id=group_id, message="Loud.")
    by_mutee, by_other = stage.post(2, "Loud garden."), stage.post(0, "Quiet garden.")
    quote_id, repost_id = stage.quote(3, by_mutee, "A garden, see."), stage.repost(0, by_mutee)
    stage.comment(2, by_other, "Loud too.")
    stage.done(4, "LIKE_POST", post_id=by_mutee)
    of_mutee = {by_mutee, quote_id, repost_id}

    def sees(agent: int) -> bool:
        shown = stage.shown(agent)
        stage.play((agent, "SEARCH_POSTS", {"query": "garden"}), (agent, "TREND", {}), (agent, "LISTEN_FROM_GROUP", {}))
        searched, trend, heard = stage.look(agent).answers
        (group,) = stage.look(agent).groups
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
    stage.done(1, "MUTE", mutee_id=2)
    assert not sees(1)
    assert sees(5)
    assert by_other in ids(stage.shown(1))
    stage.done(1, "UNMUTE", mutee_id=2)
    assert sees(1)


# Looking things up


def test_search_finds_words_in_any_case_newest_first(stage: Stage) -> None:
    first, second = stage.post(0, "A GARDEN in spring"), stage.post(1, "my gardens")
    quote_id = stage.quote(2, stage.post(3, "Nothing."), "Straße with a Garden")
    stage.repost(4, first)
    assert stage.done(5, "SEARCH_POSTS", query=" garden ") == {"query": "garden"}
    answer = stage.answer(5)
    assert (answer.action, answer.query, ids(answer.posts)) == ("SEARCH_POSTS", "garden", [quote_id, second, first])
    stage.done(5, "SEARCH_POSTS", query="STRASSE")
    assert ids(stage.answer(5).posts) == [quote_id]
    stage.done(5, "SEARCH_POSTS", query="no such thing")
    assert stage.answer(5).posts == ()


def test_search_finds_at_most_five(stage: Stage) -> None:
    found = [stage.post(agent, "garden") for agent in (0, 1, 2, 3, 4, 0, 1)]
    stage.done(5, "SEARCH_POSTS", query="garden")
    assert ids(stage.answer(5).posts) == found[:1:-1]


def test_people_are_found_by_the_words_of_their_names(stage: Stage) -> None:
    assert stage.done(5, "SEARCH_USER", query="BERG") == {"query": "BERG"}
    assert stage.answer(5).users == ((0, "Mira Berg"), (3, "Luis Berg"))
    stage.done(5, "SEARCH_USER", query="berg luis")
    assert stage.answer(5).users == ((3, "Luis Berg"),)
    stage.done(5, "SEARCH_USER", query="Nobody")
    assert stage.answer(5).users == ()


@pytest.mark.parametrize("kind", ["SEARCH_POSTS", "SEARCH_USER"])
def test_a_search_needs_something_to_search_for(stage: Stage, kind: str) -> None:
    assert stage.refused(0, kind, query=" ") == "there is nothing to search for"


def test_answers_are_seen_in_the_next_turn_only(stage: Stage) -> None:
    stage.done(1, "TREND")
    assert len(stage.look(1).answers) == 1
    assert stage.look(2).answers == ()
    stage.done(1, "DO_NOTHING")
    assert stage.look(1).answers == ()


def test_trend_is_the_most_liked_post_of_the_last_seven_days() -> None:
    stage = Stage(feed=EVERYTHING, minutes=24 * 60)
    old, newer, newest = (stage.post(agent) for agent in (0, 1, 2))
    for agent, post_id in ((0, old), (1, old), (2, old), (0, newer), (1, newer), (0, newest)):
        stage.world.apply(stage.round, agent, Decision((Action("LIKE_POST", {"post_id": post_id}),)))
    stage.done(3, "TREND")
    assert ids(stage.answer(3).posts) == [old]
    stage.pass_rounds(4)
    stage.done(3, "TREND")
    assert ids(stage.answer(3).posts) == [newer]


def test_trend_is_nothing_before_anything_was_posted(stage: Stage) -> None:
    assert stage.done(1, "TREND") == {}
    assert stage.answer(1).posts == ()


def test_refreshing_and_doing_nothing_change_nothing(stage: Stage) -> None:
    stage.post(0)
    before = stage.world.observe(9, range(6))
    assert stage.done(1, "REFRESH") == {}
    assert stage.done(1, "DO_NOTHING") == {}
    assert stage.world.observe(9, range(6)) == before
    assert stage.rows("SELECT action, info FROM trace WHERE action <> 'sign_up' AND user_id = 1") == [
        ("refresh", "{}"),
        ("do_nothing", "{}"),
    ]


def test_an_interview_is_traced_with_its_answer(stage: Stage) -> None:
    assert stage.done(1, "INTERVIEW", prompt="Why?", response="Because.") == {"prompt": "Why?", "response": "Because."}
    ((info,),) = stage.rows("SELECT info FROM trace WHERE action = 'interview' AND user_id = 1")
    assert json.loads(info) == {"prompt": "Why?", "response": "Because."}


# Groups and products


def test_who_makes_a_group_is_in_it(stage: Stage) -> None:
    args = stage.done(0, "CREATE_GROUP", group_name=" Club ")
    assert args == {"group_id": args["group_id"], "group_name": "Club"}
    (inside,), (outside,) = stage.look(0).groups, stage.look(1).groups
    assert (inside.name, inside.members, inside.joined) == ("Club", 1, True)
    assert (outside.name, outside.members, outside.joined) == ("Club", 1, False)
    assert stage.rows("SELECT group_id, agent_id FROM group_members") == [(args["group_id"], 0)]


def test_a_group_is_joined_once_and_left_once(stage: Stage) -> None:
    group_id = stage.done(0, "CREATE_GROUP", group_name="Club")["group_id"]
    about = {"group_id": group_id, "group_name": "Club"}
    assert stage.refused(1, "LEAVE_GROUP", group_id=group_id) == "not a member of this group"
    assert stage.done(1, "JOIN_GROUP", group_id=group_id) == about
    assert stage.refused(1, "JOIN_GROUP", group_id=group_id) == "already a member of this group"
    assert stage.look(1).groups[0].members == 2
    assert stage.done(1, "LEAVE_GROUP", group_id=group_id) == about
    assert stage.refused(1, "LEAVE_GROUP", group_id=group_id) == "not a member of this group"
    assert stage.look(1).groups[0].members == 1


@pytest.mark.parametrize(
    ("kind", "more"), [("JOIN_GROUP", {}), ("LEAVE_GROUP", {}), ("SEND_TO_GROUP", {"message": "x"})]
)
def test_there_must_be_a_group(stage: Stage, kind: str, more: dict[str, str]) -> None:
    assert stage.refused(1, kind, group_id=5, **more) == "there is no group 5"


def test_messages_reach_the_members_of_a_group_only(stage: Stage) -> None:
    group_id = stage.done(0, "CREATE_GROUP", group_name="Club")["group_id"]
    assert stage.refused(1, "SEND_TO_GROUP", group_id=group_id, message="Hi.") == "not a member of this group"
    stage.done(1, "JOIN_GROUP", group_id=group_id)
    assert stage.done(0, "SEND_TO_GROUP", group_id=group_id, message="Hi.") == {
        "group_id": group_id, "group_name": "Club", "message": "Hi.",
    }  # fmt: skip
    assert [message.content for message in stage.look(1).groups[0].messages] == ["Hi."]
    assert stage.look(2).groups[0].messages == ()
    assert stage.rows("SELECT group_id, sender_id, content FROM group_messages") == [(group_id, 0, "Hi.")]


def test_listening_brings_the_newest_messages_of_ones_groups(stage: Stage) -> None:
    group_id = stage.done(0, "CREATE_GROUP", group_name="Club")["group_id"]
    for number in range(12):
        stage.done(0, "SEND_TO_GROUP", group_id=group_id, message=str(number))
    stage.done(0, "LISTEN_FROM_GROUP")
    assert [message.content for message in stage.answer(0).messages] == [str(number) for number in range(2, 12)]
    stage.done(1, "LISTEN_FROM_GROUP")
    assert stage.answer(1).messages == ()


def test_the_biggest_groups_are_known_to_all_and_ones_own_always(stage: Stage) -> None:
    groups = [stage.done(agent, "CREATE_GROUP", group_name=f"Club {agent}")["group_id"] for agent in range(5)]
    for group_id in groups[2:]:
        stage.done(5, "JOIN_GROUP", group_id=group_id)
    assert [(group.group_id, group.joined) for group in stage.look(0).groups] == [
        (groups[0], True), *((group_id, False) for group_id in groups[2:]),
    ]  # fmt: skip


def test_sales_are_counted(stage: Stage) -> None:
    assert stage.done(0, "PURCHASE_PRODUCT", product_name="tea", purchase_num=2) == {
        "product_name": "tea", "purchase_num": 2,
    }  # fmt: skip
    stage.done(1, "PURCHASE_PRODUCT", product_name="tea", purchase_num=3)
    assert stage.look(2).products == (("tea", 5), ("lamp", 0))
    assert stage.rows("SELECT product_name, sales FROM product ORDER BY product_id") == [("tea", 5), ("lamp", 0)]


def test_only_what_is_on_sale_can_be_bought_in_numbers_that_make_sense(stage: Stage) -> None:
    assert stage.refused(0, "PURCHASE_PRODUCT", product_name="car", purchase_num=1) == "there is no product 'car'"
    for number in (0, -1, 10**30):
        assert stage.refused(0, "PURCHASE_PRODUCT", product_name="tea", purchase_num=number)
    assert stage.look(2).products == (("tea", 0), ("lamp", 0))


# What a platform allows


def test_only_the_actions_that_a_world_allows_are_possible() -> None:
    stage = Stage(actions=("CREATE_POST",))
    post_id = stage.post(0)
    assert stage.refused(1, "LIKE_POST", post_id=post_id) == "LIKE_POST is not possible here"
    assert stage.look(1).reacted == ()
