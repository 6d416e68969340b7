"""Which agents are reached through which others, from what differs in their observations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.runs.rerun.spread import Deviation, Reached, Spread
from shoal.types import Event, Notice, Observation

NAMES = ["Ada", "Bea", "Cid", "Dan"]
ADA, BEA, CID, DAN = range(4)


class Picture(Observation, frozen=True, kw_only=True):
    """An observation of actions and numbered posts."""

    acts: tuple[tuple[int, str], ...] = ()
    posts: tuple[dict[str, Any], ...] = ()

    def sources(self) -> Iterator[tuple[int, object]]:
        yield from self.acts


def picture(agent: int, *acts: tuple[int, str], **post: Any) -> Picture:
    return Picture(
        world="w", round=0, agent=agent, name=NAMES[agent], time="", acts=acts, posts=(post,) if post else ()
    )


def event(agent: int, **args: Any) -> Event:
    return Event(1, agent, NAMES[agent], "LIKE_POST", args, True, None, "", f"w-1-{agent}-0")


def turn(agent: int, one: Picture, other: Picture, acted: bool = True, in_turn: bool = False) -> Deviation:
    return Deviation(agent, (one, other), acted, in_turn)


def begin_spread(agent: int = ADA) -> Spread:
    """Start with an event that acts in the name of an agent in round 1."""
    spread = Spread(NAMES)
    spread.add_round(1, [event(agent)], [], [])
    return spread


def summarise(found: list[Reached]) -> list[tuple[int, str, int | None, int]]:
    return [(who.agent, who.how, who.via, who.depth) for who in found]


def test_it_begins_with_the_agent_in_whose_name_an_event_acts() -> None:
    found = Spread(NAMES).add_round(1, [event(ADA)], [], [])
    assert summarise(found) == [(ADA, "happening", None, 0)]


def test_an_agent_is_reached_through_one_whose_actions_it_sees_differ() -> None:
    spread = begin_spread()
    found = spread.add_round(2, [], [turn(BEA, picture(BEA), picture(BEA, (ADA, "hello")))], [BEA])
    assert summarise(found) == [(BEA, "saw", ADA, 1)]


def test_something_missing_is_different_too() -> None:
    spread = begin_spread()
    found = spread.add_round(2, [], [turn(BEA, picture(BEA, (ADA, "hello")), picture(BEA))], [BEA])
    assert summarise(found) == [(BEA, "saw", ADA, 1)]


def test_an_agent_is_not_reached_before_it_acts_differently() -> None:
    spread = begin_spread()
    changed = turn(BEA, picture(BEA), picture(BEA, (ADA, "hello")), acted=False)
    assert spread.add_round(2, [], [changed], [BEA]) == []
    assert set(spread.reached) == {ADA}


def test_a_picture_that_was_different_earlier_still_counts() -> None:
    spread = begin_spread()
    spread.add_round(2, [], [turn(BEA, picture(BEA), picture(BEA, (ADA, "hello")), acted=False)], [BEA])
    found = spread.add_round(3, [], [turn(BEA, picture(BEA), picture(BEA))], [BEA])
    assert summarise(found) == [(BEA, "saw", ADA, 1)]


def test_of_several_who_could_have_led_there_the_nearest_to_the_beginning_did() -> None:
    spread = begin_spread()
    spread.add_round(2, [], [turn(BEA, picture(BEA), picture(BEA, (ADA, "hello")))], [BEA])
    seen = picture(CID, (BEA, "have you heard"), (ADA, "hello"))
    assert summarise(spread.add_round(3, [], [turn(CID, picture(CID), seen)], [CID])) == [(CID, "saw", ADA, 1)]
    late = turn(DAN, picture(DAN), picture(DAN, (BEA, "have you heard")))
    assert summarise(spread.add_round(3, [], [late], [DAN])) == [(DAN, "saw", BEA, 2)]
    assert spread.chain(DAN) == [ADA, BEA, DAN]


def test_what_is_the_same_in_both_pictures_leads_nowhere() -> None:
    spread = begin_spread()
    one, other = picture(BEA, (ADA, "hello"), (CID, "a")), picture(BEA, (ADA, "hello"), (CID, "b"))
    assert summarise(spread.add_round(2, [], [turn(BEA, one, other)], [BEA])) == [(BEA, "totals", None, 0)]


def test_no_agent_is_reached_through_itself() -> None:
    spread = begin_spread()
    found = spread.add_round(2, [], [turn(BEA, picture(BEA), picture(BEA, (BEA, "mine")))], [BEA])
    assert summarise(found) == [(BEA, "totals", None, 0)]


def test_a_different_figure_leads_to_who_reacted() -> None:
    spread = begin_spread()
    spread.add_reactions([event(ADA, post_id=7)])
    one, other = picture(BEA, post_id=7, likes=0), picture(BEA, post_id=7, likes=1)
    assert summarise(spread.add_round(2, [], [turn(BEA, one, other)], [BEA])) == [(BEA, "reaction", ADA, 1)]


def test_a_reaction_is_found_under_another_number_by_the_words_that_were_passed_on() -> None:
    spread = begin_spread()
    spread.add_reactions([event(ADA, post_id=7, post_content="old news")])
    one = picture(BEA, post_id=9, content="old news", likes=0)
    other = picture(BEA, post_id=9, content="old news", likes=1)
    assert summarise(spread.add_round(2, [], [turn(BEA, one, other)], [BEA])) == [(BEA, "reaction", ADA, 1)]


def test_an_agent_that_is_followed_differently_is_reached_by_the_follower() -> None:
    spread = begin_spread()
    spread.add_reactions([event(ADA, followee_id=BEA)])
    one, other = picture(BEA, followers=0), picture(BEA, followers=1)
    assert summarise(spread.add_round(2, [], [turn(BEA, one, other)], [BEA])) == [(BEA, "reaction", ADA, 1)]


def test_within_a_round_it_spreads_only_where_people_act_one_after_another() -> None:
    for in_turn, expected in ((True, (CID, "saw", BEA, 2)), (False, (CID, "totals", None, 0))):
        spread = begin_spread()
        first = turn(BEA, picture(BEA), picture(BEA, (ADA, "hello")), in_turn=in_turn)
        second = turn(CID, picture(CID), picture(CID, (BEA, "hello")), in_turn=in_turn)
        assert summarise(spread.add_round(2, [], [first, second], [BEA, CID]))[1] == expected


def test_an_agent_with_a_different_notice_is_reached_through_no_other() -> None:
    spread = begin_spread()
    notice = Notice("broadcast", 2, "psst", (BEA,), "")
    told = turn(BEA, picture(BEA), picture(BEA, (ADA, "hello")))
    other = turn(CID, picture(CID), picture(CID, (ADA, "hello")))
    assert summarise(spread.add_round(2, [notice], [told, other], [BEA, CID])) == [
        (BEA, "happening", None, 0),
        (CID, "saw", ADA, 1),
    ]


def test_a_notice_before_the_last_turn_does_not_count() -> None:
    spread = begin_spread()
    spread.add_round(2, [Notice("broadcast", 2, "psst", (), "")], [], [BEA])
    one, other = picture(BEA, followers=0), picture(BEA, followers=1)
    assert summarise(spread.add_round(3, [], [turn(BEA, one, other)], [BEA])) == [(BEA, "totals", None, 0)]


def test_before_any_agent_is_reached_the_declared_difference_is_the_cause() -> None:
    turns = [turn(BEA, picture(BEA), picture(BEA, (ADA, "a"))), turn(CID, picture(CID), picture(CID, (BEA, "b")))]
    found = Spread(NAMES, redeclared=True).add_round(1, [], turns, [BEA, CID])
    assert summarise(found) == [(BEA, "scenario", None, 0), (CID, "scenario", None, 0)]


def test_a_turn_that_is_missing_comes_from_who_was_in_sight_unless_something_else_was_declared() -> None:
    missing = Deviation(BEA, (picture(BEA, (ADA, "hello")), None), True)
    for redeclared, expected in ((False, ("saw", ADA)), (True, ("scenario", None))):
        spread = Spread(NAMES, redeclared)
        spread.add_round(1, [event(ADA)], [], [])
        (found,) = spread.add_round(2, [], [missing], [BEA])
        assert (found.how, found.via) == expected
