"""Lets a person play agents from the terminal: they see what the agent sees, and type what it does."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from threading import Thread

from shoal.agents import AskPerson
from shoal.text import hide_controls, printable
from shoal.types import MAX_ACTIONS_PER_TURN, Action, Decision, Observation
from shoal.worlds import NO_ACTION, Mistake, renderer_for

PROMPT = "> "
HINT = "One thing per line, an empty line ends the turn, ? helps.\n"
END = "No more input: from here on nothing is done.\n"

Write = Callable[[str], object]


def terminal_answer(lines: Iterable[str] | None = None, write: Write | None = None) -> AskPerson:
    """Return a function that asks the person at the terminal. Lines are only read when a question is open."""
    return Terminal(keyboard() if lines is None else lines, write or _write_stderr).answer


def render_turn(observation: Observation) -> str:
    """Render what an agent sees, for the person who plays it."""
    head = f"{observation.name} in {observation.world}, round {observation.round}, {observation.time[:16]}"
    news = [f"News: {text}" for text in getattr(observation, "announcements", ())]
    situation = [f"The situation: {text}" for text in observation.context or ()]
    lines = [f"── {head} ──", *situation, *news, *renderer_for(observation).show(observation)]
    return "".join(f"{printable(line)}\n" for line in lines)


class Terminal:
    """One person, who may play several agents, one after another."""

    def __init__(self, lines: Iterable[str], write: Write) -> None:
        self._lines = LineReader(lines)
        self._write = write
        self._is_new = True
        self._ended = False
        self._turn = asyncio.Lock()

    async def answer(self, observation: Observation) -> Decision:
        """Return one turn, as the person types it."""
        async with self._turn:
            if self._ended:
                return Decision((NO_ACTION,))
            self._write(render_turn(observation))
            if self._is_new:
                self._write(HINT)
                self._is_new = False
            return Decision(tuple(await self._read_actions(observation)) or (NO_ACTION,))

    async def _read_actions(self, observation: Observation) -> list[Action]:
        renderer, actions = renderer_for(observation), list[Action]()
        while True:
            self._write(PROMPT)
            line = await self._lines.read()
            if line is None:
                self._write(f"\n{END}")
                self._ended = True
                return actions
            line = line.strip()
            if not line:
                return actions
            if line.removeprefix("/") in ("?", "help"):
                self._write(f"{renderer.help}\n")
            elif len(actions) == MAX_ACTIONS_PER_TURN:
                self._write(f"  {MAX_ACTIONS_PER_TURN} things are enough for one turn; an empty line ends it\n")
            else:
                try:
                    actions.append(renderer.read(line, observation))
                except Mistake as mistake:
                    self._write(f"  {mistake}\n")


class LineReader:
    """Reads lines that a person types, from the first question on."""

    def __init__(self, lines: Iterable[str] | None = None) -> None:
        self._lines = keyboard() if lines is None else lines
        self._typed: asyncio.Queue[str | None] | None = None

    async def read(self) -> str | None:
        """Return the next line; None at the end of the input."""
        if self._typed is None:
            self._typed = asyncio.Queue()
            # Reading blocks, so it has a thread. The thread is never joined: at the end it may still be reading.
            pump = Thread(target=_pump, args=(self._lines, self._typed, asyncio.get_running_loop()), daemon=True)
            pump.start()
        return await self._typed.get()


def _pump(lines: Iterable[str], typed: asyncio.Queue[str | None], loop: asyncio.AbstractEventLoop) -> None:
    # A closed loop belongs to a run that is over: its input is not needed any more.
    with suppress(RuntimeError):
        # A terminal that is gone is the end of the input.
        with suppress(OSError):
            for line in lines:
                loop.call_soon_threadsafe(typed.put_nowait, line)
        loop.call_soon_threadsafe(typed.put_nowait, None)


def keyboard() -> Iterator[str]:
    """Yield the lines of standard input.

    They are read without a buffer: its lock, held by a thread that waits for a key, would keep the interpreter from
    ending.
    """
    try:
        number = sys.stdin.fileno()
    except (AttributeError, OSError):
        yield from sys.stdin or ()
        return
    with open(number, "rb", buffering=0, closefd=False) as raw:
        for line in raw:
            yield line.decode(errors="replace")


def _write_stderr(text: str) -> None:
    sys.stderr.write(hide_controls(text))
    sys.stderr.flush()
