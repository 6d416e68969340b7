"""The settings a server starts with: where its runs are, who may talk to it, and how much of it."""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from shoal.errors import ArgumentInvalid
from shoal.experiments import RESULTS_FOLDER
from shoal.runs import RUNS

DEFAULT_PORT = 5001
#: Where `web/build.py` puts the pages.
PAGES = Path(__file__).parent.parent / "pages"
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_MIN_TOKEN_CHARS = 16


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The settings of one server. `check` refuses those that would be unsafe."""

    runs: Path = RUNS
    #: The built pages.
    pages: Path = PAGES
    results: Path = RESULTS_FOLDER
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    #: Clients must send it; None is allowed only on the loopback address.
    token: str | None = None
    #: Names under which the server may be reached, beside its own address.
    hosts: frozenset[str] = frozenset()
    #: Pages of other origins that may call the server, such as `http://localhost:3000`.
    origins: frozenset[str] = frozenset()
    #: Environment variables, beside those of known providers, that a scenario may name as the place of a key.
    key_variables: frozenset[str] = frozenset()
    #: The language model of simulations that MiroFish prepared, and of interviews where a run has none.
    model: str | None = None
    max_body_bytes: int = 32 << 20
    body_seconds: float = 30.0
    #: Requests of one address: a second in the long run, and at once.
    requests_per_second: float = 1_000.0
    requests_at_once: int = 2_000
    #: Wrong tokens of one address, in the same way.
    wrong_tokens_per_second: float = 0.2
    wrong_tokens_at_once: int = 10
    max_streams: int = 1_000
    max_workers: int = 256
    #: How long a worker waits for commands after its run.
    idle_seconds: float = 300.0
    #: How long a page of another origin that does not ask for actions waits for the end of a run.
    page_patience_seconds: float = 10.0
    #: The environment that workers get.
    environ: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check(self) -> None:
        """Raise ArgumentInvalid where the server would be open to anybody."""
        if self.token is None and not self.is_loopback:
            raise ArgumentInvalid(
                "token",
                f"{self.host} can be reached from other machines, so a token is needed: set SHOAL_TOKEN, "
                f"for example to {secrets.token_urlsafe(24)}",
            )
        if self.token is not None and (len(self.token) < _MIN_TOKEN_CHARS or not self.token.isascii()):
            raise ArgumentInvalid("token", f"a token has at least {_MIN_TOKEN_CHARS} ASCII characters.")

    def allows_host(self, header: str) -> bool:
        """Return whether a Host header names this server, and not one whose name was pointed at it."""
        name = header.strip().lower()
        name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
        if name in self.hosts or name == self.host.lower():
            return True
        if self.is_loopback:
            return name in _LOOPBACK_NAMES
        try:
            # A number that is typed was not sent here by a name.
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def allows_origin(self, origin: str, host: str) -> bool:
        """Return whether a page of this origin may call the server: its own pages, and those that were named."""
        return origin in self.origins or origin.partition("://")[2].lower() == host.strip().lower()
