"""The mind of a scenario as declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Field, Tag

from shoal.agents import HeuristicSettings, LanguageSettings, Latency, ScriptedSettings
from shoal.scenario.fields import DeclaredModel, Text, refuse_coercion
from shoal.scenario.plugins import names_class
from shoal.scenario.validation.problems import InvalidValue, Problem
from shoal.text import one_of

MINDS = ("heuristic", "scripted", "language")


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


def find_mind_tag(value: object) -> str:
    kind = value.get("kind") if isinstance(value, Mapping) else getattr(value, "kind", None)
    return "<own>" if names_class(kind) else f"<{kind}>"


MindField = Annotated[
    Annotated[HeuristicSettings, refuse_coercion(HeuristicSettings), Tag("<heuristic>")]
    | Annotated[ScriptedSettings, refuse_coercion(ScriptedSettings), Tag("<scripted>")]
    | Annotated[LanguageSettings, refuse_coercion(LanguageSettings), Tag("<language>")]
    | Annotated[OwnMindSettings, Tag("<own>")],
    Discriminator(
        find_mind_tag,
        custom_error_type="shoal_mind",
        custom_error_message="heuristic, scripted, or a mapping of settings",
    ),
    BeforeValidator(parse_mind),
]
