"""A scenario: everything that a user declares about a run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import (
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    field_validator,
    model_validator,
)

from shoal.agents.settings import HeuristicSettings, LanguageSettings, Latency, ScriptedSettings
from shoal.scenario.declared.events import EventField
from shoal.scenario.declared.follows import Follows, FollowSettings
from shoal.scenario.declared.interventions import Intervention
from shoal.scenario.declared.population import Entries
from shoal.scenario.fields import DeclaredModel, Number, Text, Who, Whole
from shoal.scenario.plugins import names_class
from shoal.scenario.validation.consistency import find_problems
from shoal.scenario.validation.problems import InvalidValue, Problem, show_value
from shoal.text import one_of
from shoal.worlds.clock import TimeSettings
from shoal.worlds.kinds import DEFAULT_WORLDS, KIND_NAMES, KINDS, kind_named
from shoal.worlds.settings import WorldSettings
from shoal.worlds.world_kind import WorldKind

__all__ = ["FollowSettings", "Scenario"]

MINDS = ("heuristic", "scripted", "language")
#: Folders that a run directory has already; a world's folder stands beside them.
RESERVED_WORLDS = ("ipc_commands", "ipc_responses", "inputs")
MAX_ROUNDS = 1_000_000


class _RejectedValue:
    """Stands in for a value that pydantic would bend into shape although nobody can have meant it."""

    def __init__(self, value: object) -> None:
        self._shown = show_value(value)

    def __repr__(self) -> str:
        return self._shown


def _unbent(model: type[BaseModel], value: object) -> object:
    """Without `true` where a number belongs (it would be 1), and a number where a date does (8 would be in 1970)."""
    if not isinstance(value, Mapping):
        return value
    kinds = {name: field.annotation for name, field in model.model_fields.items()}
    return {name: _unbent_field(kinds.get(name), given) for name, given in value.items()}


def _unbent_field(kind: Any, given: object) -> object:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _unbent(kind, given)
    bent = isinstance(given, (int, float)) if kind is datetime else isinstance(given, bool) and kind is not bool
    return _RejectedValue(given) if bent else given


def _plausible(model: type[BaseModel]) -> BeforeValidator:
    return BeforeValidator(partial(_unbent, model))


def _worlds(value: object) -> object:
    """`[twitter]`, `{twitter: null}` and `{twitter: {kind: twitter}}` as the last of the three."""
    if isinstance(value, (list, tuple)) and value:
        return _listed_worlds(value)
    if not isinstance(value, Mapping) or not value:
        expected = "a list such as [twitter, reddit], or a mapping of names to settings"
        raise InvalidValue(Problem.mismatch(expected, value))
    problems = [Problem((str(name),), text, at_key=True) for name in value if (text := _bad_world_name(name))]
    if problems:
        raise InvalidValue(*problems)
    return {name: _with_kind(name, settings) for name, settings in value.items()}


def _listed_worlds(names: list[Any] | tuple[Any, ...]) -> dict[str, Any]:
    problems = []
    for index, name in enumerate(names):
        if name in names[:index]:
            problems.append(Problem((index,), f"world {name!r} is listed twice"))
        elif not isinstance(name, str):
            problems.append(Problem.mismatch(one_of(KIND_NAMES), name, index))
        elif name not in KIND_NAMES:
            advice = f"to name it yourself, write {{{name}: {{kind: twitter}}}}"
            problems.append(Problem.unknown("world", name, KIND_NAMES, index, advice=advice))
    if problems:
        raise InvalidValue(*problems)
    return {name: {"kind": name} for name in names}


def _bad_world_name(name: object) -> str | None:
    text = str(name)
    if text in RESERVED_WORLDS:
        return f"a world cannot be called {text!r}: a run keeps a folder of that name"
    if not (text[:1].isalpha() and text.replace("-", "a").replace("_", "a").isalnum()) or not text.isascii():
        return f"{text!r} cannot name a world; use small letters, digits, - and _"
    if text != text.lower() or len(text) > 40:
        return f"{text!r} cannot name a world; use at most 40 small letters, digits, - and _"
    return None


def _with_kind(name: str, settings: object) -> object:
    if settings is None:
        settings = {}
    if not isinstance(settings, Mapping) or "kind" in settings or name not in KIND_NAMES:
        return settings
    return {"kind": name, **settings}


class OwnWorldSettings(DeclaredModel, WorldSettings):
    """A world of the user's own making."""

    kind: Text = Field(description="Where its class is, as module:Class.")
    settings: dict[str, Any] = Field(default_factory=dict, description="What the class is given.")
    mind: Text | None = Field(default=None, description="Where the class of its mind is; default: as the class says.")


