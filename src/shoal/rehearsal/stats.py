"""Counters of the rehearsal server, to check what a client would have paid for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec


@dataclass(slots=True)
class Stats:
    """Counters since the start or the last reset."""

    requests: int = 0
    by_status: Counter[int] = field(default_factory=Counter)
    #: Faults of attempts and answers: error, limit, hang, dropped, malformed, truncated, refused, outage, ...
    faults: Counter[str] = field(default_factory=Counter)
    #: Requests above a limit, by which: concurrency, requests, tokens, quota.
    refusals: Counter[str] = field(default_factory=Counter)
    #: By the header X-Client: how many requests came, and how many were answered and refused.
    clients: dict[str, Counter[str]] = field(default_factory=dict)
    answers: int = 0
    #: Seconds since 1970.
    first_request_at: float | None = None
    last_answer_at: float | None = None
    #: By digest of the request: how often it was answered with 200.
    answered: Counter[str] = field(default_factory=Counter)
    #: Requests whose client went away before they were answered.
    abandoned: int = 0
    in_flight: int = 0
    in_flight_peak: int = 0
    waiting: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    received_bytes: int = 0

    def enter(self) -> None:
        self.in_flight += 1
        self.in_flight_peak = max(self.in_flight_peak, self.in_flight)

    def count_client(self, client: str, what: str) -> None:
        """Count a request of a client; clients without a name are not counted."""
        if client:
            self.clients.setdefault(client, Counter(requests=0, answered=0, refused=0))[what] += 1

    def count_answer(self, digest: str, usage: tuple[int, int, int]) -> None:
        """Count an answer, with its tokens: input, output, and cached input."""
        self.answers += 1
        self.answered[digest] += 1
        self.input_tokens += usage[0]
        self.output_tokens += usage[1]
        self.cached_tokens += usage[2]

    @property
    def repeated(self) -> int:
        """The number of answers beyond the first to the same request, which were paid for again."""
        return self.answers - len(self.answered)

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self, str_keys=True, order="sorted")
        tokens = {name: found.pop(f"{name}_tokens") for name in ("input", "output", "cached")}
        return {**found, "tokens": tokens, "distinct": len(self.answered), "repeated": self.repeated}
