"""What judges that ask language models have in common: a journal in the run's directory, costs, and outages.

Every answer is written to `judging.jsonl` of the run before it is used, under the digest of its question. So the same
question is paid for once, whichever judge asks it, and a judge that was interrupted goes on where it was.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from shoal.agents import LanguageSettings, Unanswered, ask_survey
from shoal.errors import BudgetReached, ProviderRefused, ProviderUnavailable, RunRefused
from shoal.experiments.judges.base import JudgedRun, JudgeFailed
from shoal.experiments.results import Judgement
from shoal.journal import JournalKey
from shoal.models import Answer, ModelFailed, Question, Remedy, Spent, Stack, Usage
from shoal.runs import storage_errors
from shoal.runs.interviews import InterviewJob, open_interviews
from shoal.unix import try_lock

#: The answers of models to judges, in the directory of the run that they judge.
JUDGING = "judging.jsonl"
_LOCK = "judging.lock"
_LONGEST_WAIT_SECONDS = 0.5


class KeptModel:
    """Asks under the digest of each question, and counts what the answers took, whenever they were given."""

    def __init__(self, inner: Stack) -> None:
        self._inner = inner
        self.spent = Spent()

    async def answer(self, question: Question) -> Answer:
        key = JournalKey("judge", 0, question.digest, "vote")
        answer = await self._inner.answer(msgspec.structs.replace(question, key=key))
        if answer.usage != Usage():
            price = self._inner.spending.price(question.model)
            self.spent.add(answer.usage, None if price is None else price.of(answer.usage))
        return answer

    def charge(self, judgement: Judgement) -> Judgement:
        """Add what the answers took to a judgement."""
        spent = self.spent
        return msgspec.structs.replace(
            judgement, cost=spent.cost, calls=spent.calls, input_tokens=spent.input, output_tokens=spent.output
        )


@dataclass(frozen=True, slots=True)
class Vote:
    """The answer to one question of a judge, or why there is none."""

    values: Mapping[str, Any] | None
    error: str = ""
    #: Whether the question may be answered another time.
    is_pending: bool = False


@asynccontextmanager
async def open_judge_models(run: JudgedRun, mind: LanguageSettings, max_cost: float | None) -> AsyncIterator[KeptModel]:
    """Open the models of a judge for one run. `max_cost`: dollars that judges may have spent on this run in all."""
    limits = run.resources.limits
    if max_cost is not None:
        limits = limits.replace_with(type(limits)(max_cost=max_cost))
    async with _lock_judging(run):
        kept = run.directory.file(JUDGING)
        try:
            async with open_interviews(run.directory, mind, replace(run.resources, limits=limits), kept) as session:
                yield KeptModel(session.model)
        except RunRefused as error:
            raise JudgeFailed(str(error).partition("\n")[0], is_pending=True) from error


async def collect_votes(jobs: Sequence[InterviewJob], model: KeptModel) -> list[Vote]:
    """Ask all questions side by side. One that fails leaves the others as they are."""
    return [*await asyncio.gather(*(_collect_vote(job, model) for job in jobs))]


async def _collect_vote(job: InterviewJob, model: KeptModel) -> Vote:
    try:
        return Vote(await ask_survey(model, job.question, job.form))
    except (Unanswered, ModelFailed) as failure:
        waits = isinstance(failure, ModelFailed) and failure.failure.kind.remedy in (Remedy.WAIT, Remedy.MEND)
        return Vote(None, str(failure).partition("\n")[0], waits)
    except (ProviderRefused, ProviderUnavailable) as outage:
        return Vote(None, str(outage).partition("\n")[0], True)
    except BudgetReached as reached:
        return Vote(None, f"the budget is reached ({reached.setting})", True)


def check_missing(votes: Sequence[Vote], could_turn: bool) -> str:
    """Return a remark on votes that are missing; JudgeFailed where they could turn the judgement.

    Where one of them can still be cast, the judgement is pending.
    """
    missing = [vote for vote in votes if vote.values is None]
    if not missing:
        return ""
    pending = [vote for vote in missing if vote.is_pending]
    first = (pending or missing)[0]
    remark = f"{len(missing)} of {len(votes)} gave no answer: {first.error}"
    if could_turn or pending:
        raise JudgeFailed(remark, is_pending=bool(pending))
    return f"; {remark}"


@asynccontextmanager
async def _lock_judging(run: JudgedRun) -> AsyncIterator[None]:
    """Be the only one who writes answers about this run. The lock ends with the process, however that ends."""
    path = run.directory.file(_LOCK)
    with storage_errors(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        wait = 0.01
        while not try_lock(handle):
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT_SECONDS)
        yield
    finally:
        os.close(handle)
