"""The built pages, as the server sends them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.server.conftest import Serve

TOKEN = "a-token-that-is-long-enough"


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A folder of built pages."""
    folder = tmp_path / "pages"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>Shoal</title>")
    (folder / "assets" / "index-a1b2.js").write_text("console.log(1)\n" * 100)
    (folder / "assets" / "inter-a1b2.woff2").write_bytes(b"font")
    (folder / "secret.txt").write_text("nobody's business")
    return folder


def test_the_page_is_asked_for_anew_and_its_files_are_kept_for_ever(serve: Serve, pages: Path) -> None:
    server = serve(pages=pages)
    index = server.request("GET", "/")
    assert index.status == 200
    assert index.headers["content-type"].startswith("text/html")
    assert index.headers["cache-control"] == "no-cache"
    script = server.request("GET", "/assets/index-a1b2.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert "immutable" in script.headers["cache-control"]
    assert server.get("list").headers["cache-control"] == "no-store"


def test_a_page_that_was_built_anew_is_sent_at_once(serve: Serve, pages: Path) -> None:
    server = serve(pages=pages)
    before = server.request("GET", "/").body
    (pages / "index.html").write_text("<!doctype html><title>Shoal, later</title>")
    assert server.request("GET", "/").body != before


def test_texts_are_compressed_for_browsers_that_take_that(serve: Serve, pages: Path) -> None:
    server = serve(pages=pages)
    plain = server.request("GET", "/assets/index-a1b2.js")
    packed = server.request("GET", "/assets/index-a1b2.js", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    font = server.request("GET", "/assets/inter-a1b2.woff2", headers={"Accept-Encoding": "gzip"})
    assert font.body == b"font"


def test_pages_may_load_and_run_nothing_but_their_own_files(serve: Serve, pages: Path) -> None:
    policy = serve(pages=pages).request("GET", "/").headers["content-security-policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["frame-ancestors"] == "'none'"
    assert "unsafe" not in policy
    assert "http" not in policy


def test_answers_of_the_api_are_no_pages(serve: Serve) -> None:
    policy = serve().get("list").headers["content-security-policy"]
    assert policy == "default-src 'none'; frame-ancestors 'none'"


def test_only_files_of_the_pages_are_sent(serve: Serve, pages: Path) -> None:
    server = serve(pages=pages)
    for name in ("..%2fsecret.txt", "../secret.txt", "%2e%2e/secret.txt", ".hidden", "a" * 300, "nothing.js", ""):
        assert server.request("GET", f"/assets/{name}").status == 404, name


def test_where_pages_were_not_built_the_server_says_what_to_do(serve: Serve, tmp_path: Path) -> None:
    answer = serve(pages=tmp_path / "nowhere").request("GET", "/")
    assert answer.status == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert b"SKIP_FRONTEND" in answer.body


def test_pages_need_no_token_and_what_they_show_does(serve: Serve, pages: Path) -> None:
    server = serve(pages=pages, token=TOKEN)
    assert server.request("GET", "/").status == 200
    assert server.request("GET", "/assets/index-a1b2.js").status == 200
    assert server.get("list").status == 401
    given = server.request("POST", "/api/session", {"token": TOKEN})
    assert "HttpOnly" in given.headers["set-cookie"]
    cookie = given.headers["set-cookie"].partition(";")[0]
    assert server.get("list", Cookie=cookie).status == 200
