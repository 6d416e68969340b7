"""The quality verdict finds what is wrong with a run, and nothing wrong with a sound one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.errors import EveryTurnFailed
from shoal.journal import JournalKey, JournalLine, write_lines
from shoal.runs.directory import RunDirectory
from shoal.runs.reports import CHECKS, Finding, Verdict, assess_run
from shoal.runs.reports.quality import QualityReader
from shoal.runs.state import Status
from shoal.types import Action, Decision, Mind, Observation
from tests.engine.harness import village
from tests.runs.harness import go_on, start

PEOPLE = [f"Person {letter}" for letter in "ABCDEFGHIJ"]
AWAKE = {"activity": 1.0, "active_hours": "0-23"}
TOPIC = "closing the old bridge"


class FlakyMind(Mind):
    """Fails in the turns of the first agents, as many as its settings say; the others search."""

    def decide(self, observation: Observation) -> Decision:
        if observation.agent < self.settings["failing"]:
            raise ConnectionError("nobody answers")
        return Decision((Action("SEARCH_POSTS", {"query": "bridge"}),))


def run_with_failures(folder: Path, failing: int) -> RunDirectory:
    mind = {"kind": f"{__name__}:FlakyMind", "settings": {"failing": failing}}
    start({**village(PEOPLE, rounds=2), "mind": mind}, folder)
    return RunDirectory(folder)


def run_script(
    folder: Path, texts: Sequence[str], rounds: int = 4, people: Sequence[str] = PEOPLE, **more: Any
) -> RunDirectory:
    """Let people post texts in turn, one in each round each."""
    turns = [
        {"round": 1 + n // len(people), "agent": who, "action": "CREATE_POST", "args": {"content": text}}
        for n, (who, text) in enumerate(zip(cycle(people), texts, strict=False))
    ]
    scenario = village(list(people), rounds=rounds, mind={"kind": "scripted", "turns": turns})
    start({**scenario, "topic": TOPIC, **more}, folder)
    return RunDirectory(folder)


def find(directory: RunDirectory, what: str) -> Finding:
    return next(finding for finding in assess_run(directory).findings if finding.what == what)


def test_a_sound_run_is_good(tmp_path: Path) -> None:
    texts = [
        f"{name} thinks that the old bridge is {'fine' if n % 2 else 'a mistake'}." for n, name in enumerate(PEOPLE)
    ]
    quality = assess_run(run_script(tmp_path / "run", texts))
    assert (quality.verdict, quality.reasons) == (Verdict.GOOD, ())


@pytest.mark.parametrize(("failing", "level"), [(1, Verdict.DOUBTFUL), (3, Verdict.BAD)])
def test_lost_turns_are_counted_with_an_example(failing: int, level: Verdict, tmp_path: Path) -> None:
    found = find(run_with_failures(tmp_path / "run", failing), "turns_lost")
    assert (found.level, found.count, found.of) == (level, 2 * failing, 20)
    assert "in round 1: error: ConnectionError: nobody answers" in found.example


def test_a_run_in_which_every_turn_failed_has_failed(tmp_path: Path) -> None:
    with pytest.raises(EveryTurnFailed, match="all 20 turns of the run failed, for example Person"):
        run_with_failures(tmp_path / "run", len(PEOPLE))
    directory = RunDirectory(tmp_path / "run")
    assert directory.read_status() is Status.FAILED
    assert assess_run(directory).verdict is Verdict.BAD
    with pytest.raises(EveryTurnFailed):
        go_on(directory)


def test_refused_actions_are_grouped_by_their_reason(tmp_path: Path) -> None:
    likes = [
        {"round": 1, "agent": name, "action": "LIKE_POST", "args": {"post_id": 900 + n}}
        for n, name in enumerate(PEOPLE)
    ]
    start(village(PEOPLE, rounds=1, mind={"kind": "scripted", "turns": likes}), tmp_path / "run")
    found = find(RunDirectory(tmp_path / "run"), "refused_actions")
    assert (found.level, found.count, found.of) == (Verdict.BAD, 10, 10)
    assert "LIKE_POST" in found.example


def test_people_who_only_look_on_are_counted(tmp_path: Path) -> None:
    found = find(run_script(tmp_path / "run", ["The old bridge should stay open."]), "never_acted")
    assert (found.level, found.count, found.of) == (Verdict.BAD, 9, 10)


def test_texts_repeated_by_their_author_and_by_others_are_told_apart(tmp_path: Path) -> None:
    own = run_script(tmp_path / "own", [f"{name} says that the old bridge is fine." for name in PEOPLE] * 2)
    assert (find(own, "repeated_own_texts").count, find(own, "repeated_own_texts").of) == (10, 20)
    assert find(own, "repeated_own_texts").level is Verdict.BAD
    others = run_script(tmp_path / "others", ["Everybody says that the old bridge is fine."] * 10)
    assert (find(others, "repeated_others_texts").count, find(others, "repeated_others_texts").of) == (9, 10)
    assert "Everybody says" in find(others, "repeated_others_texts").example


def test_short_words_may_be_repeated(tmp_path: Path) -> None:
    quality = assess_run(run_script(tmp_path / "run", ["Yes."] * 20))
    assert "repeated_own_texts" in quality.unknown


def test_talk_about_something_else_is_off_topic(tmp_path: Path) -> None:
    found = find(
        run_script(tmp_path / "run", [f"My {n} cats have had their breakfast." for n in range(20)]), "off_topic"
    )
    assert (found.level, found.count, found.of) == (Verdict.DOUBTFUL, 20, 20)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Ich finde, dass wir das nicht mit Gewalt lösen, und der Rest ist auch egal, old bridge {}", "German"),
        ("我认为这座旧桥应该继续开放 {}", "Chinese or Japanese"),
    ],
)
def test_another_language_than_that_of_topic_and_people_is_noticed(text: str, language: str, tmp_path: Path) -> None:
    people = [{**AWAKE, "name": name, "bio": "A nurse who lives with the noise of the bridge."} for name in PEOPLE]
    directory = run_script(tmp_path / "run", [text.format(n) for n in range(10)], population=people)
    found = find(directory, "wrong_language")
    assert (found.level, found.count, found.of) == (Verdict.DOUBTFUL, 10, 10)
    assert found.example.endswith(f"({language})")


def test_the_language_is_unknown_where_people_say_too_little(tmp_path: Path) -> None:
    people = [{**AWAKE, "name": name, "bio": "Nurse"} for name in PEOPLE]
    directory = run_script(tmp_path / "run", ["Das ist nicht der Weg, und das ist gut."], population=people)
    assert "wrong_language" in assess_run(directory).unknown


def test_everybody_of_one_opinion_in_the_first_third_is_too_early(tmp_path: Path) -> None:
    texts = [f"I trust and support the old bridge, says number {n}." for n in range(20)]
    people = [{**AWAKE, "name": name, "stance": 0.8 if n % 2 else -0.8} for n, name in enumerate(PEOPLE)]
    directory = run_script(tmp_path / "run", texts, rounds=6, population=people)
    found = find(directory, "early_agreement")
    assert (found.level, found.count, found.of) == (Verdict.DOUBTFUL, 20, 20)


def test_people_who_began_on_one_side_may_agree(tmp_path: Path) -> None:
    texts = [f"I trust and support the old bridge, says number {n}." for n in range(20)]
    people = [{**AWAKE, "name": name, "stance": 0.8} for name in PEOPLE]
    directory = run_script(tmp_path / "run", texts, rounds=6, population=people)
    assert "early_agreement" in assess_run(directory).unknown


def test_replies_asked_for_again_and_cut_off_are_counted_from_the_journal(tmp_path: Path) -> None:
    """The history is that of other minds; the journal is as language minds leave it."""
    directory = run_script(tmp_path / "run", ["The old bridge should stay open."])
    directory.journal.unlink()
    lines = [
        JournalLine(JournalKey("twitter", 1, agent, "decide", n), "", reply={"text": "{}", "finish": finish})
        for agent in range(10)
        for n, finish in ((0, "length" if agent < 5 else "stop"), (1, "stop"))
        if n == 0 or agent < 3
    ]
    write_lines(directory.journal, lines)
    path = directory.file("simulation_config.json")
    config = msgspec.json.decode(path.read_bytes())
    config["scenario"]["mind"] = {"kind": "language", "model": "openai/gpt-4.1-mini"}
    path.write_bytes(msgspec.json.encode(config))
    found = {one.what: one for one in QualityReader(RunDirectory(directory.path)).assess().findings}
    assert (found["unusable_replies"].count, found["unusable_replies"].of) == (3, 13)
    assert found["unusable_replies"].example == "twitter/1/0/decide/0 of the journal"
    assert (found["cut_off_replies"].count, found["cut_off_replies"].level) == (5, Verdict.BAD)


def test_a_reader_that_goes_on_finds_what_a_new_one_finds(tmp_path: Path) -> None:
    directory = run_script(tmp_path / "run", ["The old bridge should stay open."] * 12)
    reader = QualityReader(directory)
    assert reader.assess() == reader.assess() == QualityReader(directory).assess()


def test_a_run_without_a_round_is_not_judged(tmp_path: Path) -> None:
    directory = RunDirectory.create(
        tmp_path / "run", run_script(tmp_path / "other", ["Hello, old bridge."]).scenario_versions, []
    )
    assert assess_run(directory).unknown == tuple(CHECKS)


def test_a_run_in_which_nobody_had_a_turn_is_doubtful(tmp_path: Path) -> None:
    asleep = {"population": [{"name": "Ada", "active_hours": "20-22"}], "worlds": ["twitter"], "rounds": 3}
    outcome = start({**asleep, "time": {"start": "2026-03-02T01:00"}}, tmp_path / "run")
    quality = assess_run(RunDirectory(tmp_path / "run"))
    assert (outcome.actions, quality.verdict) == (0, Verdict.DOUBTFUL)
    assert [str(reason) for reason in quality.reasons] == [
        "3 of 3 rounds went by, and nobody had a turn in any of them"
    ]
