"""A person at the terminal takes the seat of an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from shoal.cli.commands.live.seat import TerminalSeat, read_line
from shoal.cli.main import cli
from shoal.journal import read_journal
from shoal.runs.commands import CommandType
from shoal.runs.operations import create_run
from shoal.runs.seats import read_seats
from shoal.scenario import sample
from shoal.scenario.loading import validate
from tests.runs.commands.test_serving import open_worker
from tests.server.conftest import VILLAGE

OFFERED: list[dict[str, Any]] = [
    {"kind": "CREATE_POST", "fields": [{"name": "content"}]},
    {"kind": "CREATE_COMMENT", "fields": [{"name": "post_id"}, {"name": "content"}]},
    {"kind": "DO_NOTHING", "fields": []},
]


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("1 I was there, 2 hours ago.", {"action": "CREATE_POST", "content": "I was there, 2 hours ago."}),
        ("create_comment 12 Who told you?", {"action": "CREATE_COMMENT", "post_id": "12", "content": "Who told you?"}),
        ("3", {"action": "DO_NOTHING"}),
        ("3 or so", {"action": "DO_NOTHING"}),
        ('{"action": "LIKE_POST", "post_id": 12}', {"action": "LIKE_POST", "post_id": 12}),
    ],
)
def test_a_line_is_an_action_by_number_by_name_or_as_a_model_writes_it(line: str, action: dict[str, Any]) -> None:
    assert read_line(line, OFFERED) == action


@pytest.mark.parametrize("line", ["4", "0", "dance", "{"])
def test_a_line_that_is_no_action_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        read_line(line, OFFERED)


async def test_turns_are_played_until_the_input_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    busy: dict[str, Any] = {**VILLAGE, "events": [{"seat": "Ada", "round": 2, "seconds": 300}]}
    lines = ["?\n", "99\n", "dance\n", "like_post the moon\n", "\n", "1 I was there.\n", "\n"]
    async with open_worker(tmp_path / "run", **busy) as worker:

        async def call(command: CommandType, args: dict[str, Any]) -> Any:
            return await worker.send(command, **args)

        await TerminalSeat(worker.run, 0, "Ada", {"seconds": 300.0, "otherwise": "mind"}, call, lines).sit()
        await worker.work
    told = capsys.readouterr().out
    assert "Ada in twitter, round 2" in told
    assert "99 is no action here" in told
    assert "Nothing was done" in told
    seats = {line.key: line.reply for line in read_journal(worker.run.journal)[0] if "/seat/" in line.key}
    assert seats["twitter/2/0/seat/0"]["by"] == "person"
    assert [one["args"]["content"] for one in seats["twitter/2/0/seat/0"]["actions"]] == ["I was there."]
    assert {reply["by"] for key, reply in seats.items() if key != "twitter/2/0/seat/0"} <= {"mind"}


def test_a_person_who_is_not_in_the_run_has_no_seat(tmp_path: Path) -> None:
    run = create_run(validate(VILLAGE), tmp_path / "run")
    result = CliRunner().invoke(cli, ["seat", str(run.path), "Nobody"])
    assert result.exit_code != 0
    assert read_seats(run, sample(run.scenario)) == []
