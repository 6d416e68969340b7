"""Metrics and judges as declared: the fields `metrics` and `judges` of an experiment, or of a file of judges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, ValidationError

from shoal.agents import LanguageSettings
from shoal.engine import TOPIC
from shoal.errors import QueryFailed, ScenarioInvalid
from shoal.experiments.declared import SECTION, ExperimentPart, locate_problems, read_error
from shoal.experiments.judges.base import Judge, describe_threshold
from shoal.experiments.judges.expression import RUN_FIGURES, ExpressionJudge
from shoal.experiments.judges.function import DEFAULT_FUNCTION, FunctionJudge
from shoal.experiments.judges.judging import Judging
from shoal.experiments.judges.rubric import FIRST_LINES, LAST_LINES, MAX_RUBRIC_CHARS, RubricJudge
from shoal.experiments.judges.survey import SurveyJudge, find_uncounted, parse_kind
from shoal.experiments.metrics import METRICS, Metric, MetricName, define_figure, digest_file, load_own_metrics
from shoal.runs.interviews import AgentSelection, Asking
from shoal.scenario import Problem, UnreadableExpression, read_document, read_text
from shoal.text import hint, join_words

T = TypeVar("T", bound=ExperimentPart)

#: Metrics of which there is a value for each claim.
_ABOUT_CLAIMS = ("claim", "opinion", "post")
#: Every metric that there is.
ALL = "all"
_KINDS = {"expression": "an expression over metrics", "ask": "a survey", "rubric": "a rubric", "file": "a function"}
_Threshold = Annotated[float, Field(allow_inf_nan=False)]


def _read_yes(value: Any) -> Any:
    """Let `yes` and `no`, which YAML takes for true and false, stand for themselves; one choice is a list of one."""
    values = value if isinstance(value, list) else [value]
    return [{True: "yes", False: "no"}[each] if isinstance(each, bool) else each for each in values]


class MetricFile(ExperimentPart):
    """A Python file with metrics of the user's own."""

    file: str
    #: Only these of them.
    names: list[str] = Field(default_factory=list)


class ExpressionSettings(ExperimentPart):
    """An expression over metrics."""

    expression: str


class SurveySettings(ExperimentPart):
    """A question to the agents, and which share of their answers must count."""

    ask: Annotated[str, Field(min_length=1)]
    #: The kind of answer: yes/no, a|b|c, integer 0-10.
    answer: str = "yes/no"
    #: The choices that count.
    counts: Annotated[list[str], BeforeValidator(_read_yes)] = Field(default_factory=lambda: ["yes"])
    #: Numbers from here on count.
    counts_from: _Threshold | None = None
    at_least: Annotated[float, Field(ge=0, le=1)] | None = None
    at_most: Annotated[float, Field(ge=0, le=1)] | None = None
    who: str | list[str | int] | None = None
    where: str | None = None
    sample: Annotated[int, Field(ge=1)] | None = None
    round: Annotated[int, Field(ge=0)] | None = None
    model: str | None = None
    iterations: Annotated[int, Field(ge=1, le=100)] = 1
    max_cost: Annotated[float, Field(gt=0)] | None = None


class RubricSettings(ExperimentPart):
    """A rubric, and the model that scores runs by it."""

    rubric: Annotated[str, Field(min_length=1, max_length=MAX_RUBRIC_CHARS)]
    model: Annotated[str, Field(min_length=1)]
    votes: Annotated[int, Field(ge=1, le=25)] = 3
    at_least: Annotated[float, Field(ge=0, le=9)] = 6.0
    first_lines: Annotated[int, Field(ge=0, le=2000)] = FIRST_LINES
    last_lines: Annotated[int, Field(ge=0, le=2000)] = LAST_LINES
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.7
    base_url: str | None = None
    key_variable: str | None = None
    max_cost: Annotated[float, Field(gt=0)] | None = None


class FunctionSettings(ExperimentPart):
    """A function of a Python file."""

    file: str
    function: str = DEFAULT_FUNCTION
    at_least: _Threshold | None = None
    at_most: _Threshold | None = None


_MODELS: Mapping[str, type[ExperimentPart]] = {
    "expression": ExpressionSettings,
    "ask": SurveySettings,
    "rubric": RubricSettings,
    "file": FunctionSettings,
}


