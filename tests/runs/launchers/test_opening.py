"""Which launcher a place means."""

from __future__ import annotations

import os
import sys

import pytest

from shoal.errors import ArgumentInvalid, RunRefused
from shoal.runs.launchers import ForkLauncher, open_launcher, read_place


async def test_workers_at_the_local_place_are_forks() -> None:
    async with open_launcher("local", os.environ) as launcher:
        assert isinstance(launcher, ForkLauncher)


@pytest.mark.parametrize(("on", "address"), [("local", None), ("ray", ""), ("ray://10.0.0.5:6379", "10.0.0.5:6379")])
def test_a_place_names_a_cluster_or_none(on: str, address: str | None) -> None:
    assert read_place(on) == address


@pytest.mark.parametrize("on", ["mars", "ray:10.0.0.5", "ray://", "ray://host", "RAY"])
async def test_a_place_that_is_none_is_refused(on: str) -> None:
    with pytest.raises(ArgumentInvalid, match="expected local, ray, or ray://HOST:PORT, found"):
        async with open_launcher(on, os.environ):
            pass


async def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "shoal.runs.launchers.ray", raising=False)
    with pytest.raises(RunRefused, match=r"pip install 'shoal\[ray\]'"):
        async with open_launcher("ray", os.environ):
            pass
