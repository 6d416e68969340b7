"""Metrics on histories made by hand, with the values worked out by hand."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from math import log
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import QueryFailed
from shoal.experiments.metrics import (
    METRICS,
    choose_metrics,
    find_value,
    list_recorded,
    load_own_metrics,
    measure_run,
    read_series,
)
from shoal.runs import RunDirectory
from tests.runs.harness import start

PEOPLE = [{"name": name, "activity": 1.0} for name in ("Ann", "Bob", "Cid", "Dan")]


def act(round: int, agent: int, action: str, **args: Any) -> dict[str, Any]:
    return {"round": round, "agent": agent, "action": action, "args": args}


def play(path: Path, turns: list[dict[str, Any]], **more: Any) -> RunDirectory:
    """Run a scenario in which people do what is listed, and nothing else."""
    scenario = {"population": PEOPLE, "follows": "none", "seed": 3, "rounds": 4, "worlds": ["twitter"]} | more
    start({**scenario, "mind": {"kind": "scripted", "turns": turns}, "time": {"daily_rhythm": False}}, path)
    return RunDirectory.open(path)


def measure(run: RunDirectory, *names: str) -> dict[str, float]:
    return measure_run(run, choose_metrics(names, METRICS.values())).values


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """Person 0 posts; 1 and 2 repost, 2 following 1; 3 likes and comments. 0 and 1 follow one another, 2 follows 1."""
    ties = {"graph": "none", "edges": [[0, 1], [1, 0], [2, 1]]}
    path = tmp_path_factory.mktemp("platform") / "run"
    post = {"post": "The old bridge is good news for the town.", "by": 0, "round": 1}
    first = play(path, [], events=[post], follows=ties)
    with closing(sqlite3.connect(first.file("twitter_simulation.db"))) as database:
        ((number,),) = database.execute("SELECT post_id FROM post").fetchall()
    turns = [
        act(2, 1, "REPOST", post_id=number),
        act(3, 2, "REPOST", post_id=number),
        act(3, 3, "LIKE_POST", post_id=number),
        act(4, 3, "CREATE_COMMENT", post_id=number, content="the old bridge is bad"),
        act(4, 1, "CREATE_POST", content="The  OLD bridge is bad"),
    ]
    return play(path.parent / "whole", turns, events=[post], follows=ties, topic="the old bridge")


def test_a_cascade_on_a_platform(platform: RunDirectory) -> None:
    found = measure(platform, "cascades", "cascade_size", "cascade_depth", "cascade_breadth", "virality")
    # 0 <- 1 <- 2: a chain, distances 1, 1 and 2.
    assert found == {"cascades": 1, "cascade_size": 3, "cascade_depth": 2, "cascade_breadth": 1, "virality": 4 / 3}
    assert read_series(platform, "cascade_size") == [(2, 2.0), (3, 3.0), (4, 3.0)]
    assert read_series(platform, "cascades") == [(0, 0.0), (1, 0.0), (2, 1.0), (3, 1.0), (4, 1.0)]


def test_what_people_did_on_a_platform(platform: RunDirectory) -> None:
    found = measure(platform, "activity_inequality", "participation", "actions", "response_rate", "reciprocity")
    # Actions by person, that of the event included: 1, 2, 1, 2. Gini of 1, 1, 2, 2: (-3 - 1 + 2 + 6) / (4 * 6).
    assert found.pop("activity_inequality") == pytest.approx(4 / 24)
    assert found == {
        "participation": 1.0,
        "actions(CREATE_POST)": 2,
        "actions(REPOST)": 2,
        "actions(LIKE_POST)": 1,
        "actions(CREATE_COMMENT)": 1,
        # One of two posts was answered.
        "response_rate": 0.5,
        # 0 and 1 follow one another, and 2 follows 1.
        "reciprocity": pytest.approx(2 / 3),
    }
    # Followers: 1, 2, 0, 0. Gini of 0, 0, 1, 2: (1 + 6) / (4 * 3).
    assert measure(platform, "follower_inequality")["follower_inequality"] == pytest.approx(7 / 12)
    assert read_series(platform, "response_rate") == [(1, 0.0), (2, 1.0), (3, 1.0), (4, 0.5)]


def test_what_people_wrote(platform: RunDirectory) -> None:
    found = measure(platform, "repetition", "text_length", "on_topic", "sentiment", "diversity")
    assert found["repetition"] == pytest.approx(1 / 3)
    assert found["text_length"] == pytest.approx((9 + 5 + 5) / 3)
    assert found["on_topic"] == 1.0
    # 'good' is 1 / (1 + 1), 'bad' the opposite, twice.
    assert found["sentiment"] == pytest.approx(-0.5 / 3)
    # Pairs: 8 of the first text, of which 3 again in each of the others, which have 4 each, the last of them alike.
    assert found["diversity"] == pytest.approx(9 / 16)


def test_opinions_and_claims(tmp_path: Path) -> None:
    """What a world records is overwritten by hand: 4 people, from 0.5, 0.5, -0.5, -0.5 to 1, 0.5, 0.5, -1."""
    run = play(tmp_path / "run", [], topic="the old bridge", claims=[{"id": "closing", "text": "The bridge closes"}])
    with closing(sqlite3.connect(run.file("twitter_simulation.db"))) as database, database:
        database.executescript("DELETE FROM opinion_change; DELETE FROM follow; DELETE FROM figure")
        first, later = [0.5, 0.5, -0.5, -0.5], {0: 1.0, 2: 0.5, 3: -1.0}
        rows = [(0, agent, about, value) for about in ("topic", "closing") for agent, value in enumerate(first)]
        rows += [(2, agent, "topic", value) for agent, value in later.items()]
        database.executemany("INSERT INTO opinion_change VALUES (?,?,?,?)", rows)
        database.executemany("INSERT INTO follow VALUES (?,?,?,?)", [(1, 0, 1, 0), (2, 2, 3, 0)])
        reach = [(round, "reach", "closing", value) for round, value in enumerate([0, 0.25, 0.25, 0.5, 0.75])]
        database.executemany("INSERT INTO figure VALUES (?,?,?,?)", reach)
    found = measure(run, "stance_shift", "stance_movement", "conversions", "support", "belief", "extremity")
    assert found == {
        # (0.5 + 0 + 1 - 0.5) / 4, and the same without signs.
        "stance_shift(topic)": 0.25,
        "stance_movement(topic)": 0.5,
        "conversions(topic)": 0.25,
        "support(topic)": 0.75,
        "extremity(topic)": 0.75,
        "stance_shift(closing)": 0.0,
        "stance_movement(closing)": 0.0,
        "conversions(closing)": 0.0,
        "belief(closing)": 0.5,
        "extremity(closing)": 0.5,
    }
    assert read_series(run, "support") == [(0, 0.5), (1, 0.5), (2, 0.75), (3, 0.75), (4, 0.75)]
    # Both ties join people of the same belief; at the end, 1 and 0.5 are tied, and 0.5 and -1.
    both = measure(run, "follow_assortativity")
    assert both == {"follow_assortativity(topic)": pytest.approx(1.0), "follow_assortativity(closing)": 1.0}
    assert measure(run, "reach", "time_to_reach", "half_life") == {
        "reach(closing)": 0.75,
        "time_to_reach(closing)": 3.0,
        # Half of 0.75 is 0.375, which is passed with 0.5.
        "half_life(closing)": 3.0,
    }


def test_a_room_in_which_people_answer_one_another(tmp_path: Path) -> None:
    turns = [
        act(1, 0, "TALK", content="Good morning to you", target="Bob"),
        act(2, 1, "TALK", content="Good morning", target="Ann"),
        act(3, 0, "TALK", content="And you?", target="Cid"),
        act(4, 3, "TALK", content="Is anybody there?"),
    ]
    run = play(tmp_path / "run", turns, worlds=["room"])
    found = measure(run, "response_rate", "balance", "word_balance", "reciprocity")
    assert found["response_rate"] == pytest.approx(1 / 3)
    # Turns 2, 1, 0, 1.
    assert found["balance"] == pytest.approx(1.5 * log(2) / log(4))
    # Words 6, 2, 0, 3.
    shares = (6 / 11, 2 / 11, 3 / 11)
    assert found["word_balance"] == pytest.approx(-sum(share * log(share) for share in shares) / log(4))
    # 0 -> 1, 1 -> 0, 0 -> 2.
    assert found["reciprocity"] == pytest.approx(2 / 3)


def test_dialogues_are_balanced_one_by_one(tmp_path: Path) -> None:
    turns = [
        act(1, 0, "SAY", content="one two three"),
        act(1, 2, "SAY", content="one two"),
        act(2, 1, "SAY", content="one"),
    ]
    run = play(tmp_path / "run", turns, worlds={"talk": {"kind": "dialogue", "turns": 4, "score": False}})
    found = measure(run, "balance", "word_balance")
    # The pairs speak 1 and 1 times, and 1 and 0 times; words 3 and 1, and 2 and 0.
    assert found["balance"] == pytest.approx((1.0 + 0.0) / 2)
    three_to_one = -(0.75 * log(0.75) + 0.25 * log(0.25)) / log(2)
    assert found["word_balance"] == pytest.approx(three_to_one / 2)


def test_the_last_value_over_rounds_is_that_of_the_end(platform: RunDirectory) -> None:
    found = measure_run(platform, list_recorded(platform))
    assert {name: read_series(platform, name)[-1][1] for name in found.values} == found.values
    assert found.missing["balance"] == "it is for room and dialogue worlds, and twitter is none"
    assert found.missing["reach"] == "the scenario has no claims"
    assert measure_run(platform, list_recorded(platform)) == found


def test_a_name_stands_for_the_topic_or_the_only_thing_there_is() -> None:
    values = {
        "mean(topic)": 1.0,
        "mean(a)": 2.0,
        "reach(a)": 3.0,
        "reach(b)": 4.0,
        "half_life(a)": 5.0,
        "activity": 6.0,
    }
    assert [find_value(values, name) for name in ("mean", "mean(a)", "half_life", "activity")] == [1.0, 2.0, 5.0, 6.0]
    assert find_value(values, "reach") == "there are several; write which one: reach(a) or reach(b)"
    assert find_value(values, "reach(c)") == "there is only reach(a) or reach(b)"
    assert find_value(values, "virality") == "there is no value of virality"
    worlds = {"one.activity": 1.0, "two.activity": 2.0, "two.reach(a)": 3.0}
    assert (find_value(worlds, "two.activity"), find_value(worlds, "reach")) == (2.0, 3.0)
    assert "several" in str(find_value(worlds, "activity"))


def test_an_unknown_metric_is_named_with_the_nearest(platform: RunDirectory) -> None:
    with pytest.raises(QueryFailed, match="there is no metric 'cascade_sise'; did you mean 'cascade_size'"):
        read_series(platform, "cascade_sise")
    with pytest.raises(QueryFailed, match="balance: it is for room and dialogue worlds"):
        read_series(platform, "balance")


def test_metrics_of_ones_own(platform: RunDirectory, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import shoal\n\n@shoal.metric\ndef posts(world):\n    'Counts posts.'\n"
        "    return next(world.query('SELECT count(*) FROM post'))[0]\n\n"
        "@shoal.metric\ndef acts(world, round):\n    return float(world.count_acts(round).sum())\n\n"
        "@shoal.metric\ndef broken(world):\n    return 1 / 0\n"
    )
    own = load_own_metrics(file)
    found = measure_run(platform, own)
    assert found.values == {"posts": 4.0, "acts": 6.0}
    assert found.missing == {"broken": f"{file}:14: ZeroDivisionError: division by zero"}
    assert read_series(platform, "acts", own) == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 4.0), (4, 6.0)]
    assert read_series(platform, "posts", own) == [(4, 4.0)]
    assert own[0].formula == "Counts posts."


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = = 1\n", "mine.py:1: SyntaxError: invalid syntax"),
        ("x = 1\ny = z\n", "mine.py:2: NameError: name 'z' is not defined"),
        ("x = 1\n", "mine.py: there is no metric in it; write @shoal.metric above a function"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(QueryFailed) as caught:
        load_own_metrics(tmp_path / "mine.py")
    assert problem in str(caught.value)
