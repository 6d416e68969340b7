"""Conversations of two: turns, scenes, stop conditions, scores."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.types import Action, Decision
from shoal.worlds.dialogue.pair import LINES_IN_MIND
from tests.worlds.context import crowd
from tests.worlds.drivers import DialogueDriver, make_dialogue

TWO_SCENES = [
    {"setting": "A kitchen.", "turning_point": "The phone rings.", "turns": 4},
    {"setting": "The same kitchen, a year later.", "turns": 2},
]


def find_endings(talks: DialogueDriver) -> list[tuple[Any, ...]]:
    return talks.rows("SELECT ended_round, turns, ended_by FROM scene WHERE pair_id = 0")


# Pairs


def test_neighbours_in_the_list_talk_and_an_odd_one_out_does_not() -> None:
    talks = DialogueDriver(5)
    assert talks.rows("SELECT * FROM pair") == [(0, 0, 1), (1, 2, 3)]
    assert talks.acting == [0, 2]
    alone = talks.look(4)
    assert (alone.partner_id, alone.partner, alone.lines) == (-1, "", ())


def test_an_agent_without_a_partner_can_only_do_nothing() -> None:
    talks = DialogueDriver(3)
    (event,) = talks.world.apply(1, 2, Decision((Action("SAY", {"content": "Hello?"}),)))
    assert event.result == "there is nobody to talk to"


def test_without_a_pair_it_is_over_at_once() -> None:
    talks = DialogueDriver(1)
    assert talks.world.over
    assert talks.acting == []


def test_pairs_can_be_drawn_by_lot() -> None:
    drawn = [
        [(look.agent, look.partner_id) for look in make_dialogue(40, seed=seed, pairs="random").observe(1, range(40))]  # type: ignore[attr-defined]
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert all((partner, agent) in drawn[0] for agent, partner in drawn[0])
    assert {partner for _, partner in drawn[0]} == set(range(40))


def test_pairs_can_be_given_as_names_or_numbers() -> None:
    talks = DialogueDriver(6, pairs=[["Anna Diaz", "Mira Berg"], [5, "Chen Wu"]])
    assert talks.rows("SELECT first_id, second_id FROM pair") == [(2, 0), (5, 4)]
    assert talks.acting == [2, 5]


def test_a_name_that_several_have_means_the_first_of_them() -> None:
    people = crowd(3)
    people.names = ["Bo", "Ada", "Bo"]
    assert DialogueDriver(people, pairs=[["Ada", "Bo"]]).rows("SELECT first_id, second_id FROM pair") == [(1, 0)]


# Turns


def test_the_two_take_turns_and_hear_one_another() -> None:
    talks = DialogueDriver(4)
    for expected in (0, 1, 0, 1):
        assert talks.acting == [expected, expected + 2]
        talks.do(expected, "SAY", content=f"I am {expected}.")
    seen = talks.look(0)
    assert [(line.speaker_id, line.speaker, line.content) for line in seen.lines] == [
        (0, "Mira Berg", "I am 0."),
        (1, "Bo Li", "I am 1."),
    ] * 2
    assert (seen.partner_id, seen.partner, seen.partner_bio) == (1, "Bo Li", "bio of 1")
    assert (seen.turn, seen.turns, seen.scene, seen.rating) == (5, 20, 1, False)
    assert talks.look(2).lines == ()


def test_a_line_tells_what_it_is_about_and_which_way_it_leans() -> None:
    talks = DialogueDriver()
    talks.say("I hate football.")
    talks.say("I hate the campus curfew.", opinion=0.25)
    read, outright = talks.look(0).lines
    assert read.topics == ("football",)
    assert read.slant <= -0.5
    assert outright.topics == ("the campus curfew",)
    assert outright.slant == 0.25


def test_the_stream_names_the_person_addressed() -> None:
    talks = DialogueDriver()
    assert talks.say("Hello.").action_args == {
        "content": "Hello.", "to_agent_id": 1, "to_agent_name": "Bo Li", "scene": 1,
    }  # fmt: skip
    assert talks.say("Hi.", opinion=1).action_args["opinion"] == 1.0


def test_the_database_holds_every_line() -> None:
    talks = DialogueDriver()
    talks.say("Hello.")
    talks.say("I doubt it.", opinion=-0.5)
    assert talks.rows("SELECT pair_id, scene, turn, round, agent_id, content, slant FROM line") == [
        (0, 1, 1, 1, 0, "Hello.", 0.0),
        (0, 1, 2, 2, 1, "I doubt it.", -0.5),
    ]


def test_several_things_can_be_said_in_one_turn() -> None:
    talks = DialogueDriver()
    talks.step({0: Decision((Action("SAY", {"content": "One."}), Action("SAY", {"content": "Two."})))})
    assert [line.content for line in talks.look(1).lines] == ["One.", "Two."]
    assert talks.acting == [1]
    assert talks.rows("SELECT turn FROM line") == [(1,), (1,)]


def test_thoughts_are_not_heard_and_count_as_silence() -> None:
    talks = DialogueDriver(stop={"silence": 1})
    assert talks.do(0, "THINK", content="Hm.").success
    assert talks.look(1).lines == ()
    assert find_endings(talks) == [(1, 1, "silence")]


@pytest.mark.parametrize("decision", [Decision(), Decision(failure="timeout"), Decision((Action("FLY"),))])
def test_a_turn_without_a_word_passes_on(decision: Decision) -> None:
    talks = DialogueDriver()
    talks.step({0: decision})
    assert talks.acting == [1]
    assert talks.look(1).turn == 2


def test_a_muted_speaker_is_waited_for() -> None:
    talks = DialogueDriver(4)
    talks.happen("mute", to=(0,), rounds=2)
    talks.step()
    assert talks.acting == [3]
    talks.step()
    assert talks.acting == [0, 2]
    assert talks.look(0).turn == 1


def test_news_are_shown_until_the_agents_next_turn() -> None:
    talks = DialogueDriver()
    talks.happen("broadcast", "It rains.")
    talks.happen("broadcast", "A word to you.", to=(1,))
    assert talks.look(0).announcements == ("It rains.",)
    talks.step()
    assert talks.look(0).announcements == ()
    assert talks.look(1).announcements == ("It rains.", "A word to you.")


def test_only_the_last_lines_of_the_scene_are_seen() -> None:
    talks = DialogueDriver(turns=LINES_IN_MIND + 5)
    for number in range(LINES_IN_MIND + 3):
        talks.say(f"Line {number}.")
    seen = talks.look(0).lines
    assert [line.content for line in seen] == [f"Line {number}." for number in range(3, LINES_IN_MIND + 3)]


# What is refused


@pytest.mark.parametrize(
    ("kind", "args", "why"),
    [
        ("SAY", {"content": "  "}, "SAY needs words; DO_NOTHING is silence"),
        ("SAY", {"content": "Hm.", "opinion": 1.5}, "opinion must be a number between -1 and 1"),
        ("SAY", {"content": "Hm.", "opinion": "much"}, "opinion must be a number between -1 and 1"),
        ("SAY", {"content": "Hm.", "opinion": True}, "opinion must be a number between -1 and 1"),
        ("SAY", {"content": "Hm.", "opinion": float("nan")}, "opinion must be a number between -1 and 1"),
        ("RATE", {"score": 5}, "a scene is rated when it is over"),
    ],
)
def test_what_cannot_be_done_in_a_turn_is_refused(kind: str, args: dict[str, Any], why: str) -> None:
    talks = DialogueDriver()
    assert talks.fail(0, kind, **args) == why
    assert talks.rows("SELECT count(*) FROM line") == [(0,)]


def test_speaking_out_of_turn_is_refused() -> None:
    (event,) = make_dialogue(2).apply(1, 1, Decision((Action("SAY", {"content": "Me first!"}),)))
    assert event.result == "it is not your turn"


def test_after_leaving_nothing_more_is_said() -> None:
    talks = DialogueDriver(score=False)
    turn = Decision((Action("LEAVE"), Action("SAY", {"content": "And another thing."}), Action("LEAVE")))
    assert [event.result for event in talks.step({0: turn})] == [None, "you have left", "you have left"]
    (event,) = talks.world.apply(2, 1, Decision((Action("SAY", {"content": "Hello?"}),)))
    assert event.result == "the conversation is over"


# How a scene ends


def test_a_scene_ends_after_its_turns() -> None:
    talks = DialogueDriver(turns=3, score=False)
    for _ in range(3):
        assert not talks.world.over
        talks.step()
    assert talks.world.over
    assert talks.acting == []
    assert find_endings(talks) == [(3, 3, "turns")]


def test_a_scene_ends_when_one_of_them_leaves() -> None:
    talks = DialogueDriver(4, score=False)
    talks.step({0: Decision((Action("SAY", {"content": "Bye."}), Action("LEAVE")))})
    assert find_endings(talks) == [(1, 1, "left")]
    assert talks.acting == [3]
    assert not talks.world.over


@pytest.mark.parametrize(
    ("words", "ends"),
    [("It is a DEAL!", True), ("Deal.", True), ("A big deal-breaker", True), ("I deal in dealers: dealt", True),
     ("Ideal, dealer.", False), ("we are  done", True), ("Done we are", False), ("c+", True)],
)  # fmt: skip
def test_a_scene_ends_when_a_word_is_said(words: str, ends: bool) -> None:
    talks = DialogueDriver(stop={"said": ["deal", "we are done", "C+", " "]}, score=False)
    talks.say(words)
    assert find_endings(talks)[0][2] == ("said" if ends else None)


def test_a_thought_does_not_end_a_scene_by_its_words() -> None:
    talks = DialogueDriver(stop={"said": ["deal"]})
    talks.do(0, "THINK", content="Deal.")
    assert find_endings(talks) == [(None, None, None)]


def test_a_scene_ends_after_unbroken_silence() -> None:
    talks = DialogueDriver(stop={"silence": 2}, score=False)
    talks.step()
    talks.say("Hm.")
    talks.step()
    assert not talks.world.over
    talks.step()
    assert find_endings(talks) == [(4, 4, "silence")]


@pytest.mark.parametrize(
    ("one", "other", "ends"), [(0.5, 0.75, True), (-0.5, -0.25, True), (0.5, 0.81, False), (0.1, -0.1, False)]
)
def test_a_scene_ends_when_both_lean_the_same_way(one: float, other: float, ends: bool) -> None:
    talks = DialogueDriver(stop={"agreement": 0.3}, score=False)
    talks.say("So I think.", opinion=one)
    assert not talks.world.over
    talks.say("And I.", opinion=other)
    assert find_endings(talks)[0][2] == ("agreement" if ends else None)


def test_small_talk_does_not_take_back_an_opinion() -> None:
    talks = DialogueDriver(stop={"agreement": 0.2}, score=False)
    talks.say("I think so.", opinion=0.5)
    talks.say("Hello.")
    talks.say("Nine o'clock.")
    talks.say("So do I.", opinion=0.6)
    assert find_endings(talks) == [(4, 4, "agreement")]


@pytest.mark.parametrize(("opinions", "expected"), [((0.5, -0.5), 0.5), ((1, -1), 0.0), ((0.3, 0.3), 1.0)])
def test_how_far_the_two_agree_is_recorded(opinions: tuple[float, float], expected: float) -> None:
    talks = DialogueDriver(turns=2)
    for opinion in opinions:
        talks.say("So I think.", opinion=opinion)
    assert talks.rows("SELECT agreement FROM scene") == [(pytest.approx(expected),)]


def test_agreement_is_unknown_where_one_of_them_never_leaned() -> None:
    talks = DialogueDriver(turns=2)
    talks.say("So I think.", opinion=0.5)
    talks.say("Hello.")
    assert talks.rows("SELECT agreement FROM scene") == [(None,)]


# Scenes


def test_scenes_follow_one_another_and_the_other_one_begins() -> None:
    talks = DialogueDriver(scenes=TWO_SCENES, score=False)
    for expected in (0, 1, 0, 1):
        assert talks.acting == [expected]
        assert talks.look(0).setting == "A kitchen."
        talks.say("Hello.")
    seen = talks.look(0)
    assert (seen.scene, seen.setting, seen.turn, seen.turns) == (2, "The same kitchen, a year later.", 1, 2)
    assert seen.lines == ()
    assert seen.turning_point is None
    assert talks.acting == [1]
    talks.step()
    assert talks.acting == [0]
    talks.step()
    assert talks.world.over
    assert talks.rows("SELECT scene, setting, started_round, ended_round FROM scene") == [
        (1, "A kitchen.", 1, 4),
        (2, "The same kitchen, a year later.", 5, 6),
    ]


@pytest.mark.parametrize(("turns", "after"), [(4, 2), (5, 3), (2, 1)])
def test_the_turning_point_comes_after_half_of_the_turns(turns: int, after: int) -> None:
    talks = DialogueDriver(scenes=[{"turning_point": "The phone rings.", "turns": turns}])
    for _ in range(after):
        assert talks.look(0).turning_point is None
        talks.step()
    assert {talks.look(agent).turning_point for agent in (0, 1)} == {"The phone rings."}
    assert talks.rows("SELECT turning_point, turned_round FROM scene") == [("The phone rings.", after + 1)]
    for _ in range(turns - after):
        assert talks.look(1).turning_point == "The phone rings."
        talks.step()
    assert talks.look(0).turning_point == "The phone rings."


def test_a_scene_that_ends_early_has_no_turning_point() -> None:
    talks = DialogueDriver(scenes=TWO_SCENES)
    talks.do(0, "LEAVE")
    assert talks.look(0).turning_point is None
    assert talks.rows("SELECT turning_point, turned_round FROM scene") == [(None, None)]


def test_pairs_go_through_the_scenes_at_their_own_pace() -> None:
    talks = DialogueDriver(4, scenes=TWO_SCENES, score=False)
    talks.do(0, "LEAVE")
    assert [talks.look(agent).scene for agent in range(4)] == [2, 2, 1, 1]
    for _ in range(2):
        talks.step()
    assert talks.acting == [3]


# Scores


def rate_scene(talks: DialogueDriver) -> list[tuple[Any, ...]]:
    return talks.rows("SELECT scene, agent_id, score, reason, round FROM score")


def test_after_a_scene_both_are_asked_how_it_went() -> None:
    talks = DialogueDriver(scenes=TWO_SCENES)
    talks.do(0, "LEAVE")
    assert talks.acting == [0, 1]
    assert [talks.look(agent).rating for agent in (0, 1)] == [True, True]
    assert talks.look(0).turn == 1
    events = talks.step(
        {
            0: Decision((Action("RATE", {"score": 7, "reason": "Short."}),)),
            1: Decision((Action("RATE", {"score": 0}),)),
        }
    )
    assert [event.action_args for event in events] == [
        {"score": 7, "scene": 1, "reason": "Short."},
        {"score": 0, "scene": 1},
    ]
    assert rate_scene(talks) == [(1, 0, 7, "Short.", 2), (1, 1, 0, None, 2)]
    assert talks.acting == [1]


@pytest.mark.parametrize(
    "other", [Decision(), Decision(failure="timeout"), Decision((Action("SAY", {"content": "?"}),))]
)
def test_a_missing_score_is_recorded_as_none_and_delays_nothing(other: Decision) -> None:
    talks = DialogueDriver(turns=1)
    talks.step()
    talks.step({0: Decision((Action("RATE", {"score": 10}),)), 1: other})
    assert rate_scene(talks) == [(1, 0, 10, None, 2), (1, 1, None, None, 2)]
    assert talks.world.over


def test_a_muted_agent_scores_later() -> None:
    talks = DialogueDriver(turns=1)
    talks.step()
    talks.happen("mute", to=(1,), rounds=1)
    assert talks.acting == [0]
    talks.do(0, "RATE", score=3)
    assert not talks.world.over
    assert talks.acting == [1]
    talks.do(1, "RATE", score=4)
    assert rate_scene(talks) == [(1, 0, 3, None, 2), (1, 1, 4, None, 3)]
    assert talks.world.over


@pytest.mark.parametrize(
    ("kind", "args", "why"),
    [
        ("SAY", {"content": "One more thing."}, "the scene is over: RATE it"),
        ("LEAVE", {}, "the scene is over: RATE it"),
        ("RATE", {"score": 11}, "score must be between 0 and 10"),
        ("RATE", {"score": -1}, "score must be between 0 and 10"),
        ("RATE", {"score": 1, "reason": 5}, "reason must be a text"),
    ],
)
def test_what_cannot_be_done_when_rating_is_refused(kind: str, args: dict[str, Any], why: str) -> None:
    talks = DialogueDriver(turns=1)
    talks.step()
    assert talks.fail(0, kind, **args) == why
    assert rate_scene(talks)[0] == (1, 0, None, None, 2)


def test_a_scene_is_rated_once_and_one_may_think_about_it() -> None:
    talks = DialogueDriver(turns=1)
    talks.step()
    turn = Decision((Action("THINK", {"content": "Hm."}), Action("RATE", {"score": 5}), Action("RATE", {"score": 9})))
    events = [event for event in talks.step({0: turn}) if event.agent_id == 0]
    assert [event.result for event in events] == [None, None, "this scene was rated already"]
    assert [row[:3] for row in rate_scene(talks)] == [(1, 0, 5), (1, 1, None)]


def test_a_long_conversation_takes_as_many_rounds_as_its_settings_say() -> None:
    talks = DialogueDriver(scenes=TWO_SCENES)
    while not talks.world.over:
        talks.step()
    assert talks.round == 4 + 1 + 2 + 1


# Forks


def test_a_fork_can_shorten_a_scene_and_change_what_happens_in_it() -> None:
    changed = {"scenes": [{"setting": "A boat.", "turns": 4, "turning_point": "It sinks."}], "score": False}
    talks = DialogueDriver(changes=[(3, changed)])
    talks.step()
    talks.step()
    assert talks.look(0).setting == "A boat."
    assert talks.look(0).turns == 4
    talks.step()
    assert talks.look(0).turning_point == "It sinks."
    talks.step()
    assert talks.world.over


def test_a_fork_can_add_scenes_and_stop_conditions() -> None:
    talks = DialogueDriver(turns=2, score=False, changes=[(2, {"scenes": [{}, {}], "stop": {"said": ["deal"]}})])
    talks.say("Deal.")
    talks.say("Well.")
    assert talks.look(0).scene == 2
    talks.say("Deal.")
    assert talks.world.over
    assert [row[2] for row in find_endings(talks)] == ["turns", "said"]


def test_a_scene_that_a_fork_takes_away_under_way_is_the_last_one() -> None:
    talks = DialogueDriver(
        turns=2,
        score=False,
        scenes=[{"setting": "One."}, {"setting": "Two."}],
        changes=[(4, {"scenes": [{"setting": "Only."}]})],
    )
    for _ in range(3):
        talks.step()
    assert (talks.look(0).scene, talks.look(0).setting) == (2, "Only.")
    talks.step()
    assert talks.world.over
