"""What all messages are made of: names and numbers as they are checked, envelopes, and the two kinds of message."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

T = TypeVar("T")

#: The name of a run's directory, or EXPERIMENT~TIER~ARM~SEED. It is checked before any file is touched.
ID_PATTERN = r"^([A-Za-z0-9][A-Za-z0-9_-]{0,99}|\w[\w. -]{0,99}(~[A-Za-z0-9][A-Za-z0-9._-]{0,99}){3})$"
RunId = Annotated[str, Field(pattern=ID_PATTERN, description="The id of a simulation.")]


def refuse_texts(value: object) -> object:
    """Let 3.0 be a whole number, as JSON does, but not "3" and not true."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("Input should be a whole number")
    return value


WHOLE = BeforeValidator(refuse_texts)
AgentNumber = Annotated[int, Field(strict=False, ge=0, le=2**31 - 1), WHOLE]
WorldName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="A world, such as twitter or reddit.")]
Seconds = Annotated[float, Field(gt=0, le=3600)]
Prompt = Annotated[str, Field(min_length=1, max_length=8_000)]


class Envelope(BaseModel, Generic[T]):
    """Every answer that is not an error."""

    success: Literal[True] = True
    data: T


class ListEnvelope(BaseModel, Generic[T]):
    """An answer that is a list, with its length."""

    success: Literal[True] = True
    data: list[T]
    count: int


class ErrorAnswer(BaseModel):
    """Every answer that is an error. `field` names the part of the request that is wrong, where there is one."""

    success: Literal[False] = False
    error: str
    field: str | None = None


class RequestModel(BaseModel):
    """What a client sends. Unknown fields are ignored, as older clients send some; types are not guessed."""

    model_config = ConfigDict(strict=True, frozen=True)


class SessionRequest(RequestModel):
    token: Annotated[str, Field(max_length=1_000)]


class RunRequest(RequestModel):
    simulation_id: RunId


class AnswerModel(BaseModel):
    """What the server answers. A client of an older version ignores fields that it does not know."""

    model_config = ConfigDict(extra="allow", frozen=True)
