"""Serves the built pages: index.html, and its files, whose names say what is in them."""

from __future__ import annotations

import gzip
import mimetypes
import re
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import Request, Response

_ASSET_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,200}")
_INDEX_FILE = "index.html"
#: Compressing these again makes them no smaller.
_PACKED = frozenset({".woff2", ".png", ".gz"})
#: Scripts and styles come from these files only, nothing is loaded from elsewhere, and no text is ever run as code.
_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "font-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "worker-src 'self' blob:",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)


@dataclass(frozen=True, slots=True)
class PageFile:
    """A built file as it is sent."""

    content: bytes
    packed: bytes | None
    media_type: str

    @classmethod
    def read(cls, path: Path) -> PageFile:
        content = path.read_bytes()
        media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        packed = None if path.suffix in _PACKED else gzip.compress(content, 9, mtime=0)
        return cls(content, packed, media_type)

    def respond(self, request: Request, cache: str) -> Response:
        """Answer with the file, compressed where the browser takes that."""
        headers = {"content-security-policy": _POLICY, "cache-control": cache, "vary": "accept-encoding"}
        if self.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.packed, headers=headers | {"content-encoding": "gzip"}, media_type=self.media_type)
        return Response(self.content, headers=headers, media_type=self.media_type)


@dataclass(slots=True)
class PageFiles:
    """The built pages in a folder. What was read is kept: a file of another content has another name."""

    folder: Path
    _read: dict[str, PageFile] = field(default_factory=dict)

    @property
    def are_built(self) -> bool:
        return (self.folder / _INDEX_FILE).is_file()

    def read_index(self) -> PageFile:
        """Read the page that names all others. It changes with every build."""
        return PageFile.read(self.folder / _INDEX_FILE)

    def find_asset(self, name: str) -> PageFile | None:
        if name not in self._read:
            path = self.folder / "assets" / name
            if not _ASSET_NAME.fullmatch(name) or not path.is_file():
                return None
            self._read[name] = PageFile.read(path)
        return self._read[name]