def _world_kind(value: object) -> str | None:
    kind = value.get("kind") if isinstance(value, Mapping) else getattr(value, "kind", None)
    if names_class(kind):
        return "<own>"
    known = kind_named(kind)
    return f"<{kind}>" if known is None else _tag(known)


def _tag(kind: WorldKind) -> str:
    return f"<{kind.names[0]}>"


def _known_kind(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    if "kind" not in value:
        advice = f"a world that is not called {one_of(KIND_NAMES)} must say which of them it is"
        raise InvalidValue(Problem((), "missing field 'kind'", advice=advice, missing="kind"))
    kind = value["kind"]
    if kind not in KIND_NAMES and not names_class(kind):
        advice = "a world of your own is named as module:Class"
        problem = Problem.unknown("kind of world", kind, KIND_NAMES, "kind", expected=one_of(KIND_NAMES), advice=advice)
        raise InvalidValue(problem)
    return value


if TYPE_CHECKING:
    WorldField = WorldSettings
else:
    WorldField = Annotated[
        Union[
            *(Annotated[kind.settings, _plausible(kind.settings), Tag(_tag(kind))] for kind in KINDS),
            Annotated[OwnWorldSettings, Tag("<own>")],
        ],
        Discriminator(
            _world_kind,
            custom_error_type="shoal_world",
            custom_error_message="a mapping of settings such as {kind: room}",
        ),
        BeforeValidator(_known_kind),
    ]
_WORLD: TypeAdapter[WorldSettings] = TypeAdapter(WorldField)
Worlds = Annotated[dict[str, WorldField], BeforeValidator(_worlds)]


class OwnMindSettings(DeclaredModel):
    """A mind of the user's own making."""

    kind: Text = Field(description="Where its class is, as module:Class.")
    settings: dict[str, Any] = Field(default_factory=dict, description="What the class is given.")
    latency: Latency | None = Field(default=None, description="Let decisions take time and be journaled.")


def _mind(value: object) -> object:
    """A word is a mind with its usual settings; settings without a kind are those of the heuristic mind."""
    if isinstance(value, str):
        if value not in MINDS and not names_class(value):
            raise InvalidValue(Problem.unknown("mind", value, MINDS, expected=one_of(MINDS)))
        return {"kind": value}
    if not isinstance(value, Mapping):
        return value
    kind = value.get("kind", "heuristic")
    if kind not in MINDS and not names_class(kind):
        raise InvalidValue(Problem.unknown("mind", kind, MINDS, "kind", expected=one_of(MINDS)))
    return {"kind": kind, **value}


def _mind_kind(value: object) -> str | None:
    kind = value.get("kind") if isinstance(value, Mapping) else getattr(value, "kind", None)
    return "<own>" if names_class(kind) else f"<{kind}>"


MindField = Annotated[
    Annotated[HeuristicSettings, _plausible(HeuristicSettings), Tag("<heuristic>")]
    | Annotated[ScriptedSettings, _plausible(ScriptedSettings), Tag("<scripted>")]
    | Annotated[LanguageSettings, _plausible(LanguageSettings), Tag("<language>")]
    | Annotated[OwnMindSettings, Tag("<own>")],
    Discriminator(
        _mind_kind,
        custom_error_type="shoal_mind",
        custom_error_message="heuristic, scripted, or a mapping of settings",
    ),
    BeforeValidator(_mind),
]


def _rounds_needed(worlds: object) -> int | None:
    """Return the rounds after which all worlds are over by themselves; None where one of them goes on."""
    try:
        named = _worlds(worlds)
        assert isinstance(named, Mapping)
        needed = [_WORLD.validate_python(world).rounds_needed() for world in named.values()]
    except (ValueError, AssertionError):
        return None
    return None if None in needed else min(max(rounds for rounds in needed if rounds is not None), MAX_ROUNDS)


class BudgetSettings(DeclaredModel):
    """What language models may cost. Reaching any of it stops the run cleanly; it goes on with a larger one."""

    max_cost: Annotated[Number, Field(gt=0)] | None = Field(default=None, description="US dollars.")
    max_tokens: Annotated[Whole, Field(ge=1)] | None = Field(default=None, description="Tokens sent and received.")
    max_calls: Annotated[Whole, Field(ge=1)] | None = Field(default=None, description="Calls that are answered.")


#: Decisions made at once by minds that ask something else than a model of a known server.
USUAL_WORKERS = 64


class Scenario(DeclaredModel):
    """Everything that a user declares about a run."""

    name: Annotated[Text, Field(max_length=80)] = Field(default="scenario", description="Letters, digits, - and _.")
    topic: Text | None = Field(default=None, description="What people talk about, for example: the old bridge.")
    seed: Whole = Field(default=1, description="Everything drawn at random follows from it.")
    rounds: Annotated[Whole, Field(ge=1, le=MAX_ROUNDS)] = Field(default=24, description="How many rounds to run.")
    time: Annotated[TimeSettings, _plausible(TimeSettings)] = Field(
        default=TimeSettings(), description="How simulated time passes."
    )
    population: Entries = Field(description="Groups, people and files of people; their order numbers them from 0.")
    follows: Follows = Field(default=FollowSettings(), description="Who follows whom when the run starts.")
    worlds: Worlds = Field(
        default=DEFAULT_WORLDS,
        description="Where people meet: names, or names with settings.",
    )
    mind: MindField = Field(default=HeuristicSettings(), description="What makes the decisions.")
    events: tuple[EventField, ...] = Field(default=(), description="What is made to happen, and when.")
    interventions: tuple[Intervention, ...] = Field(
        default=(), description="What is made to happen when something has happened."
    )
    play: tuple[Who, ...] = Field(default=(), description="Names or numbers of those whose turns a person takes.")
    max_workers: Annotated[Whole, Field(ge=1)] | None = Field(
        default=None,
        description="Decisions made at once, at most. By default as many as the provider of the model turns out to "
        "allow; and 64 where something else is asked.",
    )
    deadline_seconds: Annotated[Number, Field(gt=0)] = Field(
        default=300.0, description="An agent that takes longer than this to decide does nothing that round."
    )
    budget: BudgetSettings = Field(default=BudgetSettings(), description="What language models may cost.")
    metrics: bool = Field(default=True, description="Whether steps and decisions are timed.")
    notes: dict[str, Any] = Field(
        default_factory=dict, description="Anything worth keeping with it; nothing that happens depends on it."
    )

    @property
    def workers(self) -> int:
        """How many decisions at once, where that is not learned."""
        return self.max_workers or USUAL_WORKERS

    @model_validator(mode="before")
    @classmethod
    def _whole_conversations(cls, value: Any) -> Any:
        """Conversations come to their end unless the number of rounds says otherwise."""
        if not isinstance(value, Mapping) or "rounds" in value:
            return value
        needed = _rounds_needed(value.get("worlds"))
        return value if needed is None else {**value, "rounds": needed}

    @field_validator("name")
    @classmethod
    def _file_name(cls, value: str) -> str:
        if not value.replace("-", "a").replace("_", "a").isalnum() or not value.isascii():
            raise InvalidValue(Problem((), expected="letters, digits, - and _ only", found=repr(value)))
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        problems = list(find_problems(self))
        if problems:
            raise InvalidValue(*problems)
        return self
