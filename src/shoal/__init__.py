"""Shoal runs populations of agents as experiments: describe who meets where, run it, and keep its whole history.

Names are imported on first use, so `import shoal` costs next to nothing.
"""

from importlib import import_module

__version__ = "0.2.0"

__all__ = [
    # errors
    "ShoalError",
    # from a script or a notebook
    "Person",
    "Run",
    "World",
    "metric",
    "open",
    "open_experiment",
    "prepare",
    "rehearse",
    "run",
    "run_experiment",
    "run_many",
    "variable",
    # a server
    "Client",
    # input
    "Scenario",
    # base classes for worlds and minds
    "BaseWorld",
    "ViewObservation",
    "Rejected",
    # nouns
    "Action",
    "Decision",
    "Event",
    "Facts",
    "Mind",
    "Observation",
]

TYPE_CHECKING = False  # type checkers read this as true; `typing` itself would double the cost of the import
if TYPE_CHECKING:
    from shoal.engine.facts import Facts
    from shoal.engine.population import variable
    from shoal.errors import ShoalError
    from shoal.experiments.metrics.base import metric
    from shoal.python.batch import run_many
    from shoal.python.experiment import open_experiment, run_experiment
    from shoal.python.person import Person
    from shoal.python.preparation import prepare
    from shoal.python.rehearsal import rehearse
    from shoal.python.run import Run, open, run
    from shoal.python.world import World
    from shoal.scenario.scenario import Scenario
    from shoal.server.client import Client
    from shoal.types import Action, Decision, Event, Mind, Observation
    from shoal.worlds.base import BaseWorld, Rejected, ViewObservation
else:
    _HOMES = {
        "ShoalError": "shoal.errors",
        "Person": "shoal.python.person",
        "metric": "shoal.experiments.metrics.base",
        "Run": "shoal.python.run",
        "World": "shoal.python.world",
        "open": "shoal.python.run",
        "prepare": "shoal.python.preparation",
        "rehearse": "shoal.python.rehearsal",
        "run": "shoal.python.run",
        "open_experiment": "shoal.python.experiment",
        "run_experiment": "shoal.python.experiment",
        "run_many": "shoal.python.batch",
        "variable": "shoal.engine.population",
        "Client": "shoal.server.client",
        "Scenario": "shoal.scenario.scenario",
        "Action": "shoal.types",
        "Decision": "shoal.types",
        "Event": "shoal.types",
        "Facts": "shoal.engine.facts",
        "Mind": "shoal.types",
        "Observation": "shoal.types",
        "BaseWorld": "shoal.worlds.base",
        "ViewObservation": "shoal.worlds.base",
        "Rejected": "shoal.worlds.base",
    }

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module 'shoal' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
