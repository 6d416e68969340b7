"""Selects agents: by name or number, by a condition, or at random.

Conditions look like Python: `age > 40 and group == 'residents'`. They are compiled to functions; nothing is passed to
Python's own `eval`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from shoal.errors import QueryFailed
from shoal.scenario import COMPARISONS, ExpressionCompiler, People, UnreadableExpression, parse_expression
from shoal.seeds import derive
from shoal.text import hint, one_of
from shoal.worlds import NameIndex

_Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AgentSelection:
    """Which agents are asked: those that fulfil all of these. Without any of these, all agents."""

    #: Names and numbers: in a text with commas between them, or one by one.
    who: str | tuple[str | int, ...] | None = None
    #: A condition on traits.
    where: str | None = None
    #: The number of agents drawn from these at random.
    sample: int | None = None

    def numbers(self, people: People, seed: int) -> list[int]:
        """Return the numbers of the selected agents, in order; QueryFailed where there are none."""
        chosen: Iterable[int] = range(len(people))
        if self.who is not None:
            index = NameIndex(people.names)
            parts = self.who.split(",") if isinstance(self.who, str) else map(str, self.who)
            chosen = [index.resolve(part.strip()) for part in parts if part.strip()]
        if self.where is not None:
            chosen = _filter_agents(self.where, people, chosen)
        found = sorted(set(chosen))
        if self.sample is not None and self.sample < len(found):
            found = sorted(sorted(found, key=lambda agent: derive(seed, "ask", agent))[: self.sample])
        if not found:
            raise QueryFailed(f"nobody is meant: there is no agent of whom this holds: {self.where or self.who!r}")
        return found


EVERYBODY = AgentSelection()


def _filter_agents(where: str, people: People, agents: Iterable[int]) -> list[int]:
    text = where.strip()
    try:
        expression = parse_expression(text)
    except UnreadableExpression as error:
        raise QueryFailed(f"--where: {text[:60]!r} {error}; try: age > 40 and group == 'residents'") from error
    compiler = _SelectionCompiler()
    known: set[str] = set()
    found = []
    try:
        holds = compiler.compile(expression)
        for agent in agents:
            who = people[agent]
            own = {"number": agent, "name": who.name, "stance": who.stance or 0.0, "activity": who.activity}
            facts = {**who.traits, **own, "interests": who.interests}
            known.update(facts)
            if holds(facts):
                found.append(agent)
    except UnreadableExpression as error:
        raise QueryFailed(f"--where: {error}") from error
    for name in sorted(compiler.names - known):
        raise QueryFailed(f"--where: nobody has a trait {name!r}{hint(name, known) or '; there is ' + one_of(known)}")
    return found


class _SelectionCompiler(ExpressionCompiler[_Facts]):
    """Compiles expressions about a person: numbers, texts, lists of these, and traits."""

    comparisons: ClassVar[Mapping[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
        **COMPARISONS,
        ast.In: lambda one, many: one in many,
        ast.NotIn: lambda one, many: one not in many,
    }
    operators = "<, <=, >, >=, ==, != or in"

    def __init__(self) -> None:
        self.names: set[str] = set()

    def compile_value(self, part: ast.expr) -> Callable[[_Facts], Any]:
        match part:
            case ast.Constant(value=bool() | int() | float() | str() as constant):
                return lambda facts: constant
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as positive)):
                return lambda facts: -positive
            case (
                ast.Name(id=name)
                | ast.Call(func=ast.Name(id="trait"), args=[ast.Constant(value=str() as name)], keywords=[])
            ):
                self.names.add(name)
                return lambda facts: facts.get(name)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                values = [self.compile_value(inner) for inner in parts]
                return lambda facts: tuple(value(facts) for value in values)
        raise UnreadableExpression(f"{ast.unparse(part)!r} has no place in it")
