"""python -m tests.preparation.killed FOLDER STEPS BASE_URL: prepares, and is killed after so many steps."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from itertools import count
from pathlib import Path

from shoal.preparation import PreparationFolder, PreparationState, prepare
from shoal.runs import RunResources


def main(folder: Path, steps: int, base_url: str) -> None:
    numbers = count(1)

    def watch(state: PreparationState) -> None:
        if next(numbers) == steps:
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(prepare(PreparationFolder(folder), RunResources(environ={"OPENAI_BASE_URL": base_url}), watch))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
