"""Distributions that a group's people are drawn from: numeric ones, tables of weights, stances, interests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from shoal.scenario.fields import DeclaredModel, Number, Whole
from shoal.scenario.validation.problems import expected, wrong, wrong_key
from shoal.text import hint, one_of

STANCE_WORDS: Mapping[str, float] = {"supportive": 0.7, "opposing": -0.7, "neutral": 0.0, "observer": 0.0}
GENDERS = ("female", "male", "other")
#: Fields that make a mapping a numeric distribution rather than a table of weights.
NUMERIC_SHAPES = ("normal", "uniform", "beta", "choice")
MAX_INTERESTS = 8


Weight = Annotated[Number, Field(ge=0, le=1e12)]


def _weights(value: object) -> object:
    """`a`, `[a, b]` and `{a: 1, b: 1}` as the last of the three; repeating a word in a list doubles its odds."""
    if isinstance(value, str):
        return {value: 1.0}
    if isinstance(value, (list, tuple)):
        table: dict[str, float] = {}
        for index, word in enumerate(value):
            if not isinstance(word, str):
                raise wrong(expected("text", word), index)
            table[word] = table.get(word, 0.0) + 1.0
        return table
    if isinstance(value, Mapping):
        return {str(word): weight for word, weight in value.items()}
    raise wrong(expected("a word, a list of words, or weights such as {a: 2, b: 1}", value))


def _some_weight(value: dict[Any, float]) -> dict[Any, float]:
    if not any(value.values()):
        raise wrong("nothing to choose from: at least one weight must be above 0")
    # Sorted, so that the order of the keys in a file means nothing.
    return dict(sorted(value.items()))


Weights = Annotated[dict[str, Weight], BeforeValidator(_weights), AfterValidator(_some_weight)]


def _known_genders(value: dict[str, float]) -> dict[str, float]:
    for word in value:
        if word not in GENDERS:
            raise wrong_key(f"unknown gender {word!r}, expected {one_of(GENDERS)}{hint(word, GENDERS)}", word)
    return value


GenderWeights = Annotated[Weights, AfterValidator(_known_genders)]


class _Bounded(DeclaredModel):
    """A distribution that can be cut off at both ends."""

    min: Number | None = Field(default=None, description="No value is below this.")
    max: Number | None = Field(default=None, description="No value is above this.")

    @model_validator(mode="after")
    def _ordered(self) -> _Bounded:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise wrong(f"min ({self.min:g}) is above max ({self.max:g})", "min")
        return self


class Normal(_Bounded):
    """A bell curve, cut off at `min` and `max`."""

    normal: tuple[Number, Annotated[Number, Field(ge=0)]] = Field(description="Mean and standard deviation.")


class Uniform(_Bounded):
    """All values between two ends alike."""

    uniform: tuple[Number, Number] = Field(description="Lowest and highest value.")

    @model_validator(mode="after")
    def _low_first(self) -> Uniform:
        if self.uniform[0] > self.uniform[1]:
            raise wrong(f"the lower end ({self.uniform[0]:g}) is above the upper ({self.uniform[1]:g})", "uniform")
        return self


_Shape = Annotated[Number, Field(ge=0.01, le=10_000)]


class Beta(_Bounded):
    """A beta distribution, stretched over `min` to `max` (0 to 1 unless said otherwise)."""

    beta: tuple[_Shape, _Shape] = Field(description="The two shape parameters.")

    @model_validator(mode="after")
    def _stretched(self) -> Beta:
        if (0.0 if self.min is None else self.min) > (1.0 if self.max is None else self.max):
            raise wrong("min is above max (they are 0 and 1 unless said otherwise)")
        return self


def _numeric_keys(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return {_as_number(item, index): 1.0 for index, item in enumerate(value)}
    if isinstance(value, Mapping):
        return {_as_number(word, str(word)): weight for word, weight in value.items()}
    raise wrong(expected("weights such as {18: 1, 30: 2}", value))


def _as_number(value: object, at: str | int) -> float:
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            return float(value)
        except ValueError:
            pass
    raise wrong(expected("a number", value), at) if isinstance(at, int) else wrong_key(expected("a number", value), at)


class Choice(DeclaredModel):
    """Some values, each with its weight."""

    choice: Annotated[dict[float, Weight], BeforeValidator(_numeric_keys), AfterValidator(_some_weight)] = Field(
        description="Value -> weight."
    )


def _numeric_shape(value: object) -> str | None:
    """The tag of the form of a numeric distribution."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "<number>"
    if isinstance(value, DeclaredModel):
        return f"<{type(value).__name__.lower()}>"
    if isinstance(value, Mapping):
        return next((f"<{shape}>" for shape in NUMERIC_SHAPES if shape in value), None)
    return None


