"""Playing a part from the terminal."""

from __future__ import annotations

import asyncio
import io
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shoal.cli.play import END, Terminal, keyboard, render_turn, terminal_answer
from shoal.types import Action, Decision, Observation
from shoal.worlds.base import ViewObservation, check_args
from shoal.worlds.dialogue.observations import DialogueObservation, LineView
from shoal.worlds.dialogue.world import Dialogue
from shoal.worlds.kinds import renderer_for
from shoal.worlds.rendering import Mistake
from shoal.worlds.room.observations import Relation, RoomObservation, Stimulus
from shoal.worlds.room.world import Room
from shoal.worlds.social.actions.rules import NEEDS
from shoal.worlds.social.observations import CommentView, GroupView, LookedUp, MessageView, PostView, SocialObservation
from tests.cli.terminal import COMMAND, DEADLINE_SECONDS, environment, last_object

HEAD: dict[str, Any] = {"world": "w", "round": 3, "agent": 0, "name": "Ada Roy", "time": "2026-01-01T10:00:00+00:00"}
NOTHING = Decision((Action("DO_NOTHING"),))


def talk(**fields: Any) -> DialogueObservation:
    defaults: dict[str, Any] = {
        "partner_id": 1, "partner": "Ben Li", "partner_bio": "a baker", "scene": 2, "setting": "A kitchen.",
        "turning_point": "The phone rings.", "turn": 5, "turns": 20,
        "lines": (LineView(1, "Ben Li", "Hello."), LineView(0, "Ada Roy", "Hi.")),
    }  # fmt: skip
    return DialogueObservation(**HEAD, **(defaults | fields))


def room() -> RoomObservation:
    stimuli = (
        Stimulus("hear", "Hello all.", 1, "Ben Li"),
        Stimulus("hear", "And you?", 2, "Cy Li", addressed=True),
        Stimulus("see", "A bird."),
        Stimulus("reach_out", "", 1, "Ben Li"),
    )
    relations = (Relation(1, "Ben Li", "brother"),)
    return RoomObservation(
        **HEAD, location="the hall", stimuli=stimuli, present=("Ben Li", "Cy Li"), goals=("Leave early.",),
        relations=relations,
    )  # fmt: skip


def post(post_id: int, author_id: int, content: str, **fields: Any) -> PostView:
    defaults: dict[str, Any] = {
        "author": f"Author {author_id}", "quote": None, "original_author": None, "age": 1, "likes": 0, "dislikes": 0,
        "shares": 0, "comments": 0, "flagged": False, "topics": (), "slant": 0.0, "replies": (),
    }  # fmt: skip
    return PostView(post_id=post_id, author_id=author_id, content=content, **(defaults | fields))


def feed() -> SocialObservation:
    replies = (CommentView(9, 4, "Dan", "So true.", 0, 0),)
    return SocialObservation(
        **HEAD,
        followed=(post(70, 5, "First.", likes=2, comments=1, replies=replies),),
        recommended=(post(80, 6, "Second.", quote="Look!", original_author="Eve"),),
        followers=3,
        following=4,
        announcements=("It rains.",),
        answers=(LookedUp("SEARCH_POSTS", "rain", posts=(post(90, 7, "Third."),), users=((7, "Fay"),)),),
        groups=(GroupView(2, "Walkers", 5, True, (MessageView(4, "Dan", "Tonight?"),)),),
    )


# What is shown


def test_a_conversation_is_shown_with_its_scene_and_last_lines() -> None:
    assert render_turn(talk(announcements=("It rains.",))).splitlines() == [
        "── Ada Roy in w, round 3, 2026-01-01T10:00 ──",
        "News: It rains.",
        "You talk to Ben Li (a baker). Scene 2, turn 5 of at most 20.",
        "Scene: A kitchen.",
        "Then: The phone rings.",
        "  Ben Li: Hello.",
        "  You: Hi.",
    ]
    assert "/rate" in render_turn(talk(rating=True))
    lines = tuple(LineView(1, "Ben Li", f"Line {number}.") for number in range(9))
    assert ["Line 2." in render_turn(talk(lines=lines)), "Line 3." in render_turn(talk(lines=lines))] == [False, True]
    assert "Then" not in render_turn(talk(turning_point=None, setting=""))


def test_a_room_is_shown_with_who_is_there_and_what_was_heard() -> None:
    assert render_turn(room()).splitlines()[1:] == [
        "You are in the hall with Ben Li, Cy Li.",
        "You want: Leave early.",
        "Ben Li: brother",
        "  Ben Li: Hello all.",
        "  Cy Li (to you): And you?",
        "  [see] A bird.",
        "  [reach out Ben Li]",
    ]
    assert "You are here with nobody." in render_turn(RoomObservation(**HEAD))


