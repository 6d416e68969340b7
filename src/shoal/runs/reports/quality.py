"""Judges from its directory whether a run can be relied upon: a verdict, and what speaks against it.

Lines and replies are read once each; a later call reads only on. Figures come from the streams of all worlds, from the
journal, and from what people say of themselves in the databases. Nothing is changed, and no model is asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import msgspec

from shoal.agents import LanguageSettings
from shoal.engine import FAILURE, INTERVENTION
from shoal.models.local import WordTable
from shoal.runs.directory import RunDirectory
from shoal.runs.reports.database import open_database
from shoal.runs.reports.language import detect_language
from shoal.runs.store import database_path
from shoal.runs.stream import is_own
from shoal.text import clip
from shoal.types import Action, Event, Notice
from shoal.worlds import DO_NOTHING, TextReader, find_written

#: Actions that only look on.
_LOOKING_ON = frozenset({DO_NOTHING, "REFRESH", "DONE"})
#: Actions whose content names a thing, which many may name in the same words.
_NAMING = frozenset({"ATTEND"})
#: Shorter texts, such as `Yes.`, are repeated all the time.
SHORTEST_REPEATED_CHARS = 20
#: Repetitions are counted among this many texts, the first ones.
MAX_COMPARED_TEXTS = 200_000
#: This many texts are all read for topic, language and opinion; then every second of as many, every third, and so on.
READ_TEXTS = 500
#: The part of the rounds in which it is too early for all to agree, and how many people must have spoken in it.
EARLY_PART = 1 / 3
FEWEST_SPEAKERS = 5
#: The bios of this many people show the language of the scenario.
_MAX_BIOS = 200
_MAX_EXAMPLE_CHARS = 120

_BIOS = "SELECT bio FROM user ORDER BY user_id LIMIT ?"
_NUMBERS = re.compile(r"\d+")
_ASKED_AGAIN = re.compile(rb'\{"key":"([^"]*/decide)/[1-9]')
_FINISH, _CUT_OFF = b'"finish":"', b'"finish":"length"'


class Verdict(StrEnum):
    """Whether a run can be relied upon, from best to worst."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that can be wrong with a run, and from which share on it makes the run doubtful or bad."""

    #: What the share is a share of: a name of `QualityReader._counts`.
    of: str
    #: How a sentence about it goes on after `3 of 40`.
    words: str
    doubtful: float
    #: None where this alone never makes a run bad.
    bad: float | None = None
    #: Among fewer than this many a share means nothing.
    least: int = 5

    def judge(self, count: int, of: int) -> Verdict:
        share = count / of
        if of < self.least or share < self.doubtful:
            return Verdict.GOOD
        return Verdict.BAD if self.bad is not None and share >= self.bad else Verdict.DOUBTFUL


