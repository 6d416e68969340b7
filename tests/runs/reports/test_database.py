"""Queries of a world's database."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from shoal.runs.directory import RunDirectory
from shoal.runs.reports import query_database
from tests.engine.harness import village
from tests.runs.harness import start

ENDLESS = "with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) from n"


def query_and_press_ctrl_c(directory: RunDirectory) -> None:
    ctrl_c = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    ctrl_c.start()
    query_database(directory, "twitter", ENDLESS)


def test_ctrl_c_ends_a_query_that_would_take_for_ever(tmp_path: Path) -> None:
    start(village(["Ada", "Ben"], rounds=1), tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        query_and_press_ctrl_c(RunDirectory(tmp_path / "run"))


def test_columns_of_the_same_name_are_kept_apart(tmp_path: Path) -> None:
    start(village(["Ada", "Ben"], rounds=1), tmp_path / "run")
    query = "SELECT a.name, b.name, a.user_id AS name_2 FROM user a JOIN user b ON a.user_id < b.user_id"
    columns, rows = query_database(RunDirectory(tmp_path / "run"), "twitter", query)
    assert (columns, rows) == (["name", "name_2", "name_2_2"], [("Ada", "Ben", 0)])
