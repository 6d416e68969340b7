"""The pages: one that names all others, and the files that it is made of."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from shoal.server.api.context import Context, in_thread
from shoal.server.api.guard import ASSETS, INDEX

router = APIRouter(include_in_schema=False)

_NOT_BUILT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Shoal</title>
<h1>The pages were not built</h1>
<p>This Shoal was installed without its pages (SKIP_FRONTEND). The HTTP API works.</p>
<p>Install it again without SKIP_FRONTEND, or run <code>scripts/pages</code> in its source folder.</p>
<p>In a terminal, <code>shoal list</code> and <code>shoal report</code> show the same runs.</p>
</html>
"""


@router.get(INDEX)
async def get_index(request: Request, context: Context) -> Response:
    """Return the page."""
    if not context.pages.are_built:
        headers = {"content-security-policy": "default-src 'none'; frame-ancestors 'none'"}
        return Response(_NOT_BUILT, 404, headers, "text/html")
    return (await in_thread(context.pages.read_index)).respond(request, "no-cache")


@router.get(ASSETS + "{name}")
async def get_asset(name: str, request: Request, context: Context) -> Response:
    """Return a file of the pages, which a browser may keep for ever."""
    found = await in_thread(context.pages.find_asset, name)
    if found is None:
        return Response("there is no such file; load the page anew", 404, media_type="text/plain")
    return found.respond(request, "public, max-age=31536000, immutable")
