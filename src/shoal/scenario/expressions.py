"""Expressions that look like Python, such as `round >= 5 and total("CREATE_POST") > 100`.

They are compiled to functions of a subject. Python itself never evaluates them. Intervention conditions ask about the
history of a world, agent selections about a person; each adds its own kinds of value to `ExpressionCompiler`.
"""

from __future__ import annotations

import ast
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

Subject = TypeVar("Subject")

#: These limits keep parsing and evaluation fast, and within Python's recursion limit.
MAX_LENGTH = 1000
MAX_DEPTH = 50

COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class UnreadableExpression(Exception):
    """An expression that cannot be parsed, compiled or evaluated, and why."""


def parse_expression(text: str) -> ast.expr:
    """Parse an expression of limited length and depth."""
    if len(text) > MAX_LENGTH:
        raise UnreadableExpression(f"must be at most {MAX_LENGTH} characters, found {len(text)}")
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        place = f" at {text[error.offset - 1 :][:20]!r}" if error.offset and error.offset <= len(text) else ""
        raise UnreadableExpression(f"cannot be read{place}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UnreadableExpression("cannot be read") from error
    depth = 0
    level: list[ast.AST] = [tree]
    while level:
        level = [below for part in level for below in ast.iter_child_nodes(part)]
        depth += 1
    if depth > MAX_DEPTH:
        raise UnreadableExpression("is too deeply nested; say it more simply")
    return tree


class ExpressionCompiler(ABC, Generic[Subject]):
    """Compiles an expression to a function that says whether it holds for a subject.

    `and`, `or`, `not` and comparisons mean the same in every expression. Subclasses compile the compared values.
    """

    #: The operators that compare two values, and their names for error messages.
    comparisons: ClassVar[Mapping[type[ast.cmpop], Callable[[Any, Any], bool]]] = COMPARISONS
    operators: ClassVar[str] = "<, <=, >, >=, == or !="
    #: Ends the message about a value that is not compared with anything.
    example: ClassVar[str] = ""

    @abstractmethod
    def compile_value(self, part: ast.expr) -> Callable[[Subject], Any]:
        """Compile one side of a comparison."""

    def compile(self, part: ast.expr) -> Callable[[Subject], bool]:
        """Compile an expression that holds or does not hold."""
        match part:
            case ast.BoolOp():
                parts = [self.compile(value) for value in part.values]
                join = all if isinstance(part.op, ast.And) else any
                return lambda subject: join(holds(subject) for holds in parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                negated = self.compile(operand)
                return lambda subject: not negated(subject)
            case ast.Compare():
                return self._compile_comparison(part)
        self.compile_value(part)
        text = f"{ast.unparse(part)!r} is not a question; compare it with something{self.example}"
        raise UnreadableExpression(text)

    def _compile_comparison(self, part: ast.Compare) -> Callable[[Subject], bool]:
        if any(type(op) not in self.comparisons for op in part.ops):
            raise UnreadableExpression(f"{ast.unparse(part)!r}: compare with {self.operators}")
        checks = [self.comparisons[type(op)] for op in part.ops]
        sides = [self.compile_value(side) for side in (part.left, *part.comparators)]

        def holds(subject: Subject) -> bool:
            values = [side(subject) for side in sides]
            if any(value is None for value in values):
                # Nothing holds for a value that is not known.
                return False
            try:
                return all(check(a, b) for check, a, b in zip(checks, values[:-1], values[1:], strict=True))
            except TypeError:
                shown = " and ".join(map(repr, values))
                raise UnreadableExpression(f"{ast.unparse(part)!r}: {shown} cannot be compared") from None

        return holds
