"""Seats: a person takes the turns of an agent, sees what it sees, and answers by a form."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from shoal.server.messages.base import WHOLE, AgentNumber, AnswerModel, RequestModel, RunRequest, WorldName

#: What a browser keeps to itself, so that no other one answers in its name.
Secret = Annotated[str, Field(min_length=8, max_length=100, description="Made by the browser that holds the seat.")]


class SeatRequest(RunRequest):
    agent_id: AgentNumber
    secret: Secret


class TakeSeatRequest(SeatRequest):
    #: How long the person may take for a turn.
    seconds: Annotated[float, Field(strict=False, ge=1, le=604_800)] = 120.0
    #: Who decides when that time is over: the agent's own mind, or nobody.
    otherwise: Literal["mind", "nothing"] = "mind"
    #: Take it also from another browser that holds it.
    force: bool = False


class TurnAnswerRequest(SeatRequest):
    """The actions of one turn, each as a model writes it: `{"action": "LIKE_POST", "post_id": 12}`."""

    world: WorldName
    round: Annotated[int, Field(strict=False, ge=0, le=1_000_000), WHOLE]
    actions: Annotated[list[dict[str, Any]], Field(max_length=32)]


class AnswerProblemInfo(RequestModel):
    """What is wrong with an action of an answer, by its place, and with which of its fields."""

    action: int
    fields: list[str]
    message: str


class TurnAnswerResult(RequestModel):
    """Whether the answer counts; where it does not, the turn still waits for a better one."""

    is_accepted: bool
    problems: list[AnswerProblemInfo]


class SeatTurnInfo(AnswerModel):
    """A turn that waits for the person in a seat, with what the agent sees and may do."""

    world: str
    kind: str
    round: int
    time: str
    since: str
    until: str
    seconds_left: float
    #: Labelled rows, each with its lines or a plain value.
    saw: list[dict[str, Any]]
    #: Actions that make sense now, each with its fields and what can be chosen in them.
    actions: list[dict[str, Any]]
    max_actions: int


class SeatInfo(AnswerModel):
    """A seat that a person has taken."""

    agent_id: int
    name: str
    since_round: int
    seconds: float
    otherwise: str
    is_held: bool
    is_mine: bool
    turns: list[SeatTurnInfo]
