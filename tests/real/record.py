"""python -m tests.real.record: records the runs in examples/recorded anew, with the model on this machine.

To be done when prompts have changed before a release: the replies belong to the prompts that were sent.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.local_model import MODEL, run_shoal
from tests.real.scenarios import SCENARIOS

RECORDED = Path(__file__).parents[2] / "examples" / "recorded"
#: What the next worker would make anew, or what belongs to one machine.
LEFT_OUT = ("*.lock", "*.log", "metrics.jsonl", "limits.json", "ipc_*", "env_status.json")


def record(kind: str) -> Path:
    """Record one kind of world, and return its directory."""
    target = RECORDED / f"town-{kind}"
    with TemporaryDirectory() as folder:
        scenario, run = Path(folder, "scenario.json"), Path(folder, target.name)
        scenario.write_text(json.dumps(SCENARIOS[kind]))
        run_shoal("run", scenario, "--model", MODEL, "--out", run, "--no-cache", "--quiet")
        for path in run.glob("*.db"):
            with closing(sqlite3.connect(path)) as database:
                database.execute("PRAGMA journal_mode = DELETE")
                database.execute("VACUUM")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(run, target, ignore=shutil.ignore_patterns(*LEFT_OUT))
    return target


if __name__ == "__main__":
    for kind in SCENARIOS:
        print(record(kind), flush=True)
