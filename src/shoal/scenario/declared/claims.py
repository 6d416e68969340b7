"""Claims: statements that people may believe or not, and how events speak of them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from shoal.scenario.declared.population import Name
from shoal.scenario.fields import DeclaredModel, Number, Text
from shoal.scenario.validation.problems import InvalidValue, Problem
from shoal.types import Claim, Mention

#: What opinions are about that are not about a claim.
_RESERVED = "topic"


def parse_truth(value: object) -> object:
    """Turn the truth values of YAML into words."""
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else value


class DeclaredClaim(DeclaredModel):
    """A statement that people may believe or not."""

    id: Name = Field(description="What events and results call it, for example bridge-closing.")
    text: Text = Field(description="The statement, as a sentence.")
    truth: Annotated[Literal["true", "false", "open"], BeforeValidator(parse_truth)] = Field(
        default="open", description="Whether it is true, false or open. People do not know; results may compare."
    )
    bearing: Annotated[Number, Field(ge=-1, le=1)] = Field(
        default=0.0, description="What believing it means for the topic: 1 speaks for it, -1 against it, 0 neither."
    )
    belief: Annotated[Number, Field(ge=-1, le=1)] = Field(
        default=0.0, description="What people think of it at the start, -1 (sure it is false) to 1, beside its bearing."
    )
    appeal: Annotated[Number, Field(gt=0, le=10)] = Field(
        default=1.0, description="How much likelier people pass it on than anything else."
    )

    @field_validator("id")
    @classmethod
    def _check_id(cls, value: str) -> str:
        if value == _RESERVED:
            raise InvalidValue(Problem((), f"{_RESERVED!r} is what results call the topic; choose another id"))
        return value

    def build(self) -> Claim:
        return Claim(self.id, self.text, self.truth, self.bearing, self.belief, self.appeal)


class Speaking(DeclaredModel):
    """What a text says of a claim. At most one of the first three is given."""

    supports: Name | None = Field(default=None, description="Id of the claim that the text supports.")
    denies: Name | None = Field(default=None, description="Id of the claim that the text denies.")
    questions: Name | None = Field(default=None, description="Id of the claim that the text doubts.")
    strength: Annotated[Number, Field(gt=0, le=1)] = Field(default=1.0, description="How strongly it does.")

    @field_validator("denies", "questions")
    @classmethod
    def _check_alone(cls, value: str | None, info: object) -> str | None:
        earlier = getattr(info, "data", {})
        for other in ("supports", "denies"):
            if value is not None and earlier.get(other) is not None:
                raise InvalidValue(Problem((), f"a text is for or against a claim; it already says {other!r}"))
        return value

    @property
    def content(self) -> str:
        """The text."""
        raise NotImplementedError

    @property
    def mention(self) -> Mention | None:
        """What the text says of a claim, as worlds and minds know it."""
        return Mention.of(self.supports, self.denies, self.questions, self.strength)
