"""The cards of worlds, which stand at the beginning of every prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec
import pytest

from shoal.agents.language.world_card import CardLimits, WorldCard, describe_world
from shoal.agents.language.world_card import build_card as build
from shoal.worlds.base import BaseWorld, Needs
from shoal.worlds.dialogue.settings import DialogueSettings
from shoal.worlds.dialogue.world import Dialogue
from shoal.worlds.room.settings import RoomSettings
from shoal.worlds.room.world import Room
from shoal.worlds.social.actions.rules import RULES
from shoal.worlds.social.settings import SocialSettings


class Lake(BaseWorld):
    """Everybody fishes at once.

    Fish that are left grow over night.
    """

    actions: ClassVar[Mapping[str, Needs]] = {
        "FISH": {"tonnes": float, "alone": bool},
        "GIVE": {"to": str, "fish": int, "kinds": list},
    }


#: Made without the people it would hold: a card says nothing about them.
LAKE = Lake.__new__(Lake)
NO_WORLD: Any = None


def build_card(settings: object, world: Any, max_actions: int) -> WorldCard:
    return build(describe_world(settings, world), CardLimits(max_actions))


CARDS = {
    "twitter": build_card(SocialSettings(kind="twitter", products=("tea",)), NO_WORLD, 4),
    "reddit": build_card(SocialSettings(kind="reddit"), NO_WORLD, 4),
    "room": build_card(RoomSettings(), NO_WORLD, 4),
    "dialogue": build_card(DialogueSettings(), NO_WORLD, 4),
    "own": build_card(object(), LAKE, 1),
}
each = pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for inner in schema.values():
            yield from objects(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from objects(inner)


def choices(card: WorldCard) -> list[dict[str, Any]]:
    items = card.schema["properties"]["actions"]["items"]
    found: list[dict[str, Any]] = items.get("anyOf", [items])
    return found


@each
def test_strict_structured_output_takes_the_schema(card: WorldCard) -> None:
    assert card.schema["type"] == "object"
    for schema in objects(card.schema):
        assert schema["required"] == list(schema["properties"])
        assert schema["additionalProperties"] is False


@each
def test_alternatives_differ_in_their_first_key(card: WorldCard) -> None:
    kinds = [kind for choice in choices(card) for kind in next(iter(choice["properties"].values()))["enum"]]
    assert sorted(kinds) == sorted(card.actions)


@each
def test_every_action_is_explained_once(card: WorldCard) -> None:
    for action in card.actions.values():
        assert card.values["actions"].split("\n").count(action.line()) == 1
    assert "DO_NOTHING" in card.actions


@each
def test_a_card_is_small(card: WorldCard) -> None:
    assert sum(map(len, card.values.values())) < 3600
    assert len(msgspec.json.encode(card.schema)) < 3000


def test_the_actions_of_a_platform_are_those_of_its_rules() -> None:
    assert set(RULES) - set(CARDS["twitter"].actions) == {"INTERVIEW", "REFRESH"}


@pytest.mark.parametrize(("kind", "world"), [("room", Room), ("dialogue", Dialogue)])
def test_rooms_and_dialogues_can_do_what_their_worlds_know(kind: str, world: type[BaseWorld]) -> None:
    assert set(CARDS[kind].actions) == {*world.actions, "DO_NOTHING"}


def test_only_what_the_scenario_allows_is_offered() -> None:
    social = build_card(SocialSettings(kind="twitter", actions=("LIKE_POST", "CREATE_POST")), NO_WORLD, 4)
    assert list(social.actions) == ["CREATE_POST", "LIKE_POST", "DO_NOTHING"]
    assert "QUOTE_POST(" not in social.values["actions"]
    room = build_card(RoomSettings(actions=("TALK",)), NO_WORLD, 4)
    assert list(room.actions) == ["TALK", "DONE", "DO_NOTHING"]


def test_buying_is_offered_where_there_is_something_to_buy() -> None:
    assert "PURCHASE_PRODUCT" in CARDS["twitter"].actions
    assert "PURCHASE_PRODUCT" not in CARDS["reddit"].actions


def test_what_need_not_be_there_may_be_null() -> None:
    talk = next(choice for choice in choices(CARDS["room"]) if "TALK" in choice["properties"]["action"]["enum"])
    assert talk["properties"]["content"] == {"type": "string"}
    assert talk["properties"]["target"] == {"type": ["string", "null"]}


def test_a_world_of_the_users_own_is_described_by_its_docstring_and_actions() -> None:
    card = CARDS["own"]
    assert "Everybody fishes at once.\n\nFish that are left grow over night." in card.values["place"]
    assert "FISH(tonnes, alone)\nGIVE(to, fish, kinds)\n" in card.values["actions"]
    assert card.values["max_actions"] == "one action"
    fish, give, _ = choices(card)
    assert fish["properties"]["tonnes"] == {"type": "number"}
    assert fish["properties"]["alone"] == {"type": "boolean"}
    assert give["properties"]["fish"] == {"type": "integer"}
    assert give["properties"]["kinds"] == {"type": "array", "items": {"type": "string"}}


def test_a_world_that_says_nothing_about_itself_has_a_card_too() -> None:
    class Silent(BaseWorld):
        pass

    card = build_card(object(), Silent.__new__(Silent), 2)
    assert list(card.actions) == ["DO_NOTHING"]
    assert "A world in a few lines" not in card.values["place"]
