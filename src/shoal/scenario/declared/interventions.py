"""Interventions: events that happen when a condition holds after a round."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator, model_validator

from shoal.engine import Facts
from shoal.scenario.declared.events import EventField, SkipEvent
from shoal.scenario.declared.kinds import FunctionPlace
from shoal.scenario.declared.population import Name
from shoal.scenario.expressions import ExpressionCompiler, UnreadableExpression, parse_expression
from shoal.scenario.fields import DeclaredModel, Text, Whole
from shoal.scenario.validation.problems import InvalidValue, Problem
from shoal.text import hint, one_of

#: Facts of the history that conditions can use, and what they mean.
FACTS: Mapping[str, str] = {
    "round": "the last round that is over",
    "hours": "simulated hours gone by",
    "actions": "actions done in the last round",
    "total_actions": "actions done so far",
    "rejected": "actions refused in the last round",
    "total_rejected": "actions refused so far",
    "errors": "turns of the last round without a decision, because of an error",
    "total_errors": "such turns so far",
    "timeouts": "turns of the last round without a decision in time",
    "total_timeouts": "such turns so far",
    "mean_opinion": "what people think of the topic on average, -1 to 1",
    "opinion_spread": "standard deviation of opinions: 0 when all agree",
}
#: Questions about a word in quotes, and what they mean.
QUESTIONS: Mapping[str, str] = {
    "count": "how often an action was done in the last round",
    "total": "how often an action was done so far",
    "by": "how many actions a person has done so far",
    "quiet": "for how many rounds a person has done nothing",
    "said": "in how many texts of the last round these words occur",
    "total_said": "in how many texts so far",
    "reach": "which share of the people had to do with a claim so far, 0 to 1",
    "belief": "what people think of a claim on average, -1 to 1",
}
#: Facts that depend on the minds, and not on committed rounds.
OPINIONS = frozenset({"mean_opinion", "opinion_spread"})
_COMPUTED: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition, and what it asks about."""

    holds: Callable[[Facts], bool]
    #: The words that each question asks about: `{"quiet": ("Ada",)}`.
    asked: Mapping[str, tuple[str, ...]]
    facts: frozenset[str]


def compile_condition(text: str) -> Condition:
    """Compile the condition in a text; raise UnreadableExpression where it is none."""
    compiler = _ConditionCompiler()
    holds = compiler.compile(parse_expression(text.strip().replace("\n", " ")))
    asked = {question: tuple(dict.fromkeys(words)) for question, words in compiler.asked.items()}
    return Condition(holds, asked, frozenset(compiler.facts))


class _ConditionCompiler(ExpressionCompiler[Facts]):
    """Compiles expressions about the history of a world: numbers, facts, questions, and sums of these."""

    example = ", for example round >= 5"

    def __init__(self) -> None:
        self.asked: dict[str, list[str]] = {}
        self.facts: set[str] = set()

    def compile_value(self, part: ast.expr) -> Callable[[Facts], Any]:
        match part:
            case ast.Constant(value=bool()) | ast.Constant(value=None):
                raise UnreadableExpression(f"{ast.unparse(part)} has no place in a condition")
            case ast.Constant(value=int() | float() as number):
                return lambda facts: number
            case ast.Name(id=name) if name in QUESTIONS:
                raise UnreadableExpression(f'{name} needs something in quotes, for example {name}("...")')
            case ast.Name(id=name) if name not in FACTS:
                known = (*FACTS, *QUESTIONS)
                raise UnreadableExpression(f"unknown fact {name!r}{hint(name, known) or '; there is ' + one_of(known)}")
            case ast.Name(id=name):
                self.facts.add(name)
                return operator.attrgetter(name)
            case ast.Call(func=ast.Name(id=name)) if name not in QUESTIONS:
                near = hint(name, QUESTIONS) or "; there is " + one_of(QUESTIONS)
                raise UnreadableExpression(f"unknown question {name!r}{near}")
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=str() as words)], keywords=[]) if words:
                self.asked.setdefault(name, []).append(words)
                return lambda facts: getattr(facts, name)(words)
            case ast.Call(func=ast.Name(id=name)):
                raise UnreadableExpression(f'{name} needs one text in quotes, for example {name}("...")')
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                positive = self.compile_value(operand)
                return lambda facts: -positive(facts)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMPUTED:
                compute, one, other = _COMPUTED[type(op)], self.compile_value(left), self.compile_value(right)
                return lambda facts: compute(one(facts), other(facts))
        raise UnreadableExpression(f"{ast.unparse(part)!r} has no place in a condition")


