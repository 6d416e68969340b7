"""Addresses, and what a request begins with."""

from __future__ import annotations

import pytest

from shoal.errors import RunRefused
from shoal.models.http.messages import HttpRequest, HttpTarget

SECRET = {"Authorization": "Bearer sk-secret"}


@pytest.mark.parametrize(
    ("url", "origin", "path", "host"),
    [
        ("https://api.example.com/v1/chat", ("https", "api.example.com", 443), "/v1/chat", "api.example.com"),
        ("http://localhost:8000/v1", ("http", "localhost", 8000), "/v1", "localhost:8000"),
        ("http://[::1]:8000/v1", ("http", "::1", 8000), "/v1", "[::1]:8000"),
        ("https://[::1]/v1", ("https", "::1", 443), "/v1", "[::1]"),
        ("https://host:80/", ("https", "host", 80), "/", "host:80"),
        ("http://host:80/", ("http", "host", 80), "/", "host"),
        ("http://host", ("http", "host", 80), "/", "host"),
        ("http://HOST/a b/ü?version=1&x=%20", ("http", "host", 80), "/a%20b/%C3%BC?version=1&x=%20", "host"),
        ("http://bücher.example/v1", ("http", "xn--bcher-kva.example", 80), "/v1", "xn--bcher-kva.example"),
    ],
)
def test_an_address_is_taken_apart(url: str, origin: tuple[str, str, int], path: str, host: str) -> None:
    target = HttpTarget(url, {})
    assert (target.origin, target.path) == (origin, path)
    assert target.head() == f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: ".encode()


@pytest.mark.parametrize("url", ["ftp://host/", "host", "http://host:99999/", "http://host:port/", "http://a..b/", ""])
def test_what_is_no_address_is_refused_with_a_message(url: str) -> None:
    with pytest.raises(RunRefused, match="is no address of a server"):
        HttpTarget(url, {})


def test_nothing_can_be_slipped_in_by_an_address() -> None:
    head = HttpTarget("http://host/v1\r\nEvil: 1\r\n\r\n", {}).head()
    assert head.count(b"\r\n") == 2
    assert b"\r\nEvil" not in head


def test_a_proxy_gets_the_absolute_url() -> None:
    head = HttpTarget("http://host:8000/v1", {"A": "1"}).head({"Proxy-Authorization": "Basic x"})
    assert head.startswith(
        b"POST http://host:8000/v1 HTTP/1.1\r\nHost: host:8000\r\nA: 1\r\nProxy-Authorization: Basic x"
    )


def test_neither_key_nor_prompt_shows() -> None:
    request = HttpRequest(HttpTarget("http://host/v1", SECRET), b"a private prompt", 5)
    for shown in (repr(request), str(request), repr(request.target), repr(request.__rich_repr__())):
        assert "http://host/v1" in shown
        assert "secret" not in shown
        assert "private" not in shown
