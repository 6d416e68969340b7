"""The heuristic mind of platforms: seeded, bound by the rules, and persuaded by what it reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec
import numpy as np
import pytest

from shoal.agents.heuristic.base import Behaviour
from shoal.agents.heuristic.social import SocialMind
from shoal.agents.heuristic.writing import load_phrases
from shoal.agents.settings import HeuristicSettings
from shoal.types import USUAL_HABITS, Action, Decision, Versioned
from shoal.worlds.lexicon import TextReader
from shoal.worlds.social.observations import GroupView, SocialObservation
from tests.agents.people import (
    AGAINST,
    FOR,
    SUBJECT,
    TOPICS,
    Feed,
    crowd,
    look,
    mind_of,
    people,
    post,
    take_turns,
    text_of,
)

ARGUMENTS: dict[str, dict[str, type]] = {
    "CREATE_POST": {"content": str},
    "LIKE_POST": {"post_id": int},
    "UNLIKE_POST": {"post_id": int},
    "DISLIKE_POST": {"post_id": int},
    "UNDO_DISLIKE_POST": {"post_id": int},
    "REPOST": {"post_id": int},
    "QUOTE_POST": {"post_id": int, "quote_content": str},
    "CREATE_COMMENT": {"post_id": int, "content": str},
    "LIKE_COMMENT": {"comment_id": int},
    "DISLIKE_COMMENT": {"comment_id": int},
    "REPORT_POST": {"post_id": int, "report_reason": str},
    "FOLLOW": {"followee_id": int},
    "UNFOLLOW": {"followee_id": int},
    "MUTE": {"mutee_id": int},
    "UNMUTE": {"mutee_id": int},
    "SEARCH_POSTS": {"query": str},
    "SEARCH_USER": {"query": str},
    "TREND": {},
    "REFRESH": {},
    "DO_NOTHING": {},
    "PURCHASE_PRODUCT": {"product_name": str, "purchase_num": int},
    "CREATE_GROUP": {"group_name": str},
    "JOIN_GROUP": {"group_id": int},
    "LEAVE_GROUP": {"group_id": int},
    "SEND_TO_GROUP": {"group_id": int, "message": str},
    "LISTEN_FROM_GROUP": {},
}

History = list[tuple[SocialObservation, Decision]]


@pytest.fixture(scope="module")
def history() -> History:
    """A long run of many people, shared by the tests that only look at it."""
    return take_turns(mind_of(crowd(120)), 120, 150, Feed())


def actions_of(history: Iterable[tuple[SocialObservation, Decision]]) -> list[Action]:
    return [action for _, decision in history for action in decision.actions]


def test_the_same_seed_gives_the_same_history() -> None:
    first = take_turns(mind_of(crowd(20)), 20, 20, Feed())
    second = take_turns(mind_of(crowd(20)), 20, 20, Feed())
    assert [decision for _, decision in first] == [decision for _, decision in second]


def test_another_seed_gives_another_history() -> None:
    first = take_turns(mind_of(crowd(20)), 20, 5, Feed())
    second = take_turns(mind_of(crowd(20), seed=2), 20, 5, Feed())
    assert [decision for _, decision in first] != [decision for _, decision in second]


def test_a_decision_does_not_depend_on_what_others_were_asked_before() -> None:
    seen = Feed().look(3, 1)
    busy, fresh = mind_of(crowd(20)), mind_of(crowd(20))
    for agent in range(20):
        busy.decide(Feed(2).look(agent, 1))
    assert busy.decide(seen) == fresh.decide(seen)


def test_deciding_changes_no_memory() -> None:
    mind = mind_of(crowd(20))
    before = [mind.memory(agent) for agent in range(20)]
    for round in range(1, 30):
        for agent in range(20):
            mind.decide(Feed().look(agent, round))
    assert [mind.memory(agent) for agent in range(20)] == before


def test_absorbing_a_journaled_decision_leads_to_the_same_memory() -> None:
    lived, replayed = mind_of(crowd(20)), mind_of(crowd(20))
    for seen, decision in take_turns(lived, 20, 30, Feed()):
        copy = msgspec.json.decode(msgspec.json.encode(decision), type=Decision)
        replayed.absorb(seen, copy)
    assert [lived.memory(agent) for agent in range(20)] == [replayed.memory(agent) for agent in range(20)]


def test_a_turn_that_failed_leaves_no_trace() -> None:
    mind = mind_of(people(0.4))
    before = mind.memory(0)
    mind.absorb(look(posts=[post(1, FOR)]), Decision.timed_out(1))
    assert mind.memory(0) == before


def test_what_people_do_is_mixed_as_on_a_platform(history: History) -> None:
    firsts = Counter(decision.actions[0].kind for _, decision in history)
    share = {kind: count / len(history) for kind, count in firsts.items()}
    assert 0.25 <= share["LIKE_POST"] <= 0.36
    assert 0.07 <= share["REPOST"] + share["QUOTE_POST"] <= 0.16
    assert 0.13 <= share["CREATE_COMMENT"] <= 0.21
    assert 0.12 <= share["CREATE_POST"] <= 0.20
    assert 0.13 <= share["DO_NOTHING"] <= 0.30
    assert 0.005 <= share["FOLLOW"] <= 0.08
    assert share["MUTE"] + share["REPORT_POST"] <= 0.03


def test_all_kinds_of_action_occur_and_are_well_formed(history: History) -> None:
    actions = actions_of(history)
    assert {*(action.kind for action in actions), "UNMUTE"} == set(ARGUMENTS)
    for action in actions:
        said = {name: type(value) for name, value in action.args.items() if name != "lean"}
        assert said == ARGUMENTS[action.kind]
        assert -1 <= action.args.get("lean", 0.0) <= 1
        assert all(value != "" for value in action.args.values())


def test_a_turn_has_one_to_three_actions_and_none_twice(history: History) -> None:
    sizes = Counter(len(decision.actions) for _, decision in history)
    assert set(sizes) == {1, 2, 3}
    assert sizes[1] > 5 * sizes[2] > 5 * sizes[3]
    for _, decision in history:
        assert all(decision.actions.count(action) == 1 for action in decision.actions)


def test_nobody_reacts_twice_to_the_same_post(history: History) -> None:
    for seen, decision in history:
        for action in decision.actions:
            if action.kind in ("LIKE_POST", "DISLIKE_POST", "REPOST", "QUOTE_POST"):
                assert action.args["post_id"] not in seen.reacted


def test_only_strangers_are_followed(history: History) -> None:
    for seen, decision in history:
        for action in decision.actions:
            if action.kind == "FOLLOW":
                assert action.args["followee_id"] in seen.strangers


def test_a_pending_action_is_not_repeated() -> None:
    mind = mind_of(crowd(40))
    posts = (post(1, FOR, author_id=900),)
    pending = (Action("LIKE_POST", {"post_id": 1}), Action("FOLLOW", {"followee_id": 900}))
    kinds = Counter[str]()
    for agent in range(40):
        for round in range(1, 40):
            seen = look(agent, round, recommended=posts, strangers=(900,), pending=pending)
            kinds.update(action.kind for action in mind.decide(seen).actions)
    assert not kinds.keys() & {"LIKE_POST", "DISLIKE_POST", "REPOST", "QUOTE_POST", "FOLLOW"}
    assert kinds["CREATE_COMMENT"] > 0


def test_nobody_reacts_to_their_own_posts() -> None:
    mind = mind_of(people(0.5))
    kinds = Counter[str]()
    for round in range(1, 300):
        kinds.update(a.kind for a in mind.decide(look(0, round, [post(1, FOR, author_id=0)])).actions)
    assert not kinds.keys() & {"LIKE_POST", "REPOST", "CREATE_COMMENT", "QUOTE_POST"}


def test_groups_are_joined_by_outsiders_and_addressed_by_members() -> None:
    mind = mind_of(crowd(40))
    groups = (GroupView(7, "Gardeners", 4, True, ()), GroupView(8, "Cooks", 2, False, ()))
    for agent in range(40):
        for round in range(1, 60):
            for action in mind.decide(look(agent, round, groups=groups)).actions:
                if action.kind == "JOIN_GROUP":
                    assert action.args["group_id"] == 8
                if action.kind in ("SEND_TO_GROUP", "LEAVE_GROUP"):
                    assert action.args["group_id"] == 7


def test_only_actions_that_the_platform_offers_are_taken() -> None:
    offered = {"CREATE_POST", "LIKE_POST", "REPOST", "DO_NOTHING"}
    mind = SocialMind(
        crowd(40), Versioned(Behaviour(HeuristicSettings(), offered)), 1, "twitter", TextReader(TOPICS, SUBJECT)
    )
    assert {action.kind for action in actions_of(take_turns(mind, 40, 40, Feed()))} == offered


def test_nobody_acts_when_nothing_is_offered() -> None:
    mind = SocialMind(
        crowd(10), Versioned(Behaviour(HeuristicSettings(), ())), 1, "twitter", TextReader(TOPICS, SUBJECT)
    )
    assert {action.kind for action in actions_of(take_turns(mind, 10, 40, Feed()))} == {"DO_NOTHING"}


def test_an_empty_feed_makes_people_post_search_or_rest() -> None:
    mind = mind_of(crowd(40))
    decisions = [mind.decide(look(agent, round)) for agent in range(40) for round in range(1, 30)]
    kinds = Counter(action.kind for decision in decisions for action in decision.actions)
    assert kinds["CREATE_POST"] > 0.2 * len(decisions)
    assert kinds["SEARCH_POSTS"] > 0
    assert kinds["DO_NOTHING"] > 0.3 * len(decisions)
    assert "LIKE_POST" not in kinds


def test_people_without_interests_find_something_to_write_about() -> None:
    mind = mind_of(people(0.0, interests=(-1, -1)), topic=None)
    texts = {text_of(a) for round in range(1, 80) for a in mind.decide(look(0, round)).actions}
    assert any(text and "everyday life" in text for text in texts)


def test_agents_post_about_news_that_concerns_them() -> None:
    def share(announcement: str, interests: tuple[int, int]) -> float:
        mind = mind_of(people(*[0.5] * 200, interests=interests))
        decisions = [mind.decide(look(agent, announcements=(announcement,))) for agent in range(200)]
        texts = [text for decision in decisions if (text := text_of(decision.actions[0]))]
        openers = tuple(opener[:1].upper() + opener[1:] for opener in load_phrases("sentences")["news"])
        return sum(text.startswith(openers) for text in texts) / 200

    news = "The city garden opens on Monday, says the gardening office."
    assert share(news, (0, 1)) > 0.4
    assert share(news, (4, 5)) < 0.1
    assert share(f"The dean decided about {SUBJECT}.", (4, 5)) > 0.4


def test_near_opinions_persuade_and_distant_ones_do_not() -> None:
    near, far = 0.3, -0.6
    mind = mind_of(people(near, far), confidence=0.6)
    for agent in (0, 1):
        for round in range(1, 10):
            mind.absorb(look(agent, round, [post(1, FOR)]), Decision())
    slant = TextReader(TOPICS, SUBJECT).slant(FOR)
    assert (near + slant) / 2 < mind.opinions()[0] < slant
    assert mind.opinions()[1] == pytest.approx(far)


def test_one_post_pulls_by_the_persuasion_that_was_set() -> None:
    mind = mind_of(people(0.5), persuasion=0.1)
    mind.absorb(look(posts=[post(1, FOR)]), Decision())
    assert mind.opinions()[0] == pytest.approx(0.5 + 0.1 * (TextReader(TOPICS, SUBJECT).slant(FOR) - 0.5))


def test_opinions_on_other_things_do_not_persuade() -> None:
    mind = mind_of(people(0.3))
    mind.absorb(look(posts=[post(1, "I love gardening, it is wonderful.")]), Decision())
    assert mind.opinions()[0] == pytest.approx(0.3)


def test_nobody_persuades_themselves() -> None:
    mind = mind_of(people(0.3))
    mind.absorb(look(posts=[post(1, FOR, author_id=0)]), Decision())
    assert mind.opinions()[0] == pytest.approx(0.3)


def test_a_quote_persuades_by_what_was_added() -> None:
    mind = mind_of(people(-0.3))
    mind.absorb(look(posts=[post(1, FOR, quote="I doubt it.")]), Decision())
    assert mind.opinions()[0] < -0.3


def test_stances_stay_within_bounds() -> None:
    population = crowd(30)
    population.stances[:3] = (-7.0, 7.0, 1.0)
    mind = mind_of(population, persuasion=1.0, confidence=2.0)
    take_turns(mind, 30, 30, Feed())
    assert all(-1.0 <= mind.opinions()[agent] <= 1.0 for agent in range(30))


def test_disagreement_provokes_and_agreement_pleases() -> None:
    def kinds(content: str) -> Counter[str]:
        mind = mind_of(people(*[0.8] * 400))
        seen = [look(agent, recommended=(post(1, content),), strangers=(1000,)) for agent in range(400)]
        return Counter(action.kind for one in seen for action in mind.decide(one).actions)

    pleased, provoked = kinds(FOR), kinds(AGAINST)
    assert pleased["LIKE_POST"] > 60
    assert pleased["FOLLOW"] > 5
    assert pleased["DISLIKE_POST"] == 0
    assert provoked["LIKE_POST"] == 0
    assert provoked["CREATE_COMMENT"] > pleased["CREATE_COMMENT"]
    assert provoked["DISLIKE_POST"] > 10


def test_people_talk_more_about_what_they_see_more_of() -> None:
    def mentions(content: str) -> int:
        mind = mind_of(people(*[0.5] * 100))
        reader = TextReader(TOPICS, SUBJECT)
        count = 0
        for round in range(1, 12):
            for agent in range(100):
                seen = look(agent, round, [post(n, content) for n in range(6)])
                decision = mind.decide(seen)
                mind.absorb(seen, decision)
                posts = [a.args["content"] for a in decision.actions if a.kind == "CREATE_POST"]
                count += sum(reader.subject in reader.topics(text) for text in posts)
        return count

    assert mentions(f"Have you heard about {SUBJECT}?") > 5 * mentions("What a long day at work.")


def test_camps_form_with_low_confidence_and_not_with_high() -> None:
    def extremes(confidence: float) -> int:
        mind = mind_of(crowd(60), confidence=confidence)
        for round in range(1, 60):
            for agent in range(60):
                mind.absorb(look(agent, round, [post(1, FOR), post(2, AGAINST)]), Decision())
        return sum(abs(mind.opinions()[agent]) > 0.5 for agent in range(60))

    assert extremes(0.6) > 35
    assert extremes(2.0) == 0


def test_a_talkative_population_writes_more() -> None:
    def texts(talkativeness: float) -> int:
        mind = mind_of(crowd(40), talkativeness=talkativeness)
        return sum(text_of(action) is not None for action in actions_of(take_turns(mind, 40, 20, Feed())))

    assert texts(0.0) < texts(1.0) < texts(3.0)
    assert texts(0.0) < 20


def test_a_scenario_without_a_subject_works_and_opinions_move() -> None:
    mind = mind_of(people(0.4), topic=None)
    seen = look(posts=[post(1, "I love gardening, it is wonderful.")])
    mind.absorb(seen, mind.decide(seen))
    assert mind.opinions()[0] > 0.4


def test_interests_beyond_the_sixty_third_topic_count_too() -> None:
    population = people(*[0.0] * 200, interests=(80, -1))
    population.topics = [f"pastime{number}x" for number in range(100)]
    mind = mind_of(population)
    posts = [post(n, f"A word on {topic}.", topics=(topic,)) for n, topic in ((1, "pastime80x"), (2, "pastime17x"))]
    liked = Counter(
        action.args["post_id"]
        for agent in range(200)
        for action in mind.decide(look(agent, posts=posts)).actions
        if action.kind == "LIKE_POST"
    )
    assert liked[1] > 1.5 * liked[2]


# Habits of some people


def mind_with_habits(**columns: float) -> SocialMind:
    """Build a mind for 40 people; the first 20 have these habits."""
    population = crowd(40)
    population.stances[:] = 0.0
    for name, value in columns.items():
        column = np.full(40, USUAL_HABITS[name], np.float32)
        column[:20] = value
        setattr(population.habits, name, column)
    return mind_of(population)


def by_group(mind: SocialMind, rounds: int = 30) -> tuple[list[Action], list[Action]]:
    """Return what the first 20 do, and what the others do."""
    history = take_turns(mind, 40, rounds, Feed())
    some, others = (actions_of(pair for pair in history if (pair[0].agent < 20) is first) for first in (True, False))
    return some, others


def mean_slant(actions: list[Action]) -> float:
    slants: list[float] = [action.args["lean"] for action in actions if text_of(action) and "lean" in action.args]
    return sum(slants) / len(slants)


@pytest.mark.parametrize("rate", [0.0, 0.25, 1.0, 2.5])
def test_posts_per_hour_are_written_on_average(rate: float) -> None:
    some, others = by_group(mind_with_habits(posts_per_hour=rate))
    written = sum(action.kind == "CREATE_POST" for action in some) / (20 * 30)
    assert written == pytest.approx(rate, abs=0.1)
    assert any(action.kind == "CREATE_POST" for action in others)


@pytest.mark.parametrize("rate", [0.0, 0.25, 1.0, 2.5])
def test_comments_per_hour_are_written_on_average(rate: float) -> None:
    some, _ = by_group(mind_with_habits(comments_per_hour=rate))
    assert sum(action.kind == "CREATE_COMMENT" for action in some) / (20 * 30) == pytest.approx(rate, abs=0.1)


def test_nobody_comments_twice_on_a_post_in_a_turn() -> None:
    for _, decision in take_turns(mind_with_habits(comments_per_hour=6), 20, 10, Feed()):
        commented = [action.args["post_id"] for action in decision.actions if action.kind == "CREATE_COMMENT"]
        assert len(commented) == len(set(commented))


def test_agents_that_write_at_a_rate_react_to_posts_too() -> None:
    some, others = by_group(mind_with_habits(posts_per_hour=1, comments_per_hour=1))
    likes = [sum(action.kind == "LIKE_POST" for action in group) for group in (some, others)]
    assert likes[0] > 0.8 * likes[1]


def test_the_habits_of_one_agent_do_not_change_what_others_do() -> None:
    _, others = by_group(mind_with_habits(posts_per_hour=2, comments_per_hour=2, sentiment=1))
    assert others == by_group(mind_with_habits())[1]


def test_an_agent_with_rate_zero_does_not_post_about_news() -> None:
    mind = mind_with_habits(posts_per_hour=0)
    news = (f"The dean decided about {SUBJECT}.",)
    kinds = {a.kind for agent in range(20) for a in mind.decide(look(agent, announcements=news)).actions}
    assert "CREATE_POST" not in kinds


def test_sentiment_colours_what_is_written() -> None:
    bright, usual = by_group(mind_with_habits(sentiment=0.9))
    gloomy, _ = by_group(mind_with_habits(sentiment=-0.9))
    assert mean_slant(gloomy) + 0.1 < mean_slant(usual) < mean_slant(bright) - 0.1


def test_influence_multiplies_persuasion() -> None:
    def stance_after(influence: float) -> float:
        mind = mind_with_habits(influence=influence)
        mind.absorb(look(30, posts=[post(1, "I welcome the campus curfew.", author_id=3)]), Decision())
        return mind.opinions()[30]

    assert stance_after(3) == pytest.approx(3 * stance_after(1))
    assert stance_after(0) == 0
    assert stance_after(100) == pytest.approx(TextReader(TOPICS, SUBJECT).slant("I welcome the campus curfew."))


def test_influence_weighs_opinions_that_are_averaged() -> None:
    def stance_after(influence: float) -> float:
        population = people(0.0, 0.0, 0.0)
        population.habits.influence = np.array([influence, 1.0, 1.0], np.float32)
        mind = mind_of(population, influence_rule="average")
        posts = [post(1, "I welcome the campus curfew.", 0), post(2, "I doubt the campus curfew.", 1)]
        mind.absorb(look(2, posts=posts), Decision())
        return mind.opinions()[2]

    assert stance_after(1) == pytest.approx(0)
    assert stance_after(2) == pytest.approx(TextReader(TOPICS, SUBJECT).slant("I welcome the campus curfew.") / 4)


@pytest.mark.parametrize(("attention", "counted"), [(1, 1), (2, 2), (5, 4)])
def test_attention_is_how_many_opinions_count_in_a_turn(attention: int, counted: int) -> None:
    mind = mind_of(people(0.5), attention=attention, persuasion=0.1)
    mind.absorb(look(posts=[post(number, FOR) for number in range(4)]), Decision())
    slant = TextReader(TOPICS, SUBJECT).slant(FOR)
    assert mind.opinions()[0] == pytest.approx(slant + (0.5 - slant) * 0.9**counted)


# Interventions


def test_a_changed_stance_is_the_opinion_from_then_on() -> None:
    mind = mind_of(people(0.5, 0.5))
    mind.change(0, {"stance": -0.8})
    assert mind.opinions() == pytest.approx([-0.8, 0.5])
    mind.change(1, {"stance": 7})
    assert mind.opinions()[1] == 1.0


def test_a_changed_habit_is_that_of_one_agent() -> None:
    mind = mind_of(crowd(40))
    before = mind.memory(3)
    mind.change(2, {"posts_per_hour": 0, "sentiment": 1.0, "influence": 2.0, "comments_per_hour": 0})
    assert mind.memory(3) == before
    assert mind.memory(2) != mind_of(crowd(40)).memory(2)
    kinds = {a.kind for round in range(1, 60) for a in mind.decide(Feed().look(2, round)).actions}
    assert not kinds & {"CREATE_POST", "CREATE_COMMENT"}


def test_unknown_traits_are_ignored() -> None:
    mind = mind_of(people(0.5))
    before = mind.memory(0)
    mind.change(0, {"shoe size": 43, "stance": "unknown", "sentiment": True})
    assert mind.memory(0) == before


# Explanations


def test_an_explanation_shows_the_memory_before_and_the_stance_after() -> None:
    mind = mind_of(people(0.4))
    seen = look(posts=[post(1, FOR)])
    told = mind.explain(seen)
    assert told["before"]["stance"] == pytest.approx(0.4)
    assert told["before"]["voiced as"] == "mildly for"
    mind.absorb(seen, Decision())
    assert told["after reading"]["stance"] == pytest.approx(mind.opinions()[0], abs=1e-4)
    assert told["after reading"]["topic on its mind"] > told["before"]["topic on its mind"]


def test_an_explanation_says_what_each_post_is_worth() -> None:
    mind = mind_of(people(0.7))
    told = mind.explain(look(posts=[post(1, FOR), post(2, AGAINST)], reacted=(2,)))
    mine, other = told["posts in sight"]
    assert (mine["attitude"], other["attitude"]) == ("drawn", "provoked")
    assert mine["appeal"] > other["appeal"]
    assert other["reacted before"]
    assert set(told["reactions"]) == {"1", "2"}


def test_the_chances_of_an_explanation_are_those_of_decisions() -> None:
    mind = mind_of(people(0.7))
    posts = [post(1, FOR), post(2, "Nothing much going on over here.")]
    told = mind.explain(look(posts=posts))
    chances = told["chances"]
    first = [mind.decide(look(0, round, posts)).actions[0] for round in range(1, 4000)]
    own = sum(action.kind == "CREATE_POST" for action in first) / len(first)
    assert own == pytest.approx(chances["a post of its own"], abs=0.02)
    liked = sum(action == Action("LIKE_POST", {"post_id": 1}) for action in first) / len(first)
    picked, like = told["posts in sight"][0]["chance to be picked"], told["reactions"]["1"]["LIKE_POST"]
    assert liked > 0.9 * chances["a look at the feed"] * picked * like
    total = sum(each["chance to be picked"] for each in told["posts in sight"])
    assert total + chances["picking nothing in the feed"] == pytest.approx(1, abs=0.001)
    assert all(sum(table.values()) == pytest.approx(1, abs=0.001) for table in told["reactions"].values())


def test_an_explanation_decides_nothing_and_changes_nothing() -> None:
    explained, plain = mind_of(crowd(20)), mind_of(crowd(20))
    seen = Feed().look(3, 1)
    before = explained.memory(3)
    assert explained.explain(seen) == explained.explain(seen)
    assert explained.memory(3) == before
    assert explained.decide(seen) == plain.decide(seen)


def test_an_explanation_speaks_of_habits_and_news() -> None:
    told = mind_with_habits(posts_per_hour=0.5, sentiment=0.4).explain(look(0, announcements=("News.",)))
    assert told["before"]["sentiment"] == pytest.approx(0.4)
    assert told["chances"]["posts in a turn, on average"] == 0.5
    assert told["chances"]["a post of its own"] == 0
    assert "talking about news that concerns it" in told["chances"]
    assert told["posts in sight"] == []
