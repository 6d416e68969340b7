"""Code of the user's own in files: metrics and judges, each loaded once, with failures named by file and line."""

from __future__ import annotations

import sys
from hashlib import blake2b
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from shoal.errors import QueryFailed
from shoal.experiments.metrics.base import Metric, OwnMetric, locate_failure
from shoal.text import hint, one_of


def load_own_metrics(path: Path, names: tuple[str, ...] = ()) -> list[Metric]:
    """Load the functions with `@shoal.metric` of a file, or some of them; QueryFailed says what is wrong with it."""
    module = load_module(path)
    found = {value.name: value.as_metric() for value in vars(module).values() if isinstance(value, OwnMetric)}
    if not found:
        raise QueryFailed(f"{path}: there is no metric in it; write @shoal.metric above a function")
    for name in names:
        if name not in found:
            raise QueryFailed(
                f"{path}: there is no metric {name!r}{hint(name, found) or '; there is ' + one_of(found)}"
            )
    return [found[name] for name in names or found]


def load_module(path: Path) -> ModuleType:
    """Run a Python file, once for each content that it has; QueryFailed says in which line it fails."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise QueryFailed(f"cannot read {path}: {error.strerror}") from None
    name = f"shoal_own_{blake2b(str(path.absolute()).encode() + content, digest_size=8).hexdigest()}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise QueryFailed(f"{path} is no Python file; its name must end in .py")
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        # The file is the user's own code, and may fail in any way.
        del sys.modules[name]
        raise QueryFailed(locate_failure(error, path)) from error
    return module


def digest_file(path: Path) -> str:
    """Identify the content of a file."""
    return blake2b(path.read_bytes(), digest_size=8).hexdigest()
