"""Sends replies made of every oddity of JSON and HTTP to language minds in every kind of world.

    python -m bench.hostile [--replies 10000] [--seed 1]

Each run is stopped in the middle, resumed to its end, replayed, and looked at with every command that reads runs. No
command may end with an internal error, and every run must come to the same end again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

from click.testing import CliRunner, Result

from bench.bars import Bar
from shoal.cli.main import cli
from shoal.errors import ShoalError
from shoal.rehearsal.http import RequestReader
from shoal.runs.directory import RunDirectory
from shoal.runs.operations import create_run
from shoal.runs.progress import RunProgress
from shoal.runs.resources import RunResources
from shoal.runs.worker import work_on_run
from shoal.scenario.loading import validate
from shoal.worlds import ActionCard, kind_named
from tests.models.servers import listen
from tests.runs.harness import check_consistency

T = TypeVar("T")

MODEL = "openai/hostile"
PEOPLE = ("Ada Lund", "Bo Berg", "Čiro Ñu", "李小龙", "Eve Ott", "Fay=1+1")
ROUNDS = 6
INTERNAL = 70
#: How often a run is resumed that a first reply stops.
_RESUMES = 5
#: Commands that must always succeed.
_READING = ("show", "query", "list", "export")
#: Long enough for a real reply, and not so long that a thousand of them take hours.
_LONG = 50_000

WORLDS: dict[str, Any] = {
    "twitter": {"actions": None},
    "reddit": {"kind": "reddit", "visibility": 2},
    "room": None,
    "dialogue": {"turns": ROUNDS},
}
#: Texts as JSON writes them, between quotation marks.
_TEXTS = (
    "A plain sentence.",
    "\\ud800",
    "x\\udc00y",
    "\\ud83d\\ude00",
    "\\ud83d",
    "\\u0000",
    "a\\u0000b",
    "\\u001b[31mred\\u001b[0m",
    "\\u001b]0;title\\u0007",
    "\\u009b2J",
    "\\u202egnp.exe",
    "\\u2066x\\u2069",
    "\\ufeff",
    "\\uffff",
    "\\ufffe",
    "\U0001f9d1\u200d\U0001f680",
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\\tx",
    "\\r\\n",
    "\\n\\n",
    "\\\\",
    "\\\\ud800",
    "\\/",
    '\\"',
    "«quoted»",
    "[bold]x[/bold]",
    "%s {0} {name}",
    "' OR 1=1 --",
    "\x7f\x85\u2028",
    "null",
    "NaN",
    "1e400",
    "a" * 5_000,
    "é" * 3_000,
    "<think>",
    "</think>",
    "```",
    "{",
    "}]}",
    "﷽" * 50,
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!͖̬̰̙̗̿̋ͥͥ̂ͣ̐́́͜͞",
)
_NUMBERS = (
    "0",
    "-0",
    "1",
    "-1",
    "1.0",
    "1.5",
    "1e3",
    "1e400",
    "-1e400",
    "NaN",
    "Infinity",
    "-Infinity",
    "1" + "0" * 400,
    "9" * 5_000,
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "0x1F",
    "01",
    "1.",
    ".5",
    "1e",
    "true",
    "null",
    '"7"',
    '"١٢"',
    '"²"',
    '"1e9"',
    '"9999999999999999999999"',
    "4294967296",
    "1e308",
    "5e-324",
    "1_000",
)


@dataclass
class Replies:
    """Makes up bodies of HTTP replies, the same for the same seed."""

    random: random.Random
    cards: Sequence[ActionCard]
    #: Numbers that the prompt shows.
    shown: list[str] = field(default_factory=lambda: ["1"])

    def body(self) -> bytes:
        """Return a body: mostly a completion, with an oddity anywhere in it."""
        if self.random.random() < 0.06:
            return self._odd_body()
        text = self._content()
        content = _escape(text) if self.random.random() < 0.9 else self._any_json(0)
        finish = self.pick(('"stop"', '"stop"', '"stop"', '"length"', '"content_filter"', "null", "7", '"x"'))
        message = f'{{"role": "assistant", "content": {content}}}'
        if self.random.random() < 0.08:
            message = self.pick(
                (
                    f'{{"content": null, "tool_calls": [{{"function": {{"name": "a", "arguments": {content}}}}}]}}',
                    f'{{"tool_calls": [{{"function": {{"arguments": {self._any_json(0)}}}}}]}}',
                    f'{{"content": [{{"type": "text", "text": {content}}}, {{"type": "x"}}]}}',
                    f'{{"refusal": {content}}}',
                    '{"content": [7, null, "x"]}',
                    "{}",
                    "null",
                    '"x"',
                )
            )
        usage = f', "usage": {self._usage()}' if self.random.random() < 0.8 else ""
        return f'{{"choices": [{{"message": {message}, "finish_reason": {finish}}}]{usage}}}'.encode()

    def pick(self, among: Sequence[T]) -> T:
        return among[self.random.randrange(len(among))]

    def _odd_body(self) -> bytes:
        whole = f'{{"choices": [{{"message": {{"content": {_escape(self._content())}}}}}]}}'.encode()
        return self.pick(
            (
                b"\xef\xbb\xbf" + whole,
                b"\xef\xbb\xbf" + whole,
                whole[: len(whole) // 2],
                b"",
                b"null",
                b"[]",
                b"\x00" * 20,
                b"\xff\xfe" + whole,
                b"data: " + whole + b"\n\ndata: [DONE]\n\n",
                b"<html>\x1b[2J</html>",
                b"{" * _LONG,
                b"[" * _LONG,
                whole + b"garbage",
                whole.decode().encode("utf-16"),
                b'{"choices": [{"message": {"content": "\xff\xc3("}}]}',
                b'{"choices": {}}',
                b'{"choices": [null]}',
                b'{"choices": 7}',
                b'{"choices": "text"}',
                b'{"error": {"message": "\\ud800 \\u001b[2J", "code": true}}',
                b'{"error": {"code": 1e400}}',
                b'{"error": "\\u0000"}',
                b'{"choices": [], "error": null}',
                b'{"choices": [{"text": "old"}]}',
            )
        )

    def _usage(self) -> str:
        number = self.pick(("5", "5", "5", "-3", "1.5", "1e400", '"7"', "null", "true", "[]", "1" + "0" * 30, "{}"))
        other = self.pick(("7", "7", "-7", "0.5", "NaN", "9223372036854775808"))
        details = self.pick(
            ("", "", f', "prompt_tokens_details": {number}', ', "prompt_tokens_details": {"cached_tokens": -9}')
        )
        return self.pick((f'{{"prompt_tokens": {number}, "completion_tokens": {other}{details}}}', number, "null"))

    def _content(self) -> str:
        """Return what the model says: mostly a turn, sometimes garbage."""
        roll = self.random.random()
        if roll < 0.62:
            return self._turn()
        if roll < 0.74:
            turn = self._turn()
            cut = self.random.randrange(len(turn))
            return self.pick(
                (
                    turn[:cut],
                    turn[cut:],
                    turn.replace('"', "'"),
                    turn.replace('"', ""),
                    f"Sure!\n```json\n{turn}\n```",
                    turn[:cut] + self.pick(_TEXTS) + turn[cut:],
                    turn * 2,
                    f"<think>{turn}",
                    turn.replace(",", ""),
                    turn.replace(":", ""),
                )
            )
        if roll < 0.82:
            return self._any_json(0)
        if roll < 0.88:
            opening = self.pick(("{", "[", '{"', '{"a":', '["', "{a:b,", '{"actions": [', '\\"{', "'[", '"'))
            return (opening * _LONG)[: self.pick((100, 2_000, 8_000, _LONG))]
        if roll < 0.92:
            deep = self.pick((10, 70, 500, 1_100, 20_000))
            return self.pick(
                ("[" * deep + "]" * deep, '{"actions":' * deep + "[]" + "}" * deep, '{"a":' * deep + "1" + "}" * deep)
            )
        return "".join(self.pick(_TEXTS) for _ in range(self.pick((0, 1, 3))))

    def _turn(self) -> str:
        actions = ", ".join(self._action() for _ in range(self.pick((0, 1, 1, 1, 2, 4, 40))))
        thought = f'"thought": "{self.pick(_TEXTS)}", ' if self.random.random() < 0.3 else ""
        twice = '"actions": 7, ' if self.random.random() < 0.03 else ""
        insights = f'"insights": ["{self.pick(_TEXTS)}", {self._any_json(2)}], ' if self.random.random() < 0.1 else ""
        fields = f'"answer": {self._any_json(1)}, "vote": {self._any_json(2)}, ' if self.random.random() < 0.1 else ""
        return f'{{{thought}{insights}{fields}{twice}"actions": [{actions}]}}'

    def _action(self) -> str:
        if self.random.random() < 0.05:
            return self._any_json(0)
        card = self.pick(self.cards)
        parts = [f'"action": "{card.kind}"']
        for argument in card.arguments:
            value = f'"{self.pick(PEOPLE)}"' if argument.names in ("user", "person") else self.pick(self.shown)
            if argument.value_type is str and not argument.names:
                value = f'"{self.pick(_TEXTS)}"'
            parts.append(f'"{argument.name}": {value if self.random.random() < 0.85 else self._any_json(1)}')
        if self.random.random() < 0.05:
            parts.append(f'"{self.pick(_TEXTS)}": {self._any_json(1)}')
        return f"{{{', '.join(parts)}}}"

    def _any_json(self, depth: int) -> str:
        roll = self.random.random()
        if depth > 4 or roll < 0.4:
            return f'"{self.pick(_TEXTS)}"' if roll < 0.2 else self.pick(_NUMBERS)
        inner = [self._any_json(depth + 1) for _ in range(self.pick((0, 1, 2, 3)))]
        if roll < 0.7:
            return f"[{', '.join(inner)}]"
        names = [self.pick(("a", "a", "action", "args", "content", self.pick(_TEXTS))) for _ in inner]
        pairs = [f'"{name}": {value}' for name, value in zip(names, inner, strict=True)]
        return f"{{{', '.join(pairs)}}}"


def _escape(text: str) -> str:
    """Write a text as a JSON string. Halves of characters stay, as escapes."""
    return json.dumps(text)


@contextmanager
def serve_hostile(world: str, seed: int) -> Iterator[tuple[str, Callable[[], int]]]:
    """Serve hostile replies from another thread. Yields the address, and how many were sent."""
    sent, kind = 0, kind_named(world)
    assert kind is not None

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        reading = RequestReader()
        while data := await reader.read(65536):
            reading.feed(data)
            while (request := reading.next()) is not None:
                sent += 1
                shown = re.findall(rb"\[(\d{1,12})\]", request.body) or [b"1"]
                # Asked again, a question has another answer, so that a run that was stopped can be resumed.
                dice = random.Random(f"{seed} {sent}")
                body = Replies(dice, kind.cards, [number.decode() for number in shown]).body()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    ready, address, ended = Event(), list[str](), list[Callable[[], object]]()

    async def serve() -> None:
        end = asyncio.Event()
        ended.append(partial(asyncio.get_running_loop().call_soon_threadsafe, end.set))
        async with listen(talk) as port:
            address.append(f"http://127.0.0.1:{port}/v1")
            ready.set()
            await end.wait()

    thread = Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait()
    try:
        yield address[0], lambda: sent
    finally:
        ended[0]()
        thread.join()


@dataclass
class Tally:
    """What was sent, and what went wrong."""

    replies: int = 0
    runs: int = 0
    #: World, command, and how it ended.
    internal_errors: list[str] = field(default_factory=list)
    not_resumable: list[str] = field(default_factory=list)


def make_scenario(world: str, seed: int) -> dict[str, Any]:
    """People who ask in every round, and draw conclusions from what they lived through."""
    return {
        "name": "hostile",
        "topic": "the old bridge",
        "seed": seed,
        "rounds": ROUNDS,
        "time": {"daily_rhythm": False},
        "population": [{"name": name, "activity": 1.0, "active_hours": "0-23"} for name in PEOPLE],
        "worlds": {world: WORLDS[world]},
        "mind": {"kind": "language", "model": MODEL, "memory": {"consolidate_every": 2, "lag_rounds": 1}},
    }


def run_hostile(folder: Path, world: str, seed: int, tally: Tally) -> None:
    """Make one run, stop it in the middle, let it come to its end, and look at it with every command."""
    run = folder / f"{world}-{seed}"
    directory = create_run(validate(make_scenario(world, seed)), run)
    with serve_hostile(world, seed) as (address, count):
        environ = {"OPENAI_BASE_URL": address, "HOME": str(folder), "SHOAL_SLOTS": str(folder / "slots")}

        def call(*args: str) -> Result:
            result = CliRunner(env=environ).invoke(cli, ["--traceback", *args], prog_name="shoal")
            if (result.exit_code and args[0] in _READING) or result.exit_code == INTERNAL:
                tally.internal_errors.append(f"{world} {seed}: {args[0]}: {result.output[-2000:]}")
            return result

        try:
            _begin(directory, RunResources(environ=environ))
        except Exception as error:
            tally.internal_errors.append(f"{world} {seed}: run: {error!r}")
        for _ in range(_RESUMES):
            resumed = call("resume", str(run), "--json", "--no-cache")
            if not resumed.exit_code:
                break
        replayed = call("replay", str(run), "--json")
        if resumed.exit_code or replayed.exit_code:
            tally.not_resumable.append(f"{world} {seed}: {resumed.output[-2000:]} {replayed.output[-2000:]}")
        else:
            check_consistency(run, finished=True)
        call("show", str(run))
        call("show", str(run), "--json")
        call("query", str(run), "select * from trace")
        call("query", str(run), "select * from trace", "--json")
        call("list", str(folder))
        for format in ("csv", "jsonl", "parquet"):
            call("export", str(run), "--out", str(run / format), "--format", format)
        for agent in range(0, len(PEOPLE), 2):
            call("explain", str(run), str(agent), str(agent + 1))
        call("ask", str(run), "What now?", "--fields", "vote:yes/no", "--no-cache", "--yes")
        call("fork", str(run), "--at", "3", "--set", "rounds=5", "--json", "--no-cache", "--yes")
        tally.replies += count()
    tally.runs += 1


def _begin(directory: RunDirectory, resources: RunResources) -> None:
    stop = asyncio.Event()
    progress = RunProgress.of(directory, lambda record: stop.set() if record.round == ROUNDS // 2 else None)
    # A first reply that cannot be read stops a run, as something that the user must mend.
    with suppress(ShoalError):
        asyncio.run(work_on_run(directory, stop, progress, resources))


def campaign(folder: Path, replies: int, seed: int) -> Tally:
    """Make runs in all worlds in turn until this many replies were sent."""
    tally = Tally()
    while tally.replies < replies:
        for world in WORLDS:
            run_hostile(folder, world, seed + tally.runs, tally)
    return tally


def hostile_replies(folder: Path) -> list[Bar]:
    """10,000 hostile replies over all worlds."""
    tally = campaign(folder, 10_000, 1)
    sent = f"{tally.replies:,} replies in {tally.runs} runs"
    return [
        Bar("internal errors after hostile replies", len(tally.internal_errors), "", 0, False, sent),
        Bar("runs that hostile replies keep from being resumed", len(tally.not_resumable), "", 0, False, sent),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replies", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tally = campaign(Path(folder), given.replies, given.seed)
    for problem in (*tally.internal_errors, *tally.not_resumable):
        print(problem, "\n")
    print(
        f"{tally.replies:,} replies in {tally.runs} runs: {len(tally.internal_errors)} internal errors, "
        f"{len(tally.not_resumable)} runs that cannot be resumed"
    )
    return 1 if tally.internal_errors or tally.not_resumable else 0


if __name__ == "__main__":
    sys.exit(main())
