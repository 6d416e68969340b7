"""The graph in a file: what it takes over, and what it answers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import SinkFailed
from shoal.sinks import (
    GraphStore,
    Narration,
    Narrator,
    Position,
    SinkBatch,
    answer_question,
    describe_graph,
    export_graphml,
)
from shoal.types import Event

NAMES = {1: "Ada Lund", 2: "Ben Okafor", 3: "Ben Lee", 4: "李 明"}


class Story:
    """Writes episodes into a graph, an action each, in rounds of one action."""

    def __init__(self, store: GraphStore) -> None:
        self.store = store
        self.at = Position()
        self.round = 0
        numbers = {name: number for number, name in NAMES.items()}
        self.narrator = Narrator("twitter", "the bridge", {"closing": "the bridge closes"}, numbers.get)

    def tell(self, agent: int, kind: str, **args: Any) -> None:
        self.round += 1
        event = Event(self.round, agent, NAMES[agent], kind, args, True, None, "t", f"twitter-{self.round}-{agent}-0")
        episode = self.narrator.tell(event)
        end = Position(self.at.bytes + 10, f"d{self.round}")
        assert self.store.write(SinkBatch("twitter", self.at, end, [episode] if episode else []))
        self.at = end

    def facts(self) -> list[tuple[Any, ...]]:
        return self.store.database.execute(
            "SELECT s.name, relation, t.name, since, until, times FROM fact"
            " JOIN entity AS s ON s.id = source JOIN entity AS t ON t.id = target ORDER BY fact.id"
        ).fetchall()


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    store = GraphStore(tmp_path / "graph.db")
    yield Story(store)
    store.close()


def test_a_lasting_fact_ends_when_it_is_taken_back(story: Story) -> None:
    story.tell(1, "FOLLOW", followee_id=2, target_user_name="Ben Okafor")
    story.tell(1, "UNFOLLOW", followee_id=2, target_user_name="Ben Okafor")
    assert story.facts() == [
        ("Ada Lund", "FOLLOWS", "Ben Okafor", 1, 2, 1),
        ("Ada Lund", "UNFOLLOWED", "Ben Okafor", 2, 2, 1),
    ]


def test_a_new_view_ends_the_old_one_and_the_same_view_is_counted(story: Story) -> None:
    for lean in (1.0, 0.8, -1.0):
        story.tell(1, "CREATE_POST", content=f"{lean}", post_id=story.round, claim="closing", lean=lean)
    views = [fact for fact in story.facts() if fact[1] != "POSTED"]
    assert views == [
        ("Ada Lund", "SUPPORTS", "the bridge closes", 1, 3, 2),
        ("Ada Lund", "OPPOSES", "the bridge closes", 3, None, 1),
    ]


def test_what_somebody_thinks_is_answered_with_the_view_and_the_words_behind_it(story: Story) -> None:
    story.tell(1, "CREATE_POST", content="It closes for good", post_id=7, claim="closing", lean=1.0)
    story.tell(2, "LIKE_POST", post_id=7, post_content="It closes for good", post_author_name="Ada Lund")
    story.tell(1, "CREATE_POST", content="Lovely garden", post_id=8)
    answer = answer_question(story.store, "What does Ada Lund think of the closing bridge?")
    assert answer.people == ("Ada Lund",)
    (fact,) = answer.facts
    assert fact.sentence == "Ada Lund supports “the bridge closes” since round 1"
    assert [episode.event for episode in fact.evidence] == ["twitter-1-1-0"]
    assert all("garden" not in episode.text for episode in answer.episodes)


def test_two_people_are_answered_with_what_is_between_them(story: Story) -> None:
    story.tell(1, "CREATE_POST", content="Hi", post_id=7)
    story.tell(2, "LIKE_POST", post_id=7, post_content="Hi", post_author_name="Ada Lund")
    story.tell(3, "LIKE_POST", post_id=7, post_content="Hi", post_author_name="Ada Lund")
    answer = answer_question(story.store, "Ben Okafor and Ada Lund")
    assert [fact.sentence for fact in answer.facts] == ["Ben Okafor likes “Hi” since round 2"]
    assert answer.episodes[0].event == "twitter-2-2-0"


def test_without_a_name_views_are_counted_and_those_are_listed_who_have_the_view(story: Story) -> None:
    for agent, lean in ((1, 1.0), (2, -1.0), (3, -0.8)):
        story.tell(agent, "CREATE_POST", content="x", post_id=agent, claim="closing", lean=lean)
    answer = answer_question(story.store, "who opposes the closing?")
    assert answer.views == {"the bridge closes": {"SUPPORTS": 1, "OPPOSES": 2}}
    assert [fact.source for fact in answer.facts] == ["Ben Lee", "Ben Okafor"]


def test_a_first_name_of_several_people_is_said_to_be_ambiguous(story: Story) -> None:
    for agent in (2, 3):
        story.tell(agent, "CREATE_POST", content="x", post_id=agent)
    answer = answer_question(story.store, "What does Ben say?")
    assert answer.people == ("Ben Okafor", "Ben Lee")
    assert answer.notes == ("Ben could be Ben Okafor (2), Ben Lee (3)",)


def test_words_of_scripts_without_spaces_are_found(story: Story) -> None:
    story.tell(4, "CREATE_POST", content="大桥将永远关闭", post_id=7)
    assert [each.round for each in answer_question(story.store, "关闭").episodes] == [1]
    assert answer_question(story.store, "花园").episodes == ()


@pytest.mark.parametrize(
    "question", ["", "???", '"', "AND OR NOT", "text : (", "* NEAR(a b)", "'; DROP TABLE fact; --"]
)
def test_no_question_is_taken_for_a_query(story: Story, question: str) -> None:
    story.tell(1, "CREATE_POST", content="or not", post_id=7)
    answer_question(story.store, question)
    assert len(story.facts()) == 1


def test_a_batch_that_fails_leaves_nothing_of_it(story: Story) -> None:
    story.tell(1, "CREATE_POST", content="x", post_id=7)
    before = describe_graph(story.store)
    broken: Any = Narration("e", "twitter", 2, "t", 1, None, ())  # type: ignore[arg-type]
    with pytest.raises((SinkFailed, TypeError, AttributeError)):
        story.store.write(SinkBatch("twitter", story.at, Position(99, "d"), [broken]))
    assert describe_graph(story.store) == before
    assert story.store.position("twitter") == story.at


def test_a_batch_from_elsewhere_is_not_taken_over(story: Story) -> None:
    assert not story.store.write(SinkBatch("twitter", Position(5, "other"), Position(9, "d"), []))
    assert story.store.position("twitter") == Position()


def test_a_graph_of_another_version_is_made_anew(story: Story, tmp_path: Path) -> None:
    story.tell(1, "CREATE_POST", content="x", post_id=7)
    story.store.database.execute("PRAGMA user_version = 999")
    again = GraphStore(tmp_path / "graph.db")
    assert describe_graph(again).episodes == 0
    assert again.position("twitter") == Position()
    again.close()


def test_a_file_that_is_no_graph_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(SinkFailed, match=r"graph\.db"):
        GraphStore(path)


def test_the_whole_graph_is_written_as_graphml(story: Story, tmp_path: Path) -> None:
    story.tell(1, "CREATE_POST", content="<b>&", post_id=7, claim="closing", lean=1.0)
    path = tmp_path / "graph.graphml"
    assert export_graphml(story.store, path) == 2
    text = path.read_text()
    assert text.count("<node ") == 3
    assert "&lt;b&gt;&amp;" in text


def test_the_file_can_be_asked_with_sql(story: Story, tmp_path: Path) -> None:
    story.tell(1, "CREATE_POST", content="x", post_id=7)
    with sqlite3.connect(tmp_path / "graph.db") as database:
        assert database.execute("SELECT text FROM episode").fetchall() == [("Ada Lund posted “x”.",)]
