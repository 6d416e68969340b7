"""The report as a model writes it: every sentence keeps its evidence, or is left out."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.agents import UnusableAnswer
from shoal.models import Answer
from shoal.python.rehearsal import rehearse
from shoal.runs import RunDirectory, RunResources
from shoal.runs.narrative import NarrativeStatement, render_html, render_markdown, tell_run, write_narrative
from shoal.runs.narrative.writer import SectionForm, WrittenSection
from shoal.sinks import FoundEpisode
from tests.runs.harness import start
from tests.runs.narrative.test_narrative import RUMOUR

FINDINGS = (
    NarrativeStatement("The mean belief rose from +0.10 to +0.35.", (), ("twitter: mean of closing, rounds 0 to 24",)),
    NarrativeStatement("3 people moved towards posts of Ada by 0.42 in all.", ("twitter-4-1-0", "twitter-6-2-0")),
)
EVIDENCE = {
    id: FoundEpisode(id, "twitter", round, "t", f"Ben liked a post of Ada in {round}.")
    for id, round in (("twitter-4-1-0", 4), ("twitter-6-2-0", 6))
}


def read(*sentences: Any) -> WrittenSection:
    content = msgspec.json.encode({"sentences": sentences}).decode()
    return SectionForm(FINDINGS, EVIDENCE).read(Answer(content))


def test_a_sentence_keeps_the_evidence_of_all_findings_that_it_names() -> None:
    written = read({"text": "Belief rose to 0.35, and 3 people followed Ada.", "findings": [1, 2]})
    (statement,) = written.statements
    assert statement.events == ("twitter-4-1-0", "twitter-6-2-0")
    assert statement.figures == FINDINGS[0].figures
    assert written.dropped == 0


@pytest.mark.parametrize(
    "sentence",
    [
        {"text": "Everybody was happy.", "findings": []},
        {"text": "Everybody was happy.", "findings": [3]},
        {"text": "Everybody was happy.", "findings": [0, 1]},
        {"text": "Everybody was happy.", "findings": [True]},
        {"text": "Belief rose to 0.95.", "findings": [1]},
        {"text": "3 people moved.", "findings": [1]},
        {"text": "  ", "findings": [1]},
        {"text": 7, "findings": [1]},
        {"findings": [1]},
        "Belief rose.",
    ],
)
def test_a_sentence_without_valid_evidence_is_left_out_and_counted(sentence: object) -> None:
    written = read(sentence, {"text": "Belief rose.", "findings": [1]})
    assert [each.text for each in written.statements] == ["Belief rose."]
    assert written.dropped == 1


def test_a_number_may_come_from_what_shows_a_finding() -> None:
    assert read({"text": "In round 6 Ben liked it.", "findings": [2]}).dropped == 0


@pytest.mark.parametrize("content", ["", "{}", '{"sentences": []}', '{"sentences": "Belief rose."}'])
def test_a_reply_without_sentences_is_asked_for_again(content: str) -> None:
    with pytest.raises(UnusableAnswer):
        SectionForm(FINDINGS, EVIDENCE).read(Answer(content))


def test_a_report_that_a_model_wrote_says_so_and_has_only_evidence_that_is_there(tmp_path: Path) -> None:
    start({**RUMOUR, "rounds": 12}, tmp_path / "run")
    run = RunDirectory.open(tmp_path / "run")
    plain = tell_run(run)
    with rehearse(seed=3):
        resources = RunResources(environ=dict(os.environ))
        written = asyncio.run(write_narrative(plain, run, "openai/gpt-4.1-mini", resources))
    assert [section.heading for section in written.sections] == [section.heading for section in plain.sections]
    note = written.sections[-1].statements[0].text
    assert note.startswith("Written by openai/gpt-4.1-mini from the findings of a plain report: ")
    assert "without valid evidence left out" in note
    named = {event for section in written.sections for each in section.statements for event in each.events}
    assert named <= plain.evidence.keys()
    assert "Written by openai" in render_html(written)
    assert "Written by openai" in render_markdown(written)


def test_without_an_answer_the_report_stays_plain_and_says_why(tmp_path: Path) -> None:
    start({**RUMOUR, "rounds": 10}, tmp_path / "run")
    run = RunDirectory.open(tmp_path / "run")
    plain = tell_run(run)
    with rehearse(seed=3, refused=1.0):
        resources = RunResources(environ=dict(os.environ))
        written = asyncio.run(write_narrative(plain, run, "openai/gpt-4.1-mini", resources))
    assert [each.statements for each in written.sections[:-1]] == [each.statements for each in plain.sections[:-1]]
    assert "as in the plain report (the model refused" in written.sections[-1].statements[0].text
