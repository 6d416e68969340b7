"""World and mind classes of the user's own, named as `module:Class`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from shoal.errors import ScenarioInvalid, ShoalError
from shoal.types import Mind
from shoal.worlds import BaseWorld


def names_class(kind: object) -> bool:
    """Return whether a kind names a class, and not one of Shoal's kinds."""
    return isinstance(kind, str) and ":" in kind


def name_class(found: type) -> str:
    """Return what to write into a scenario so that the class is found again."""
    return f"{found.__module__}:{found.__qualname__}"


def find_world_class(kind: str, field: str) -> Any:
    found = _find_class(kind, field)
    if not issubclass(found, BaseWorld):
        raise ScenarioInvalid([f"{field}: {kind} is not a world; it must be a subclass of shoal.BaseWorld"])
    return found


def find_mind_class(kind: str, field: str) -> Any:
    found = _find_class(kind, field)
    if not issubclass(found, Mind):
        raise ScenarioInvalid([f"{field}: {kind} is not a mind; it must be a subclass of shoal.Mind"])
    return found


def _find_class(kind: str, field: str) -> Any:
    """Import the class; ScenarioInvalid says what to do where that fails."""
    module, _, name = kind.partition(":")
    advice = (
        "it was defined in a script or notebook: run that again, or put the class into a module"
        if module == "__main__"
        else "run from the folder that the module is in, or install it"
    )
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        raise ScenarioInvalid([f"{field}: cannot import {module!r}: {error}; {advice}"]) from error
    except Exception as error:
        # The module is the user's own code, and may fail in any way when it is imported.
        raise ScenarioInvalid([f"{field}: cannot import {module!r}: {type(error).__name__}: {error}"]) from error
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise ScenarioInvalid([f"{field}: there is no {name!r} in {module!r}; {advice}"])
    if not isinstance(found, type):
        raise ScenarioInvalid([f"{field}: {kind} is not a class"])
    return found


def instantiate(found: Any, field: str, *arguments: Any) -> Any:
    """Make an object of a class of the user's; ScenarioInvalid where that fails."""
    try:
        return found(*arguments)
    except ShoalError:
        raise
    except Exception as error:
        raise ScenarioInvalid(
            [f"{field}: {name_class(found)} cannot be built: {type(error).__name__}: {error}"]
        ) from error