CHECKS: Mapping[str, Check] = {
    "no_turns": Check("rounds", "rounds went by, and nobody had a turn in any of them", 1.0, least=1),
    "turns_lost": Check("turns", "turns were lost to errors and timeouts", 0.02, 0.2, least=1),
    "unusable_replies": Check("replies", "replies of the model could not be used", 0.1, 0.4),
    "cut_off_replies": Check("replies", "replies of the model were cut off", 0.02, 0.2),
    "refused_actions": Check("actions", "actions were refused", 0.1, 0.4),
    "failed_interventions": Check("interventions", "interventions could not be decided upon", 0.01, None, least=1),
    "never_acted": Check("people", "people who had turns only looked on", 0.5, 0.9),
    "repeated_own_texts": Check("texts", "texts repeat word for word what their author wrote before", 0.1, 0.4, 10),
    "repeated_others_texts": Check("texts", "texts repeat word for word what somebody else wrote", 0.2, 0.6, 10),
    "off_topic": Check("texts_read", "texts do not speak of the topic", 0.95, least=20),
    "wrong_language": Check("texts_told", "texts are in a language that the scenario does not use", 0.05, least=10),
    "early_agreement": Check("early_opinions", "opinions in the first third of the run lean one way", 0.95, least=20),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What speaks against a run, and how much of it there is."""

    #: A name of `CHECKS`.
    what: str
    level: Verdict
    count: int
    of: int
    example: str = ""

    def __str__(self) -> str:
        example = f"; for example {self.example}" if self.example else ""
        return f"{self.count:,} of {self.of:,} {CHECKS[self.what].words}{example}"


@dataclass(frozen=True, slots=True)
class Quality:
    """The verdict about a run, with its reasons: the worst of the findings decides."""

    verdict: Verdict
    #: The worst first. Those of the level `good` are remarks.
    findings: tuple[Finding, ...] = ()
    #: The names of checks that cannot tell anything about this run.
    unknown: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[Finding, ...]:
        """The findings that make the run doubtful or bad."""
        return tuple(finding for finding in self.findings if finding.level is not Verdict.GOOD)

    def find_total_loss(self) -> Finding | None:
        """Return the finding about lost turns where there was no other turn."""
        return next((one for one in self.findings if one.what == "turns_lost" and one.count == one.of), None)


def assess_run(directory: RunDirectory, table: WordTable | None = None) -> Quality:
    """Judge a run by what its directory holds now. A complete run was judged when it came to its end."""
    judged = directory.read_state().quality
    return QualityReader(directory, table).assess() if judged is None else msgspec.convert(judged, Quality)


class QualityReader:
    """Judges one run, again and again while it grows."""

    def __init__(self, directory: RunDirectory, table: WordTable | None = None) -> None:
        self._directory = directory
        compare = None if table is None else table.compare
        self._reader = TextReader((), directory.scenario.topic, compare=compare)
        self._streams = {name: directory.open_stream(name) for name in directory.worlds}
        self._journal_offset = 0
        #: Counts by the names of `CHECKS`, and by what these are shares of.
        self._counts: Counter[str] = Counter()
        #: Name of a check, or a reason of refusal -> the first example of it.
        self._examples: dict[str, str] = {}
        self._refusals: Counter[str] = Counter()
        #: The names of agents that had a turn, and the agents that did something in one.
        self._acting: dict[int, str] = {}
        self._acted: set[int] = set()
        #: Hash of world and text -> who wrote it first, and the same with others who wrote it later.
        self._first_authors: dict[int, int] = {}
        self._later_authors: set[tuple[int, int]] = set()
        #: Round -> opinions for and against in the texts of the round, and who voiced any.
        self._leanings: dict[int, tuple[Counter[bool], set[int]]] = {}
        self._texts_seen = 0
        versions = directory.scenario_versions.versions()
        self._has_interventions = any(version.interventions for version in versions)

    def assess(self) -> Quality:
        """Read what was added since the last call, and judge the whole run."""
        reader, expected = self._reader, self._languages
        for world, stream in self._streams.items():
            for event in stream.read() if self._has_interventions else stream.read_actions():
                if isinstance(event, Notice):
                    self._counts["interventions"] += event.event_type in (INTERVENTION, FAILURE)
                    if event.event_type == FAILURE:
                        self._counts["failed_interventions"] += 1
                        self._examples.setdefault("failed_interventions", f"in round {event.round}: {event.content}")
                if not isinstance(event, Event) or not is_own(event):
                    continue
                self._add_event(event)
                if event.success and event.action_type not in _NAMING:
                    text = find_written(Action("", event.action_args))
                    if text:
                        self._compare_text(world, event, text)
                        self._read_text(event, text, reader, expected)
        self._read_journal()
        return self._judge()

    def _judge(self) -> Quality:
        counts, examples = self._counts.copy(), dict(self._examples)
        silent = self._acting.keys() - self._acted
        counts["people"], counts["never_acted"] = len(self._acting), len(silent)
        # Rounds count only where there was no turn in any of them, so otherwise they need not be read.
        counts["rounds"] = 1 if counts["turns"] else max(self._directory.read_last_rounds().values())
        counts["no_turns"] = 0 if counts["turns"] else counts["rounds"]
        counts["early_opinions"], counts["early_agreement"] = self._count_early_opinions()
        if silent:
            examples["never_acted"] = self._acting[min(silent)]
        if self._refusals:
            examples["refused_actions"] = examples[self._refusals.most_common(1)[0][0]]
        found = [
            Finding(what, check.judge(count, counts[check.of]), count, counts[check.of], examples.get(what, ""))
            for what, check in CHECKS.items()
            if (count := counts[what]) and counts[check.of]
        ]
        levels = list(Verdict)
        found.sort(key=lambda finding: levels.index(finding.level), reverse=True)
        unknown = tuple(what for what, check in CHECKS.items() if not counts[check.of])
        return Quality(found[0].level if found else Verdict.GOOD, tuple(found), unknown)

    def _add_event(self, event: Event) -> None:
        counts, kind = self._counts, event.action_type
        if event.id.endswith("-0"):
            counts["turns"] += 1
            self._acting.setdefault(event.agent_id, event.agent_name)
        if event.success:
            counts["actions"] += 1
            if kind not in _LOOKING_ON:
                self._acted.add(event.agent_id)
        elif kind == DO_NOTHING:
            why = event.result or ""
            counts["turns_lost"] += 1
            counts["unusable_replies"] += why.startswith("unusable")
            self._give_example("turns_lost", event, why)
        else:
            counts["actions"] += 1
            counts["refused_actions"] += 1
            # Reasons that differ only in the number of a post are one reason.
            reason = _NUMBERS.sub("#", f"{kind}: {event.result}")
            self._refusals[reason] += 1
            self._give_example(reason, event, f"{kind}: {event.result}")

    def _compare_text(self, world: str, event: Event, text: str) -> None:
        """Count a text that was written before, by the same person or by another one."""
        if len(text) < SHORTEST_REPEATED_CHARS or self._counts["texts"] >= MAX_COMPARED_TEXTS:
            return
        self._counts["texts"] += 1
        agent, written = event.agent_id, hash((world, text))
        if (first := self._first_authors.get(written)) is None:
            self._first_authors[written] = agent
            return
        is_own_text = agent == first or (written, agent) in self._later_authors
        what = "repeated_own_texts" if is_own_text else "repeated_others_texts"
        self._counts[what] += 1
        self._give_example(what, event, text)
        self._later_authors.add((written, agent))

    def _read_text(self, event: Event, text: str, reader: TextReader, expected: frozenset[str]) -> None:
        """Read topic, language and opinion of a text. Of very many texts only a part is read."""
        self._texts_seen += 1
        if self._texts_seen % (1 + self._texts_seen // READ_TEXTS):
            return
        counts = self._counts
        if reader.subject is not None:
            counts["texts_read"] += 1
            if not reader.is_on_topic(text):
                counts["off_topic"] += 1
                self._give_example("off_topic", event, text)
        if expected and (language := detect_language(text)):
            counts["texts_told"] += 1
            if language not in expected:
                counts["wrong_language"] += 1
                self._give_example("wrong_language", event, f"{text} ({language})")
        if slant := reader.slant(text):
            leaning, speakers = self._leanings.setdefault(event.round, (Counter(), set()))
            leaning[slant > 0] += 1
            speakers.add(event.agent_id)

    def _give_example(self, what: str, event: Event, example: str) -> None:
        if what not in self._examples:
            example = clip(" ".join(example.split()), _MAX_EXAMPLE_CHARS)
            self._examples[what] = f"{event.agent_name} in round {event.round}: {example}"

    def _count_early_opinions(self) -> tuple[int, int]:
        """Return how many opinions were voiced early, and how many of them lean the way most do."""
        last = max(round(EARLY_PART * self._directory.scenario.rounds), 1)
        early = [leanings for when, leanings in self._leanings.items() if when <= last]
        total = sum((leaning for leaning, _ in early), Counter[bool]())
        speakers = set[int]().union(*(speakers for _, speakers in early))
        if len(speakers) < FEWEST_SPEAKERS or self._is_agreement_declared:
            return 0, 0
        return total.total(), max(total.values())

    @cached_property
    def _is_agreement_declared(self) -> bool:
        """Whether people began with opinions on one side only."""
        camps = self._directory.read_camps() or {}
        return bool(camps.get("supportive")) != bool(camps.get("opposing"))

    @cached_property
    def _reader(self) -> TextReader:
        return TextReader((), self._directory.scenario.topic)

    @cached_property
    def _languages(self) -> frozenset[str]:
        """The languages of the topic and of what people say about themselves, where they show."""
        directory = self._directory
        with open_database(database_path(directory.path, directory.worlds[0])) as database:
            rows = [] if database is None else database.execute(_BIOS, (_MAX_BIOS,)).fetchall()
        bios = [str(bio) for (bio,) in rows if bio]
        texts = (directory.scenario.topic or "", " ".join(bios), *bios)
        return frozenset(language for text in texts if (language := detect_language(text)))

    def _read_journal(self) -> None:
        """Count replies of models, those that had to be asked for again, and those that were cut off."""
        # No later version of the scenario has another kind of mind.
        if not isinstance(self._directory.scenario_versions.first.mind, LanguageSettings):
            return
        with self._directory.journal.open("rb") as journal:
            journal.seek(self._journal_offset)
            for line in journal:
                if not line.endswith(b"\n"):
                    break
                self._journal_offset += len(line)
                if _FINISH not in line:
                    continue
                self._counts["replies"] += 1
                self._counts["cut_off_replies"] += _CUT_OFF in line
                if again := _ASKED_AGAIN.match(line):
                    self._counts["unusable_replies"] += 1
                    self._examples.setdefault("unusable_replies", f"{again[1].decode()}/0 of the journal")
