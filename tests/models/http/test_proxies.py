"""Which proxy a request goes through."""

from __future__ import annotations

import pytest

from shoal.errors import RunRefused
from shoal.models.http.messages import Origin
from shoal.models.http.routes import Proxies

HTTP, HTTPS = Origin("http", "api.example.com", 80), Origin("https", "api.example.com", 443)


def find_proxy(origin: Origin, **environ: str) -> str | None:
    proxy = Proxies.of(environ).find(origin)
    return None if proxy is None else proxy.origin.authority


def test_each_scheme_has_its_own() -> None:
    both = {"HTTP_PROXY": "http://one:3128", "HTTPS_PROXY": "http://two:8080/"}
    assert (find_proxy(HTTP, **both), find_proxy(HTTPS, **both)) == ("one:3128", "two:8080")
    assert find_proxy(HTTPS, HTTP_PROXY="http://one:3128") is None
    assert find_proxy(HTTPS) is None


def test_small_letters_count_more_and_one_may_stand_for_all() -> None:
    assert find_proxy(HTTPS, HTTPS_PROXY="http://two", https_proxy="http://small") == "small:80"
    assert find_proxy(HTTPS, ALL_PROXY="http://all:1") == "all:1"
    assert find_proxy(HTTPS, ALL_PROXY="http://all:1", HTTPS_PROXY="http://two") == "two:80"


def test_an_address_may_lack_its_scheme() -> None:
    assert find_proxy(HTTPS, HTTPS_PROXY="proxy:3128") == "proxy:3128"


@pytest.mark.parametrize(
    ("names", "goes"),
    [
        ("api.example.com", False),
        ("example.com", False),
        (".example.com", False),
        ("*.example.com", False),
        ("other.org, API.example.com", False),
        ("api.example.com:443", False),
        ("api.example.com:8080", True),
        ("*", False),
        ("ample.com", True),
        ("other.org", True),
        ("", True),
    ],
)
def test_some_need_none(names: str, goes: bool) -> None:
    assert (find_proxy(HTTPS, HTTPS_PROXY="http://two", NO_PROXY=names) is not None) == goes


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.3.2.1", "::1", "shoal.localhost"])
def test_this_machine_is_never_reached_through_another(host: str) -> None:
    assert find_proxy(Origin("http", host, 8000), HTTP_PROXY="http://one:3128") is None


def test_a_name_and_password_are_sent_and_show_nowhere() -> None:
    proxy = Proxies.of({"HTTPS_PROXY": "http://me:se%20cret@two:8080"}).find(HTTPS)
    assert proxy is not None
    assert proxy.headers == {"Proxy-Authorization": "Basic bWU6c2UgY3JldA=="}
    assert "bWU6" not in repr(proxy)
    assert "cret" not in repr(proxy)


@pytest.mark.parametrize("address", ["socks5://me:pass@two:1080", "https://two:443", "http://:80", "http://two:port"])
def test_a_proxy_of_another_kind_is_refused_without_repeating_its_password(address: str) -> None:
    with pytest.raises(RunRefused, match="HTTPS_PROXY is no address of a proxy that can be used") as caught:
        Proxies.of({"HTTPS_PROXY": address})
    assert address.partition("//")[2] not in str(caught.value)