class JudgingReader:
    """Reads declared metrics and judges, and gathers what is wrong with them."""

    def __init__(
        self,
        folder: Path,
        recorded: Iterable[str] = (),
        *,
        is_open: bool = False,
        claims: Collection[str] | None = None,
    ) -> None:
        """`recorded`: figures that runs record beside the usual ones; with `is_open`, there may be others.

        `claims` are all those that metrics can be about; None where that is not known.
        """
        self.problems: list[Problem] = []
        self._folder = folder
        self._known = {**METRICS, **{name: define_figure(name) for name in recorded}}
        self._is_open = is_open
        self._claims = claims
        self._metrics: dict[str, Metric] = {}
        self._files: list[str] = []

    def read(self, metrics: object, judges: object, named: Iterable[tuple[str, tuple[str | int, ...]]] = ()) -> Judging:
        """Read both fields; the problems say what is wrong.

        `named` are metrics that other fields name, each with its place. They are measured, too.
        """
        if not isinstance(metrics, list):
            self.problems.append(Problem.mismatch("a list of metrics, such as [reach, virality]", metrics, "metrics"))
            metrics = []
        if not isinstance(judges, dict):
            example = "names with judges, such as {far: reach > 0.4}"
            self.problems.append(Problem.mismatch(example, judges, "judges"))
            judges = {}
        for number, declared in enumerate(metrics):
            self._read_metric(declared, ("metrics", number))
        for name, place in named:
            self._add_metric(name, place)
        found = [judge for name, declared in judges.items() if (judge := self._read_judge(str(name), declared))]
        return Judging(tuple(self._metrics.values()), tuple(found), tuple(self._files))

    def _read_metric(self, declared: object, place: tuple[str | int, ...]) -> None:
        if isinstance(declared, str):
            if declared == ALL:
                self._metrics.update(METRICS)
            else:
                self._add_metric(declared, place)
            return
        if not isinstance(declared, dict):
            self.problems.append(Problem.mismatch("the name of a metric, or {file: my_metrics.py}", declared, *place))
            return
        settings = self._validate(MetricFile, declared, place)
        if settings is None:
            return
        try:
            path = self._folder / settings.file
            own = {metric.name: metric for metric in load_own_metrics(path, tuple(settings.names))}
            self._files.append(digest_file(path))
        except QueryFailed as error:
            self.problems.append(Problem((*place, "file"), str(error)))
            return
        self._known |= own
        self._metrics |= own

    def _add_metric(self, name: str, place: tuple[str | int, ...]) -> None:
        """Measure a metric that is named; a name that there may be is taken for a figure that runs record."""
        try:
            parsed = MetricName.parse(name)
        except QueryFailed as error:
            self.problems.append(Problem(place, str(error)))
            return
        metric = parsed.metric
        if metric in self._known:
            is_claimed = self._known[metric].about in _ABOUT_CLAIMS and parsed.about not in ("", TOPIC)
            if is_claimed and self._claims is not None and parsed.about not in self._claims:
                self.problems.append(Problem.unknown("claim", parsed.about, self._claims, *place))
            self._metrics[metric] = self._known[metric]
        elif self._is_open:
            self._metrics[metric] = define_figure(metric, hint(metric, self._known))
        else:
            self.problems.append(Problem.unknown("metric", metric, self._known, *place))

    def _read_judge(self, name: str, declared: object) -> Judge | None:
        place = ("judges", name)
        if isinstance(declared, str):
            return self._read_expression(name, declared, place)
        kinds = [kind for kind in _KINDS if isinstance(declared, dict) and kind in declared]
        if not isinstance(declared, dict) or len(kinds) != 1:
            example = "reach > 0.4, or a mapping with one of ask, rubric and file"
            problem = Problem.mismatch(example, declared, *place)
            if isinstance(declared, dict) and declared:
                problem = replace(problem, found=f"a mapping with {join_words(map(str, declared), 3)}")
            self.problems.append(problem)
            return None
        settings: Any = self._validate(_MODELS[kinds[0]], declared, place)
        if settings is None:
            return None
        match settings:
            case ExpressionSettings():
                return self._read_expression(name, settings.expression, (*place, "expression"))
            case SurveySettings():
                return self._read_survey(name, settings, place)
            case RubricSettings():
                mind = LanguageSettings(
                    model=settings.model,
                    base_url=settings.base_url,
                    key_variable=settings.key_variable,
                    temperature=settings.temperature,
                )
                shown = settings.first_lines, settings.last_lines, settings.max_cost
                return RubricJudge(name, settings.rubric, mind, settings.votes, settings.at_least, *shown)
            case _:
                return self._read_function(name, settings, place)

    def _read_expression(self, name: str, expression: str, place: tuple[str | int, ...]) -> Judge | None:
        judge = ExpressionJudge(name, expression)
        try:
            names = judge.names
        except UnreadableExpression as error:
            self.problems.append(Problem(place, str(error)))
            return None
        for each in names:
            if MetricName.parse(each).metric not in RUN_FIGURES:
                self._add_metric(each, place)
        return judge

    def _read_survey(self, name: str, settings: SurveySettings, place: tuple[str | int, ...]) -> Judge | None:
        if not describe_threshold(settings.at_least, settings.at_most):
            self.problems.append(Problem(place, expected="at_least or at_most: the share of answers that must count"))
            return None
        if settings.at_least is not None and settings.at_most is not None and settings.at_least > settings.at_most:
            threshold = describe_threshold(settings.at_least, settings.at_most)
            self.problems.append(Problem((*place, "at_most"), f"no share is {threshold}"))
            return None
        try:
            kind = parse_kind(settings.answer)
        except QueryFailed as error:
            self.problems.append(Problem((*place, "answer"), str(error)))
            return None
        if wrong := find_uncounted(kind, settings.counts, settings.counts_from):
            self.problems.append(Problem((*place, "counts") if "counts" in settings.model_fields_set else place, wrong))
            return None
        who = tuple(settings.who) if isinstance(settings.who, list) else settings.who
        selection = AgentSelection(who, settings.where, settings.sample)
        return SurveyJudge(
            name,
            settings.ask,
            kind,
            tuple(settings.counts),
            settings.counts_from,
            settings.at_least,
            settings.at_most,
            Asking(selection, settings.round, settings.model, settings.iterations),
            settings.max_cost,
        )

    def _read_function(self, name: str, settings: FunctionSettings, place: tuple[str | int, ...]) -> Judge | None:
        judge = FunctionJudge(
            name, self._folder / settings.file, settings.function, settings.at_least, settings.at_most
        )
        try:
            wrong = judge.check()
        except QueryFailed as error:
            wrong = str(error)
        if wrong is not None:
            self.problems.append(Problem((*place, "file"), wrong))
            return None
        return judge

    def _validate(self, model: type[T], declared: object, place: tuple[str | int, ...]) -> T | None:
        try:
            return model.model_validate(declared)
        except ValidationError as error:
            found = read_error(error, model, declared)
            self.problems += [replace(problem, path=(*place, *problem.path)) for problem in found]
            return None


