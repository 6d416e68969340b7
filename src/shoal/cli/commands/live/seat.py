"""The command `seat`: a person at the terminal decides for one agent of a run."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import click

from shoal.cli.commands.live.addresses import open_directory
from shoal.cli.errors import complain
from shoal.cli.play import LineReader
from shoal.errors import RunLocked, RunRefused
from shoal.event_loop import run_async
from shoal.runs import RunDirectory, Status
from shoal.runs.commands import CommandType, call_worker
from shoal.runs.seats import give_seat_back_before_start, read_terms, take_seat_before_start
from shoal.scenario import sample
from shoal.text import printable
from shoal.worlds import NameIndex

_TIMEOUT_SECONDS = 30.0
_LOOK_SECONDS = 0.25
_HELP = """  A line is an action: its number or name, then what it needs, the last of which takes the rest of the line:
    1 I was there myself.        CREATE_COMMENT 12 Who told you?
  Or write it as a model does: {"action": "LIKE_POST", "post_id": 12}. An empty line ends the turn."""

#: Takes a command and its arguments, and returns what the worker answers.
Call = Callable[[CommandType, dict[str, Any]], Awaitable[Any]]


@click.command("seat")
@click.argument("run", metavar="RUN")
@click.argument("person")
@click.option("--seconds", type=click.FloatRange(1, 604_800), default=120.0, show_default=True, help="For each turn.")
@click.option(
    "--otherwise", type=click.Choice(["mind", "nothing"]), default="mind", show_default=True,
    help="Who decides when that time is over: the person's own mind, or nobody.",
)  # fmt: skip
def seat_(run: str, person: str, seconds: float, otherwise: str) -> None:
    """Decide for one person of a run that another process works on.

    RUN is a directory, PERSON a name or a number. You see what the person sees, and type what they do; the others wait
    for you. A run that is not going on is waited for: your seat is taken from its next round on. Ctrl-C or Ctrl-D gives
    the seat back. What you decide is part of the history, as on the page of a run.

    \b
    Examples:
      shoal seat runs/rumour-1 "Ada Novak"
      shoal seat runs/rumour-1 17 --seconds 600 --otherwise nothing
    """
    directory = open_directory(run)
    names = sample(directory.scenario).names
    agent = NameIndex(names).resolve(person)

    async def call(command: CommandType, args: dict[str, Any]) -> Any:
        return await call_worker(directory, None, command, args, _TIMEOUT_SECONDS)

    seat = TerminalSeat(directory, agent, names[agent], {"seconds": seconds, "otherwise": otherwise}, call)
    # A second Ctrl-C does not wait for the seat to be given back.
    with suppress(KeyboardInterrupt):
        run_async(seat.sit())


class TerminalSeat:
    """The seat of one agent, and the person at the terminal who sits in it."""

    def __init__(
        self,
        run: RunDirectory,
        agent: int,
        name: str,
        terms: dict[str, Any],
        call: Call,
        lines: Iterable[str] | None = None,
    ) -> None:
        self._run = run
        self._name = printable(name)
        self._terms = terms
        self._call = call
        self._who: dict[str, Any] = {"agent_id": agent, "secret": secrets.token_hex(8)}
        self._lines = LineReader(lines)
        #: Turns that were played, by world and round: one whose time is over waits for a moment more.
        self._played: set[tuple[str, int]] = set()

    async def sit(self) -> None:
        """Play the turns of the agent until the run or the input ends; then give the seat back."""
        await self._take()
        try:
            async for turn in self._wait_for_turns():
                if not await self._play(turn):
                    break
        finally:
            await self._give_back()

    async def _take(self) -> None:
        try:
            since = (await self._call(CommandType.TAKE_SEAT, {**self._who, **self._terms}))["since_round"]
        except RunLocked:
            people, terms = sample(self._run.scenario), read_terms(**self._terms)
            since = take_seat_before_start(self._run, people, self._who["agent_id"], terms).since_round
            complain(f"Nobody works on {self._run.path}: go on with it by shoal resume.")
        after = "their own mind decides" if self._terms["otherwise"] == "mind" else "they do nothing"
        complain(
            f"You decide for {self._name} from round {since} on. "
            f"After {self._terms['seconds']:g} s without an empty line {after}. ? helps."
        )

    async def _wait_for_turns(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the turns that wait for this person, until the run has ended."""
        while True:
            try:
                for turn in await self._find_turns():
                    yield turn
            except (RunRefused, RunLocked, TimeoutError):
                # It is not there yet, or not any more.
                if self._run.read_status() in (Status.COMPLETED, Status.FAILED):
                    complain(f"The run is {self._run.read_status()}.")
                    return
            await asyncio.sleep(_LOOK_SECONDS)

    async def _find_turns(self) -> list[dict[str, Any]]:
        seats = await self._call(CommandType.SEATS, {"secret": self._who["secret"]})
        seat = next((one for one in seats if one["agent_id"] == self._who["agent_id"]), None)
        if seat is not None and not seat["is_held"]:
            # Another worker went on with the run, and knows nobody.
            seat = await self._call(CommandType.TAKE_SEAT, {**self._who, **self._terms})
        turns = [] if seat is None else seat["turns"]
        return [turn for turn in turns if (turn["world"], turn["round"]) not in self._played]

    async def _play(self, turn: dict[str, Any]) -> bool:
        """Let the person answer one turn; return False where the input has ended."""
        self._played.add((turn["world"], turn["round"]))
        for line in _render_turn(self._name, turn):
            click.echo(printable(line))
        try:
            async with asyncio.timeout(turn["seconds_left"]):
                while True:
                    actions, has_ended = await self._read_actions(turn)
                    if has_ended and not actions:
                        return False
                    if await self._answer(turn, actions):
                        return not has_ended
        except TimeoutError:
            click.echo("The time is over.")
        except RunRefused as refused:
            click.echo(str(refused))
        return True

    async def _read_actions(self, turn: dict[str, Any]) -> tuple[list[dict[str, Any]], bool]:
        """Read actions up to an empty line, and whether the input ended with them."""
        actions: list[dict[str, Any]] = []
        while True:
            click.echo("> ", nl=False)
            line = await self._lines.read()
            if line is None or not line.strip():
                return actions, line is None
            if line.strip() in ("?", "help"):
                click.echo(_HELP)
                continue
            try:
                actions.append(read_line(line.strip(), turn["actions"]))
            except ValueError as wrong:
                click.echo(f"  {wrong}")

    async def _answer(self, turn: dict[str, Any], actions: list[dict[str, Any]]) -> bool:
        """Answer a turn; False where something is wrong with the actions, which is said."""
        answer = {**self._who, "world": turn["world"], "round": turn["round"], "actions": actions}
        result = await self._call(CommandType.ANSWER_TURN, answer)
        for problem in result["problems"]:
            click.echo(f"  {printable(problem['message'])}")
        if result["problems"]:
            click.echo("  Nothing was done; write the whole turn again.")
        return bool(result["is_accepted"])

    async def _give_back(self) -> None:
        with suppress(RunRefused, TimeoutError):
            try:
                await self._call(CommandType.GIVE_SEAT_BACK, self._who)
            except RunLocked:
                if self._run.read_status() is Status.COMPLETED:
                    return
                give_seat_back_before_start(self._run, sample(self._run.scenario), self._who["agent_id"])
            complain(f"{self._name}'s own mind decides again.")


