"""What speaks to the network is tried on both event loops: the one that people have, and the one that runs have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

_ON_BOTH = ("test_transport", "test_routes", "test_connection")


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if item.path.stem in _ON_BOTH:
        loops["uvloop"] = uvloop.new_event_loop
    return loops
