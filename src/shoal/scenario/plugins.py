"""Worlds and minds of the user's own making, named as `module:Class`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from shoal.errors import ScenarioInvalid, ShoalError
from shoal.types import Mind
from shoal.worlds.base import BaseWorld


def is_own(kind: object) -> bool:
    """Whether a kind names a class, and not one of Shoal's kinds."""
    return isinstance(kind, str) and ":" in kind


def name_of(found: type) -> str:
    """What to write into a scenario for a class, so that it is found again."""
    return f"{found.__module__}:{found.__qualname__}"


def world(kind: str, field: str) -> Any:
    found = _find(kind, field)
    if not issubclass(found, BaseWorld):
        raise ScenarioInvalid([f"{field}: {kind} is not a world; it must be a subclass of shoal.BaseWorld"])
    return found


def mind(kind: str, field: str) -> Any:
    found = _find(kind, field)
    if not issubclass(found, Mind):
        raise ScenarioInvalid([f"{field}: {kind} is not a mind; it must be a subclass of shoal.Mind"])
    return found


def _find(kind: str, field: str) -> Any:
    """The class; ScenarioInvalid with what to do where there is none."""
    module, _, name = kind.partition(":")
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        raise ScenarioInvalid([f"{field}: cannot import {module!r}: {error}{_advice(module)}"]) from error
    except Exception as error:
        # Whatever the module does when it is imported is the user's own code.
        raise ScenarioInvalid([f"{field}: cannot import {module!r}: {type(error).__name__}: {error}"]) from error
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise ScenarioInvalid([f"{field}: there is no {name!r} in {module!r}{_advice(module)}"])
    if not isinstance(found, type):
        raise ScenarioInvalid([f"{field}: {kind} is not a class"])
    return found


def instantiate(found: Any, field: str, *given: Any) -> Any:
    """An object of a class of the user's; ScenarioInvalid where it cannot be made."""
    try:
        return found(*given)
    except ShoalError:
        raise
    except Exception as error:
        raise ScenarioInvalid(
            [f"{field}: {name_of(found)} cannot be built: {type(error).__name__}: {error}"]
        ) from error


def _advice(module: str) -> str:
    if module == "__main__":
        return "; it was defined in a script or notebook: run that again, or put the class into a module"
    return "; run from the folder that the module is in, or install it"
