"""Actions as sentences, and what they make true."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.sinks import Entity, Narration, Narrator
from shoal.types import Event, Mention, Notice
from shoal.worlds.kinds import KINDS

CLAIMS = {"closing": "the bridge closes"}
PEOPLE = {"Ben": 2}


def narrate(kind: str, success: bool = True, **args: Any) -> Narration | None:
    event = Event(3, 1, "Ada", kind, args, success, None, "2026-01-01T10:00:00+00:00", "twitter-3-1-0")
    return Narrator("twitter", "the bridge", CLAIMS, PEOPLE.get).tell(event)


def tell(kind: str, **args: Any) -> Narration:
    episode = narrate(kind, **args)
    assert episode is not None
    return episode


def test_a_post_is_a_sentence_its_post_and_the_view_that_it_takes() -> None:
    episode = tell("CREATE_POST", content="It closes!", post_id=7, claim="closing", lean=1.0)
    assert episode.text == "Ada posted “It closes!”."
    post = Entity("post", "twitter:7", "It closes!")
    assert episode.made == post
    posted, view = episode.facts
    assert (posted.relation, posted.target, posted.lasting) == ("POSTED", post, False)
    assert (view.relation, view.target) == ("SUPPORTS", Entity("claim", "closing", "the bridge closes"))
    assert view.lasting
    assert {"DOUBTS", "OPPOSES"} <= set(view.ends)


@pytest.mark.parametrize(("lean", "view"), [(0.9, "SUPPORTS"), (0.0, "DOUBTS"), (-0.19, "DOUBTS"), (-0.5, "OPPOSES")])
def test_words_without_a_claim_are_a_view_of_the_topic(lean: float, view: str) -> None:
    (fact,) = tell("TALK", content="Hm.", opinion=lean).facts
    assert (fact.relation, fact.target.kind, fact.target.name, fact.lean) == (view, "topic", "the bridge", lean)


@pytest.mark.parametrize(
    ("kind", "args", "text", "relation", "target"),
    [
        ("FOLLOW", {"followee_id": 2, "target_user_name": "Ben"}, "Ada followed Ben.", "FOLLOWS", "2"),
        ("REACH_OUT", {"target": "Ben"}, "Ada went to Ben.", "WENT_TO", "2"),
        (
            "LIKE_POST",
            {"post_id": 5, "post_content": "Hi", "post_author_name": "Ben"},
            "Ada liked a post of Ben: “Hi”.",
            "LIKES",
            "twitter:5",
        ),
        (
            "QUOTE_POST",
            {
                "quoted_id": 5,
                "new_post_id": 9,
                "quote_content": "No.",
                "original_content": "Hi",
                "original_author_name": "Ben",
            },
            "Ada quoted a post of Ben, “Hi”, with the words “No.”.",
            "QUOTED",
            "twitter:5",
        ),
        ("LEAVE_GROUP", {"group_id": 4, "group_name": "Films"}, "Ada left the group “Films”.", "LEFT", "twitter:4"),
        ("SAY", {"content": "Hm", "to_agent_id": 2, "to_agent_name": "Ben"}, "Ada said “Hm” to Ben.", "SPOKE_TO", "2"),
    ],
)
def test_an_action_relates_the_agent_to_what_it_concerns(
    kind: str, args: dict[str, Any], text: str, relation: str, target: str
) -> None:
    episode = tell(kind, **args)
    assert episode.text == text
    assert [(fact.source.key, fact.relation, fact.target.key) for fact in episode.facts] == [("1", relation, target)]


def test_every_action_of_every_kind_of_world_has_a_sentence() -> None:
    cards = [card.kind for kind in KINDS for card in kind.cards]
    told = [episode for card in cards if (episode := narrate(card)) is not None]
    assert len(told) > 25
    assert not [episode.text for episode in told if episode.text.startswith("Ada did ")]


def test_actions_of_a_world_of_the_users_own_are_told_with_their_arguments() -> None:
    assert tell("PLANT_TREE", where="garden", many=2).text == "Ada did plant tree: where garden, many 2."


def test_what_failed_or_is_silent_is_no_episode() -> None:
    assert narrate("CREATE_POST", success=False, content="x", post_id=1) is None
    assert narrate("DO_NOTHING") is None
    assert narrate("SEARCH_POSTS", query="x") is None


def test_an_announcement_is_told_with_its_claim_and_a_change_is_not() -> None:
    narrator = Narrator("twitter", None, CLAIMS, PEOPLE.get)
    heard = Notice("broadcast", 4, "It stays open.", (), "2026-01-01T10:00:00+00:00", Mention("closing", -1.0))
    episode = narrator.tell_notice(heard, "n1")
    assert episode is not None
    assert episode.text == "Everybody heard “It stays open.”."
    assert [(fact.relation, fact.target.key, fact.lean) for fact in episode.facts] == [("TOLD_OF", "closing", -1.0)]
    assert narrator.tell_notice(Notice("change", 4, "mood", (), "2026-01-01T10:00:00+00:00"), "n2") is None