def load_judging(source: str, *, is_open: bool = True) -> Judging:
    """Load metrics and judges from a file, or take an expression: a YAML file with `judges`, or an experiment's.

    ScenarioInvalid holds everything that is wrong with it. With `is_open`, a name may be a figure that runs record.
    """
    path = Path(source)
    if not path.is_file() and path.suffix not in (".yaml", ".yml", ".json"):
        reader = JudgingReader(Path(), is_open=True)
        judging = reader.read([], {"judge": source})
        if reader.problems:
            raise ScenarioInvalid([f"{source!r} is neither a file nor an expression: {reader.problems[0].text}"])
        return judging
    document = read_document(read_text(path), str(path))
    value = document.value if isinstance(document.value, dict) else {}
    is_section = isinstance(value.get(SECTION), dict)
    section = value[SECTION] if is_section else value
    if not section.get("judges") and not section.get("metrics"):
        raise ScenarioInvalid([f"{path}: there are no judges in it; write such as judges: {{far: reach > 0.4}}"])
    reader = JudgingReader(path.parent, is_open=is_open)
    judging = reader.read(section.get("metrics", []), section.get("judges", {}))
    if reader.problems:
        problems = reader.problems
        if is_section:
            raise locate_problems(str(path), document, problems)
        places = [(document.locate(problem), problem) for problem in problems]
        raise ScenarioInvalid([f"{path}:{line}:{column}: {problem}" for (line, column), problem in places])
    return judging
