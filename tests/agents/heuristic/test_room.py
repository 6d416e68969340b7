"""What the heuristic mind's people do in a room."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

import pytest

from shoal.agents.heuristic.base import Behaviour
from shoal.agents.heuristic.room import MAX_TIES, RoomMind
from shoal.agents.heuristic.writing import LEANINGS, TONES, Voice, build_room_families, load_phrases
from shoal.agents.settings import HeuristicSettings
from shoal.types import Action, Decision, Versioned
from shoal.worlds.lexicon import TextReader
from shoal.worlds.room.observations import Relation, RoomObservation, Stimulus
from tests.agents.people import SUBJECT, TOPICS, People, crowd, people

NAMES = ("Mira Berg", "Bo Berg", "Anna Berg", "Luis Berg")
READER = TextReader(TOPICS, SUBJECT, edition=1)


def mind_of(
    population: People, topic: str | None = SUBJECT, actions: Sequence[str] | None = None, seed: int = 1, **given: Any
) -> RoomMind:
    manner = Behaviour(HeuristicSettings.model_validate(given), actions)
    return RoomMind(population, Versioned(manner), seed, "room", TextReader(population.topics, topic))


def remark(content: str, source: int = 1, opinion: float | None = None, **more: Any) -> Stimulus:
    topics = tuple(READER.vocabulary[topic] for topic in READER.topics(content))
    slant = READER.slant(content) if opinion is None else opinion
    return Stimulus("hear", content, source, NAMES[source], topics=topics, slant=slant, opinion=opinion, **more)


def look(*stimuli: Stimulus, agent: int = 0, round: int = 1, **more: Any) -> RoomObservation:
    defaults: dict[str, Any] = {"name": "Mira Berg", "present": NAMES[1:], "time": "2026-01-01T08:00:00+00:00"}
    return RoomObservation(world="room", round=round, agent=agent, stimuli=stimuli, **(defaults | more))


def actions_of(mind: RoomMind, *stimuli: Stimulus, rounds: int = 300, **more: Any) -> list[Action]:
    """Return what one agent does in many rounds in which it perceives the same."""
    looks = [look(*stimuli, round=round, **more) for round in range(1, rounds + 1)]
    return [action for seen in looks for action in mind.decide(seen).actions]


def talk_in_room(mind: RoomMind, count: int, rounds: int) -> list[list[tuple[int, Action]]]:
    """Let all agents hear one another and act at once; return what was done in each round."""
    history: list[list[tuple[int, Action]]] = []
    said: list[tuple[int, Stimulus]] = []
    for round in range(1, rounds + 1):
        acts: list[tuple[int, Action]] = []
        for agent in range(count):
            heard = [stimulus for source, stimulus in said if source != agent]
            names = tuple(f"Person {other}" for other in range(count) if other != agent)
            seen = look(*heard, agent=agent, round=round, present=names)
            decision = mind.decide(seen)
            mind.absorb(seen, decision)
            acts += [(agent, action) for action in decision.actions]
        said = [(agent, _stimulus_of(agent, action)) for agent, action in acts if action.kind == "TALK"]
        history.append(acts)
    return history


def _stimulus_of(agent: int, action: Action) -> Stimulus:
    content, opinion = action.args["content"], action.args.get("opinion")
    topics = tuple(READER.vocabulary[topic] for topic in READER.topics(content))
    slant = READER.slant(content) if opinion is None else opinion
    return Stimulus("hear", content, agent, f"Person {agent}", topics=topics, slant=slant, opinion=opinion)


# Deciding and remembering


def test_deciding_only_reads() -> None:
    mind = mind_of(people(0.5, -0.5))
    before = mind.memory(0)
    seen = look(remark("I love it.", opinion=0.9))
    first = mind.decide(seen)
    mind.explain(seen)
    assert [mind.decide(seen) for _ in range(3)] == [first] * 3
    assert mind.memory(0) == before
    mind.absorb(seen, first)
    assert mind.memory(0) != before
    assert mind.memory(1) == mind_of(people(0.5, -0.5)).memory(1)


def test_the_same_seed_and_past_make_the_same_decisions_in_any_order_of_agents() -> None:
    minds = [mind_of(crowd(20)) for _ in range(2)]
    looks = [look(remark("I doubt the campus curfew."), agent=agent, round=3) for agent in range(20)]
    forwards = [minds[0].decide(seen) for seen in looks]
    backwards = [minds[1].decide(seen) for seen in reversed(looks)]
    assert forwards == backwards[::-1]
    assert forwards != [mind_of(crowd(20), seed=2).decide(seen) for seen in looks]


def test_a_turn_that_failed_leaves_nothing_behind() -> None:
    mind = mind_of(people(0.5))
    before = mind.memory(0)
    mind.absorb(look(remark("Well.", opinion=0.7)), Decision.timed_out(1.0))
    assert mind.memory(0) == before


def test_people_take_in_what_they_heard_before_they_speak() -> None:
    mind = mind_of(people(0.0), outspoken=True, persuasion=0.5)
    seen = look(remark("Well.", opinion=0.5))
    decision = mind.decide(seen)
    assert decision.actions[0].args["opinion"] == 0.25
    mind.absorb(seen, decision)
    assert mind.opinions() == [0.25]


def test_only_the_latest_opinions_count() -> None:
    heard = [remark("Well.", opinion=opinion) for opinion in (1.0, 1.0, 0.2, 0.2)]
    stances = {}
    for attention in (2, 4):
        mind = mind_of(people(0.0), attention=attention, confidence=2, persuasion=0.5)
        mind.absorb(look(*heard), Decision())
        (stances[attention],) = mind.opinions()
    assert stances[2] == pytest.approx(0.15)
    assert stances[4] > 0.2


def test_opinions_are_read_from_words_where_nobody_says_them_outright() -> None:
    def stance_after(content: str) -> float:
        mind = mind_of(people(0.0), confidence=2, persuasion=0.5)
        mind.absorb(look(remark(content)), Decision())
        return mind.opinions()[0]

    assert stance_after("I doubt the campus curfew.") < 0 < stance_after("I trust the campus curfew.")
    assert stance_after("I love gardening.") == 0


def test_a_stance_can_be_changed_from_outside() -> None:
    mind = mind_of(people(0.1, 0.2))
    mind.change(0, {"stance": -7, "mood": "bad"})
    mind.change(1, {"stance": "opposing", "activity": 0.5})
    assert mind.opinions() == [-1.0, pytest.approx(0.2)]


def test_influence_weighs_what_people_say() -> None:
    usual, led = (mind_of(people(0.0, 0.5), persuasion=0.1) for _ in range(2))
    led.change(1, {"influence": 3})
    for mind in (usual, led):
        mind.absorb(look(remark("Well.", opinion=0.5)), Decision())
    assert usual.opinions()[0] == pytest.approx(0.05)
    assert led.opinions()[0] == pytest.approx(0.15)


def test_an_explanation_says_what_the_decision_rests_on() -> None:
    mind = mind_of(people(0.5), confidence=0.3, persuasion=0.5)
    seen = look(remark("Well.", opinion=0.7), remark("No.", source=2, opinion=-0.9))
    told = mind.explain(seen)
    assert told["before"]["stance"] == 0.5
    assert told["heard"] == [
        {"from": "Bo Berg", "opinion": 0.7, "persuades": True},
        {"from": "Anna Berg", "opinion": -0.9, "persuades": False},
    ]
    assert told["after listening"] == {"stance": 0.6}
    assert 0 < told["chances"]["speak"] < told["chances"]["answer"] < 1


# Acting


def test_an_agent_that_is_addressed_mostly_answers() -> None:
    mind = mind_of(people(0.8))
    answers = actions_of(mind, remark("What do you think, Mira?", source=2, addressed=True))
    targets = Counter(action.args.get("target") for action in answers if action.kind == "TALK")
    assert 180 < targets["Anna Berg"] < 250
    assert "Bo Berg" not in targets


def test_an_agent_does_not_answer_a_speaker_out_of_hearing() -> None:
    call = remark("What do you think, Mira?", source=2, addressed=True)
    assert all("target" not in act.args for act in actions_of(mind_of(people(0.8)), call, present=("Bo Berg",)))


def test_agreement_and_disagreement_show_in_the_answer() -> None:
    call = remark("I trust the campus curfew.", source=2, addressed=True)
    for stance, tone in ((0.8, 1), (0.0, 0), (-0.8, -1)):
        openers = load_phrases("sentences")["replies", tone]
        expected = tuple((opener[:1].upper() + opener[1:]).replace("{name}", ", Anna") for opener in openers)
        talks = [a.args for a in actions_of(mind_of(people(stance)), call) if a.kind == "TALK"]
        answers = [args["content"] for args in talks if "target" in args]
        assert answers
        assert all(answer.startswith(expected) for answer in answers)


def test_only_talk_about_the_topic_carries_an_opinion() -> None:
    mind = mind_of(people(1 / 3))
    talks = [action.args for action in actions_of(mind, rounds=2_000) if action.kind == "TALK"]
    about_it = [args for args in talks if SUBJECT in args["content"]]
    assert len(talks) > len(about_it) > 50
    assert {args["opinion"] for args in about_it} == {0.333333}
    assert all("opinion" not in args for args in talks if SUBJECT not in args["content"])


def test_without_a_topic_nobody_states_an_opinion() -> None:
    mind = mind_of(people(0.9), topic=None, outspoken=True)
    assert all("opinion" not in action.args for action in actions_of(mind, rounds=500))


def test_outspoken_people_say_what_they_think_in_every_turn() -> None:
    mind = mind_of(people(0.9), outspoken=True)
    said = actions_of(mind, remark("Well.", addressed=True), rounds=50)
    assert [(action.kind, action.args["opinion"]) for action in said] == [("TALK", 0.9)] * 50


def test_in_a_full_room_few_people_talk_at_once() -> None:
    rounds = talk_in_room(mind_of(crowd(100)), 100, 20)
    talks = [sum(action.kind == "TALK" for _, action in acts) for acts in rounds[5:]]
    assert min(talks) > 5
    assert max(talks) < 40
    idle = [sum(action.kind == "DO_NOTHING" for _, action in acts) for acts in rounds[5:]]
    assert min(idle) > 50


def test_talkativeness_makes_a_room_louder() -> None:
    def talks(talkativeness: float) -> int:
        rounds = talk_in_room(mind_of(crowd(30), talkativeness=talkativeness), 30, 10)
        return sum(action.kind == "TALK" for _, action in chain.from_iterable(rounds))

    silent, usual, loud = talks(0.0), talks(1.0), talks(3.0)
    assert silent == 0
    assert usual * 1.5 < loud


def test_a_small_group_talks_more_than_a_crowd() -> None:
    mind = mind_of(people(0.5))
    alone = [a for a in actions_of(mind, present=()) if a.kind == "TALK"]
    few = [a for a in actions_of(mind, present=NAMES[1:]) if a.kind == "TALK"]
    many = [a for a in actions_of(mind, present=NAMES * 25) if a.kind == "TALK"]
    assert not alone
    assert len(few) > 2 * len(many) > 0


def test_people_react_to_news_that_concerns_them() -> None:
    told = "The campus curfew begins tonight."
    news = Stimulus("hear", told, topics=(SUBJECT,))
    other = Stimulus("see", "A parrot flies in.")
    present = NAMES * 25
    concerned = [a for a in actions_of(mind_of(people(0.9)), news, present=present) if a.kind == "TALK"]
    bystanding = [a for a in actions_of(mind_of(people(0.9)), other, present=present) if a.kind == "TALK"]
    assert len(concerned) > 2 * len(bystanding)


def test_relationships_form_with_those_who_agree() -> None:
    heard = [remark("Well.", 1, 0.7), remark("No.", 2, -0.7), remark("Hm.", 3, 0.1)]
    ties = [a.args for a in actions_of(mind_of(people(0.8)), *heard, rounds=1_000) if a.kind == "RELATE"]
    assert len(ties) > 20
    assert {(args["target"], args["relation"]) for args in ties} == {("Bo Berg", "of one mind")}


def test_relationships_grow_closer_and_are_not_many() -> None:
    def relation_after(relations: tuple[Relation, ...]) -> set[str]:
        acts = actions_of(mind_of(people(0.8)), remark("Well.", 1, 0.7), rounds=500, relations=relations)
        return {action.args["relation"] for action in acts if action.kind == "RELATE"}

    assert relation_after((Relation(1, "Bo Berg", "of one mind"),)) == {"allies"}
    assert relation_after((Relation(1, "Bo Berg", "friends"),)) == set()
    assert relation_after((Relation(1, "Bo Berg", "sisters"),)) == set()
    assert relation_after(tuple(Relation(9 + n, f"Person {n}", "friends") for n in range(MAX_TIES))) == set()


def test_people_reach_out_to_those_they_know_who_are_elsewhere() -> None:
    relations = (Relation(1, "Bo Berg", "friends"), Relation(9, "Ida Roy", "sisters"))
    calls = [a for a in actions_of(mind_of(people(0.1)), rounds=1_000, relations=relations) if a.kind == "REACH_OUT"]
    assert calls
    assert {action.args["target"] for action in calls} == {"Ida Roy"}


def test_people_also_think_and_turn_to_what_is_talked_about() -> None:
    kinds = Counter(a.kind for a in actions_of(mind_of(people(0.5)), remark("I love gardening."), rounds=1_000))
    assert min(kinds[kind] for kind in ("TALK", "THINK", "ATTEND", "DO_NOTHING")) > 10


def test_people_do_only_what_the_scenario_allows() -> None:
    mind = mind_of(people(0.8), actions=["THINK"])
    call = remark("What do you think?", 1, 0.7, addressed=True)
    assert {action.kind for action in actions_of(mind, call)} == {"THINK", "DO_NOTHING"}


# Words


@pytest.mark.parametrize("lean", LEANINGS)
@pytest.mark.parametrize("about", [SUBJECT, "gardening", "“parking”", "this"])
def test_the_leaning_of_what_is_said_can_be_heard_in_it(lean: int, about: str) -> None:
    voice = Voice(1, "room", build_room_families())
    for nth in range(300):
        texts = [
            voice.write(("remark", lean), nth % 7, nth, about),
            voice.write(("reaction", lean), nth % 7, nth, about),
            *(voice.write(("answer", tone, lean), nth % 7, nth, about, ", Mira") for tone in TONES),
        ]
        for text in texts:
            slant = READER.slant(text)
            assert (slant > 0) - (slant < 0) == (lean > 0) - (lean < 0), text


def test_nobody_says_the_same_thing_twice_and_everything_is_a_clean_sentence() -> None:
    rounds = talk_in_room(mind_of(crowd(60), talkativeness=2), 60, 40)
    said = [(agent, a.args["content"]) for agent, a in chain.from_iterable(rounds) if a.kind in ("TALK", "THINK")]
    assert len(said) > 500
    assert [words for words, times in Counter(said).items() if times > 1] == []
    for _, text in said:
        assert re.fullmatch(r"[A-Z“].*[.?!”)]", text), text
        assert not re.search(r"[{}]|  | ,|\.\.|\bthe the\b|\d", text), text