def test_a_platform_is_shown_with_numbered_posts() -> None:
    assert render_turn(feed()).splitlines()[1:] == [
        "News: It rains.",
        "3 follow you, you follow 4.",
        "  1. Author 5: First.  [2 likes, 1 comments]",
        "       Dan: So true.",
        "  2. Author 6 (by Eve): Look! | Second.",
        "  3. Author 7: Third.",
        "search_posts rain: 1 posts; Fay",
        "Group 2, Walkers, 5 members, you are in it",
        "       Dan: Tonight?",
    ]


def test_any_other_world_is_shown_with_its_fields() -> None:
    seen = ViewObservation(**HEAD, view={"price": 3, "note": "going once", "bids": [1, 2]}, announcements=("Sold!",))
    assert render_turn(seen).splitlines()[1:] == ["News: Sold!", "  price: 3", "  note: going once", "  bids: [1,2]"]


def test_what_agents_say_cannot_take_over_the_terminal() -> None:
    shown = render_turn(talk(lines=(LineView(1, "Ben Li", "Boo\x1b[2J\r\nYou: ha"),)))
    assert "\x1b" not in shown
    assert "  Ben Li: Boo [2J  You: ha" in shown.splitlines()


# What is typed


TYPED: list[tuple[Observation, str, Action]] = [
    (talk(), "I see it differently, Ben.", Action("SAY", {"content": "I see it differently, Ben."})),
    (talk(), "/say /rate is a word", Action("SAY", {"content": "/rate is a word"})),
    (talk(), "/think Hm.", Action("THINK", {"content": "Hm."})),
    (talk(), "/leave", Action("LEAVE")),
    (talk(), "/nothing", Action("DO_NOTHING")),
    (talk(rating=True), "/rate 7 because he listens", Action("RATE", {"score": 7, "reason": "because he listens"})),
    (talk(rating=True), "/rate 10", Action("RATE", {"score": 10})),
    (talk(rating=True), "0 awful", Action("RATE", {"score": 0, "reason": "awful"})),
    (room(), "Hello.", Action("TALK", {"content": "Hello."})),
    (room(), "/say Hello.", Action("TALK", {"content": "Hello."})),
    (room(), "/to ben How are you?", Action("TALK", {"content": "How are you?", "target": "Ben Li"})),
    (room(), "/to Cy Li: How are you?", Action("TALK", {"content": "How are you?", "target": "Cy Li"})),
    (room(), "/think Hm.", Action("THINK", {"content": "Hm."})),
    (room(), "/reach Cy", Action("REACH_OUT", {"target": "Cy Li"})),
    (room(), "/attend the bird", Action("ATTEND", {"content": "the bird"})),
    (room(), "/go the garden", Action("MOVE_TO", {"location": "the garden"})),
    (room(), "/done", Action("DONE")),
    (room(), "/nothing", Action("DO_NOTHING")),
    (feed(), "post Good morning.", Action("CREATE_POST", {"content": "Good morning."})),
    (feed(), "/like 1", Action("LIKE_POST", {"post_id": 70})),
    (feed(), "unlike 1", Action("UNLIKE_POST", {"post_id": 70})),
    (feed(), "Dislike 2", Action("DISLIKE_POST", {"post_id": 80})),
    (feed(), "repost 3", Action("REPOST", {"post_id": 90})),
    (feed(), "comment 2 Why so?", Action("CREATE_COMMENT", {"post_id": 80, "content": "Why so?"})),
    (feed(), "quote 2 Well.", Action("QUOTE_POST", {"post_id": 80, "quote_content": "Well."})),
    (feed(), "follow 2", Action("FOLLOW", {"followee_id": 6})),
    (feed(), "mute 1", Action("MUTE", {"mutee_id": 5})),
    (feed(), "search the bridge", Action("SEARCH_POSTS", {"query": "the bridge"})),
    (feed(), "trend", Action("TREND")),
    (feed(), "nothing", Action("DO_NOTHING")),
    (feed(), "JOIN_GROUP group_id=2", Action("JOIN_GROUP", {"group_id": 2})),
    (ViewObservation(**HEAD), 'bid price=3 note="a last word"', Action("BID", {"price": 3, "note": "a last word"})),
    (ViewObservation(**HEAD), "PASS", Action("PASS")),
    (ViewObservation(**HEAD), "nothing", Action("DO_NOTHING")),
]  # fmt: skip


@pytest.mark.parametrize(("seen", "line", "expected"), TYPED)
def test_a_line_becomes_an_action(seen: Observation, line: str, expected: Action) -> None:
    assert renderer_for(seen).read(line, seen) == expected


