"""Distributions from which the people of a group are drawn: numeric ones, tables of weights, stances, interests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from shoal.scenario.fields import DeclaredModel, Number, Whole, make_tag
from shoal.scenario.validation.problems import InvalidValue, Path, Problem
from shoal.text import nearest, one_of

STANCE_WORDS: Mapping[str, float] = {"supportive": 0.7, "opposing": -0.7, "neutral": 0.0, "observer": 0.0}
GENDERS = ("female", "male", "other")
MAX_INTERESTS = 8

# Tables of weights

Weight = Annotated[Number, Field(ge=0, le=1e12)]


def parse_weights(value: object) -> object:
    """Turn `a` and `[a, b]` into `{a: 1, b: 1}`. Repeating a word in a list doubles its odds."""
    if isinstance(value, str):
        return {value: 1.0}
    if isinstance(value, (list, tuple)):
        table: dict[str, float] = {}
        for index, word in enumerate(value):
            if not isinstance(word, str):
                raise InvalidValue(Problem.mismatch("text", word, index))
            table[word] = table.get(word, 0.0) + 1.0
        return table
    if isinstance(value, Mapping):
        return {str(word): weight for word, weight in value.items()}
    raise InvalidValue(Problem.mismatch("a word, a list of words, or weights such as {a: 2, b: 1}", value))


def require_weight(value: dict[Any, float]) -> dict[Any, float]:
    if not any(value.values()):
        raise InvalidValue(Problem((), "nothing to choose from: at least one weight must be above 0"))
    # Sorted, so that the order of the keys in a file means nothing.
    return dict(sorted(value.items()))


def require_genders(value: dict[str, float]) -> dict[str, float]:
    for word in value:
        if word not in GENDERS:
            raise InvalidValue(Problem.unknown("gender", word, GENDERS, word, expected=one_of(GENDERS), at_key=True))
    return value


Weights = Annotated[dict[str, Weight], BeforeValidator(parse_weights), AfterValidator(require_weight)]
GenderWeights = Annotated[Weights, AfterValidator(require_genders)]

# Numeric distributions


class _Bounded(DeclaredModel):
    """A distribution that can be cut off at both ends."""

    min: Number | None = Field(default=None, description="No value is below this.")
    max: Number | None = Field(default=None, description="No value is above this.")

    @model_validator(mode="after")
    def _check_order(self) -> _Bounded:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise InvalidValue(Problem(("min",), f"min ({self.min:g}) is above max ({self.max:g})"))
        return self


class Normal(_Bounded):
    """A bell curve, cut off at `min` and `max`."""

    normal: tuple[Number, Annotated[Number, Field(ge=0)]] = Field(description="Mean and standard deviation.")


class Uniform(_Bounded):
    """All values between two ends alike."""

    uniform: tuple[Number, Number] = Field(description="Lowest and highest value.")

    @model_validator(mode="after")
    def _check_ends(self) -> Uniform:
        low, high = self.uniform
        if low > high:
            raise InvalidValue(Problem(("uniform",), f"the lower end ({low:g}) is above the upper ({high:g})"))
        return self


_Shape = Annotated[Number, Field(ge=0.01, le=10_000)]


class Beta(_Bounded):
    """A beta distribution, stretched over `min` to `max` (0 to 1 unless said otherwise)."""

    beta: tuple[_Shape, _Shape] = Field(description="The two shape parameters.")

    @model_validator(mode="after")
    def _check_span(self) -> Beta:
        if (0.0 if self.min is None else self.min) > (1.0 if self.max is None else self.max):
            raise InvalidValue(Problem((), "min is above max (they are 0 and 1 unless said otherwise)"))
        return self


def parse_numeric_keys(value: object) -> object:
    """Turn `[18, 30]` and weights with keys of text into weights with numbers as keys."""
    if isinstance(value, (list, tuple)):
        return {_parse_number(item, index): 1.0 for index, item in enumerate(value)}
    if isinstance(value, Mapping):
        return {_parse_number(word, str(word)): weight for word, weight in value.items()}
    raise InvalidValue(Problem.mismatch("weights such as {18: 1, 30: 2}", value))


def _parse_number(value: object, place: str | int) -> float:
    problem = Problem.mismatch("a number", value, place, at_key=isinstance(place, str))
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InvalidValue(problem)
    try:
        return float(value)
    except ValueError:
        raise InvalidValue(problem) from None


class Choice(DeclaredModel):
    """Some values, each with its weight."""

    choice: Annotated[dict[float, Weight], BeforeValidator(parse_numeric_keys), AfterValidator(require_weight)] = Field(
        description="Value -> weight."
    )


#: Fields that make a mapping a numeric distribution rather than a table of weights.
_SHAPES: Mapping[str, type[DeclaredModel]] = {"normal": Normal, "uniform": Uniform, "beta": Beta, "choice": Choice}


def find_numeric_tag(value: object) -> str | None:
    """Return the tag of a numeric distribution; None where the value is none."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "<number>"
    if isinstance(value, Mapping):
        return next((make_tag(model) for shape, model in _SHAPES.items() if shape in value), None)
    return make_tag(type(value)) if isinstance(value, Normal | Uniform | Beta | Choice) else None


