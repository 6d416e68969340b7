"""A property graph in memory, and as much of Cypher as it takes to write to it and read from it.

Statements are read by a grammar and carried out row by row, as the manual of the language says. Anything that the
grammar does not have is a syntax error, as it would be at a server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(r"\s*(?:(`[^`]+`|[A-Za-z_]\w*|\$\w+|'[^']*'|\d+)|(<-|->|\+=|[-(){}\[\]:,.=*]))")


class CypherError(Exception):
    """A statement that a server would refuse, with the code of its error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(eq=False)
class Node:
    labels: set[str] = field(default_factory=set)
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Relationship:
    kind: str
    source: Node
    target: Node
    values: dict[str, Any] = field(default_factory=dict)


@dataclass
class PropertyGraph:
    """Nodes and relationships, and which properties of which labels are unique."""

    nodes: list[Node] = field(default_factory=list)
    relationships: list[Relationship] = field(default_factory=list)
    unique: set[tuple[str, str]] = field(default_factory=set)

    def copy(self) -> PropertyGraph:
        return deepcopy(self)

    def run(self, statement: str, parameters: dict[str, Any]) -> tuple[list[str], list[list[Any]]]:
        """Carry out a statement, and return the names and the rows that it returns."""
        return _Statement(self, statement, parameters).run()

    def check(self) -> None:
        for label, name in self.unique:
            values = [node.values.get(name) for node in self.nodes if label in node.labels]
            if len(values) != len(set(values)):
                raise CypherError("Neo.ClientError.Schema.ConstraintValidationFailed", f"{label}.{name} is not unique")


Row = dict[str, Any]


