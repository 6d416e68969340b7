"""The worlds and the mind of a scenario as declared: their kinds and settings.

Classes of the user's own are named as `module:Class`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, TypeAdapter

from shoal.agents import HeuristicSettings, LanguageSettings, Latency, ScriptedSettings
from shoal.engine import Variable
from shoal.scenario.fields import DeclaredModel, Text, refuse_coercion
from shoal.scenario.validation.problems import EXPECTED, InvalidValue, Problem
from shoal.text import one_of
from shoal.worlds import KIND_NAMES, KINDS, WorldSettings, kind_named

#: Folders that a run directory has already; a world's folder stands beside them.
RESERVED_WORLDS = ("ipc_commands", "ipc_responses", "inputs")
_MAX_NAME_CHARS = 40
MINDS = ("heuristic", "scripted", "language")


def names_class(kind: object) -> bool:
    """Return whether a kind names a class, and not one of Shoal's kinds."""
    return isinstance(kind, str) and ":" in kind


def name_class(found: type | Callable[..., object]) -> str:
    """Return what to write into a scenario so that the class or function is found again."""
    return f"{found.__module__}:{found.__qualname__}"


class OwnWorldSettings(DeclaredModel, WorldSettings):
    """A world of the user's own making."""

    kind: Text = Field(description="Where its class is, as module:Class.")
    settings: dict[str, Any] = Field(default_factory=dict, description="Passed to the class.")
    mind: Text | None = Field(default=None, description="Where the class of its mind is; default: as the class says.")


def parse_worlds(value: object) -> object:
    """Turn `[twitter]` and `{twitter: null}` into `{twitter: {kind: twitter}}`."""
    if isinstance(value, (list, tuple)) and value:
        return _parse_world_list(value)
    if not isinstance(value, Mapping) or not value:
        expected = "a list such as [twitter, reddit], or a mapping of names to settings"
        raise InvalidValue(Problem.mismatch(expected, value))
    problems = []
    for name in map(str, value):
        if name in RESERVED_WORLDS:
            text = f"a world cannot be called {name!r}: a run keeps a folder of that name"
        elif not (name[:1].isalpha() and name.replace("-", "a").replace("_", "a").isalnum()) or not name.isascii():
            text = f"{name!r} cannot name a world; use small letters, digits, - and _"
        elif name != name.lower() or len(name) > _MAX_NAME_CHARS:
            text = f"{name!r} cannot name a world; use at most {_MAX_NAME_CHARS} small letters, digits, - and _"
        else:
            continue
        problems.append(Problem((name,), text, at_key=True))
    if problems:
        raise InvalidValue(*problems)
    worlds = {name: {} if settings is None else settings for name, settings in value.items()}
    for name, settings in worlds.items():
        if isinstance(settings, Mapping) and "kind" not in settings and name in KIND_NAMES:
            worlds[name] = {"kind": name, **settings}
    return worlds


def _parse_world_list(names: list[Any] | tuple[Any, ...]) -> dict[str, Any]:
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


def require_known_kind(value: object) -> object:
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


def find_kind_tag(value: object) -> str:
    """Return the tag of the settings that validate a value: its kind, or `<own>` for a class of the user's own."""
    kind = value.get("kind") if isinstance(value, Mapping) else getattr(value, "kind", None)
    known = kind_named(kind)
    if known is not None:
        return f"<{known.names[0]}>"
    return "<own>" if names_class(kind) else f"<{kind}>"


if TYPE_CHECKING:
    WorldField = WorldSettings
else:
    WorldField = Annotated[
        Union[
            *(Annotated[kind.settings, refuse_coercion(kind.settings), Tag(f"<{kind.names[0]}>")] for kind in KINDS),
            Annotated[OwnWorldSettings, Tag("<own>")],
        ],
        Discriminator(
            find_kind_tag,
            custom_error_type=EXPECTED,
            custom_error_message="a mapping of settings such as {kind: room}",
        ),
        BeforeValidator(require_known_kind),
    ]
Worlds = Annotated[dict[str, WorldField], BeforeValidator(parse_worlds)]
_WORLDS: TypeAdapter[dict[str, WorldSettings]] = TypeAdapter(Worlds)


def count_rounds_needed(worlds: object) -> int | None:
    """Return the rounds after which all worlds are over by themselves; None where one goes on, or is invalid."""
    try:
        needed = [world.rounds_needed() for world in _WORLDS.validate_python(worlds).values()]
    except ValueError:
        return None
    return None if None in needed else max(rounds for rounds in needed if rounds is not None)


class OwnMindSettings(DeclaredModel):
    """A mind of the user's own making."""

    kind: Text = Field(description="Where its class is, as module:Class.")
    settings: dict[str, Any] = Field(default_factory=dict, description="Passed to the class.")
    latency: Latency | None = Field(default=None, description="Let decisions take time and be journaled.")


def parse_mind(value: object) -> object:
    """Expand the short form, the kind alone. Settings without a kind are those of the heuristic mind."""
    if not isinstance(value, str | Mapping):
        return value
    kind = value if isinstance(value, str) else value.get("kind", "heuristic")
    if kind not in MINDS and not names_class(kind):
        path = () if isinstance(value, str) else ("kind",)
        raise InvalidValue(Problem.unknown("mind", kind, MINDS, *path, expected=one_of(MINDS)))
    return {"kind": kind} if isinstance(value, str) else {"kind": kind, **value}


def name_variables(value: object) -> object:
    """Replace functions with `@shoal.variable` by where they are found: `module:name`."""
    if not isinstance(value, list | tuple):
        return value
    return tuple(each.place if isinstance(each, Variable) else each for each in value)


def check_place(value: str) -> str:
    if not names_class(value):
        raise InvalidValue(Problem.mismatch("a function as module:function", value))
    return value


#: A function of the user's own.
FunctionPlace = Annotated[Text, AfterValidator(check_place)]
Variables = Annotated[tuple[FunctionPlace, ...], BeforeValidator(name_variables)]

MindField = Annotated[
    Annotated[HeuristicSettings, refuse_coercion(HeuristicSettings), Tag("<heuristic>")]
    | Annotated[ScriptedSettings, refuse_coercion(ScriptedSettings), Tag("<scripted>")]
    | Annotated[LanguageSettings, refuse_coercion(LanguageSettings), Tag("<language>")]
    | Annotated[OwnMindSettings, Tag("<own>")],
    Discriminator(
        find_kind_tag,
        custom_error_type=EXPECTED,
        custom_error_message="heuristic, scripted, or a mapping of settings",
    ),
    BeforeValidator(parse_mind),
]