def require_numeric(value: object) -> object:
    if not isinstance(value, Mapping) or not value:
        if find_numeric_tag(value) is None:
            raise InvalidValue(Problem.mismatch("a number or a distribution such as {normal: [40, 12]}", value))
        return value
    shapes = [key for key in value if key in _SHAPES]
    if len(shapes) > 1:
        message = f"a distribution is one of {one_of(_SHAPES)}"
        raise InvalidValue(Problem((), message, found=one_of(map(str, shapes))))
    if not shapes:
        word = str(next(iter(value)))
        raise InvalidValue(Problem.unknown("distribution", word, _SHAPES, word, expected=one_of(_SHAPES), at_key=True))
    return value


Numeric = Annotated[
    Annotated[Number, Tag("<number>")]
    | Annotated[Normal, Tag(make_tag(Normal))]
    | Annotated[Uniform, Tag(make_tag(Uniform))]
    | Annotated[Beta, Tag(make_tag(Beta))]
    | Annotated[Choice, Tag(make_tag(Choice))],
    Discriminator(find_numeric_tag),
    BeforeValidator(require_numeric),
]
Distribution = float | Normal | Uniform | Beta | Choice


def require_within(low: float, high: float) -> Callable[[Distribution], Distribution]:
    """Make a validator that refuses values outside the bounds. The tails of a bell curve are cut off instead."""

    def check(value: Distribution) -> Distribution:
        # The values that the distribution is sure to take, with where they are written.
        promised: list[tuple[float, Path]]
        if isinstance(value, (int, float)):
            promised = [(value, ())]
        elif isinstance(value, Choice):
            promised = [(number, ("choice", f"{number:g}")) for number in value.choice]
        else:
            promised = [(end, (name,)) for name, end in (("min", value.min), ("max", value.max)) if end is not None]
            if isinstance(value, Uniform):
                promised += [(end, ("uniform", index)) for index, end in enumerate(value.uniform)]
        for number, path in promised:
            if not low <= number <= high:
                raise InvalidValue(Problem(path, f"must be between {low:g} and {high:g}", found=f"{number:g}"))
        return value

    return check


def parse_stance(value: object) -> object:
    """Turn the word for a stance into its number."""
    if not isinstance(value, str):
        return value
    if value not in STANCE_WORDS:
        expected = f"a number from -1 to 1, {one_of(STANCE_WORDS)}"
        raise InvalidValue(Problem((), expected=expected, found=repr(value), suggestion=nearest(value, STANCE_WORDS)))
    return STANCE_WORDS[value]


def parse_stances(value: object) -> object:
    """Turn words for stances into numbers, also among the values of a choice."""
    if isinstance(value, Mapping) and isinstance(value.get("choice"), Mapping):
        table = {STANCE_WORDS.get(word, word): weight for word, weight in value["choice"].items()}
        return {**value, "choice": table}
    return parse_stance(value)


Age = Annotated[Numeric, AfterValidator(require_within(0, 120))]
Activity = Annotated[Numeric, AfterValidator(require_within(0, 1))]
Stance = Annotated[Numeric, AfterValidator(require_within(-1, 1)), BeforeValidator(parse_stances)]
Trait = Annotated[
    Annotated[Numeric, Tag("<numeric>")] | Annotated[Weights, Tag("<categorical>")],
    Discriminator(lambda value: "<categorical>" if find_numeric_tag(value) is None else "<numeric>"),
]

# Interests


class Interests(DeclaredModel):
    """What a group's people may care about, and how many of those things each person does."""

    pick: tuple[Whole, Whole] = Field(default=(1, 3), description="Fewest and most interests of one person.")
    among: Weights = Field(alias="from", description="Words, or word -> weight.")

    @model_validator(mode="after")
    def _check_pick(self) -> Interests:
        low, high = self.pick
        if not 0 <= low <= high <= MAX_INTERESTS:
            expected = f"two numbers, 0 to {MAX_INTERESTS}, the lower first"
            raise InvalidValue(Problem(("pick",), expected=expected, found=str([low, high])))
        return self


def parse_interests(value: object) -> object:
    """Expand the short forms: the words alone, or one number for `pick`."""
    if not isinstance(value, Mapping):
        return {"from": value} if not isinstance(value, Interests) else value
    if "from" not in value:
        return {"from": value} if "pick" not in value else value
    pick = value.get("pick")
    return {**value, "pick": [pick, pick]} if isinstance(pick, int) else value


InterestChoice = Annotated[Interests, BeforeValidator(parse_interests)]
