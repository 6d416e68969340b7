"""The command `interview`, a conversation with one agent."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import click

from shoal.cli.commands.live.addresses import is_address, open_client, open_directory, run_or_address_argument
from shoal.cli.errors import complain
from shoal.cli.views.output import echo
from shoal.errors import QueryFailed
from shoal.event_loop import run_async
from shoal.runs.commands import CommandType, call_worker
from shoal.runs.launchers import LocalLauncher
from shoal.scenario import sample
from shoal.text import printable
from shoal.worlds import NameIndex

_TIMEOUT_SECONDS = 300.0
_MAX_CONTEXT_CHARS = 6_000

#: Takes a question and what was said before, and returns the answer.
Ask = Callable[[str, str], str]


@click.command("interview")
@run_or_address_argument
@click.argument("agent")
@click.argument("question", required=False)
@click.option("--world", metavar="NAME", help="Ask about this world alone; default: about all.")
@click.option("--model", metavar="NAME", help="Let this language model answer; needed where agents have none.")
def interview_(run: str, agent: str, question: str | None, world: str | None, model: str | None) -> None:
    """Chat with an agent of a run, while it goes on or after it; changes nothing.

    RUN is a directory, or an address as for `shoal watch`. AGENT is a name or a number. Without a QUESTION, questions
    are read line by line until Ctrl-D, and the agent remembers the conversation. A copy of the agent answers, from who
    it is, what it remembers and what it last saw. What is said is kept in the table `trace`, outside of the history.

    \b
    Examples:
      shoal interview runs/rumour-1 "Ada Novak"
      shoal interview runs/rumour-1 17 "Do you trust the town hall?"
    """
    name, ask = _find_at_address(run, agent, world, model) if is_address(run) else _find(run, agent, world, model)
    said: list[str] = []
    for asked in [question] if question is not None else _read_questions(name):
        context = "\n".join(said)[-_MAX_CONTEXT_CHARS:]
        answer = ask(asked, f"Earlier in this conversation:\n{context}" if context else "")
        said += [f"You were asked: {asked}", f"You answered: {answer}"]
        echo(printable(answer))


def _read_questions(name: str) -> Iterator[str]:
    """Read questions from the terminal, or one from each line of the input."""
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        complain(f"You are talking to {printable(name)}. Ctrl-D ends the conversation.")
    while True:
        if is_terminal:
            click.echo("> ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()


def _find(run: str, agent: str, world: str | None, model: str | None) -> tuple[str, Ask]:
    """Find an agent of a run on disk."""
    directory, launcher = open_directory(run), LocalLauncher(os.environ)
    names = sample(directory.scenario).names
    number = NameIndex(names).resolve(agent)

    def ask(question: str, context: str) -> str:
        args = {"agent_id": number, "prompt": question, "platform": world, "model": model, "context": context}
        call = call_worker(directory, launcher, CommandType.INTERVIEW, args, _TIMEOUT_SECONDS)
        try:
            return _read_answer(run_async(call))
        except TimeoutError:
            raise QueryFailed(f"{names[number]} did not answer within {_TIMEOUT_SECONDS:g} s") from None

    return names[number], ask


def _find_at_address(run: str, agent: str, world: str | None, model: str | None) -> tuple[str, Ask]:
    """Find an agent of a run that a server offers."""
    client, identity = open_client(run)
    names = [str(profile["name"]) for profile in client.profiles(identity).profiles]
    number = NameIndex(names).resolve(agent)

    def ask(question: str, context: str) -> str:
        options: dict[str, Any] = {"world": world, "model": model, "context": context, "timeout": _TIMEOUT_SECONDS}
        return _read_answer(client.interview(identity, number, question, **options).result)

    return names[number], ask


def _read_answer(result: dict[str, Any]) -> str:
    """Return the answer, which is the same in every world."""
    found = result if "response" in result else next(iter(result["platforms"].values()))
    return str(found["response"])