def _require_numeric(value: object) -> object:
    if isinstance(value, Mapping) and value:
        _require_one_shape(value)
    elif _numeric_shape(value) is None:
        raise wrong(expected("a number or a distribution such as {normal: [40, 12]}", value))
    return value


def _require_one_shape(value: Mapping[Any, Any]) -> None:
    found = [key for key in value if key in NUMERIC_SHAPES]
    if len(found) > 1:
        raise wrong(f"a distribution is one of {one_of(NUMERIC_SHAPES)}, found {one_of(map(str, found))}")
    if found:
        return
    word = str(next(iter(value)))
    text = f"unknown distribution {word!r}, expected {one_of(NUMERIC_SHAPES)}{hint(word, NUMERIC_SHAPES)}"
    raise wrong_key(text, word)


Numeric = Annotated[
    Annotated[Number, Tag("<number>")]
    | Annotated[Normal, Tag("<normal>")]
    | Annotated[Uniform, Tag("<uniform>")]
    | Annotated[Beta, Tag("<beta>")]
    | Annotated[Choice, Tag("<choice>")],
    Discriminator(_numeric_shape),
    BeforeValidator(_require_numeric),
]
Distribution = float | Normal | Uniform | Beta | Choice


def within(low: float, high: float) -> Callable[[Distribution], Distribution]:
    """Refuses values that can never be right in this field; the tails of a bell curve are cut off instead."""

    def check(value: Distribution) -> Distribution:
        for number, path in _stated(value):
            if not low <= number <= high:
                raise wrong(f"must be between {low:g} and {high:g}, found {number:g}", *path)
        return value

    return check


def _stated(value: Distribution) -> list[tuple[float, tuple[str | int, ...]]]:
    """The values that a distribution promises to take, with where they are written."""
    if isinstance(value, (int, float)):
        return [(value, ())]
    if isinstance(value, Choice):
        return [(number, ("choice", f"{number:g}")) for number in value.choice]
    ends = [(end, (name,)) for name, end in (("min", value.min), ("max", value.max)) if end is not None]
    if isinstance(value, Uniform):
        return [*ends, *((end, ("uniform", index)) for index, end in enumerate(value.uniform))]
    return [*ends]


def stance_number(value: object) -> object:
    """A stance in words as a number."""
    if not isinstance(value, str):
        return value
    if value not in STANCE_WORDS:
        raise wrong(
            f"expected a number from -1 to 1, {one_of(STANCE_WORDS)}, found {value!r}{hint(value, STANCE_WORDS)}"
        )
    return STANCE_WORDS[value]


def _stance_words(value: object) -> object:
    """Words in place of numbers, also among the values of a choice."""
    if isinstance(value, Mapping) and isinstance(value.get("choice"), Mapping):
        table = {STANCE_WORDS.get(word, word): weight for word, weight in value["choice"].items()}
        return {**value, "choice": table}
    return stance_number(value)


Age = Annotated[Numeric, AfterValidator(within(0, 120))]
Activity = Annotated[Numeric, AfterValidator(within(0, 1))]
Stance = Annotated[Numeric, AfterValidator(within(-1, 1)), BeforeValidator(_stance_words)]


def _trait_shape(value: object) -> str:
    return "<categorical>" if _numeric_shape(value) is None else "<numeric>"


Trait = Annotated[
    Annotated[Numeric, Tag("<numeric>")] | Annotated[Weights, Tag("<categorical>")], Discriminator(_trait_shape)
]


class Interests(DeclaredModel):
    """What a group's people may care about, and how many of those things each person does."""

    pick: tuple[Whole, Whole] = Field(default=(1, 3), description="Fewest and most interests of one person.")
    among: Weights = Field(alias="from", description="Words, or word -> weight.")

    @model_validator(mode="after")
    def _ordered(self) -> Interests:
        low, high = self.pick
        if not 0 <= low <= high <= MAX_INTERESTS:
            raise wrong(f"expected two numbers, 0 to {MAX_INTERESTS}, the lower first, found {[low, high]}", "pick")
        return self


def _interests(value: object) -> object:
    """The short forms: only the words, one number for `pick`."""
    if not isinstance(value, Mapping):
        return {"from": value} if not isinstance(value, Interests) else value
    if "from" not in value:
        return {"from": value} if "pick" not in value else value
    pick = value.get("pick")
    return {**value, "pick": [pick, pick]} if isinstance(pick, int) else value


InterestChoice = Annotated[Interests, BeforeValidator(_interests)]
