"""Building of worlds and schedules from a scenario."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ScenarioInvalid
from shoal.scenario.build import build
from shoal.scenario.loading import load_events, validate
from shoal.types import Event, Notice, Versioned
from shoal.worlds.room.observations import RoomObservation

PEOPLE: dict[str, Any] = {"population": [{"name": name} for name in ("Ada", "Ben", "Cid")], "rounds": 9}


def list_happened(scenario: dict[str, Any], round: int, world: str = "twitter") -> list[Event | Notice]:
    """Return the events and notices of the schedule up to a round."""
    built = build(Versioned(validate(scenario)))
    happened: list[Event | Notice] = []
    for n in range(round + 1):
        due = built.schedules[world].due(n)
        built.worlds[world].begin(n)
        happened += [event for happening in due for event in built.worlds[world].happen(n, happening)]
    return happened


def test_posts_have_the_author_that_the_event_names() -> None:
    events = [{"post": "one", "by": "Ben"}, {"post": "two", "by": 2}, {"post": "three", "by": "Ben", "round": 2}]
    happened = list_happened({**PEOPLE, "events": events}, 2)
    assert [(event.agent_name, event.round) for event in happened if isinstance(event, Event)] == [
        ("Ben", 0),
        ("Cid", 0),
        ("Ben", 2),
    ]


def test_most_followed_is_the_person_with_most_followers() -> None:
    follows = {"graph": "none", "edges": [["Ada", "Cid"], ["Ben", "Cid"], ["Cid", "Ben"]]}
    happened = list_happened({**PEOPLE, "follows": follows, "events": [{"post": "one", "by": "most_followed"}]}, 0)
    assert [event.agent_name for event in happened if isinstance(event, Event)] == ["Cid"]


def test_an_event_of_one_world_does_not_happen_in_the_other() -> None:
    scenario = {**PEOPLE, "worlds": ["twitter", "reddit"], "events": [{"post": "one", "world": "reddit"}]}
    assert list_happened(scenario, 0, "twitter") == []
    assert len(list_happened(scenario, 0, "reddit")) == 1


def test_random_posts_past_the_limit_go_to_the_next_person() -> None:
    happened = list_happened({**PEOPLE, "events": [{"post": f"post {n}"} for n in range(96)]}, 0)
    by = Counter(event.agent_name for event in happened if isinstance(event, Event))
    assert by == {"Ada": 32, "Ben": 32, "Cid": 32}
    assert len({event.action_args["post_id"] for event in happened if isinstance(event, Event)}) == 96


def test_too_many_random_posts_in_a_round_are_refused() -> None:
    with pytest.raises(ScenarioInvalid, match="more than 32 posts"):
        list_happened({**PEOPLE, "events": [{"post": f"post {n}"} for n in range(97)]}, 0)


def test_a_broadcast_is_a_notice_with_numbers_of_people() -> None:
    happened = list_happened({**PEOPLE, "events": [{"broadcast": "hear, hear", "to": ["Cid", "Ada"], "round": 1}]}, 1)
    assert [(event.content, event.to) for event in happened if isinstance(event, Notice)] == [("hear, hear", (2, 0))]


def test_injected_events_default_to_the_round_of_the_fork(tmp_path: Path) -> None:
    file = tmp_path / "events.yaml"
    file.write_text("- {post: hello, by: Ben}\n- {broadcast: news, round: 7}\n")
    events = load_events(file, validate(PEOPLE), 4)
    assert [(event["round"], event.get("post"), event.get("broadcast")) for event in events] == [
        (4, "hello", None),
        (7, None, "news"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- {post: hello, by: Bem}\n", "events.yaml:1:21: 0.by: .*Bem"),
        ("- {post: hello, round: 2}\n", "events.yaml:1:24: 0.round: expected round 4 or later"),
        ("- {pots: hello}\n", "events.yaml:1:4: 0.pots: unknown field 'pots'; did you mean 'post'?"),
        ("events:\n- {post: hello, by: Bem}\n", "events.yaml:2:21: events.0.by: .*Bem"),
        ("hello\n", "events.yaml:1:1: expected a list of events"),
        ("[]\n", "events.yaml:1:1: expected a list of events"),
    ],
)
def test_a_wrong_injected_event_is_reported_with_line_and_column(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "events.yaml"
    file.write_text(text)
    with pytest.raises(ScenarioInvalid, match=expected.replace("?", r"\?")):
        load_events(file, validate(PEOPLE), 4)


def test_relationships_in_traits_hold_in_a_room_for_whoever_has_them() -> None:
    people = [
        {"name": "Ada", "traits": {"relationships": [["Ben", "your neighbour"], ["Somebody else", "an aunt"]]}},
        {"name": "Ben", "traits": {"relationships": "none worth mentioning"}},
    ]
    room = build(Versioned(validate({"population": people, "worlds": ["room"], "rounds": 2}))).worlds["room"]
    looks = [look for look in room.observe(1, [0, 1]) if isinstance(look, RoomObservation)]
    assert [[(tie.agent, tie.relation) for tie in look.relations] for look in looks] == [
        [("Ben", "your neighbour")],
        [],
    ]
