"""One turn as the person in a seat gets it: what the agent sees, and the actions it may take as a form.

The form is made of the card that a language mind's prompt is made of, and answers are read as a model's reply is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shoal.agents import unwrap
from shoal.agents.language import (
    CardLimits,
    Finder,
    LanguageMind,
    UnusableReply,
    WorldCard,
    bound_action,
    build_card,
    describe_world,
    list_offered,
    read_action,
)
from shoal.engine import WaitingTurn
from shoal.runs.state import format_moment
from shoal.runs.views.sight import SightRow, view_sight
from shoal.scenario import Simulation
from shoal.types import Action, Observation, Versioned
from shoal.worlds import Argument, NameIndex, renderer_for

#: Bounds where no language mind has its own: actions in a turn, characters of a thought and of any other text.
_LIMITS = CardLimits(max_actions=8, max_chars=(300, 1000))
_TYPES = {int: "integer", float: "number", bool: "boolean", list: "list"}


@dataclass(frozen=True, slots=True)
class SeatChoice:
    """Something in sight that an argument may name."""

    value: int | str
    label: str


@dataclass(frozen=True, slots=True)
class SeatField:
    """An argument of an action. Its type is `text`, `integer`, `number`, `boolean` or `list`."""

    name: str
    type: str
    is_needed: bool
    #: Bounds of a number; null where it has none.
    least: int | None
    most: int | None
    #: The most characters of a text.
    max_chars: int | None
    #: Empty: anything may be written.
    choices: list[SeatChoice]


@dataclass(frozen=True, slots=True)
class SeatAction:
    """An action that makes sense now."""

    kind: str
    meaning: str
    fields: list[SeatField]


@dataclass(frozen=True, slots=True)
class TurnForm:
    """A turn that waits for a person, with what the agent sees and may do."""

    world: str
    #: The kind of the world, such as `twitter` or `dialogue`.
    kind: str
    round: int
    #: Simulated time.
    time: str
    since: str
    until: str
    seconds_left: float
    saw: list[SightRow]
    actions: list[SeatAction]
    max_actions: int


@dataclass(frozen=True, slots=True)
class AnswerProblem:
    """What is wrong with an action of an answer, and with which of its fields; none: with the action itself."""

    action: int
    fields: tuple[str, ...]
    message: str


class FormBook:
    """Makes the forms of one simulation, and reads the answers to them."""

    def __init__(self, simulation: Simulation, scenarios: Versioned[Any]) -> None:
        self._simulation = simulation
        self._scenarios = scenarios
        self._index = NameIndex(simulation.people.names)

    def build_form(self, turn: WaitingTurn) -> TurnForm:
        seen = turn.observation
        card = self._find_card(seen)
        return TurnForm(
            world=seen.world,
            kind=self._scenarios.at(seen.round).worlds[seen.world].kind,
            round=seen.round,
            time=seen.time,
            since=format_moment(turn.since),
            until=format_moment(turn.until),
            seconds_left=max(turn.until - time.time(), 0.0),
            saw=view_sight(seen),
            actions=[
                SeatAction(one.kind, one.meaning, [_build_field(argument, card, seen) for argument in one.arguments])
                for one in card.actions.values()
            ],
            max_actions=card.max_actions,
        )

    def read_answer(
        self, seen: Observation, entries: Sequence[dict[str, Any]]
    ) -> tuple[tuple[Action, ...], list[AnswerProblem]]:
        """Return the actions that were written down, and everything that is wrong with them."""
        card, finder = self._find_card(seen), Finder(seen, self._index)
        actions, problems = list[Action](), list[AnswerProblem]()
        if len(entries) > card.max_actions:
            problems.append(AnswerProblem(card.max_actions, (), f"at most {card.max_actions} actions fit in one turn"))
        for place, entry in enumerate(entries):
            try:
                action = read_action(dict(entry), card, finder)
            except UnusableReply as wrong:
                problems.append(AnswerProblem(place, wrong.arguments, str(wrong)))
                continue
            problems += _check_bounds(place, action, card)
            actions.append(action)
        return tuple(actions), problems

    def _find_card(self, seen: Observation) -> WorldCard:
        """Find what the agent can do now: as its language mind is told, or all that makes sense in its world."""
        mind = unwrap(self._simulation.minds[seen.world], seen.agent)
        if isinstance(mind, LanguageMind):
            return mind.card(seen)
        settings = self._scenarios.at(seen.round).worlds[seen.world]
        rules, renderer = describe_world(settings, self._simulation.worlds[seen.world]), renderer_for(seen)
        # What the agent did before is not remembered here, so that anything may be taken back.
        senseless = renderer.find_senseless(seen, {action.kind for action in rules.actions})
        return build_card(rules, _LIMITS, list_offered(rules, senseless, renderer.occasional))


def _build_field(argument: Argument, card: WorldCard, seen: Observation) -> SeatField:
    least, most = argument.bounds or (None, None)
    is_text = argument.value_type is str and argument.names != "user"
    choices = renderer_for(seen).choices(seen, argument.argument, argument.names)
    return SeatField(
        name=argument.name,
        type="text" if is_text else _TYPES.get(argument.value_type, "text"),
        is_needed=argument.is_needed,
        least=least,
        most=most,
        max_chars=card.max_chars[1] if is_text and card.max_chars is not None else None,
        choices=[SeatChoice(value, label) for value, label in choices],
    )


def _check_bounds(place: int, action: Action, card: WorldCard) -> Iterator[AnswerProblem]:
    """Find what a model's reply would be cut to: a person is told instead."""
    bounded = bound_action(action, replace(card, max_chars=card.max_chars or (0, 1 << 30)))
    for argument in card.known[action.kind].arguments:
        value = action.args.get(argument.argument)
        if value == bounded.args.get(argument.argument):
            continue
        if argument.bounds is not None:
            message = f"a number from {argument.bounds[0]} to {argument.bounds[1]}"
        else:
            assert card.max_chars is not None
            message = f"{len(value):,} characters; at most {card.max_chars[1]:,} fit" if isinstance(value, str) else ""
        yield AnswerProblem(place, (argument.name,), message)