def test_what_is_typed_is_an_action_that_the_world_knows() -> None:
    known: dict[type[Observation], Mapping[str, Mapping[str, type]]] = {
        DialogueObservation: Dialogue.actions,
        RoomObservation: Room.actions,
        SocialObservation: NEEDS,
    }
    for seen, _, action in TYPED:
        if type(seen) in known and action.kind != "DO_NOTHING":
            check_args(action, known[type(seen)][action.kind])


@pytest.mark.parametrize(
    ("seen", "line", "why"),
    [
        (talk(), "/thikn Hm.", "there is no /thikn; did you mean /think?"),
        (talk(), "/xyzzy", "there is no /xyzzy"),
        (talk(), "/think", "some words are missing"),
        (talk(), "/rate 7", "a scene is rated when it is over"),
        (talk(rating=True), "/leave", "the scene is over; /rate it"),
        (talk(rating=True), "It was fine.", "a whole number from 0 to 10"),
        (talk(rating=True), "/rate 11", "a whole number from 0 to 10"),
        (talk(rating=True), "/rate", "a whole number from 0 to 10"),
        (room(), "/to Dora Hello.", "nobody here is called 'Dora': Ben Li, Cy Li"),
        (room(), "/to Li Hello.", "there are several called 'Li'"),
        (room(), "/to Ben", "some words are missing"),
        (feed(), "like", "which post? a number from 1 to 3"),
        (feed(), "like 4", "which post? a number from 1 to 3"),
        (feed(), "like one", "which post?"),
        (feed(), "comment 2", "some words are missing"),
        (feed(), "lick 2", "did you mean like?"),
        (SocialObservation(**HEAD, followed=(), recommended=()), "like 1", "there is none to see"),
        (ViewObservation(**HEAD), "BID 3", "name=value"),
        (ViewObservation(**HEAD), 'BID note="a', "a quotation mark is missing"),
    ],
)
def test_a_mistake_is_explained(seen: Observation, line: str, why: str) -> None:
    with pytest.raises(Mistake) as mistake:
        renderer_for(seen).read(line, seen)
    assert why in str(mistake.value)


# A turn


