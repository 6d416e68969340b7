"""Which agents are meant: by name or number, by what they are like, or by lot.

What they are like is said in a small language with the looks of Python: `age > 40 and group == 'residents'`. It is read
into functions; nothing is ever handed to Python's own `eval`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shoal.errors import QueryFailed
from shoal.runs.rerun.explain import agent_number
from shoal.scenario.declared.interventions import COMPARED, Unreadable, parse_condition
from shoal.scenario.sampling.people import People
from shoal.scenario.validation.problems import hint, one_of
from shoal.seeds import derive
from shoal.types import Persona

_Facts = Mapping[str, Any]
_Reading = Callable[[_Facts], Any]
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    **COMPARED,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}


@dataclass(frozen=True, slots=True)
class AgentSelection:
    """All of these at once; nothing said: everybody."""

    #: Names and numbers, with commas between them.
    who: str | None = None
    #: What has to hold of them.
    where: str | None = None
    #: How many of those, drawn by lot.
    sample: int | None = None

    def numbers(self, people: People, seed: int) -> list[int]:
        """Their numbers, in order; QueryFailed where nobody is meant."""
        chosen: Iterable[int] = range(len(people)) if self.who is None else _named(self.who, people)
        if self.where is not None:
            chosen = _like(self.where, people, chosen)
        found = sorted(set(chosen))
        if self.sample is not None and self.sample < len(found):
            found = sorted(sorted(found, key=lambda agent: derive(seed, "ask", agent))[: self.sample])
        if not found:
            raise QueryFailed(f"nobody is meant: there is no agent of whom this holds: {self.where or self.who!r}")
        return found


EVERYBODY = AgentSelection()


def _named(who: str, people: People) -> list[int]:
    return [agent_number(part.strip(), people.names) for part in who.split(",") if part.strip()]


def _like(where: str, people: People, among: Iterable[int]) -> list[int]:
    reader = _SelectionCompiler()
    holds = reader.question(_parsed(where.strip()))
    known: set[str] = set()
    found = []
    for agent in among:
        facts = _facts(agent, people[agent])
        known.update(facts)
        if holds(facts):
            found.append(agent)
    for name in sorted(reader.names - known):
        raise QueryFailed(f"--where: nobody has a trait {name!r}{hint(name, known) or '; there is ' + one_of(known)}")
    return found


def _facts(agent: int, person: Persona) -> _Facts:
    """What can be asked about somebody."""
    own = {"number": agent, "name": person.name, "stance": person.stance, "activity": person.activity}
    return {**person.traits, **own, "interests": person.interests}


def _parsed(text: str) -> ast.expr:
    try:
        return parse_condition(text)
    except Unreadable as error:
        raise QueryFailed(f"--where: {text[:60]!r} {error}; try: age > 40 and group == 'residents'") from error


class _SelectionCompiler:
    """Turns the parts of an expression into functions of what is known about somebody."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def question(self, part: ast.expr) -> _Reading:
        """Something that holds or does not hold."""
        match part:
            case ast.BoolOp():
                parts = [self.question(value) for value in part.values]
                join = all if isinstance(part.op, ast.And) else any
                return lambda facts: join(reading(facts) for reading in parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                negated = self.question(operand)
                return lambda facts: not negated(facts)
            case ast.Compare():
                return self._comparison(part)
        self._value(part)
        raise QueryFailed(f"--where: {ast.unparse(part)!r} is not a question; compare it with something")

    def _comparison(self, part: ast.Compare) -> _Reading:
        for op in part.ops:
            if type(op) not in _COMPARED:
                raise QueryFailed(f"--where: {ast.unparse(part)!r}: compare with <, <=, >, >=, ==, != or in")
        checks = [_COMPARED[type(op)] for op in part.ops]
        sides = [self._value(side) for side in (part.left, *part.comparators)]

        def compare(facts: _Facts) -> bool:
            values = [side(facts) for side in sides]
            if any(value is None for value in values):
                # Of somebody about whom this is not known, nothing holds.
                return False
            try:
                return all(check(a, b) for check, a, b in zip(checks, values[:-1], values[1:], strict=True))
            except TypeError:
                shown = " and ".join(map(repr, values))
                raise QueryFailed(f"--where: {ast.unparse(part)!r}: {shown} cannot be compared") from None

        return compare

    def _value(self, part: ast.expr) -> _Reading:
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
                values = [self._value(inner) for inner in parts]
                return lambda facts: tuple(value(facts) for value in values)
        raise QueryFailed(f"--where: {ast.unparse(part)!r} has no place in it")
