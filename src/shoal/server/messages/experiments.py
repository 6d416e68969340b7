"""Plans, experiments, and comparisons of runs."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from shoal.server.messages.base import RequestModel

#: The text of a YAML file. What may be in one is limited by the size of a request, too.
ScenarioText = Annotated[str, Field(max_length=4_000_000)]
ExperimentName = Annotated[str, Field(min_length=1, max_length=100, description="The name of an experiment's folder.")]
Count = Annotated[int, Field(strict=False, ge=1, le=10_000)]
Interval = tuple[float | None, float | None] | None


# Plans


class PlanRequest(RequestModel):
    """A scenario as the text of its file. One with a section `experiment` is planned as an experiment."""

    text: ScenarioText
    #: As if this language model decided.
    model: Annotated[str, Field(max_length=200)] | None = None


class PlannedPart(BaseModel):
    """What one model is asked in one world, or one arm of an experiment takes."""

    name: str
    model: str | None
    runs: int
    calls: int
    cost: float | None


class PlanAnswer(BaseModel):
    """What a run or an experiment will probably take. Nothing was asked or spent to find out."""

    kind: str
    name: str
    people: int
    rounds: int
    worlds: list[str]
    #: Runs of an experiment, and how many of them side by side.
    runs: int
    side_by_side: int
    calls: int
    least_calls: int
    tokens: int
    #: Dollars; None where the price of a model is not known. `cost_most`: where nothing is cached.
    cost: float | None
    cost_most: float | None
    #: None where it cannot be known before.
    seconds: float | None
    calls_at_once: int
    #: Whether no language model is asked.
    is_free: bool
    unpriced: list[str]
    #: Limits of the budget that will be reached before the end.
    short: list[str]
    notes: list[str]
    parts: list[PlannedPart]


# Experiments


class ExperimentLimits(RequestModel):
    """How an experiment runs."""

    parallel: Count | None = None
    max_simulations: Count | None = None
    max_cost: Annotated[float, Field(strict=False, gt=0, le=1e9)] | None = None
    max_calls: Annotated[int, Field(strict=False, ge=1)] | None = None
    max_hours: Annotated[float, Field(strict=False, gt=0, le=1e6)] | None = None
    retry_failed: bool = False


class ExperimentStart(ExperimentLimits):
    """A scenario with a section `experiment`, as the text of its file."""

    text: ScenarioText


class ExperimentInfo(BaseModel):
    """One experiment in a list."""

    name: str
    title: str
    topic: str
    #: `running`, `completed`, `stopped` or `interrupted`.
    status: str
    reason: str | None
    runs: int
    ended: int
    failed: int
    passed: int
    judged: int
    cost: float | None
    tiers: int
    arms: int
    made_at: str
    updated_at: str


class ArmInfo(BaseModel):
    """One arm and all its runs."""

    tier: str
    arm: str
    is_control: bool
    changes: dict[str, Any]
    runs: int
    ended: int
    running: int
    failed: int
    stopped: int
    passed: int
    judged: int
    cost: float | None
    calls: int
    #: What it waits for, or why it goes on no more.
    note: str
    seeds: list[int]
    #: A letter for each seed: w(aiting), r(unning), p(assed), n(ot passed), c(ompleted, not judged), f(ailed),
    #: s(topped), i(nterrupted), x (left out).
    marks: str


class TierInfo(BaseModel):
    name: str
    control: str | None
    inherits: dict[str, Any] | None
    #: The arm that it starts from, once that is known.
    start: str | None
    arms: list[ArmInfo]


class LimitView(BaseModel):
    """How many calls at once a server is asked, of how many it bears as far as that is known."""

    name: str
    held: int
    waiting: int
    size: float | None


class ExperimentAnswer(ExperimentInfo):
    """How far an experiment is, run by run."""

    worlds: list[str]
    rounds: int | None
    #: Dollars of all runs, if those that are left cost what others did.
    expected_cost: float | None
    max_cost: float | None
    calls: int
    hours: float
    seconds_left: float | None
    notes: list[str]
    stops: list[dict[str, Any]]
    skipped: dict[str, str]
    spent: dict[str, str]
    #: Goes on with it in a terminal.
    command: str
    limits: list[LimitView]
    tier_list: list[TierInfo]


class SentencePart(BaseModel):
    text: str
    is_strong: bool


class MetricAnswer(BaseModel):
    mean: float | None
    mean_interval: Interval
    runs: int


class EffectAnswer(BaseModel):
    """An effect against the control of the tier, paired by seed."""

    seeds: int
    difference: float | None
    difference_interval: Interval
    standardised: float | None
    p: float | None
    corrected_p: float | None
    #: The corrected p in words.
    corrected: str
    #: Whether it is beyond chance.
    is_found: bool
    test: str


class JudgeAnswer(BaseModel):
    passed: int
    not_passed: int
    failed: int
    mean_score: float | None


class ReportArm(BaseModel):
    arm: str
    is_control: bool
    changes: dict[str, Any]
    runs: int
    completed: int
    failed: int
    stopped: int
    judged: int
    passed: int
    pass_rate: float | None
    pass_rate_interval: Interval
    cost: float | None
    calls: int
    tokens: int
    seconds: float
    mean_cost: float | None
    mean_cost_interval: Interval
    #: None beside an interval: infinite, as no run passed.
    cost_of_pass: float | None
    cost_of_pass_interval: Interval
    judges: dict[str, JudgeAnswer]
    metrics: dict[str, MetricAnswer]
    effects: dict[str, EffectAnswer]
    #: Whether no other arm of its tier costs less and passes more.
    is_on_front: bool


class ReportTier(BaseModel):
    tier: str
    control: str | None
    best_arm: str | None
    power: str | None
    arms: list[ReportArm]


class ReproducingCommand(BaseModel):
    command: str
    what: str


class LostRun(BaseModel):
    run: str
    status: str
    error: str | None


class ExperimentReportAnswer(BaseModel):
    """All figures of an experiment, as `report.json` has them at every level."""

    experiment: str
    #: What was found, the answer first.
    sentences: list[list[SentencePart]]
    #: What to know before believing it.
    notes: list[str]
    outcome: str | None
    outcome_name: str | None
    outcome_reason: str
    metrics: list[str]
    formulas: dict[str, str]
    methods: list[str]
    commands: list[ReproducingCommand]
    best_arm: str | None
    cost_of_pass: float | None
    cost_of_pass_interval: Interval
    runs: int
    completed: int
    judged: int
    passed: int
    tiers: list[ReportTier]
    lost: list[LostRun]


class BandAnswer(BaseModel):
    """The mean of a metric over the runs of an arm, round by round, with its 95 % interval."""

    arm: str
    runs: int
    rounds: list[int]
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


class CurvesAnswer(BaseModel):
    tier: str
    #: How many runs of each arm the curves are of, where not of all.
    sampled: int | None
    metrics: dict[str, list[BandAnswer]]


# Comparisons of two runs


class ComparedRun(BaseModel):
    id: str
    name: str
    status: str
    last_round: int


class DeclaredChange(BaseModel):
    """A field of the scenario in which two runs differ from a round on, or an event injected into one of them."""

    path: str
    since: int
    one: Any
    other: Any


class ChangeSide(BaseModel):
    """What was done, seen or decided in one of the two runs."""

    title: str
    text: str


class ChangeInRound(BaseModel):
    """What is not the same in the first round that differs; a side is None where it is missing."""

    what: str
    agent: int | None
    name: str | None
    one: ChangeSide | None
    other: ChangeSide | None


class FirstDifference(BaseModel):
    round: int
    time: str
    changes: list[ChangeInRound]
    #: How many there are, listed or not.
    count: int


class RoundChange(BaseModel):
    """How many people acted in each run, saw something different, acted differently, and did so for the first time."""

    round: int
    acting: tuple[int, int]
    saw: int
    acted: int
    reached: int


class ReachedPerson(BaseModel):
    """A person who acted differently for the first time, and what led to it."""

    agent: int
    name: str
    round: int
    how: str
    via: int | None
    depth: int


class FigurePair(BaseModel):
    name: str
    about: str
    one: float | None
    other: float | None


class WorldComparison(BaseModel):
    world: str
    #: Rounds that were compared, and how many each run has.
    rounds: int
    has: tuple[int, int]
    first: FirstDifference | None
    by_round: list[RoundChange]
    reached: list[ReachedPerson]
    reached_count: int
    deepest: list[str]
    saw_differently: int
    acted_differently: int
    figures: list[FigurePair]


class ComparisonAnswer(BaseModel):
    one: ComparedRun
    other: ComparedRun
    people: int
    is_same: bool
    declared: list[DeclaredChange]
    declared_count: int
    worlds: list[WorldComparison]
    only_one: list[str]
    only_other: list[str]
