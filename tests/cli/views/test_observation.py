"""An observation is shown whole, in every kind of world."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console, RenderableType

from shoal.cli.views.observation import render_action, render_observation, render_values
from shoal.text import printable
from shoal.types import Action, Observation
from shoal.worlds.base import ViewObservation
from shoal.worlds.dialogue.observations import DialogueObservation, LineView
from shoal.worlds.room.observations import Relation, RoomObservation, Stimulus
from shoal.worlds.social.observations import CommentView, GroupView, LookedUp, MessageView, PostView, SocialObservation

HEAD: dict[str, Any] = {"world": "w", "round": 3, "agent": 0, "name": "Ada", "time": "2026-03-02T08:00"}


def print_plain(what: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().split())


def post(number: int, content: str, **more: Any) -> PostView:
    usual: dict[str, Any] = {
        "quote": None, "original_author": None, "age": 2, "likes": 0, "dislikes": 0, "shares": 0, "comments": 0,
        "flagged": False, "topics": (), "slant": 0.0, "replies": (),
    }  # fmt: skip
    return PostView(post_id=number, author_id=1, author="Bea", content=content, **(usual | more))


SOCIAL = SocialObservation(
    **HEAD,
    followed=(post(1, "first", likes=2, replies=(CommentView(5, 2, "Cid", "really?", 1, 0),)),),
    recommended=(post(2, "second", quote="look", original_author="Dan", flagged=True),),
    reacted=(1,),
    followers=4,
    following=1,
    announcements=("the bridge is closed",),
    answers=(LookedUp("SEARCH_POSTS", "bridge", (post(3, "found"),), ((3, "Dan"),)),),
    groups=(GroupView(9, "bridge fans", 2, True, (MessageView(2, "Cid", "in a group"),)),),
    products=(("lamp", 3),),
    pending=(Action("LIKE_POST", {"post_id": 1}),),
)
ROOM = RoomObservation(
    **HEAD,
    location="the kitchen",
    stimuli=(Stimulus("hear", "good morning", 1, "Bea", addressed=True), Stimulus("see", "smoke")),
    present=("Bea", "Cid"),
    goals=("have breakfast",),
    attention="the stove",
    relations=(Relation(1, "Bea", "sister"),),
)
DIALOGUE = DialogueObservation(
    **HEAD,
    partner_id=1,
    partner="Bea",
    partner_bio="a nurse",
    scene=2,
    setting="on a bench",
    turning_point="it rains",
    turn=3,
    turns=8,
    lines=tuple(LineView(n % 2, "Bea" if n % 2 else "Ada", f"line {n}") for n in range(9)),
    announcements=("psst",),
    rating=True,
)
OWN = ViewObservation(**HEAD, view={"highest_bid": 7, "lots": [{"lot": 1, "what": "a chair"}], "none": []})


@pytest.mark.parametrize(
    ("observation", "parts"),
    [
        (SOCIAL, ["news the bridge is closed", "Bea: first [post 1, 2 rounds old, 2 likes, reacted before]",
                  "Cid: really? [1 like]", "Bea (by Dan): look | second [post 2, 2 rounds old, reported]",
                  "search_posts bridge Bea: found", "Dan", "bridge fans (9), 2 members, joined", "Cid: in a group",
                  "lamp (3 sold)", "4 followers, follows 1", "own, unseen yet LIKE_POST: post id 1"]),
        (ROOM, ["the kitchen", "within hearing Bea, Cid", "Bea: good morning [addressed]", "(nobody): smoke [see]",
                "have breakfast", "the stove", "Bea: sister"]),
        (DIALOGUE, ["Bea: a nurse", "2, turn 3 of 8. on a bench", "it rains", "psst", "to rate the scene",
                    *(f"line {n}" for n in range(9))]),
        (OWN, ["highest bid 7", "lot what 1 a chair", "none -"]),
        (Observation(**HEAD), ["nothing"]),
    ],
    ids=["platform", "room", "dialogue", "own", "empty"],
)  # fmt: skip
def test_a_picture_is_shown_whole(observation: Observation, parts: list[str]) -> None:
    told = print_plain(render_observation(observation))
    assert [part for part in parts if part not in told] == []


@pytest.mark.parametrize(
    ("observation", "expected"),
    [
        (SOCIAL, [(1, ("post", 1, "first", None)), (2, ("comment", 5, "really?")), (1, ("post", 2, "second", "look")),
                  (1, ("post", 3, "found", None)), (2, ("message", "in a group"))]),
        (ROOM, [(1, ("hear", "good morning"))]),
        (DIALOGUE, [(n % 2, f"line {n}") for n in range(9)]),
        (OWN, []),
    ],
    ids=["platform", "room", "dialogue", "own"],
)  # fmt: skip
def test_an_observation_knows_the_agents_it_shows(observation: Observation, expected: list[Any]) -> None:
    assert list(observation.sources()) == expected


def test_values_are_rendered_by_their_shape() -> None:
    values = {"plain": 1, "some_words": {"a_b": 0.5, "LIKE_POST": True}, "deep": {"x": {"y": None}}, "list": [1, 2]}
    told = print_plain(render_values(values))
    assert told == "plain 1 some words a b 0.5, LIKE_POST yes deep x y - list [1,2]"


def test_nothing_that_agents_say_reaches_the_terminal_as_a_command() -> None:
    assert printable("a\x1b[31mb\nc") == "a [31mb c"
    assert "\x1b" not in print_plain(render_action(Action("SAY\x1b", {"content": "\x1b]0;owned\x07"})))