class _Statement:
    """One statement, read from left to right."""

    def __init__(self, graph: PropertyGraph, text: str, parameters: dict[str, Any]) -> None:
        self.graph, self.parameters, self.text = graph, parameters, text
        self.tokens, at = [], 0
        while at < len(text.rstrip()):
            found = _TOKEN.match(text, at)
            if found is None:
                raise self.fail(f"unexpected {text[at : at + 10]!r}")
            self.tokens.append(found[1] or found[2])
            at = found.end()
        self.at = 0

    def fail(self, why: str) -> CypherError:
        return CypherError("Neo.ClientError.Statement.SyntaxError", f"{why} in {self.text!r}")

    def next_is(self, *words: str) -> bool:
        """Take these words where they come next."""
        ahead = [token.upper() for token in self.tokens[self.at : self.at + len(words)]]
        if ahead != [word.upper() for word in words]:
            return False
        self.at += len(words)
        return True

    def need(self, *words: str) -> None:
        if not self.next_is(*words):
            raise self.fail(f"expected {' '.join(words)}, found {self.tokens[self.at : self.at + 2]}")

    def take(self) -> str:
        if self.at >= len(self.tokens):
            raise self.fail("unexpected end")
        self.at += 1
        return self.tokens[self.at - 1]

    def name(self) -> str:
        token = self.take()
        if not re.fullmatch(r"`[^`]+`|[A-Za-z_]\w*", token):
            raise self.fail(f"expected a name, found {token!r}")
        return token.strip("`")

    # Clauses

    def run(self) -> tuple[list[str], list[list[Any]]]:
        if self.next_is("CREATE", "CONSTRAINT"):
            return self.create_constraint()
        rows: list[Row] = [{}]
        while self.at < len(self.tokens):
            if self.next_is("UNWIND"):
                rows = self.unwind(rows)
            elif self.next_is("MATCH"):
                rows = self.match(rows)
            elif self.next_is("MERGE"):
                rows = self.merge(rows)
            elif self.next_is("SET"):
                self.assign(rows)
            elif self.next_is("WITH"):
                kept = self.name()
                self.need("LIMIT")
                rows = [{kept: row[kept]} for row in rows[: self.value({})]]
            elif self.next_is("DETACH", "DELETE"):
                self.delete(rows, self.name())
            elif self.next_is("RETURN"):
                return self.give(rows)
            else:
                raise self.fail(f"unexpected {self.take()!r}")
        self.graph.check()
        return [], []

    def create_constraint(self) -> tuple[list[str], list[list[Any]]]:
        self.name()
        self.need("IF", "NOT", "EXISTS", "FOR", "(")
        variable = self.name()
        self.need(":")
        label = self.name()
        self.need(")", "REQUIRE", variable, ".")
        self.graph.unique.add((label, self.name()))
        self.need("IS", "UNIQUE")
        return [], []

    def unwind(self, rows: list[Row]) -> list[Row]:
        place = self.at
        lists = [(row, self.rewound(place, row)) for row in rows]
        self.need("AS")
        name = self.name()
        return [{**row, name: value} for row, values in lists for value in values]

    def rewound(self, place: int, row: Row) -> Any:
        """Read the expression at a place for one row."""
        self.at = place
        return self.value(row)

    def match(self, rows: list[Row]) -> list[Row]:
        place, found = self.at, []
        for row in rows or [{}]:
            self.at = place
            matches = list(self.find(row if rows else {}, is_dry=not rows))
            found += matches if rows else []
        return found

    def find(self, row: Row, *, is_dry: bool) -> Iterator[Row]:
        """Find what a pattern and its condition fit."""
        name, labels, values = self.node_pattern(row, is_dry=is_dry)
        chain = None
        if self.next_is("-", "["):
            variable = self.name()
            self.need("]", "->")
            chain = (variable, self.node_pattern(row, is_dry=is_dry))
        conditions = []
        if self.next_is("WHERE"):
            conditions.append(self.condition())
            while self.next_is("AND"):
                conditions.append(self.condition())
        for node in [] if is_dry else self.fitting(labels, values):
            if chain is None:
                candidates = [{**row, name: node}]
            else:
                variable, (end, end_labels, end_values) = chain
                ends = self.fitting(end_labels, end_values)
                candidates = [
                    {**row, name: node, variable: each, end: each.target}
                    for each in self.graph.relationships
                    if each.source is node and each.target in ends
                ]
            yield from (each for each in candidates if all(self.holds(each, one) for one in conditions))

    def fitting(self, labels: set[str], values: dict[str, Any]) -> list[Node]:
        return [
            node
            for node in self.graph.nodes
            if labels <= node.labels and all(node.values.get(key) == value for key, value in values.items())
        ]

    def condition(self) -> tuple[tuple[str, str], int | None]:
        """Read `f.until IS NULL`, or `f.world = ...`: the property, and where what it equals stands."""
        place = self.property()
        if self.next_is("IS", "NULL"):
            return place, None
        self.need("=")
        start = self.at
        self.skip_value()
        return place, start

    def holds(self, row: Row, condition: tuple[tuple[str, str], int | None]) -> bool:
        (name, key), place = condition
        value = row[name].values.get(key)
        if place is None:
            return value is None
        back, wanted = self.at, self.rewound(place, row)
        self.at = back
        return bool(value == wanted)

    def merge(self, rows: list[Row]) -> list[Row]:
        place = self.at
        for row in rows or [{}]:
            self.at = place
            self.merge_one(row, is_dry=not rows)
        return rows

    def merge_one(self, row: Row, *, is_dry: bool) -> None:
        self.need("(")
        name = self.name()
        if self.next_is(")"):
            self.merge_relationship(row, name, is_dry=is_dry)
            return
        self.at -= 2
        name, labels, values = self.node_pattern(row, is_dry=is_dry)
        known = [] if is_dry else self.fitting(labels, values)
        if not is_dry:
            row[name] = known[0] if known else Node(set(labels), dict(values))
            self.graph.nodes += [] if known else [row[name]]
        if self.next_is("ON", "CREATE", "SET"):
            self.assign([] if known or is_dry else [row])

    def merge_relationship(self, row: Row, source: str, *, is_dry: bool) -> None:
        self.need("-", "[")
        name = self.name()
        self.need(":")
        kind = self.name()
        values = self.map(row, is_dry=is_dry)
        self.need("]", "->", "(")
        target = self.name()
        self.need(")")
        if is_dry:
            return
        known = [
            each
            for each in self.graph.relationships
            if (each.kind, each.source, each.target) == (kind, row[source], row[target])
            and all(each.values.get(key) == value for key, value in values.items())
        ]
        row[name] = known[0] if known else Relationship(kind, row[source], row[target], dict(values))
        self.graph.relationships += [] if known else [row[name]]

    def assign(self, rows: list[Row]) -> None:
        """Read assignments, and carry them out for each row."""
        while True:
            name = self.name()
            if self.next_is(":"):
                label = self.name()
                for row in rows:
                    row[name].labels.add(label)
            elif self.next_is("+="):
                place = self.at
                self.skip_value()
                for row in rows:
                    back, values = self.at, self.rewound(place, row)
                    self.at = back
                    _update(row[name].values, values)
            else:
                self.need(".")
                key = self.name()
                self.need("=")
                place = self.at
                self.skip_value()
                for row in rows:
                    back, value = self.at, self.rewound(place, row)
                    self.at = back
                    _update(row[name].values, {key: value})
            if not self.next_is(","):
                return

    def delete(self, rows: list[Row], name: str) -> None:
        gone = {id(row[name]) for row in rows}
        self.graph.nodes = [node for node in self.graph.nodes if id(node) not in gone]
        self.graph.relationships = [
            each for each in self.graph.relationships if not {id(each.source), id(each.target)} & gone
        ]

    def give(self, rows: list[Row]) -> tuple[list[str], list[list[Any]]]:
        """Return expressions under their names; `count(*)` is one row."""
        if self.next_is("count", "(", "*", ")", "AS"):
            return [self.name()], [[len(rows)]]
        places, names = [], []
        while True:
            places.append(self.at)
            self.skip_value()
            self.need("AS")
            names.append(self.name())
            if not self.next_is(","):
                break
        if self.at < len(self.tokens):
            raise self.fail("RETURN is the last clause")
        self.graph.check()
        return names, [[self.rewound(place, row) for place in places] for row in rows]

    # Parts

    def node_pattern(self, row: Row, *, is_dry: bool) -> tuple[str, set[str], dict[str, Any]]:
        self.need("(")
        name, labels = self.name(), set()
        while self.next_is(":"):
            labels.add(self.name())
        values = self.map(row, is_dry=is_dry) if self.tokens[self.at] == "{" else {}
        self.need(")")
        return name, labels, values

    def map(self, row: Row, *, is_dry: bool) -> dict[str, Any]:
        values = {}
        self.need("{")
        while True:
            key = self.name()
            self.need(":")
            if is_dry:
                self.skip_value()
            else:
                values[key] = self.value(row)
                if values[key] is None:
                    raise CypherError("Neo.ClientError.Statement.SemanticError", f"merging by {key}, which is null")
            if not self.next_is(","):
                break
        self.need("}")
        return values

    def property(self) -> tuple[str, str]:
        name = self.name()
        self.need(".")
        return name, self.name()

    def skip_value(self) -> None:
        token = self.take()
        if token in ("type", "properties") and self.next_is("("):
            self.name()
            self.need(")")
        elif self.next_is("."):
            self.name()

    def value(self, row: Row) -> Any:
        token = self.take()
        if token.startswith("$"):
            if token[1:] not in self.parameters:
                raise CypherError("Neo.ClientError.Statement.ParameterMissing", f"expected the parameter {token[1:]}")
            return self.parameters[token[1:]]
        if token.startswith("'"):
            return token[1:-1]
        if token.isdecimal():
            return int(token)
        if token in ("true", "false"):
            return token == "true"
        if token in ("type", "properties") and self.next_is("("):
            found = row[self.name()]
            self.need(")")
            return found.kind if token == "type" else dict(found.values)
        if token not in row:
            raise self.fail(f"the variable {token} is not defined")
        if not self.next_is("."):
            return row[token]
        holder, key = row[token], self.name()
        return (holder if isinstance(holder, dict) else holder.values).get(key)


def _update(values: dict[str, Any], new: dict[str, Any]) -> None:
    """Set properties; one that is null is removed, and one that is a map cannot be stored."""
    for key, value in new.items():
        if isinstance(value, dict):
            raise CypherError("Neo.ClientError.Statement.TypeError", f"{key}: property values are no maps")
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
