"""The line that shows how far a run is."""

from __future__ import annotations

import pytest

from shoal.python.person import Person
from shoal.python.world import World
from tests.python.minds import Troubled


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")


@pytest.mark.usefixtures("terminal")
def test_a_person_at_a_terminal_sees_how_far_a_run_is(capsys: pytest.CaptureFixture[str]) -> None:
    World("[bold]Town", [Person("Ada"), Person("Cem")], mind=Troubled).run(rounds=2)
    shown = capsys.readouterr()
    assert "[bold]Town" in shown.err
    assert "2/2" in shown.err
    assert "1 failed in round 2" in shown.err
    assert shown.out == ""


@pytest.mark.usefixtures("terminal")
def test_who_wants_quiet_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    World("Town", 2).run(rounds=2, quiet=True)
    assert capsys.readouterr().err == ""


def test_a_log_is_not_filled_with_progress(capsys: pytest.CaptureFixture[str]) -> None:
    World("Town", 2).run(rounds=2)
    assert capsys.readouterr().err == ""