def read_line(line: str, offered: list[dict[str, Any]]) -> dict[str, Any]:
    """Read one line as an action in the words of a model's reply; ValueError says what it should look like."""
    if line.startswith("{"):
        try:
            found = json.loads(line)
        except json.JSONDecodeError as wrong:
            raise ValueError(f"this is no JSON object: {wrong}") from None
        return dict(found)
    name, _, rest = line.partition(" ")
    numbered = dict(enumerate(offered, 1))
    action = numbered.get(int(name)) if name.isdecimal() else None
    action = action or next((one for one in offered if one["kind"].casefold() == name.casefold()), None)
    if action is None:
        raise ValueError(f"{name} is no action here; choose 1 to {len(offered)}, or ? for help")
    fields = [field["name"] for field in action["fields"]]
    return {"action": action["kind"], **dict(zip(fields, rest.split(None, max(len(fields) - 1, 0)), strict=False))}


def _render_turn(name: str, turn: dict[str, Any]) -> Iterator[str]:
    yield f"── {name} in {turn['world']}, round {turn['round']}, {turn['time'][:16]}, {turn['seconds_left']:.0f} s ──"
    for row in turn["saw"]:
        if row["lines"]:
            yield f"{row['label']}:"
        elif row["value"] not in (None, "", []):
            yield f"{row['label']}: {row['value']}"
        for line in row["lines"]:
            who, facts = f"{line['who']}: " if line["who"] else "", f" ({line['facts']})" if line["facts"] else ""
            yield f"{'    ' if line['is_reply'] else '  '}{who}{line['text']}{facts}"
    yield f"What do you do? At most {turn['max_actions']} of:"
    for number, action in enumerate(turn["actions"], 1):
        needed = " ".join(field["name"] if field["is_needed"] else f"[{field['name']}]" for field in action["fields"])
        yield f"  {number:>2} {action['kind']} {needed}".rstrip() + f"  {action['meaning']}"
