"""Asks again for turns that a run lost to an outage, as runs of older versions did.

The history changes from the first such round on. So what was written is moved to `archive/N/`, and the run is repeated
from its journal: replies whose request is still the same cost nothing, and the others are asked for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from shoal.journal import BACKGROUND_PURPOSES, OUTCOME, JournalKey, read_journal, write_lines
from shoal.models import FailureKind, Remedy
from shoal.runs.directory import RunDirectory
from shoal.runs.files import storage_errors

#: Kinds of failures that would pause or stop a run today, or be compared with other questions first.
_RETRIED = frozenset(kind.value for kind in FailureKind if kind.remedy is not Remedy.ACCEPT)


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """The turns of a run that are asked for again."""

    run: RunDirectory
    #: Keys of the recorded failures.
    lost: frozenset[str]
    #: The first round that may change.
    first_round: int
    #: World -> the last round that stays as it is.
    kept: dict[str, int]


def plan_retry(run: RunDirectory) -> RetryPlan | None:
    """Find the turns that a run lost to outages; None if there are none."""
    lost = []
    for line in read_journal(run.journal)[0]:
        if line.outcome is not None:
            purpose = JournalKey.parse(line.key).purpose
            is_asked = purpose == OUTCOME or purpose in BACKGROUND_PURPOSES
            if is_asked and (line.reason or "").partition(": ")[0] in _RETRIED:
                lost.append(line)
    if not lost:
        return None
    first = min(line.round for line in lost)
    done = {world: min(round, first - 1) for world, round in run.read_last_rounds().items()}
    return RetryPlan(run, frozenset(line.key for line in lost), first, done)


def archive_failed(plan: RetryPlan) -> Path:
    """Archive what was written, and forget the lost turns; `work_on_run` then asks for them. Return the archive.

    A run that is killed here is repeated from whichever journal it has, so each step may be the last one.
    """
    run = plan.run
    with run.lock(), storage_errors(run.path):
        archive = run.archive()
        lines = []
        for line in read_journal(run.journal)[0]:
            if line.key in plan.lost:
                continue
            # A reply from the first changed round on answers only the same request.
            is_reply = line.event is None and line.round >= plan.first_round
            lines.append(msgspec.structs.replace(line, conditional=True) if is_reply else line)
        written = run.journal.with_name(f".{run.journal.name}.{os.getpid()}")
        written.unlink(missing_ok=True)
        write_lines(written, lines)
        written.replace(run.journal)
    return archive
