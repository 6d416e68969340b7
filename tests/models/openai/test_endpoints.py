from __future__ import annotations

from collections.abc import Mapping

import pytest
from rich.console import Console

from shoal.errors import RunRefused
from shoal.models.openai.endpoints import PROVIDERS, Endpoint, resolve_endpoint
from tests.models.fakes import KEY


def find(model: str, environ: Mapping[str, str], base_url: str | None = None, variable: str | None = None) -> Endpoint:
    return resolve_endpoint(model, base_url=base_url, key_variable=variable, environ=environ)


@pytest.mark.parametrize("prefix", [name for name, provider in PROVIDERS.items() if provider.key_variable])
def test_a_provider_has_its_address_and_its_variable(prefix: str) -> None:
    found = find(f"{prefix}/some/model-1", {f"{prefix.upper()}_API_KEY": KEY})
    assert (found.model, found.base_url, found.key) == ("some/model-1", PROVIDERS[prefix].base_url, KEY)
    assert found.base_url.startswith("https://")


@pytest.mark.parametrize("prefix", ["ollama", "vllm", "llamacpp", "lmstudio"])
def test_a_server_on_this_machine_needs_no_key(prefix: str) -> None:
    found = find(f"{prefix}/llama3.2", {"OPENAI_API_KEY": KEY})
    assert found.base_url.startswith("http://localhost:")
    assert found.key is None


def test_a_name_without_a_provider_is_one_of_openai() -> None:
    assert find("gpt-4.1-mini", {"OPENAI_API_KEY": KEY}).base_url == "https://api.openai.com/v1"


def test_the_environment_points_openai_elsewhere_and_no_key_is_needed_there() -> None:
    found = find("openai/any", {"OPENAI_BASE_URL": "http://localhost:9000/v1/"})
    assert (found.base_url, found.key) == ("http://localhost:9000/v1", None)


def test_a_key_goes_along_to_where_the_environment_points() -> None:
    assert find("openai/any", {"OPENAI_BASE_URL": "http://proxy/v1", "OPENAI_API_KEY": KEY}).key == KEY


def test_a_name_with_an_unknown_start_is_what_the_given_server_calls_it() -> None:
    found = find("meta-llama/Llama-3", {"OPENAI_BASE_URL": "http://localhost:8000/v1"})
    assert found.model == "meta-llama/Llama-3"


def test_a_scenario_that_gives_an_address_gets_only_the_key_that_it_names() -> None:
    environ = {"OPENAI_API_KEY": KEY, "MINE": "other-key"}
    assert find("openai/any", environ, base_url="http://elsewhere/v1").key is None
    assert find("openai/any", environ, base_url="http://elsewhere/v1", variable="MINE").key == "other-key"


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        pytest.param("openai/gpt-4.1", {}, "OPENAI_API_KEY is not set", id="no key"),
        pytest.param("groq/llama", {"environ": {"GROQ_API_KEY": "  "}}, "GROQ_API_KEY is not set", id="empty key"),
        pytest.param("ollama/x", {"variable": "MINE"}, "MINE is not set", id="the named key"),
        pytest.param("opanai/gpt-4.1", {}, "Did you mean openai/gpt-4.1", id="a slip"),
        pytest.param("acme/gpt", {}, "set OPENAI_BASE_URL", id="unknown provider"),
        pytest.param("openai/x", {"base_url": "localhost:8000"}, "is no address of a server", id="no scheme"),
        pytest.param("openai/x", {"base_url": "http://me:pw@host/v1"}, "must not hold a password", id="password"),
        pytest.param("openai/x", {"environ": {"OPENAI_API_KEY": "sk-\u200bhidden"}}, "cannot be a key", id="odd key"),
        pytest.param("openai/x", {"environ": {"OPENAI_API_KEY": "a\nb"}}, "cannot be a key", id="two lines"),
    ],
)
def test_a_missing_key_or_provider_is_named(model: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(RunRefused, match=words) as refused:
        find(model, **{"environ": {}, **options})  # type: ignore[arg-type]
    assert "pw" not in str(refused.value)
    assert "hidden" not in str(refused.value)


def test_a_key_shows_in_no_representation() -> None:
    found = find("openai/gpt-4.1", {"OPENAI_API_KEY": KEY})
    console = Console(width=200)
    with console.capture() as shown:
        console.print(found, [found])
    assert KEY not in f"{found!r} {found} {[found]} {shown.get()}"
