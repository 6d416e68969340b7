"""python -m tests.runs.killed RUN ROUND BASE_URL: works on a run and is killed as soon as a round is committed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from shoal.engine.record import Record
from shoal.runs.directory import RunDirectory
from shoal.runs.outside import Outside
from shoal.runs.worker import work


def main(run: Path, round: int, base_url: str) -> None:
    def watch(record: Record) -> None:
        if record.round == round:
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(work(RunDirectory(run), asyncio.Event(), watch, Outside(environ={"OPENAI_BASE_URL": base_url})))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