class Screen:
    """What was written to the terminal."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


async def turns(lines: str, *seen: Observation) -> tuple[list[Decision], str]:
    """What comes of typing this, and what is on the screen then."""
    screen = Screen()
    answer = terminal_answer(lines.splitlines(keepends=True), screen.write)
    return [await answer(observation) for observation in seen], screen.text


async def test_a_turn_is_what_is_typed_until_an_empty_line() -> None:
    decisions, screen = await turns("Hello.\n/think Hm.\n\nBye.\n \n", talk(), talk())
    assert decisions == [
        Decision((Action("SAY", {"content": "Hello."}), Action("THINK", {"content": "Hm."}))),
        Decision((Action("SAY", {"content": "Bye."}),)),
    ]
    assert screen.count("── Ada Roy in w") == 2
    assert screen.count("an empty line ends the turn") == 1
    assert screen.endswith("> ")


async def test_an_empty_line_at_once_is_doing_nothing() -> None:
    assert (await turns("\n", talk()))[0] == [NOTHING]


async def test_mistakes_are_explained_and_asked_again_and_help_is_given() -> None:
    decisions, screen = await turns("like 9\n?\n/help\nlike 1\n\n", feed())
    assert decisions == [Decision((Action("LIKE_POST", {"post_id": 70}),))]
    assert "which post? a number from 1 to 3" in screen
    assert screen.count("comment 3 TEXT") == 2


async def test_after_the_end_of_input_nothing_is_done_and_one_note_says_so() -> None:
    decisions, screen = await turns("Hello.", talk(), talk(), talk())
    assert decisions == [Decision((Action("SAY", {"content": "Hello."}),)), NOTHING, NOTHING]
    assert screen.count(END) == 1
    assert screen.count("── Ada Roy in w") == 1


async def test_no_more_is_taken_than_a_turn_can_hold() -> None:
    decisions, screen = await turns("Hi.\n" * 34 + "\n", talk())
    assert len(decisions[0].actions) == 32
    assert screen.count("32 things are enough") == 2


async def test_two_parts_are_played_one_after_the_other() -> None:
    screen = Screen()
    answer = terminal_answer(["One.\n", "\n", "Two.\n", "\n"], screen.write)
    first, second = await asyncio.gather(answer(talk()), answer(room()))
    assert first == Decision((Action("SAY", {"content": "One."}),))
    assert second == Decision((Action("TALK", {"content": "Two."}),))


async def test_nothing_is_read_before_the_first_question() -> None:
    def lines() -> Iterator[str]:
        raise AssertionError("read too early")
        yield ""

    Terminal(lines(), Screen().write)
    await asyncio.sleep(0)


async def test_others_go_on_while_a_person_thinks_and_waiting_can_be_given_up() -> None:
    asked = asyncio.Event()
    typing = threading.Event()
    loop = asyncio.get_running_loop()

    def lines() -> Iterator[str]:
        loop.call_soon_threadsafe(asked.set)
        typing.wait(timeout=DEADLINE_SECONDS)
        yield "Hello.\n"

    turn = asyncio.ensure_future(Terminal(lines(), Screen().write).answer(talk()))
    await asked.wait()
    assert not turn.done()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    typing.set()


async def test_a_terminal_that_is_gone_is_the_end_of_input() -> None:
    def lines() -> Iterator[str]:
        yield "Hello.\n"
        raise OSError("gone")

    screen = Screen()
    assert await Terminal(lines(), screen.write).answer(talk()) == Decision((Action("SAY", {"content": "Hello."}),))
    assert END in screen.text


# The command

SCENARIO = """\
topic: the old bridge
rounds: 7
population: [{name: Ada Roy, stance: 0.5}, {name: Ben Li, stance: 0.2}]
worlds: {dialogue: {turns: 6}}
"""
TURNS = ("Hello.\n\n", "I trust it.\n/think Hm.\n\n", "Bye.\n\n", "/rate 8 fine\n\n")


def start_playing(folder: Path, *command: str) -> subprocess.Popen[str]:
    """Start the command, which waits for input."""
    (folder / "talk.yaml").write_text(SCENARIO)
    return subprocess.Popen(
        [COMMAND, *command], cwd=folder, env=environment(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def type_lines(folder: Path, text: str, *command: str) -> str:
    """What the command ends with when this is typed."""
    with start_playing(folder, *command) as process:
        out, errors = process.communicate(text, timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, errors
    return str(last_object(out)["digest"])


def lines_in(run: Path, agent: int) -> list[str]:
    with closing(sqlite3.connect(run / "dialogue_simulation.db")) as database:
        rows = database.execute("SELECT content FROM line WHERE agent_id = ? ORDER BY line_id", [agent])
        return [content for (content,) in rows]


def test_a_person_plays_in_the_terminal_and_is_not_asked_again_on_replay(tmp_path: Path) -> None:
    run = ("run", "talk.yaml", "--out", "run", "--play", "Ben Li", "--json")
    digest = type_lines(tmp_path, "".join(TURNS), *run)
    assert lines_in(tmp_path / "run", 1) == ["Hello.", "I trust it.", "Bye."]
    assert len(lines_in(tmp_path / "run", 0)) == 3
    assert type_lines(tmp_path, "", "replay", "run", "--json") == digest


def test_a_person_goes_on_where_they_were_when_it_was_killed(tmp_path: Path) -> None:
    whole = type_lines(tmp_path, "".join(TURNS), "run", "talk.yaml", "--out", "whole", "--play", "Ben Li", "--json")
    with start_playing(tmp_path, "run", "talk.yaml", "--out", "run", "--play", "Ben Li", "--json") as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(TURNS[0])
        process.stdin.flush()
        while "turn 4 of" not in process.stderr.readline():
            assert process.poll() is None
        process.kill()
    assert lines_in(tmp_path / "run", 1) == ["Hello."]
    assert type_lines(tmp_path, "".join(TURNS[1:]), "resume", "run", "--json") == whole
    assert lines_in(tmp_path / "run", 1) == ["Hello.", "I trust it.", "Bye."]


# Standard input


def test_standard_input_is_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.write(writing, "Grüße\nTwo\n".encode() + b"\xff\n")
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert list(keyboard()) == ["Grüße\n", "Two\n", "\ufffd\n"]


def test_a_stand_in_for_standard_input_will_do_and_so_will_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("One\nTwo\n"))
    assert list(keyboard()) == ["One\n", "Two\n"]
    monkeypatch.setattr(sys, "stdin", None)
    assert list(keyboard()) == []


def test_a_process_ends_while_the_terminal_is_still_open() -> None:
    code = """
import asyncio, sys
from tests.cli.test_play import talk
from shoal.cli.play import terminal_answer

async def main():
    answer = terminal_answer()
    print(await answer(talk()))

asyncio.run(main())
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write("Hello.\n\n")
    process.stdin.flush()
    assert "Hello." in process.stdout.readline()
    # Its input is still open, and its thread still reads.
    assert process.wait(timeout=DEADLINE_SECONDS) == 0
    assert "Fatal" not in process.stderr.read()
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()
