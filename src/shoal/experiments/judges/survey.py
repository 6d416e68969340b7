"""Judges by asking the agents of a run, and the share of them that answers one way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shoal.agents import Field, Item, Survey
from shoal.errors import QueryFailed
from shoal.experiments.judges.base import JudgedRun, JudgeFailed, describe_threshold, is_within
from shoal.experiments.judges.models import check_missing, collect_votes, open_judge_models
from shoal.experiments.results import Judgement
from shoal.runs import LimitSettings
from shoal.runs.interviews import MAX_UNBUDGETED, Asking, build_interviews, choose_mind, snapshot_agents
from shoal.scenario import BudgetSettings


@dataclass(frozen=True)
class SurveyJudge:
    """Passes a run in which a share of the agents gives answers that count."""

    name: str
    question: str
    #: The kind of answer: `yes/no`, `a|b|c`, `integer 0-10`.
    kind: Field
    #: The choices that count.
    counts: tuple[str, ...]
    #: Numbers from here on count.
    counts_from: float | None
    at_least: float | None
    at_most: float | None
    asking: Asking
    max_cost: float | None = None

    @property
    def identity(self) -> object:
        """Everything that changes what the judge says."""
        asking = self.asking
        whom = (asking.whom.who, asking.whom.where, asking.whom.sample)
        kind = (self.kind.kind, self.kind.choices, self.kind.low, self.kind.high)
        limits = (self.counts, self.counts_from, self.at_least, self.at_most)
        return ("survey", self.question, kind, *limits, *whom, asking.round, asking.model, asking.iterations)

    def check_number(self, agents: int, limits: LimitSettings) -> str | None:
        """Say what to do where so large a survey of each run has no limit."""
        number = min(agents, self.asking.whom.sample or agents) * self.asking.iterations
        is_limited = self.max_cost is not None or limits.apply_to(BudgetSettings()) != BudgetSettings()
        if number <= MAX_UNBUDGETED or is_limited:
            return None
        return (
            f"this would put {number:,} questions to a model for each run, without a limit; ask fewer (sample: 100), "
            "or say what it may cost (max_cost: 0.5)"
        )

    async def judge(self, run: JudgedRun) -> Judgement:
        """Ask copies of the agents, as they were when the run ended."""
        survey = Survey.of([Item(self.question, (self.kind,))])
        try:
            mind = choose_mind(run.directory, self.asking)
            copies = await snapshot_agents(run.directory, self.asking.whom, self.asking.round, survey.cue)
        except QueryFailed as error:
            raise JudgeFailed(str(error).partition("\n")[0]) from error
        if (wrong := self.check_number(len(copies.respondents), run.resources.limits)) is not None:
            raise JudgeFailed(wrong)
        async with open_judge_models(run, mind, self.max_cost) as model:
            votes = await collect_votes(build_interviews(survey, copies, mind, self.asking.iterations), model)
        answers = [vote.values[self.kind.name] for vote in votes if vote.values is not None]
        counted, missing = sum(map(self._counts, answers)), len(votes) - len(answers)
        # What the share may be, whatever the missing answers are.
        verdicts = {
            is_within(possible / len(votes), self.at_least, self.at_most) for possible in (counted, counted + missing)
        }
        remark = check_missing(votes, len(verdicts) > 1 or not answers)
        share = counted / len(answers)
        passed = is_within(share, self.at_least, self.at_most)
        threshold = describe_threshold(self.at_least, self.at_most)
        reason = f"{counted} of {len(answers)} answers count, {threshold} of them must{remark}"
        return model.charge(Judgement(self.name, passed, share, reason))

    def _counts(self, answer: str | float) -> bool:
        if isinstance(answer, str):
            return answer in self.counts
        return self.counts_from is not None and answer >= self.counts_from


def parse_kind(kind: str) -> Field:
    """Read what kind of answer there is; QueryFailed where it is none that can be counted."""
    field = Field.parse("choice", kind)
    if field.kind == "text":
        raise QueryFailed("answers in words of their own cannot be counted; use yes/no, a|b|c or integer 0-10")
    return field


def find_uncounted(field: Field, counts: Sequence[str], counts_from: float | None) -> str | None:
    """Say what is wrong with the answers that are to count."""
    if field.kind == "choice":
        wrong = [choice for choice in counts if choice not in field.choices]
        return f"{wrong[0]!r} is none of {', '.join(field.choices)}" if wrong else None
    return None if counts_from is not None else "say from which number on answers count: counts_from: 6"
