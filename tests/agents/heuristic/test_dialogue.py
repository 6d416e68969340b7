"""The offline mind in conversations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from shoal.agents.heuristic.bargaining import find_price, is_about_price, name_price, set_price
from shoal.agents.heuristic.base import Behaviour
from shoal.agents.heuristic.dialogue import DialogueMind
from shoal.agents.heuristic.writing import load_phrases
from shoal.agents.settings import HeuristicSettings
from shoal.types import Action, Decision, Versioned
from shoal.worlds.dialogue.observations import DialogueObservation, LineView
from shoal.worlds.lexicon import TextReader
from tests.worlds.context import SUBJECT, TOPICS, Crowd, crowd
from tests.worlds.drivers import DialogueDriver

READER = TextReader(TOPICS, SUBJECT, edition=1)
PHRASES = load_phrases("dialogue")
FAR = (-0.9, 0.9)
NEAR = (0.5, 0.7)


def people(*stances: float) -> Crowd:
    found = crowd(len(stances))
    found.stances = np.array(stances, np.float32)
    return found


def mind_of(who: Crowd, seed: int = 1, topic: str | None = SUBJECT, **settings: Any) -> DialogueMind:
    behaviour = Behaviour(HeuristicSettings(**settings))
    return DialogueMind(who, Versioned(behaviour), seed, "talk", TextReader(TOPICS, topic))


def line(speaker: int, content: str, slant: float | None = None) -> LineView:
    topics = tuple(READER.vocabulary[topic] for topic in READER.topics(content))
    return LineView(
        speaker, "Bo Li" if speaker else "Mira Berg", content, topics, READER.slant(content) if slant is None else slant
    )


def look(*lines: LineView, turn: int = 6, round: int = 6, **fields: Any) -> DialogueObservation:
    """What the first of two sees."""
    defaults: dict[str, Any] = {"setting": "", "turning_point": None, "turns": 20, "scene": 1}
    return DialogueObservation(
        world="talk", round=round, agent=0, name="Mira Berg", time="2026-01-01T08:00:00+00:00", partner_id=1,
        partner="Bo Li", partner_bio="", turn=turn, lines=lines, **(defaults | fields),
    )  # fmt: skip


def text_of(decision: Decision) -> str:
    return " ".join(action.args["content"] for action in decision.actions if action.kind == "SAY")


def talk(
    who: Crowd, mind: DialogueMind, **settings: Any
) -> tuple[DialogueDriver, list[tuple[DialogueObservation, Decision]]]:
    """Let all pairs talk through all scenes."""
    talks, history = DialogueDriver(who, **settings), []
    while not talks.world.over:
        decisions = {}
        for agent in talks.acting:
            seen = talks.look(agent)
            decisions[agent] = mind.decide(seen)
            mind.absorb(seen, decisions[agent])
            history.append((seen, decisions[agent]))
        assert all(event.success for event in talks.step(decisions))
    return talks, history


def texts_said(history: Sequence[tuple[DialogueObservation, Decision]]) -> list[str]:
    return [text_of(decision) for seen, decision in history if not seen.rating]


# What it is


def test_the_same_seed_and_the_same_past_make_the_same_conversation() -> None:
    runs = [msgspec.json.encode(talk(people(*FAR), mind_of(people(*FAR), seed))[1]) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_deciding_changes_nothing() -> None:
    mind = mind_of(people(*NEAR))
    seen = look(line(1, "I love the campus curfew."))
    before = mind.memory(0)
    assert len({msgspec.json.encode(mind.decide(seen)) for _ in range(3)}) == 1
    assert mind.memory(0) == before
    assert mind.opinions() == pytest.approx(NEAR)


def test_a_decision_that_failed_is_not_remembered() -> None:
    mind = mind_of(people(*NEAR))
    before = mind.memory(0)
    mind.absorb(look(line(1, "I love the campus curfew.")), Decision(failure="timeout"))
    assert mind.memory(0) == before


def test_a_change_of_stance_shows_in_opinions_and_words() -> None:
    mind = mind_of(people(*FAR))
    assert READER.slant(text_of(mind.decide(look()))) < 0
    mind.change(0, {"stance": 5})
    mind.change(1, {"activity": 0.5})
    assert mind.opinions() == pytest.approx([1.0, 0.9])
    assert READER.slant(text_of(mind.decide(look()))) > 0


def test_it_can_explain_itself() -> None:
    mind = mind_of(people(*NEAR), confidence=0.5, persuasion=0.1)
    told = mind.explain(look(line(1, "I love it.", 0.6)))
    assert told == {
        "stance": pytest.approx(0.5), "lines_said": 0, "partner_leans": 0.6, "tone": 1, "confidence": 0.5,
        "persuasion": 0.1,
    }  # fmt: skip


# Opinions


def stance_after(stance: float, *lines: LineView, topic: str | None = SUBJECT, **settings: Any) -> float:
    """Return the stance of an agent after it heard these lines."""
    mind = mind_of(people(stance, 0.0), topic=topic, **settings)
    mind.absorb(look(*lines), Decision((Action("SAY", {"content": "Hm."}),)))
    assert mind.memory(0) == (mind.opinions()[0], 1)
    return mind.opinions()[0]


def test_what_is_near_pulls_and_what_is_far_does_not() -> None:
    assert stance_after(0.25, line(1, "So I think.", 0.75), confidence=0.5, persuasion=0.5) == 0.5
    assert stance_after(0.25, line(1, "So I think.", 0.8), confidence=0.5, persuasion=0.5) == 0.25


def test_only_lines_since_the_agents_own_last_line_persuade() -> None:
    lines = (line(1, "So I think.", 0.5), line(0, "Hm."))
    assert stance_after(0.25, *lines, persuasion=0.5) == 0.25
    assert stance_after(0.25, *lines, line(1, "Still.", 0.5), persuasion=0.5) == 0.375


def test_attention_limits_how_many_opinions_count() -> None:
    lines = [line(1, "So I think.", 0.5)] * 3
    assert stance_after(0.0, *lines, persuasion=0.5, attention=2) == 0.375


def test_talk_about_other_things_persuades_nobody() -> None:
    assert stance_after(0.25, line(1, "I love football."), persuasion=0.5) == 0.25
    assert stance_after(0.25, line(1, "I love it."), persuasion=0.5) > 0.25


def test_without_a_topic_there_is_nothing_to_be_persuaded_of() -> None:
    assert stance_after(0.25, line(1, "I love it."), topic=None, persuasion=0.5) == 0.25


def test_two_who_are_not_far_apart_come_closer() -> None:
    who = people(0.2, 0.6)
    mind = mind_of(who, persuasion=0.2)
    talk(who, mind)
    one, other = mind.opinions()
    assert other - one < 0.1
    assert 0.2 < one < other < 0.6


# Words


def test_people_greet_at_first_and_say_goodbye_at_the_end() -> None:
    _, history = talk(people(*NEAR), mind_of(people(*NEAR)), scenes=[{}, {"turns": 6}])
    greetings = [text.replace("{name}", "").rstrip(".") for text in PHRASES["greetings"]]
    goodbyes = [text.replace("{name}", "").rstrip(".") for text in PHRASES["goodbyes"]]
    for seen, decision in history:
        if seen.rating:
            continue
        plain = re.sub(r", (Bo|Mira)\b", "", text_of(decision))
        assert any(text in plain for text in greetings) == (seen.turn <= 2), plain
        assert any(text in plain for text in goodbyes) == (seen.turn >= seen.turns - 1), plain


def test_they_speak_of_the_setting_the_turning_point_and_the_news() -> None:
    scene = {"setting": "A bench by the river.", "turning_point": "It starts to rain!", "turns": 10}
    texts = texts_said(talk(people(*NEAR), mind_of(people(*NEAR)), scenes=[scene])[1])
    assert [turn for turn, text in enumerate(texts, 1) if "“A bench by the river”" in text] == [1]
    assert [turn for turn, text in enumerate(texts, 1) if "“It starts to rain”" in text] == [6, 7]
    news = look(announcements=("The bridge is closed.",))
    assert "“The bridge is closed”" in text_of(mind_of(people(*NEAR)).decide(news))


def test_agents_agree_with_near_and_disagree_with_distant_partners() -> None:
    def first_words(slant: float) -> str:
        decisions = [mind_of(people(0.6, 0), seed).decide(look(line(1, "So I think.", slant))) for seed in range(20)]
        return " ".join(re.split(r"[,.?]", text_of(decision))[0] for decision in decisions)

    agreeing, disagreeing = first_words(0.7), first_words(-0.8)
    for tone, texts in ((1, agreeing), (-1, disagreeing)):
        own = [re.split(r"[{.?]", text)[0] for text in PHRASES["openers", tone]]
        other = [re.split(r"[{.?]", text)[0] for text in PHRASES["openers", -tone]]
        assert any(text in texts for text in own)
        assert not any(text in texts for text in other)


def test_a_question_is_answered_and_a_digression_brought_back() -> None:
    mind = mind_of(people(0.6, 0))
    answers = [text.replace("{name}", ", Bo") for text in PHRASES["answers"]]
    returns = [text.replace("{name}", ", Bo") for text in PHRASES["returns"]]
    assert text_of(mind.decide(look(line(1, "How do you see it?")))).startswith(tuple(answers))
    assert text_of(mind.decide(look(line(1, "I love football.")))).startswith(tuple(returns))


def test_now_and_then_they_ask_back_and_speak_of_an_interest() -> None:
    who = people(*([0.5] * 40))
    texts = texts_said(talk(who, mind_of(who))[1])
    questions = sum("?" in text for text in texts) / len(texts)
    asides = sum("gardening" in text or "football" in text for text in texts) / len(texts)
    assert 0.1 < questions < 0.35
    assert 0.03 < asides < 0.2


def test_the_outspoken_stay_with_the_topic() -> None:
    who = people(*([0.5] * 10))
    assert all(SUBJECT in text for text in texts_said(talk(who, mind_of(who, outspoken=True))[1]))


def test_what_they_think_of_the_topic_is_said_outright_and_can_be_read_from_the_words() -> None:
    who = people(*np.linspace(-1, 1, 40).tolist())
    _, history = talk(who, mind_of(who))
    for action in [action for _, decision in history for action in decision.actions if action.kind == "SAY"]:
        if "opinion" in action.args and abs(action.args["opinion"]) > 0.2:
            assert READER.slant(action.args["content"]) * action.args["opinion"] > 0, action
        elif "opinion" not in action.args:
            assert SUBJECT not in action.args["content"]


def test_without_a_topic_they_talk_about_what_interests_them() -> None:
    who = people(*FAR)
    _, history = talk(who, mind_of(who, topic=None))
    assert all("opinion" not in action.args for _, decision in history for action in decision.actions)
    assert sum("gardening" in text or "football" in text for text in texts_said(history)) > 15
    assert not any(action.kind == "LEAVE" for _, decision in history for action in decision.actions)


def test_nobody_says_the_same_thing_twice() -> None:
    _, history = talk(people(*NEAR), mind_of(people(*NEAR)), turns=200)
    texts = texts_said(history)
    assert len(texts) == 200
    assert len(set(texts)) > 190


def test_lines_are_clean_sentences() -> None:
    who = people(*np.linspace(-1, 1, 40).tolist())
    for text in texts_said(talk(who, mind_of(who))[1]):
        assert re.fullmatch(r"[A-Z“].*[.?!”]", text), text
        assert not re.search(r"[{}]|  | ,|\.\.|\d", text), text
        assert 20 < len(text) < 320, text


def test_the_taciturn_stay_silent() -> None:
    who = people(*([0.5] * 20))
    texts = texts_said(talk(who, mind_of(who, talkativeness=0.5))[1])
    assert 0.35 < sum(not text for text in texts) / len(texts) < 0.65
    assert not any(texts_said(talk(who, mind_of(who, talkativeness=0))[1]))


def test_partners_that_are_far_apart_may_leave_early() -> None:
    def scenes_left(*stances: float) -> int:
        who = people(*(stances * 40))
        talks, _ = talk(who, mind_of(who))
        return int(talks.rows("SELECT count(*) FROM scene WHERE ended_by = 'left'")[0][0])

    assert 5 < scenes_left(*FAR) < 35
    assert scenes_left(*NEAR) == 0


# Scores


def scores(*stances: float, **settings: Any) -> list[tuple[int, str]]:
    who = people(*(stances * 20))
    return talk(who, mind_of(who, **settings))[0].rows("SELECT score, reason FROM score")


def test_they_rate_the_talk_by_how_close_they_are_and_say_why() -> None:
    far, near = scores(*FAR), scores(*NEAR)
    assert max(score for score, _ in far) < 4 < 8 <= min(score for score, _ in near)
    assert {reason for _, reason in far} <= set(PHRASES["verdicts", 0] + PHRASES["verdicts", 1])
    assert {reason for _, reason in near} <= set(PHRASES["verdicts", 2] + PHRASES["verdicts", 3])
    assert all(0 <= score <= 10 for score, _ in far + near)


def test_silence_is_rated_low() -> None:
    assert {reason for _, reason in scores(*NEAR, talkativeness=0)} == set(PHRASES["silent_verdict"])
    assert max(score for score, _ in scores(*NEAR, talkativeness=0)) <= 2


def test_in_a_negotiation_prices_are_named_and_meet() -> None:
    own = [set_price(1, "talk", 0, 1, stance) for stance in (0.8, 0.0, -0.8)]
    assert own == sorted(own, reverse=True)
    assert set_price(1, "talk", 1, 0, 0.0) == own[1]
    assert find_price(name_price(own[0], own[2], 0)) == own[0]
    assert "deal" in name_price(own[1], own[1], 0).lower()
    assert is_about_price("the price of the boat")
    assert not is_about_price("the old bridge")
