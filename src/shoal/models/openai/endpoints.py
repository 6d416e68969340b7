"""Endpoints of models: address and key, from environment variables under their usual names."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from shoal.errors import RunRefused
from shoal.models.costs import Price, find_price
from shoal.models.http.routes import is_loopback
from shoal.models.local import ModelStore, is_local
from shoal.text import nearest


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one server. Its representations hide the key."""

    #: As the server names it.
    model: str
    base_url: str
    key: str | None = None
    #: Where the key came from, for messages.
    key_variable: str | None = None
    #: As the scenario gives it; None means as in the table of prices.
    price: Price | None = None
    #: The file of a model that Shoal serves on this machine itself.
    file: Path | None = None
    #: Answers at once that such a server gives.
    slots: int | None = None
    #: Tokens of line breaks, which such a server leaves out of JSON.
    line_breaks: tuple[int, ...] = ()

    def find_price(self, name: str) -> Price | None:
        """Find what this model costs, by its name in the scenario; None where that is not known.

        A server on this machine or in the private network costs nothing, unless the table has a price for the model:
        then it is a proxy of the provider, or rehearses for it.
        """
        return self.price or find_price(name) or (Price(0.0, 0.0) if self.is_own_server else None)

    def is_taken_to_be_free(self, name: str) -> bool:
        """Return whether this model counts as $0 only because of where its server is."""
        return self.file is None and self.price is None and find_price(name) is None and self.is_own_server

    @property
    def is_own_server(self) -> bool:
        """Whether the server is on this machine or in the private network."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ip_address(host).is_private
        except ValueError:
            return is_loopback(host) or host.endswith(".local")

    @property
    def server(self) -> str:
        """What serves the model, the same in every run: a server on this machine has another address each time."""
        return self.base_url if self.file is None else f"{self.file} {self.file.stat().st_mtime_ns}"

    def __repr__(self) -> str:
        return f"Endpoint(model={self.model!r}, base_url={self.base_url!r}, key={'hidden' if self.key else None})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("model", self.model), ("base_url", self.base_url)]


class Provider(NamedTuple):
    base_url: str
    key_variable: str | None


PROVIDERS = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": Provider("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    "cerebras": Provider("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "gemini": Provider("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "lambda": Provider("https://api.lambda.ai/v1", "LAMBDA_API_KEY"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "xai": Provider("https://api.x.ai/v1", "XAI_API_KEY"),
    "llamacpp": Provider("http://localhost:8080/v1", None),
    "lmstudio": Provider("http://localhost:1234/v1", None),
    "ollama": Provider("http://localhost:11434/v1", None),
    "vllm": Provider("http://localhost:8000/v1", None),
}


def resolve_endpoint(
    model: str,
    *,
    base_url: str | None,
    key_variable: str | None,
    environ: Mapping[str, str],
    price: Price | None = None,
) -> Endpoint:
    """Find where `model` is served, for example `openai/gpt-4.1-mini`; raise RunRefused where that is not clear.

    `OPENAI_BASE_URL` (or the same for another provider) points a provider's models to another server. A server other
    than the provider's own needs no key. Where the scenario gives the address, only a key that it names is sent there.
    A model on this machine has its file, and an address once it is served.
    """
    if is_local(model):
        file = ModelStore.of_user(environ).find_chat_model(model)
        return Endpoint(model=file.stem, base_url="", file=file, price=price)
    prefix, slash, name = model.partition("/")
    if not slash:
        prefix, name = "openai", model
    provider = PROVIDERS.get(prefix)
    if provider is None:
        if not (base_url or environ.get("OPENAI_BASE_URL")):
            near = nearest(prefix, PROVIDERS)
            hint = f"Did you mean {near}/{name}? " if near else ""
            raise RunRefused(
                f"{model}: no provider is called {prefix!r}. {hint}Known are {', '.join(PROVIDERS)}.\n"
                "For any other OpenAI-compatible server, give its address: set OPENAI_BASE_URL, or base_url in the "
                "scenario."
            )
        # A name that starts with no provider is a name on the given server.
        prefix, name, provider = "openai", model, PROVIDERS["openai"]
    elsewhere = base_url or environ.get(f"{prefix.upper()}_BASE_URL") or None
    needs_key = key_variable is not None or elsewhere is None
    variable = key_variable or (None if base_url else provider.key_variable)
    return Endpoint(
        model=name,
        base_url=_check_address(model, elsewhere or provider.base_url),
        key=_read_key(model, variable, environ, needed=needs_key),
        key_variable=variable,
        price=price,
    )


def _check_address(model: str, base_url: str) -> str:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RunRefused(f"{model}: {base_url!r} is no address of a server; it looks like http://localhost:8000/v1")
    if parts.username or parts.password:
        raise RunRefused(f"{model}: the address of a server must not hold a password; name a variable with the key")
    return base_url.rstrip("/")


def _read_key(model: str, variable: str | None, environ: Mapping[str, str], *, needed: bool) -> str | None:
    key = environ.get(variable, "").strip() if variable else ""
    if not key:
        if needed and variable:
            raise RunRefused(
                f"{model} needs a key, and {variable} is not set. Set it (export {variable}=...), or point "
                "OPENAI_BASE_URL to a server that needs none; `shoal rehearse` is one."
            )
        return None
    if not key.isascii() or not key.isprintable() or " " in key:
        raise RunRefused(f"{variable} holds something that cannot be a key: only ASCII, without spaces, can be sent")
    return key
