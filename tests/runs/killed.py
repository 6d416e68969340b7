"""python -m tests.runs.killed RUN ROUND BASE_URL: works on a run and is killed as soon as a round is committed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from shoal.engine.record import RoundRecord
from shoal.runs.directory import RunDirectory
from shoal.runs.progress import RunProgress
from shoal.runs.resources import RunResources
from shoal.runs.worker import work_on_run


def main(run: Path, round: int, base_url: str) -> None:
    def watch(record: RoundRecord) -> None:
        if record.round == round:
            os.kill(os.getpid(), signal.SIGKILL)

    directory, resources = RunDirectory(run), RunResources(environ={"OPENAI_BASE_URL": base_url})
    asyncio.run(work_on_run(directory, asyncio.Event(), RunProgress.of(directory, watch), resources))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
