"""Replies as models really give them."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.language.reply import Finder, ParsedReply, read_reply
from shoal.agents.language.world_card import CardLimits, WorldCard, build_card, describe_world
from shoal.agents.loose_json import read_json
from shoal.models.base import Answer
from shoal.types import Action
from shoal.worlds.dialogue.settings import DialogueSettings
from shoal.worlds.names import NameIndex
from shoal.worlds.room.observations import Relation, RoomObservation, Stimulus
from shoal.worlds.room.settings import RoomSettings
from shoal.worlds.social.observations import CommentView, GroupView
from shoal.worlds.social.settings import SocialSettings
from tests.agents.people import look, post

#: Neither platform nor room needs the world itself to be described.
NO_WORLD: Any = None
TWITTER = build_card(describe_world(SocialSettings(kind="twitter", products=("tea",)), NO_WORLD), CardLimits(4))
ROOM = build_card(describe_world(RoomSettings(), NO_WORLD), CardLimits(4))
NAMES = ("Mira Berg", "Ada Lund", "Bo Berg", "Noor Li", "Kim Far", "Kim Far")
SEEN = look(
    posts=[
        post(12, "One.", author_id=1, author="Ada Lund", replies=(CommentView(7, 2, "Bo Berg", "Yes.", 0, 0),)),
        post(13, "Two.", author_id=3, author="Noor Li"),
        post(14, "Three.", author_id=3, author="Noor Li"),
    ],
    groups=(GroupView(5, "Bridge friends", 3, True, ()),),
)
LIKE = Action("LIKE_POST", {"post_id": 12})


def reply(text: str, card: WorldCard = TWITTER, seen: Any = SEEN, finish: str = "stop") -> ParsedReply:
    return read_reply(Answer(text, finish=finish), card, Finder(seen, NameIndex(NAMES)))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"thought": "x", "actions": [{"action": "LIKE_POST", "post_id": 12}]}', id="as told"),
        pytest.param('{"actions": [{"action": "LIKE_POST", "post_id": 12}]}', id="no thought"),
        pytest.param('```json\n{"actions": [{"action": "LIKE_POST", "post_id": 12}]}\n```', id="fenced"),
        pytest.param('```\n{"actions": [{"action": "LIKE_POST", "post_id": 12}]}', id="fence left open"),
        pytest.param('Sure! {"actions": [{"action": "LIKE_POST", "post_id": 12}]} Done.', id="prose around"),
        pytest.param('<think>{"a": 1} hm</think>{"actions": [{"action": "LIKE_POST", "post_id": 12}]}', id="reasoning"),
        pytest.param("{'actions': [{'action': 'LIKE_POST', 'post_id': 12}]}", id="single quotes"),
        pytest.param('{"actions": [{"action": "LIKE_POST", "post_id": 12,},],}', id="trailing commas"),
        pytest.param('{actions: [{action: "LIKE_POST", post_id: 12}]}', id="bare keys"),
        pytest.param('{"actions": [{"action": "LIKE_POST", "post_id": 12}]', id="bracket missing"),
        pytest.param('{"actions": [{"action": "LIKE_POST" "post_id": 12}]}', id="comma missing"),
        pytest.param('{"actions": [{"action": "LIKE_POST", "post_id": 12}]} // yes', id="comment"),
        pytest.param('{"a": 1}\n{"actions": [{"action": "LIKE_POST", "post_id": 12}]}', id="two objects"),
        pytest.param('[{"action": "LIKE_POST", "post_id": 12}]', id="only the list"),
        pytest.param('{"action": "LIKE_POST", "post_id": 12}', id="only the action"),
        pytest.param('{"actions": {"action": "LIKE_POST", "post_id": 12}}', id="not a list"),
        pytest.param('{"actions": "[{\\"action\\": \\"LIKE_POST\\", \\"post_id\\": 12}]"}', id="list as text"),
        pytest.param('"{\\"actions\\": [{\\"action\\": \\"LIKE_POST\\", \\"post_id\\": 12}]}"', id="all as text"),
        pytest.param('{"actions": [{"action": "like_post", "post_id": 12}]}', id="small letters"),
        pytest.param('{"actions": [{"action": "Like Post", "post_id": 12}]}', id="as words"),
        pytest.param('{"actions": [{"action_type": "LIKE_POST", "action_args": {"post_id": 12}}]}', id="args apart"),
        pytest.param('{"actions": [{"name": "LIKE_POST", "arguments": "{\\"post_id\\": 12}"}]}', id="args as text"),
        pytest.param(
            '{"tool_calls": [{"function": {"name": "LIKE_POST", "arguments": {"post_id": 12}}}]}', id="tool calls"
        ),
        pytest.param('{"actions": [{"LIKE_POST": {"post_id": 12}}]}', id="tagged"),
        pytest.param('{"actions": [{"LIKE_POST": 12}]}', id="tagged value"),
        pytest.param('{"actions": [{"action": "LIKE_POST", "post_id": "12"}]}', id="number as text"),
        pytest.param('{"actions": [{"action": "LIKE_POST", "post_id": "[12]"}]}', id="number in brackets"),
        pytest.param('{"actions": [{"action": "LIKE_POST", "post_id": "post #12"}]}', id="number in words"),
        pytest.param('{"actions": [{"action": "LIKE_POST", "post_id": 12.0}]}', id="number with point"),
        pytest.param('{"actions": [{"action": "LIKE_POST", "id": 12}]}', id="another key"),
        pytest.param('{"actions": [{"action": "LIKE_POST", "post_id": "Ada Lund"}]}', id="by its author"),
        pytest.param('{"actions": [{"action": "LIKE_POST", "post_id": 12, "content": null}]}', id="nulls"),
        pytest.param('{"actions": [{"action": "FLY"}, {"action": "LIKE_POST", "post_id": 12}]}', id="partly"),
    ],
)
def test_replies_in_many_forms_are_understood(text: str) -> None:
    assert reply(text).actions == (LIKE,)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a JSON object"),
        ("I would like to think about it.", "not a JSON object"),
        ("42", "not a JSON object"),
        ('{"thought": "x", "mood": "y"}', "no list of actions"),
        ('{"actions": [{"action": "FLY"}]}', "there is no action “FLY”; possible are CREATE_POST"),
        ('{"actions": [17]}', "an action is an object"),
        ('{"actions": [{"post_id": 12, "content": "x"}]}', "must have its name"),
        ('{"actions": [{"action": "LIKE_POST"}]}', "LIKE_POST needs post_id (a whole number)"),
        ('{"actions": [{"action": "LIKE_POST", "post_id": true}]}', "not “True”"),
        ('{"actions": [{"action": "LIKE_POST", "post_id": "the first"}]}', "not “the first”"),
        ('{"actions": [{"action": "LIKE_POST", "post_id": "Noor Li"}]}', "not “Noor Li”"),
        ('{"actions": [{"action": "LIKE_POST", "post_id": 1.5}]}', "not “1.5”"),
        ('{"actions": [{"action": "CREATE_POST", "content": "  "}]}', "CREATE_POST needs content (a text)"),
        ('{"actions": [{"action": "CREATE_POST", "content": {"a": 1}}]}', "CREATE_POST needs content (a text)"),
        ('{"actions": [{"action": "QUOTE_POST"}]}', "needs post_id (a whole number) and quote_content (a text)"),
        ('{"actions": [{"action": "FOLLOW", "user": "Zoe Nobody"}]}', "FOLLOW needs user (a name)"),
        ('{"actions": [{"action": "INTERVIEW", "prompt": "x"}]}', "there is no action"),
    ],
)
def test_complaints_say_what_cannot_be_used(text: str, why: str) -> None:
    found = reply(text)
    assert not found.is_usable
    assert why in "; ".join(found.complaints)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("Ada Lund", 1),
        ("ada lund", 1),
        ("@Ada Lund", 1),
        ("Ada Lund*", 1),
        ("Ada", 1),
        ("Bo Berg", 2),
        ("Noor Li (3)", 3),
        ("user 3", 3),
        (3, 3),
    ],
)
def test_people_are_found_by_the_names_they_were_shown_under(name: str | int, number: int) -> None:
    written = name if isinstance(name, int) else f'"{name}"'
    found = reply(f'{{"actions": [{{"action": "FOLLOW", "user": {written}}}]}}')
    assert found.actions == (Action("FOLLOW", {"followee_id": number}),)


def test_a_person_out_of_sight_is_found_by_a_unique_name() -> None:
    unseen = look()
    assert Finder(unseen, NameIndex(NAMES)).find_user("Noor Li") == 3
    assert Finder(unseen, NameIndex(NAMES)).find_user("Kim Far") is None


def test_the_words_of_the_world_are_understood_too() -> None:
    found = reply(
        '{"actions": [{"action": "MUTE", "mutee_id": 2}, {"action": "JOIN_GROUP", "group_id": "bridge friends"}]}'
    )
    assert found.actions == (Action("MUTE", {"mutee_id": 2}), Action("JOIN_GROUP", {"group_id": 5}))


def test_a_reply_without_actions_means_doing_nothing() -> None:
    for text in ('{"thought": "Dull.", "actions": []}', '{"thought": "Dull.", "actions": null}'):
        assert reply(text) == ParsedReply((Action("DO_NOTHING"),), "Dull.")


def test_more_actions_than_allowed_are_left_out() -> None:
    many = ", ".join('{"action": "TREND"}' for _ in range(9))
    assert len(reply(f'{{"actions": [{many}]}}').actions) == TWITTER.max_actions


def test_of_a_reply_that_was_cut_off_the_last_action_is_not_trusted() -> None:
    cut = '{"actions": [{"action": "LIKE_POST", "post_id": 12}, {"action": "CREATE_POST", "content": "I think th'
    assert reply(cut, finish="length").actions == (LIKE,)
    alone = '{"actions": [{"action": "CREATE_POST", "content": "I think th'
    assert reply(alone, finish="length").complaints == ("your reply was cut off; make it much shorter",)
    whole = '{"actions": [{"action": "LIKE_POST", "post_id": 12}]}'
    assert reply(whole, finish="length").actions == (LIKE,)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ('"\\ud800"', "\ufffd"),
        ('"cut \\ud83d"', "cut \ufffd"),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ('"a\\u0000b"', "a\0b"),
        ('"\\u202e\\u001b[2J"', "\u202e\x1b[2J"),
        ("12", "12"),
    ],
)
def test_what_a_reply_says_can_be_stored(written: str, text: str) -> None:
    found = reply(f'{{"actions": [{{"action": "CREATE_POST", "content": {written}}}]}}')
    assert found.actions == (Action("CREATE_POST", {"content": text}),)
    text.encode()


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e400", "NaN", "9" * 5000, '"' + "9" * 5000 + '"', "2e63", "[]"])
def test_a_number_that_no_database_holds_is_none(number: str) -> None:
    found = reply(f'{{"actions": [{{"action": "LIKE_POST", "post_id": {number}}}]}}')
    assert not found.is_usable
    assert "LIKE_POST needs post_id" in found.complaints[0]


@pytest.mark.parametrize("unit", ["{", "[", '{"', "{a:b,", '{"a":', '["', '{"actions": [', "'[", '{\\"'])
@pytest.mark.parametrize("chars", [3_000, 8_000, 50_000])
def test_reading_a_reply_takes_a_bounded_time(unit: str, chars: int) -> None:
    began = time.process_time()
    assert not reply((unit * chars)[:chars]).actions
    # The worst that is known takes two seconds; without bounds it is minutes.
    assert time.process_time() - began < 20


def test_repair_takes_few_steps_however_a_reply_is_broken() -> None:
    worst = "{" * 16 + '\\"' * 3_900
    began = time.process_time()
    assert read_json(worst) == ""
    assert time.process_time() - began < 20


def in_room(**fields: Any) -> RoomObservation:
    return RoomObservation(world="room", round=1, agent=0, name="Mira Berg", time="2026-01-01T08:00:00", **fields)


@pytest.mark.parametrize(
    ("target", "args"),
    [
        ('"Ada"', {"content": "Hi.", "target": "Ada Lund"}),
        ('"noor li"', {"content": "Hi.", "target": "Noor Li"}),
        ('"Bo Berg"', {"content": "Hi.", "target": "Bo Berg"}),
        ('"Somebody Else"', {"content": "Hi.", "target": "Somebody Else"}),
        ('"everyone"', {"content": "Hi."}),
        ("null", {"content": "Hi."}),
        ('""', {"content": "Hi."}),
        ("5", {"content": "Hi."}),
    ],
)
def test_in_a_room_a_first_name_is_enough_and_a_word_for_all_is_no_target(target: str, args: dict[str, str]) -> None:
    seen = in_room(
        present=("Ada Lund",),
        stimuli=(Stimulus("hear", "Hello.", 3, "Noor Li"),),
        relations=(Relation(2, "Bo Berg", "friends"),),
    )
    found = reply(f'{{"actions": [{{"action": "TALK", "content": "Hi.", "target": {target}}}]}}', ROOM, seen)
    assert found.actions == (Action("TALK", args),)


@given(st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(str))
def test_no_reply_raises_an_error(text: str) -> None:
    found = reply(text)
    assert found.is_usable or found.complaints


@given(st.dictionaries(st.sampled_from(["action", "post_id", "content", "user", "args", "actions", "x"]),
                       st.recursive(st.sampled_from(["FOLLOW", "QUOTE_POST", "12", 3, None, 1.5, True]),
                                    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner)))
       )  # fmt: skip
def test_what_is_read_is_what_the_world_takes(entry: dict[str, Any]) -> None:
    found = reply(str({"actions": [entry]}))
    for action in found.actions:
        needed = {argument.argument for argument in TWITTER.actions[action.kind].arguments}
        assert set(action.args) == needed


@pytest.mark.parametrize(
    "text",
    [
        '{"thought":"x","actions":[{"action":"LIKE_POST","post_id":12}',
        '{"thought":"x","actions":[{"action":"LIKE_POST","post_id":12},',
        '{"thought":"x","actions":[{"action":"LIKE_POST","post_id":12}, ',
        '{"thought":"x \\" y","actions":[{"action":"LIKE_POST","post_id":12}]',
        '{"actions":[{"action":"LIKE_POST","post_id":12}],"thought":"and then I',
    ],
)
def test_a_reply_that_is_cut_off_after_its_actions_is_mended(text: str) -> None:
    assert reply(text, finish="length").actions == (Action("LIKE_POST", {"post_id": 12}),)


@pytest.mark.parametrize(
    "text",
    [
        '{"thought":"x","actions":[{"action":"LIKE_POST","post_id":12',
        '{"thought":"x","actions":[{"action":"CREATE_POST","content":"Half a sen',
        '{"thought":"x","actions":[{"action":"CREATE_POST","content":"Half a {[,}] sen',
    ],
)
def test_an_action_that_is_cut_off_is_not_made_up(text: str) -> None:
    assert not reply(text, finish="length").is_usable


def test_the_reader_keeps_the_bounds_that_a_server_does_not() -> None:
    card = build_card(describe_world(SocialSettings(kind="twitter"), NO_WORLD), CardLimits(2, (20, 50)))
    [post] = reply('{"thought":"","actions":[{"action":"CREATE_POST","content":"' + "word " * 40 + '"}]}', card).actions
    assert len(post.args["content"]) <= 50
    assert post.args["content"].endswith("…")
    for written, kept in (
        ("It stays. I said so in a post", "It stays. I said so in a post"),
        ("It stays. I said so in a post that was as long as", "It stays."),
    ):
        [cut] = reply(f'{{"actions":[{{"action":"CREATE_POST","content":"{written}"}}]}}', card).actions
        assert cut.args["content"] == kept
    rules = describe_world(DialogueSettings(), NO_WORLD)
    [rate] = reply('{"actions":[{"action":"RATE","score":99}]}', build_card(rules, CardLimits(2, (20, 50)))).actions
    assert rate.args["score"] == 10
