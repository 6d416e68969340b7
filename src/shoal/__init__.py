"""Shoal runs populations of agents as experiments: describe who meets where, run it, and keep its whole history.

Names are imported on first use, so `import shoal` costs next to nothing.
"""

from importlib import import_module

__version__ = "0.1.0"

__all__ = [
    # errors
    "ShoalError",
    # input
    "Scenario",
    # nouns
    "Action",
    "Decision",
    "Event",
    "Mind",
    "Observation",
]

TYPE_CHECKING = False  # type checkers read this as true; `typing` itself would double the cost of the import
if TYPE_CHECKING:
    from shoal.errors import ShoalError
    from shoal.scenario.models import Scenario
    from shoal.types import Action, Decision, Event, Mind, Observation
else:
    _HOMES = {
        "ShoalError": "shoal.errors",
        "Scenario": "shoal.scenario.models",
        "Action": "shoal.types",
        "Decision": "shoal.types",
        "Event": "shoal.types",
        "Mind": "shoal.types",
        "Observation": "shoal.types",
    }

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module 'shoal' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
