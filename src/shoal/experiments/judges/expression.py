"""Judges by an expression over metrics, such as `reach > 0.4 and polarisation < 0.3`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from shoal.experiments.judges.base import JudgedRun, JudgeFailed
from shoal.experiments.metrics import MetricName, find_value
from shoal.experiments.results import Judgement
from shoal.scenario import ExpressionCompiler, UnreadableExpression, parse_expression

_Values = Mapping[str, float]
_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
#: What an expression may name beside metrics: what the run took.
RUN_FIGURES = ("cost", "calls", "input_tokens", "output_tokens", "seconds")


class _MetricCompiler(ExpressionCompiler[_Values]):
    """Compiles expressions about the values of metrics: numbers, arithmetic, and metrics by their names."""

    example: ClassVar[str] = ": reach > 0.4"

    def __init__(self) -> None:
        #: The metrics that the expression names, each as `world.metric(about)`.
        self.names: dict[str, None] = {}

    def compile_value(self, part: ast.expr) -> Callable[[_Values], Any]:
        match part:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return lambda values: number
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.compile_value(operand)
                return lambda values: -inner(values)
            case ast.BinOp(op=op) if type(op) in _OPERATORS:
                left, right, apply = self.compile_value(part.left), self.compile_value(part.right), _OPERATORS[type(op)]
                return lambda values: apply(left(values), right(values))
        name = _read_name(part)
        if name is None:
            raise UnreadableExpression(
                f"{ast.unparse(part)!r} is neither a number nor a metric; write metrics as reach, reach(rumour) or "
                "twitter.reach(rumour)"
            )
        text = str(name)
        self.names[text] = None
        return lambda values: values[text]


def _read_name(part: ast.expr) -> MetricName | None:
    """Read a metric: a name, an attribute of a world, or either with what it is about in brackets."""
    about = ""
    if isinstance(part, ast.Call) and len(part.args) == 1 and not part.keywords:
        match part.args[0]:
            case ast.Name(id=about) | ast.Constant(value=str() as about):
                part = part.func
            case _:
                return None
    match part:
        case ast.Name(id=metric):
            return MetricName(metric, about)
        case ast.Attribute(value=ast.Name(id=world), attr=metric):
            return MetricName(metric, about, world)
    return None


@dataclass(frozen=True)
class ExpressionJudge:
    """Passes a run for which an expression over its metrics holds."""

    name: str
    expression: str

    @property
    def identity(self) -> object:
        return self.expression

    @cached_property
    def _compiled(self) -> tuple[Callable[[_Values], bool], tuple[str, ...]]:
        compiler = _MetricCompiler()
        holds = compiler.compile(parse_expression(self.expression))
        return holds, tuple(compiler.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics that it names; UnreadableExpression where it cannot be read."""
        return self._compiled[1]

    async def judge(self, run: JudgedRun) -> Judgement:
        """Judge by the values of all metrics that are named: one without a value leaves nothing to say."""
        holds, names = self._compiled
        found: dict[str, float] = {}
        for name in names:
            value = find_value(run.values, name)
            if isinstance(value, str):
                metric = MetricName.parse(name).metric
                has_others = any(MetricName.parse(known).metric == metric for known in run.values)
                raise JudgeFailed(f"{name} has no value: {value if has_others else run.missing.get(metric, value)}")
            found[name] = value
        try:
            passed = holds(found)
        except ZeroDivisionError:
            raise JudgeFailed("it divides by zero") from None
        except UnreadableExpression as error:
            raise JudgeFailed(str(error)) from None
        reason = ", ".join(f"{name} is {value:.6g}" for name, value in found.items())
        return Judgement(self.name, passed, next(iter(found.values())) if len(found) == 1 else None, reason)
