"""What holds for every sink: the graph in a file, a server that speaks Bolt, and Zep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import SinkFailed
from shoal.sinks import Narration, Narrator, Position, Sink, SinkBatch
from shoal.types import Event
from tests.sinks.places import SinkPlace, make_place

KINDS = ("graph", "neo4j", "zep")
NAMES = {1: "Ada Lund", 2: "Ben Okafor", 3: "李 明"}
NARRATOR = Narrator("twitter", "the bridge", {"closing": "the bridge closes"}, {v: k for k, v in NAMES.items()}.get)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SinkPlace]:
    with make_place(request.param, tmp_path) as made:
        yield made


def tell(round: int, agent: int, kind: str, **args: Any) -> Narration:
    id = f"twitter-{round}-{agent}-{kind}"
    event = Event(round, agent, NAMES[agent], kind, args, True, None, f"2026-01-01T{round % 24:02}:00:00+00:00", id)
    told = NARRATOR.tell(event)
    assert told is not None
    return told


def say(round: int, agent: int, text: str, lean: float) -> Narration:
    return tell(round, agent, "CREATE_POST", content=text, post_id=round * 100 + agent, claim="closing", lean=lean)


STORY = (
    [say(1, 1, "It closes.", 0.9), tell(1, 2, "FOLLOW", followee_id=1, target_user_name="Ada Lund")],
    [
        tell(2, 2, "LIKE_POST", post_id=101, post_content="It closes.", post_author_name="Ada Lund"),
        say(2, 3, "大桥", 0.5),
    ],
    [tell(3, 2, "UNFOLLOW", followee_id=1, target_user_name="Ada Lund"), say(3, 1, "It really closes.", 0.7)],
    [tell(4, 2, "FOLLOW", followee_id=1, target_user_name="Ada Lund"), say(4, 1, "Perhaps it does not.", -0.8)],
    [tell(5, 2, "LIKE_POST", post_id=101, post_content="It closes.", post_author_name="Ada Lund")],
)


def batches(size: int, world: str = "twitter") -> list[SinkBatch]:
    """The story in batches of so many rounds."""
    places = [Position(), *(Position(number * 100, f"d{number}") for number in range(1, len(STORY) + 1))]
    made = []
    for first in range(0, len(STORY), size):
        last = min(first + size, len(STORY))
        episodes = [each for round in STORY[first:last] for each in round]
        made.append(SinkBatch(world, places[first], places[last], episodes))
    return made


def write_all(sink: Sink, story: list[SinkBatch]) -> None:
    for batch in story:
        if batch.begin == sink.position(batch.world):
            assert sink.write(batch)


def expected(tmp_path: Path) -> SinkPlace:
    """The graph in a file, written in one batch: what every place must be equal to."""
    folder = tmp_path / "expected"
    folder.mkdir()
    whole = SinkPlace("graph", folder)
    write_all(whole.open(), batches(len(STORY)))
    return whole


@pytest.mark.parametrize("size", [1, 2, len(STORY)])
def test_every_place_holds_the_same_however_it_was_batched(place: SinkPlace, size: int, tmp_path: Path) -> None:
    write_all(place.open(), batches(size))
    whole = expected(tmp_path)
    assert place.list_texts() == whole.list_texts()
    facts = place.list_facts()
    if facts is not None:
        assert facts == whole.list_facts()
        assert place.list_people() == whole.list_people()


def test_another_process_goes_on_where_the_sink_is(place: SinkPlace, tmp_path: Path) -> None:
    for batch in batches(1):
        sink = place.open()
        assert sink.position("twitter") == batch.begin
        assert sink.write(batch)
        sink.close()
    assert place.open().position("twitter") == Position(500, "d5")
    assert place.list_texts() == expected(tmp_path).list_texts()


def test_a_batch_is_taken_over_once(place: SinkPlace) -> None:
    first, second = place.open(), place.open()
    (batch, *_) = batches(2)
    assert first.write(batch)
    texts = place.list_texts()
    assert not first.write(batch)
    if place.kind != "zep":
        # Zep's position is in a file of the run, of which one process at a time has the lock.
        assert not second.write(batch)
    assert place.list_texts() == texts


def test_worlds_are_followed_apart(place: SinkPlace) -> None:
    sink = place.open()
    assert sink.write(batches(2)[0])
    assert sink.position("reddit") == Position()
    assert sink.write(SinkBatch("reddit", Position(), Position(7, "r"), []))
    assert (sink.position("twitter"), sink.position("reddit")) == (Position(200, "d2"), Position(7, "r"))


def test_runs_share_a_server_without_touching_one_another(place: SinkPlace, tmp_path: Path) -> None:
    write_all(place.open("one"), batches(2))
    before = place.list_texts("one"), place.list_facts("one")
    other = place.open("two")
    assert other.position("twitter") == Position()
    write_all(other, batches(3))
    other.clear()
    assert (place.list_texts("one"), place.list_facts("one")) == before
    assert place.open("one").position("twitter") == Position(500, "d5")


def test_after_clearing_everything_is_taken_over_again(place: SinkPlace, tmp_path: Path) -> None:
    sink = place.open()
    write_all(sink, batches(2)[:2])
    sink.clear()
    assert sink.position("twitter") == Position()
    write_all(sink, batches(2))
    texts, whole = place.list_texts(), expected(tmp_path).list_texts()
    # What Zep was sent stays there, and it is told that it no longer holds.
    assert texts[-len(whole) :] == whole
    assert (len(texts) > len(whole)) == (place.kind == "zep")
    assert place.list_facts() in (None, expected_facts(tmp_path))


def expected_facts(tmp_path: Path) -> list[tuple[Any, ...]] | None:
    return SinkPlace("graph", tmp_path / "expected").list_facts()


# failures


@pytest.mark.parametrize("kind", ["neo4j", "zep"])
@pytest.mark.parametrize("lost", [1, 2, 3, 4])
def test_a_server_that_takes_a_batch_and_does_not_say_so_has_it_once(kind: str, lost: int, tmp_path: Path) -> None:
    with make_place(kind, tmp_path) as place:
        if place.bolt is not None:
            # Opening makes three constraints, each in a transaction of its own.
            place.bolt.loses_commits = {3 + 2 * lost}
        if place.zep is not None:
            place.zep.loses_answers = {lost}
        failures = write_in_spite_of_failures(place)
        assert failures >= 1
        assert place.list_texts() == expected(tmp_path).list_texts()
        if place.bolt is not None:
            assert place.list_facts() == expected_facts(tmp_path)


@pytest.mark.parametrize("kind", ["neo4j", "zep"])
def test_a_server_that_refuses_is_tried_again_and_loses_nothing(kind: str, tmp_path: Path) -> None:
    with make_place(kind, tmp_path) as place:
        for number in range(1, 12):
            if place.bolt is not None:
                place.bolt.fails_in = number
            if place.zep is not None:
                place.zep.refusals = [429, 500][: number % 3]
            write_in_spite_of_failures(place)
        assert place.list_texts() == expected(tmp_path).list_texts()


def write_in_spite_of_failures(place: SinkPlace) -> int:
    """Write the story as a follower does: after a failure, open the sink again and go on where it is."""
    failures = 0
    while failures < 20:
        try:
            sink = place.open()
            write_all(sink, batches(1))
        except SinkFailed:
            failures += 1
        else:
            return failures
    raise AssertionError("it never succeeds")


def test_a_server_that_hangs_is_given_up(tmp_path: Path) -> None:
    with make_place("zep", tmp_path) as place:
        assert place.zep is not None
        sink = place.open(seconds=0.3)
        place.zep.hangs.set()
        with pytest.raises(SinkFailed, match="timed out"):
            sink.write(batches(1)[0])
        place.zep.hangs.clear()
        write_in_spite_of_failures(place)
        assert place.list_texts() == expected(tmp_path).list_texts()


@pytest.mark.parametrize("kind", ["neo4j", "zep"])
def test_a_server_that_is_not_there_is_named(kind: str, tmp_path: Path) -> None:
    with make_place(kind, tmp_path) as place:
        pass
    with pytest.raises(SinkFailed, match=r"127\.0\.0\.1"):
        place.open().position("twitter")


def test_a_wrong_key_is_said_to_be_one(tmp_path: Path) -> None:
    with make_place("zep", tmp_path) as place:
        assert place.zep is not None
        place.zep.refusals = [401]
        with pytest.raises(SinkFailed, match="401"):
            place.open()
    with make_place("neo4j", tmp_path) as place:
        assert place.bolt is not None
        place.bolt.password = "another"
        with pytest.raises(SinkFailed, match="unauthorized"):
            place.open()


def test_zep_gets_texts_that_are_short_enough_and_in_order(tmp_path: Path) -> None:
    with make_place("zep", tmp_path) as place:
        assert place.zep is not None
        long = [say(number, 1, f"{number} " + "word " * 70, 0.5) for number in range(100)]
        assert place.open().write(SinkBatch("twitter", Position(), Position(9, "d"), long))
        assert len(place.zep.episodes) > 3
        assert place.list_texts() == [each.text for each in long]
