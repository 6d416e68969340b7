"""Playing a part from the terminal: a person sees what the agent sees, and types what it does."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from threading import Thread

from shoal.agents.human import AskPerson
from shoal.cli.play.worlds import NOTHING, Mistake, part_of, picture
from shoal.types import MAX_ACTIONS_PER_TURN, Action, Decision, Observation

PROMPT = "> "
HINT = "One thing per line, an empty line ends the turn, ? helps.\n"
END = "No more input: from here on nothing is done.\n"

Write = Callable[[str], object]


def terminal_answer(lines: Iterable[str] | None = None, write: Write | None = None) -> AskPerson:
    """Asks whoever sits at the terminal; lines are only read when somebody is asked."""
    return Terminal(keyboard() if lines is None else lines, write or _to_stderr).answer


class Terminal:
    """One person, who may play several parts, one after another."""

    def __init__(self, lines: Iterable[str], write: Write) -> None:
        self._lines = lines
        self._write = write
        self._typed: asyncio.Queue[str | None] | None = None
        self._ended = False
        self._turn = asyncio.Lock()

    async def answer(self, observation: Observation) -> Decision:
        """One turn, as it is typed."""
        async with self._turn:
            if self._ended:
                return Decision((NOTHING,))
            self._write(picture(observation))
            if self._typed is None:
                self._write(HINT)
            return Decision(tuple(await self._actions(observation)) or (NOTHING,))

    async def _actions(self, observation: Observation) -> list[Action]:
        actions: list[Action] = []
        while True:
            self._write(PROMPT)
            line = await self._next_line()
            if line is None:
                self._write(f"\n{END}")
                self._ended = True
                return actions
            if not line.strip():
                return actions
            self._take(line.strip(), observation, actions)

    def _take(self, line: str, observation: Observation, actions: list[Action]) -> None:
        part = part_of(observation)
        if line.removeprefix("/") in ("?", "help"):
            self._write(f"{part.help}\n")
        elif len(actions) == MAX_ACTIONS_PER_TURN:
            self._write(f"  {MAX_ACTIONS_PER_TURN} things are enough for one turn; an empty line ends it\n")
        else:
            try:
                actions.append(part.read(line, observation))
            except Mistake as mistake:
                self._write(f"  {mistake}\n")

    async def _next_line(self) -> str | None:
        """What is typed next; None when there will be no more."""
        if self._typed is None:
            self._typed = asyncio.Queue()
            # A thread of its own, for reading blocks; nobody waits for it at the end, when it may still be reading.
            pump = Thread(target=_pump, args=(self._lines, self._typed, asyncio.get_running_loop()), daemon=True)
            pump.start()
        return await self._typed.get()


def _pump(lines: Iterable[str], typed: asyncio.Queue[str | None], loop: asyncio.AbstractEventLoop) -> None:
    # A loop that is closed by now belongs to a run that is over: nobody wants to know any more.
    with suppress(RuntimeError):
        # A terminal that is gone is the end of the input.
        with suppress(OSError):
            for line in lines:
                loop.call_soon_threadsafe(typed.put_nowait, line)
        loop.call_soon_threadsafe(typed.put_nowait, None)


def keyboard() -> Iterator[str]:
    """The lines of standard input.

    Read without a buffer: its lock, held by a thread that waits for a key, would keep the interpreter from ending.
    """
    try:
        number = sys.stdin.fileno()
    except (AttributeError, OSError):
        yield from sys.stdin or ()
        return
    with open(number, "rb", buffering=0, closefd=False) as raw:
        for line in raw:
            yield line.decode(errors="replace")


def _to_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
