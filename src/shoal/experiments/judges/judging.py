"""Measures and judges runs that have ended, each once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec

from shoal.agents import LanguageSettings
from shoal.errors import QueryFailed, ShoalError
from shoal.experiments.judges.base import Judge, JudgedRun, JudgeFailed
from shoal.experiments.judges.rubric import RubricJudge
from shoal.experiments.judges.survey import SurveyJudge
from shoal.experiments.metrics import Metric, measure_run
from shoal.experiments.results import Judgement, RunResult
from shoal.journal import digest
from shoal.runs import RunDirectory, RunResources, Status, find_endpoints
from shoal.runs.interviews import AgentSelection
from shoal.scenario import Scenario, count_people

#: Runs that are judged by models side by side: a survey needs the whole run in memory.
_AT_ONCE = 4


@dataclass(frozen=True)
class Judging:
    """What is measured of each run, and who judges it."""

    metrics: tuple[Metric, ...] = ()
    judges: tuple[Judge, ...] = ()
    #: Identify the files of metrics.
    files: tuple[str, ...] = ()
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE), compare=False)

    @cached_property
    def digest(self) -> str:
        """Identifies the metrics and the judges: what they say depends on it and on the run alone."""
        judges = [(judge.name, judge.identity) for judge in self.judges]
        return digest(([metric.name for metric in self.metrics], self.files, judges))[:16]

    def is_current(self, result: RunResult) -> bool:
        """Return whether a result was judged like this, and no judgement of it is pending."""
        return result.judging == self.digest and not any(each.is_pending for each in result.judgements)

    def holds(self, before: RunResult, result: RunResult) -> bool:
        """Return whether what was said of a run before is still said of it."""
        return (before.digest, before.status) == (result.digest, result.status) and self.is_current(before)

    def check_models(self, resources: RunResources, scenario: Scenario | None = None) -> None:
        """Refuse judges whose models cannot be asked, such as for want of a key; `scenario` is that of the runs."""
        for judge in self.judges:
            if isinstance(judge, RubricJudge):
                find_endpoints(judge.mind, resources.environ)
            if isinstance(judge, SurveyJudge):
                if judge.asking.model is not None:
                    find_endpoints(LanguageSettings(model=judge.asking.model), resources.environ)
                elif scenario is not None and not isinstance(scenario.mind, LanguageSettings):
                    raise QueryFailed(
                        f"judge {judge.name}: the agents have no language model to answer with; name one that answers "
                        "in their name: model: openai/gpt-4.1-mini"
                    )
                if scenario is not None and judge.asking.whom == AgentSelection(sample=judge.asking.whom.sample):
                    wrong = judge.check_number(count_people(scenario.population), resources.limits)
                    if wrong is not None:
                        raise QueryFailed(f"judge {judge.name}: {wrong}")

    async def judge(self, result: RunResult, resources: RunResources) -> RunResult:
        """Measure and judge a run that has ended.

        A run that failed has not passed: what it took was spent all the same, and an arm that breaks must not look
        better than one that ends. A run that was stopped is not judged, as it goes on.
        """
        if result.status == Status.FAILED:
            reason = f"the run failed: {result.error or 'nothing says why'}".partition("\n")[0]
            failed = tuple(Judgement(judge.name, False, None, reason) for judge in self.judges)
            return msgspec.structs.replace(result, judgements=failed, judging=self.digest)
        if result.status != Status.COMPLETED or not (self.metrics or self.judges):
            return msgspec.structs.replace(result, judgements=(), judging=self.digest)
        directory = RunDirectory(Path(result.run))
        found = await asyncio.to_thread(measure_run, directory, self.metrics)
        metrics = {**result.metrics, **found.values}
        # What the run took, as expressions name it. A cost that is not known is left out.
        used = ("cost", "calls", "input_tokens", "output_tokens", "seconds")
        figures = {name: float(value) for name in used if (value := getattr(result, name)) is not None}
        run = JudgedRun(directory, {**figures, **metrics}, found.missing, resources)
        judgements = tuple([await self._ask(judge, run) for judge in self.judges])
        return msgspec.structs.replace(
            result, metrics=metrics, unmeasured=found.missing, judgements=judgements, judging=self.digest
        )

    async def _ask(self, judge: Judge, run: JudgedRun) -> Judgement:
        try:
            if not isinstance(judge, SurveyJudge | RubricJudge):
                return await judge.judge(run)
            async with self._turns:
                return await judge.judge(run)
        except JudgeFailed as failure:
            return Judgement(judge.name, None, None, error=str(failure), is_pending=failure.is_pending)
        except ShoalError as error:
            return Judgement(judge.name, None, None, error=str(error).partition("\n")[0], is_pending=True)
