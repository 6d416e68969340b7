"""Opens the sinks that a scenario declares, with keys from the environment."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from shoal.errors import SinkFailed
from shoal.runs.directory import RunDirectory
from shoal.runs.sinks.follower import GRAPH
from shoal.scenario import SinkSettings
from shoal.sinks import BOLT_ADDRESS, ZEP_ADDRESS, BoltServer, BoltSink, GraphStore, Sink, ZepServer, ZepSink

ZEP = "zep.json"
_NAME_DIGITS = 6


def open_sink(run: RunDirectory, settings: SinkSettings, environ: Mapping[str, str]) -> Sink:
    """Open a sink; SinkFailed says what it lacks."""
    address, name = settings.address, name_history(run)
    match settings.kind:
        case "graph":
            return GraphStore(run.file(GRAPH))
        case "zep":
            key = environ.get(variable := settings.key_variable or "ZEP_API_KEY")
            if not key:
                raise SinkFailed(f"Zep needs a key: set {variable}")
            graph = settings.graph or run.scenario.notes.get("graph_id") or f"shoal-{run.path.name}"
            found = address or environ.get("ZEP_API_URL") or ZEP_ADDRESS
            return ZepSink(ZepServer(str(graph), key, found), name, run.file(ZEP))
        case "neo4j":
            password = environ.get(settings.key_variable or "NEO4J_PASSWORD")
            found = address or environ.get("NEO4J_URI") or BOLT_ADDRESS
            return BoltSink(BoltServer(found, settings.user, password, settings.database), name)


def name_history(run: RunDirectory) -> str:
    """Return the name of a run on servers that several machines write to: runs of the same name differ there."""
    made = hashlib.sha256(run.config.generated_at.encode()).hexdigest()
    return f"{run.path.name}-{made[:_NAME_DIGITS]}"