#: What holds from the first round on.
ALWAYS = "round >= 0"


class JudgedClaim(DeclaredModel):
    """A claim about the world that a language model judges."""

    claim: Annotated[Text, Field(max_length=2_000)] = Field(
        description="What must be true, for example: The people have agreed on a plan."
    )
    at_least: Annotated[Whole, Field(ge=0, le=9)] = Field(
        default=7, description="The least score at which it counts as true: 0 plainly false, 9 plainly true."
    )
    every: Annotated[Whole, Field(ge=1)] = Field(default=1, description="Judge it in every so many rounds.")


def _parse_judged(value: object) -> object:
    """Expand the short form, the claim alone."""
    return {"claim": value} if isinstance(value, str) else value


class Intervention(DeclaredModel):
    """When a condition holds after a round, do this in the next."""

    when: Text = Field(
        default=ALWAYS,
        description='What must hold, for example: total("CREATE_POST") > 100 and round >= 5; default: nothing.',
    )
    check: FunctionPlace | None = Field(
        default=None, description="A function of your own that must return true, as module:function."
    )
    judge: Annotated[JudgedClaim, BeforeValidator(_parse_judged)] | None = Field(
        default=None, description="A claim that a language model must find to be true: a text, or {claim: ...}."
    )
    #: A single event may stand without a list around it.
    do: Annotated[
        tuple[EventField, ...],
        BeforeValidator(lambda value: value if isinstance(value, (list, tuple)) else (value,)),
    ] = Field(default=(), description="Events as in `events`, without a round.")
    call: FunctionPlace | None = Field(
        default=None, description="A function of your own that returns such events, as module:function."
    )
    name: Text | None = Field(default=None, description="What to call it in the stream; default: its condition.")
    times: Annotated[Whole, Field(ge=1)] = Field(default=1, description="How often at most.")
    pause: Annotated[Whole, Field(ge=0)] = Field(default=0, description="Rounds before it may happen again.")
    world: Name | None = Field(default=None, description="Only in this world; default: in each for itself.")

    @field_validator("when")
    @classmethod
    def _check_condition(cls, value: str) -> str:
        try:
            compile_condition(value)
        except UnreadableExpression as error:
            raise InvalidValue(Problem((), str(error))) from None
        return value

    @field_validator("do")
    @classmethod
    def _check_events(cls, value: tuple[EventField, ...]) -> tuple[EventField, ...]:
        problems = [
            Problem((index, field), f"{field} has no place here: it happens when and where the condition holds")
            for index, event in enumerate(value)
            for field in ("round", "world")
            if field in event.model_fields_set and getattr(event, field) != type(event).model_fields[field].default
        ]
        problems += [
            Problem((index,), "time cannot be skipped by an intervention; schedule it under `events`")
            for index, event in enumerate(value)
            if isinstance(event, SkipEvent)
        ]
        if problems:
            raise InvalidValue(*problems)
        return value

    @model_validator(mode="after")
    def _check_parts(self) -> Intervention:
        if not self.do and self.call is None:
            raise InvalidValue(Problem((), "nothing happens: it needs `do` or `call`"))
        if not self.model_fields_set & {"when", "check", "judge"}:
            raise InvalidValue(Problem((), "it needs `when`, `check` or `judge`"))
        return self

    @property
    def title(self) -> str:
        """What it is called in the stream: its name, or its condition."""
        parts = [self.when] if self.when != ALWAYS else []
        parts += [part for part in (self.check, None if self.judge is None else self.judge.claim) if part is not None]
        return self.name or " and ".join(parts or [self.when])

    @property
    def condition(self) -> Condition:
        return compile_condition(self.when)
