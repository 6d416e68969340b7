"""What people in a room perceive, and what their actions do."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from shoal.errors import ScenarioInvalid
from shoal.types import Action, Decision, Happening
from tests.worlds.drivers import ANNA, BO, LUIS, MIRA, RoomDriver, talk

# Talking


def test_a_remark_to_the_room_is_heard_by_all_others() -> None:
    room = RoomDriver()
    room.do(BO, "TALK", content="I love gardening.")
    assert room.hearers() == [MIRA, ANNA, LUIS]
    (remark,) = room.look(ANNA).stimuli
    assert (remark.kind, remark.content, remark.source_id, remark.source) == ("hear", "I love gardening.", BO, "Bo Li")
    assert (remark.addressed, remark.topics, remark.opinion) == (False, ("gardening",), None)
    assert remark.slant > 0


def test_a_remark_to_one_person_is_heard_by_no_other() -> None:
    room = RoomDriver()
    assert room.succeed(MIRA, "TALK", content="Psst.", target="bo li") == {"content": "Psst.", "target": "Bo Li"}
    assert room.hearers() == [BO]
    assert room.look(BO).stimuli[0].addressed


def test_remarks_are_heard_in_the_order_in_which_they_were_made() -> None:
    room = RoomDriver()
    room.play((BO, talk("One.")), (LUIS, talk("Two.", target="Anna Diaz") + talk("Three.")), (ANNA, talk("Four.")))
    assert room.stimuli(MIRA) == ["One.", "Three.", "Four."]
    assert room.stimuli(ANNA) == ["One.", "Two.", "Three."]
    assert room.stimuli(LUIS) == ["One.", "Four."]
    assert room.stimuli(BO) == ["Three.", "Four."]


def test_an_opinion_can_be_said_outright() -> None:
    room = RoomDriver()
    assert room.succeed(MIRA, "TALK", content="I doubt it.", opinion=1) == {"content": "I doubt it.", "opinion": 1.0}
    remark = room.look(BO).stimuli[0]
    assert (remark.opinion, remark.slant) == (1.0, 1.0)


@pytest.mark.parametrize("opinion", [1.01, -7, float("nan"), "for", True])
def test_an_opinion_is_a_number_from_minus_one_to_one(opinion: object) -> None:
    assert "from -1 to 1" in RoomDriver().fail(MIRA, "TALK", content="Well.", opinion=opinion)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("Bo Lo", "nobody is called 'Bo Lo'; did you mean 'Bo Li'?"),
        ("anna", "nobody is called 'anna'; did you mean 'Anna Diaz'?"),
        ("Xerxes", "nobody is called 'Xerxes'"),
        ("Mira Berg", "Mira Berg cannot be the target of their own action"),
    ],
)
def test_an_unknown_target_is_refused_with_the_nearest_name(target: str, reason: str) -> None:
    assert RoomDriver().fail(MIRA, "TALK", content="Hello.", target=target) == reason


def test_nothing_is_heard_twice() -> None:
    room = RoomDriver()
    room.do(BO, "TALK", content="Hello.")
    assert room.stimuli(MIRA) == ["Hello."]
    room.play()
    assert room.stimuli(MIRA) == []


def test_an_agent_without_a_turn_hears_everything_in_its_next_one() -> None:
    room = RoomDriver()
    room.play(events=[Happening("mute", to=(MIRA,), args={"rounds": 4})])
    room.do(BO, "TALK", content="One.")
    room.do(ANNA, "TALK", content="Two.", target="Mira Berg")
    room.do(LUIS, "TALK", content="Three.")
    assert room.stimuli(MIRA) == ["One.", "Two.", "Three."]
    assert room.stimuli(BO) == ["Three."]
    room.play()
    assert room.stimuli(MIRA) == []


def test_those_who_heard_the_same_are_given_one_and_the_same_record_of_it() -> None:
    room = RoomDriver(people=8)
    room.play((BO, talk("One.")), (ANNA, talk("Two.")))
    shared = {id(room.look(agent).stimuli) for agent in range(3, 8)}
    assert len(shared) == 1
    assert room.look(BO).stimuli[0] is room.look(LUIS).stimuli[1]


# Parallel and sequential turns side by side


def chorus(turns: str, order: str = "listed") -> tuple[RoomDriver, list[list[str]]]:
    """Let all repeat what they heard and add their name; return what each of them heard, round by round."""
    room = RoomDriver(turns=turns, order=order)
    heard: list[list[str]] = []
    for round in (1, 2):
        groups = room.room.turns(round)
        looks = {look.agent: look for look in room.room.observe(round, groups[0])}
        room.room.begin(round)
        for group in groups:
            looks |= {look.agent: look for look in room.room.observe(round, group) if look.agent not in looks}
            for agent in group:
                heard.append([stimulus.content for stimulus in looks[agent].stimuli])
                room.room.apply(round, agent, Decision(tuple(talk(f"{looks[agent].name.split()[0]} {round}"))))
        room.room.writes()
    return room, heard


def test_parallel_turns_act_on_one_picture_and_sequential_ones_on_what_was_just_done() -> None:
    _, parallel = chorus("parallel")
    _, sequential = chorus("sequential")
    # Round 1. Parallel: all hear nothing. Sequential: each hears the ones before it.
    assert parallel[:4] == [[], [], [], []]
    assert sequential[:4] == [[], ["Mira 1"], ["Mira 1", "Bo 1"], ["Mira 1", "Bo 1", "Anna 1"]]
    # Round 2. Parallel: all that the others said in round 1. Sequential: what was said since the agent's last turn.
    assert parallel[4:] == [
        ["Bo 1", "Anna 1", "Luis 1"],
        ["Mira 1", "Anna 1", "Luis 1"],
        ["Mira 1", "Bo 1", "Luis 1"],
        ["Mira 1", "Bo 1", "Anna 1"],
    ]
    assert sequential[4:] == [
        ["Bo 1", "Anna 1", "Luis 1"],
        ["Anna 1", "Luis 1", "Mira 2"],
        ["Luis 1", "Mira 2", "Bo 2"],
        ["Mira 2", "Bo 2", "Anna 2"],
    ]


def test_both_kinds_of_turns_deliver_everything_once_to_all() -> None:
    for turns in ("parallel", "sequential"):
        room, heard = chorus(turns)
        for agent, name in enumerate(("Mira", "Bo", "Anna", "Luis")):
            everything = [*heard[agent], *heard[4 + agent], *room.stimuli(agent)]
            said = [f"{other} {round}" for round in (1, 2) for other in ("Mira", "Bo", "Anna", "Luis") if other != name]
            assert sorted(everything) == sorted(said)


def test_parallel_turns_are_one_group_and_sequential_ones_groups_of_one() -> None:
    assert RoomDriver().room.turns(1) == [[0, 1, 2, 3]]
    assert RoomDriver(turns="sequential", order="listed").room.turns(1) == [[0], [1], [2], [3]]


def test_the_order_of_sequential_turns_is_drawn_anew_each_round_from_the_seed() -> None:
    orders = [
        [agent for (agent,) in RoomDriver(people=8, turns="sequential", seed=seed).room.turns(round)]
        for seed in (1, 2)
        for round in range(1, 6)
    ]
    assert all(sorted(order) == list(range(8)) for order in orders)
    assert len({tuple(order) for order in orders}) == 10
    assert RoomDriver(people=8, turns="sequential", seed=1).room.turns(1) == [[agent] for agent in orders[0]]


def test_a_muted_person_takes_no_turn_of_either_kind() -> None:
    for turns in ("parallel", "sequential"):
        room = RoomDriver(turns=turns).room
        room.happen(1, Happening("mute", to=(BO,)))
        assert sorted(agent for group in room.turns(1) for agent in group) == [MIRA, ANNA, LUIS]


def test_a_fork_may_change_the_kind_of_turns() -> None:
    room = RoomDriver(turns="parallel", later=[(2, {"turns": "sequential", "order": "listed"})])
    room.do(BO, "TALK", content="Hello.")
    assert room.room.turns(2) == [[0], [1], [2], [3]]
    assert room.stimuli(MIRA) == ["Hello."]
    room.room.begin(2)
    room.room.apply(2, MIRA, Decision(tuple(talk("At last."))))
    assert [s.content for s in room.room.observe(2, [ANNA])[0].stimuli] == ["Hello.", "At last."]


# Hearing


def test_neighbours_hear_those_they_follow_and_those_who_follow_them() -> None:
    room = RoomDriver(follows=[(MIRA, BO), (BO, ANNA)], hearing="neighbours")
    room.do(BO, "TALK", content="Hello.")
    assert room.hearers() == [MIRA, ANNA]
    assert room.look(BO).present == ("Mira Berg", "Anna Diaz")
    assert room.look(LUIS).present == ()
    assert room.fail(MIRA, "TALK", content="Hello.", target="Anna Diaz") == "Anna Diaz cannot hear Mira Berg"


def test_relations_hear_one_another_also_when_they_have_just_formed() -> None:
    relations = [{"between": ["Mira Berg", 3], "relation": "cousins"}]
    room = RoomDriver(hearing="relations", relations=relations)
    room.do(MIRA, "TALK", content="Hello.")
    assert room.hearers() == [LUIS]
    room.succeed(MIRA, "RELATE", target="Bo Li", relation="friends")
    room.do(MIRA, "TALK", content="Hello.")
    assert room.hearers() == [BO, LUIS]


def test_pairs_are_drawn_anew_each_round_and_all_are_in_one() -> None:
    room = RoomDriver(people=8, hearing="pairs")
    met = []
    for _ in range(6):
        present = {agent: room.look(agent).present for agent in range(8)}
        names = {room.room.names[agent]: others for agent, others in present.items()}
        assert all(len(others) == 1 and names[others[0]] == (name,) for name, others in names.items())
        met.append(present[MIRA])
        room.play((MIRA, talk("Hello.")))
        (hearer,) = room.hearers()
        assert (room.room.names[hearer],) == present[MIRA]
    assert len(set(met)) > 2


def test_with_an_odd_number_one_agent_stays_alone() -> None:
    room = RoomDriver(people=5, hearing="pairs")
    assert sorted(len(room.look(agent).present) for agent in range(5)) == [0, 1, 1, 1, 1]


def test_people_hear_those_who_are_where_they_are() -> None:
    room = RoomDriver(location="the hall")
    assert room.succeed(MIRA, "MOVE_TO", location="the garden") == {"location": "the garden"}
    assert (room.look(MIRA).location, room.look(BO).location) == ("the garden", "the hall")
    assert room.look(BO).present == ("Anna Diaz", "Luis Berg")
    room.do(BO, "TALK", content="Is she gone?")
    assert room.hearers() == [ANNA, LUIS]
    assert room.fail(BO, "TALK", content="Come back!", target="Mira Berg") == "Mira Berg cannot hear Bo Li"
    room.do(BO, "MOVE_TO", location="the garden")
    room.do(MIRA, "TALK", content="There you are.")
    assert room.hearers() == [BO]


def test_an_agent_that_leaves_hears_what_was_said_before_and_nothing_after() -> None:
    room = RoomDriver(location="the hall")
    leave = [Action("MOVE_TO", {"location": "the garden"})]
    room.play((BO, talk("One.")), (MIRA, leave), (ANNA, talk("Two.")), (LUIS, leave + talk("Three.")))
    assert room.stimuli(MIRA) == ["One.", "Three."]
    assert room.stimuli(LUIS) == ["One.", "Two."]
    assert room.stimuli(BO) == ["Two."]


# What else people do


def test_a_thought_is_heard_by_no_one() -> None:
    room = RoomDriver()
    assert room.succeed(MIRA, "THINK", content="What a bore.") == {"content": "What a bore."}
    assert room.hearers() == []
    assert room.rows("SELECT user_id, action, info FROM trace WHERE action = 'think'") == [
        (MIRA, "think", '{"content":"What a bore."}')
    ]


def test_attention_stays_where_it_was_turned() -> None:
    room = RoomDriver()
    room.succeed(MIRA, "ATTEND", content="the clock")
    room.play()
    assert (room.look(MIRA).attention, room.look(BO).attention) == ("the clock", "")


def test_both_know_of_a_relation_and_the_other_one_hears_of_it() -> None:
    room = RoomDriver(relations=[{"between": ["Mira Berg", "Bo Li"], "relation": "sisters"}])
    assert [(r.agent_id, r.agent, r.relation) for r in room.look(BO).relations] == [(MIRA, "Mira Berg", "sisters")]
    room.succeed(BO, "RELATE", target="mira berg", relation="rivals")
    (told,) = room.look(MIRA).stimuli
    assert (told.kind, told.content, told.source, told.addressed) == ("relate", "rivals", "Bo Li", True)
    for one, other in ((MIRA, BO), (BO, MIRA)):
        assert [(r.agent_id, r.relation) for r in room.look(one).relations] == [(other, "rivals")]
    assert room.rows("SELECT * FROM relation") == [(0, MIRA, BO, "sisters"), (1, BO, MIRA, "rivals")]


def test_a_relation_that_is_not_mutual_is_known_to_the_first_one_only() -> None:
    manages = {"between": ["Mira Berg", "Bo Li"], "relation": "manager of", "mutual": False}
    room = RoomDriver(hearing="relations", relations=[manages])
    assert [r.relation for r in room.look(MIRA).relations] == ["manager of"]
    assert room.look(BO).relations == ()
    assert room.look(BO).present == ("Mira Berg",)


def test_two_people_can_have_several_relations_and_change_the_one_that_both_know() -> None:
    pair = ["Mira Berg", "Bo Li"]
    room = RoomDriver(
        relations=[
            {"between": pair, "relation": "manager of", "mutual": False},
            {"between": pair[::-1], "relation": "managed by", "mutual": False},
            {"between": pair, "relation": "cousins"},
        ]
    )

    def list_relations(agent: int) -> list[str]:
        return [r.relation for r in room.look(agent).relations]

    assert (list_relations(MIRA), list_relations(BO)) == (["manager of", "cousins"], ["managed by", "cousins"])
    room.succeed(BO, "RELATE", target="Mira Berg", relation="rivals")
    assert (list_relations(MIRA), list_relations(BO)) == (["manager of", "rivals"], ["managed by", "rivals"])


def test_a_fork_replaces_a_relation_that_it_no_longer_has() -> None:
    friends, kin, rivals = ({"between": [0, 1], "relation": what} for what in ("friends", "kin", "rivals"))
    room = RoomDriver(relations=[friends], later=[(1, {"relations": [rivals]}), (2, {"relations": [rivals, kin]})])
    assert [r.relation for r in room.look(MIRA).relations] == ["friends"]
    room.room.turns(1)
    assert [r.relation for r in room.look(MIRA).relations] == ["rivals"]
    room.room.turns(2)
    assert [r.relation for r in room.look(MIRA).relations] == ["rivals", "kin"]


def test_rooms_of_earlier_versions_know_one_relation_of_a_pair() -> None:
    two = [{"between": [MIRA, BO], "relation": "sisters"}, {"between": [BO, MIRA], "relation": "rivals"}]
    room = RoomDriver(relations=two, one_relation=True)
    assert [[r.relation for r in room.look(who).relations] for who in (MIRA, BO)] == [["rivals"], ["rivals"]]


def test_one_can_reach_out_within_hearing_and_to_relations_anywhere() -> None:
    room = RoomDriver(relations=[{"between": ["Mira Berg", "Bo Li"], "relation": "sisters"}])
    room.succeed(BO, "MOVE_TO", location="the garden")
    room.succeed(MIRA, "REACH_OUT", target="Bo Li")
    (call,) = room.look(BO).stimuli
    assert (call.kind, call.source, call.addressed) == ("reach_out", "Mira Berg", True)
    room.succeed(MIRA, "REACH_OUT", target="Anna Diaz")
    assert "neither within hearing nor related" in room.fail(ANNA, "REACH_OUT", target="Bo Li")
    assert "neither here nor related" in room.fail(ANNA, "RELATE", target="Bo Li", relation="friends")


def test_a_turn_ends_with_done() -> None:
    room = RoomDriver()
    events = room.play(
        (MIRA, [*talk("One."), Action("DONE"), *talk("Two."), Action("DO_NOTHING")]), (BO, talk("Three."))
    )
    assert [(event.action_type, event.success) for event in events] == [
        ("TALK", True),
        ("DONE", True),
        ("TALK", False),
        ("DO_NOTHING", False),
        ("TALK", True),
    ]
    assert events[2].result == "the turn ended with DONE"
    assert room.stimuli(ANNA) == ["One.", "Three."]


def test_only_what_the_scenario_allows_can_be_done() -> None:
    room = RoomDriver(actions=["TALK"])
    assert room.fail(MIRA, "THINK", content="Well.") == "THINK is not possible here"
    assert room.fail(MIRA, "FLY") == "there is no action FLY"
    room.succeed(MIRA, "TALK", content="Well.")
    room.succeed(MIRA, "DONE")
    room.succeed(MIRA, "DO_NOTHING")


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        ("TALK", {"content": " "}),
        ("THINK", {"content": ""}),
        ("ATTEND", {"content": ""}),
        ("MOVE_TO", {"location": "\n"}),
        ("RELATE", {"target": "Bo Li", "relation": ""}),
    ],
)
def test_saying_nothing_is_not_saying_something(kind: str, args: dict[str, str]) -> None:
    assert "it is empty" in RoomDriver().fail(MIRA, kind, **args)


# Events


@pytest.mark.parametrize("kind", ["hear", "see", "think", "goal"])
def test_a_stimulus_is_perceived_in_its_round_by_those_it_is_for(kind: str) -> None:
    room = RoomDriver()
    (notice,) = room.room.happen(1, Happening(kind, "Rain.", to=(BO, LUIS)))
    assert (notice.round, notice.timestamp) == (1, room.room.timestamp(1))
    assert [[(s.kind, s.content, s.source) for s in room.look(agent).stimuli] for agent in (MIRA, BO, LUIS)] == [
        [],
        [(kind, "Rain.", None)],
        [(kind, "Rain.", None)],
    ]
    room.play()
    assert room.hearers() == []
    assert room.rows("SELECT * FROM stimulus") == [(1, kind, BO, None, "Rain."), (1, kind, LUIS, None, "Rain.")]


def test_a_broadcast_is_heard_everywhere_except_by_its_source() -> None:
    room = RoomDriver()
    room.succeed(LUIS, "MOVE_TO", location="the garden")
    room.room.happen(2, Happening("broadcast", "Dinner is ready.", agent=BO))
    assert room.hearers() == [MIRA, ANNA, LUIS]
    assert room.look(LUIS).stimuli[0].source == "Bo Li"


def test_what_happens_before_the_first_round_is_perceived_in_it() -> None:
    room = RoomDriver()
    world = RoomDriver().room
    world.happen(0, Happening("goal", "Find the cat."))
    world.begin(0)
    (seen,) = world.observe(1, [MIRA])
    assert [s.content for s in seen.stimuli] == ["Find the cat."]
    assert seen.goals == ("Find the cat.",)
    assert room.look(MIRA).goals == ()


def test_goals_stay_and_add_up() -> None:
    room = RoomDriver()
    for content in ("Find the cat.", "Feed the cat."):
        room.play(events=[Happening("goal", content, to=(MIRA,))])
    room.play()
    assert room.look(MIRA).goals == ("Find the cat.", "Feed the cat.")
    assert room.look(BO).goals == ()


def test_people_can_be_brought_to_another_place() -> None:
    room = RoomDriver()
    room.room.happen(1, Happening("location", "the garden", to=(MIRA, BO)))
    assert [(s.kind, s.content) for s in room.look(MIRA).stimuli] == [("location", "the garden")]
    assert room.look(MIRA).present == ("Bo Li",)


# Time and the end


def test_the_simulated_date_advances_with_each_round_and_can_skip() -> None:
    times = [datetime.fromisoformat(RoomDriver(skips=[(3, 1440)]).room.timestamp(round)) for round in range(1, 5)]
    assert [later - earlier for earlier, later in pairwise(times)] == [
        timedelta(minutes=30),
        timedelta(days=1, minutes=30),
        timedelta(minutes=30),
    ]


def test_a_room_is_over_after_silent_rounds() -> None:
    room = RoomDriver(quiet_rounds=2)
    room.do(MIRA, "TALK", content="Hello?")
    room.do(MIRA, "THINK", content="Nobody there.")
    assert not room.room.over
    room.fail(MIRA, "TALK", content="")
    assert room.room.over


def test_a_room_without_quiet_rounds_goes_on() -> None:
    room = RoomDriver()
    for _ in range(50):
        room.play()
    assert not room.room.over


def test_relations_that_a_fork_adds_hold_from_its_first_round_on() -> None:
    room = RoomDriver(later=[(2, {"relations": [{"between": [0, 1], "relation": "rivals"}]})])
    room.play()
    assert room.look(MIRA).relations == ()
    room.room.turns(2)
    assert [r.relation for r in room.look(MIRA).relations] == ["rivals"]


@pytest.mark.parametrize("between", [["Mira Berg", "Nobody"], [0, 9], [1, "Bo Li"]])
def test_a_relation_is_between_two_people_there_are(between: list[str | int]) -> None:
    with pytest.raises(ScenarioInvalid, match=r"worlds\.room\.relations"):
        RoomDriver(relations=[{"between": between, "relation": "friends"}])


def test_utterances_are_kept_with_who_could_hear_them() -> None:
    room = RoomDriver(location="the hall")
    room.do(MIRA, "TALK", content="Hello.", opinion=0.5)
    room.do(BO, "TALK", content="Hi.", target="Mira Berg")
    assert room.rows("SELECT * FROM utterance") == [
        (1, MIRA, None, "the hall", "Hello.", 0.5, 3),
        (2, BO, MIRA, "the hall", "Hi.", None, 1),
    ]
