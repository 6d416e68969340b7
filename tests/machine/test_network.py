"""The network interface, and what calls need of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.machine import Bound, Need, advise, choose_simulations, estimate_bandwidth, inspect_machine
from shoal.machine.network import Network
from tests.machine.fake_machines import computer, write_files

ROUTES = "Iface Destination Gateway\neth1 0000A8C0 00000000\neth0 00000000 0102A8C0"


@pytest.mark.parametrize(
    ("files", "network"),
    [
        ({"proc/net/route": ROUTES, "sys/class/net/eth0/speed": 1000}, Network("eth0", 1_000_000_000)),
        ({"proc/net/route": ROUTES, "sys/class/net/eth0/speed": -1}, Network("eth0")),
        ({"proc/net/route": ROUTES}, Network("eth0")),
        ({"proc/net/route": ROUTES.replace("eth0 00000000", "eth0 0002A8C0")}, None),
        ({}, None),
    ],
)
def test_the_interface_of_the_default_route_is_read(
    tmp_path: Path, files: dict[str, object], network: Network | None
) -> None:
    assert inspect_machine(write_files(tmp_path, {**computer(), **files})).network == network


def test_a_slow_interface_bounds_the_calls_at_once(tmp_path: Path) -> None:
    files = {**computer(cores=64), "proc/net/route": ROUTES, "sys/class/net/eth0/speed": 10}
    advice = advise(inspect_machine(write_files(tmp_path, files)), None, Need())
    assert advice.calls[0].what == "bandwidth"
    # Three quarters of it are planned with.
    assert estimate_bandwidth(advice.calls[0].count, 1.5).send == pytest.approx(7.5e6, rel=0.02)
    assert "eth0 sends 10 Mbit/s" in advice.calls[0].reason


@pytest.mark.parametrize(
    ("possible", "numbers"), [(1, (1, 1, 1, 1)), (2, (1, 1, 2, 2)), (12, (3, 6, 12, 12)), (40, (4, 8, 16, 40))]
)
def test_each_purpose_has_its_number_of_simulations(possible: int, numbers: tuple[int, ...]) -> None:
    found = choose_simulations((Bound("cores", possible, "because"),))
    assert found == dict(zip(("development", "research", "batch work", "large studies"), numbers, strict=True))
