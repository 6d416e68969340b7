"""A turn in a sentence or two."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.agents.language.mind import summarise_turn
from shoal.types import Action, Decision, Observation
from shoal.worlds.base import ViewObservation
from shoal.worlds.dialogue.observations import DialogueObservation, LineView
from shoal.worlds.room.observations import RoomObservation, Stimulus
from tests.agents.people import look, post

NAMES = ("Mira Berg", "Ada Lund", "Bo Berg")
NOW: dict[str, Any] = {"round": 1, "agent": 0, "name": "Mira Berg", "time": "2026-01-01T08:00:00", "world": "w"}
FEED = look(posts=[post(12, "The bridge stays.", author_id=1, author="Ada Lund")])
ROOM = RoomObservation(**NOW, stimuli=(Stimulus("hear", "Coffee?", 1, "Ada Lund"), Stimulus("see", "Rain.")))
TALK = DialogueObservation(
    **NOW, partner_id=1, partner="Ada Lund", partner_bio="", scene=1, setting="", turning_point=None, turn=1, turns=9,
    lines=(LineView(1, "Ada Lund", "Who says so?"),),
)  # fmt: skip


def episode(seen: Observation, *actions: Action, thought: str = "") -> str:
    return summarise_turn(seen, Decision(actions), thought, NAMES)[0]


@pytest.mark.parametrize(
    ("seen", "action", "words"),
    [
        (FEED, Action("LIKE_POST", {"post_id": 12}), "You liked Ada Lund's «The bridge stays.»."),
        (FEED, Action("CREATE_POST", {"content": "Good."}), "You posted «Good.»."),
        (FEED, Action("CREATE_COMMENT", {"post_id": 12, "content": "So?"}),
         "You commented on Ada Lund's «The bridge stays.» «So?»."),
        (FEED, Action("LIKE_POST", {"post_id": 99}), "You liked post 99."),
        (FEED, Action("FOLLOW", {"followee_id": 2}), "You followed Bo Berg."),
        (FEED, Action("MUTE", {"mutee_id": 77}), "You muted user 77."),
        (FEED, Action("JOIN_GROUP", {"group_id": 5}), "You entered group 5."),
        (FEED, Action("SEND_TO_GROUP", {"group_id": 5, "message": "Hi."}), "You wrote «Hi.» in group 5."),
        (FEED, Action("LIKE_COMMENT", {"comment_id": 8}), "You liked comment 8."),
        (FEED, Action("SEARCH_POSTS", {"query": "bridge"}), "You searched for bridge."),
        (FEED, Action("DO_NOTHING"), "You only looked on."),
    ],
)  # fmt: skip
def test_on_a_platform_people_and_posts_are_named(seen: Observation, action: Action, words: str) -> None:
    assert episode(seen, action) == f"You saw Ada Lund: «The bridge stays.». {words}"


def test_what_the_agent_thought_takes_the_place_of_what_it_saw() -> None:
    assert episode(FEED, Action("DO_NOTHING"), thought="Dull.") == "You thought: Dull. You only looked on."


def test_episodes_of_other_worlds() -> None:
    said = Action("TALK", {"content": "Yes.", "target": "Ada Lund"})
    assert episode(ROOM, said) == "Ada Lund: «Coffee?»; see: «Rain.». You said «Yes.» to Ada Lund."
    assert episode(TALK, Action("SAY", {"content": "I do."})) == "Ada Lund: «Who says so?». You said «I do.»."
    lake = ViewObservation(**NOW, view={"tonnes": 81.25, "news": "none today"}, announcements=("Fish less!",))
    assert episode(lake, Action("FISH", {"tonnes": 2.5})) == (
        "Announced: «Fish less!». You saw tonnes: 81.25; news: «none today». You fish 2.5."
    )
    assert episode(Observation(**NOW), Action("WAIT")) == "You wait."


def test_news_matter_most_and_words_more_than_looking_on() -> None:
    quiet = summarise_turn(FEED, Decision((Action("DO_NOTHING"),)), "", NAMES)[1]
    spoken = summarise_turn(FEED, Decision((Action("CREATE_POST", {"content": "Good."}),)), "", NAMES)[1]
    news = summarise_turn(look(announcements=("Closed.",)), Decision((Action("DO_NOTHING"),)), "", NAMES)[1]
    assert quiet < spoken < news


def test_an_episode_is_short_whatever_was_written() -> None:
    long = "word " * 500
    feed = look(posts=[post(12, long)], announcements=(long,) * 9)
    actions = [Action("CREATE_COMMENT", {"post_id": 12, "content": long, "other": long})] * 20
    assert len(episode(feed, *actions, thought=long)) < 600


def test_where_much_was_done_the_rest_is_counted() -> None:
    posts = [Action("CREATE_POST", {"content": f"{n}" * 90}) for n in range(5)]
    assert episode(look(), *posts) == f"You posted «{'0' * 90}», posted «{'1' * 90}» and 3 more."
