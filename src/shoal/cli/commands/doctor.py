"""The command that looks at the machine and at the server, and says how many at once: doctor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shoal.cli.views.output import echo_json
from shoal.machine.advice import SECONDS_PER_CALL, Advice, Bound, Need, format_bytes
from shoal.machine.hardware import UNLIMITED, Machine, MemorySpace
from shoal.models.openai.probe import ProbeResult
from shoal.runs.doctor import DoctorReport, DoctorTarget, anything, as_dict, examine, limits

#: Where runs go if nobody says otherwise.
RUNS = Path("runs")

#: What reads scenarios is loaded only where there is one.
_INTENDED = "shoal.cli.commands.doctor_target"
_PATH = click.Path(path_type=Path)
_LABEL_WIDTH = 12
#: Bounds of calls that are no matter of the server.
_OF_THE_MACHINE = frozenset(("cores", "open files", "memory"))
ReportLine = tuple[str, Text]


@click.command("doctor")
@click.argument("scenario", type=_PATH, required=False)
@click.option("--model", metavar="NAME", help="Look at this model's server too, such as openai/gpt-4.1-mini.")
@click.option("--call", is_flag=True, help="Make one call of one token, which shows more and may cost a little money.")
@click.option(
    "--latency",
    type=click.FloatRange(min=0, min_open=True),
    default=SECONDS_PER_CALL,
    show_default=True,
    metavar="SECONDS",
    help="What one call takes.",
)
@click.option("--out", type=_PATH, default=RUNS, metavar="DIR", help="Where runs are to go; default: runs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor_(scenario: Path | None, model: str | None, as_json: bool, **options: Any) -> None:
    """Recommend how many simulations and calls at once suit this machine and this server, with reasons.

    Looks at cores, memory, the limits of a container, disk and open files. With a model, named or the scenario's, also
    at its server: whether it can be reached and takes the key. That costs nothing; --call asks it for one token, which
    may cost a fraction of a cent and shows the limits that it publishes. No run is started, and nothing is written.

    Exits with 1 where something would make a run fail.

    \b
    Examples:
      shoal doctor
      shoal doctor examples/rumour.yaml
      shoal doctor scenario.yaml --model openai/gpt-4.1-mini --call
      shoal doctor --model ollama/llama3.2 --latency 4
      shoal doctor --json | jq .problems
    """
    subject: DoctorTarget = (
        anything(model) if scenario is None else import_module(_INTENDED).doctor_target(scenario, model)
    )
    found = examine(subject, options["out"], options["latency"], call=options["call"])
    if as_json:
        echo_json(as_dict(found))
    else:
        click.echo(describe_report(found, subject.name))
    if found.problems:
        raise click.exceptions.Exit(1)


def describe_report(found: DoctorReport, name: str = "") -> str:
    """Everything in words, as wide as the terminal; `name` is the scenario's."""
    console = Console(highlight=False)
    parts = [_of_machine(found), _of_endpoints(found), _of_advice(found, name), _of_changes(found)]
    with console.capture() as captured:
        for part in parts:
            if lines := list(part):
                console.print(_table(lines))
                console.print()
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines())


def _table(lines: Iterable[ReportLine]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True, width=_LABEL_WIDTH)
    table.add_column(overflow="fold")
    for label, text in lines:
        table.add_row(label, text)
    return table


# The machine


def _of_machine(found: DoctorReport) -> Iterator[ReportLine]:
    machine = found.machine
    busy = "" if found.sample.cpu is None else f", {found.sample.cpu:.0%} busy now"
    yield "cores", Text(_cores(machine) + busy)
    yield "memory", Text("; ".join([*map(_room, machine.memory.spaces), *_swap(machine)]) or "unknown")
    yield "container", Text(_container(machine))
    yield "open files", Text(_files(machine))
    yield "disk", Text(_disk(found))


def _cores(machine: Machine) -> str:
    cores = machine.cores
    if cores.usable is None:
        return "unknown"
    if cores.usable == cores.logical:
        return f"{cores.logical}, all usable"
    why = "by quota" if cores.quota is not None and cores.quota <= cores.usable else "the others are not allowed"
    return f"{cores.usable:.3g} usable of {cores.logical or 'an unknown number'} ({why})"


def _room(room: MemorySpace) -> str:
    whose = "" if room.whose == "machine" else f"the {room.whose}'s "
    if room.share is None:
        return f"{whose}{format_bytes(room.total)}, use unknown"
    return f"{format_bytes(room.free)} free of {whose}{format_bytes(room.total)} ({room.share:.0%} used)"


def _swap(machine: Machine) -> Iterator[str]:
    total = machine.memory.swap_total
    if total is not None:
        yield f"{format_bytes(total)} of swap" if total else "no swap"


def _container(machine: Machine) -> str:
    kept = machine.container or "none"
    if machine.cgroups is None:
        return f"{kept}; control groups unknown"
    quota, room = machine.cores.quota, machine.memory.group
    limits = [f"CPU {quota:.3g} cores"] if quota is not None else []
    limits += [f"memory {format_bytes(room.total)}"] if room else []
    return f"{kept}; control groups {machine.cgroups}, {' and '.join(limits) or 'no limit of CPU or memory'}"


def _files(machine: Machine) -> str:
    soft, hard = machine.files.soft, machine.files.hard
    if soft is None or hard is None:
        return "unknown"
    describe_report = "any number" if hard >= UNLIMITED else f"{hard:,}"
    return f"{describe_report} for each process" + (
        f" ({soft:,} now; Shoal asks for more by itself)" if soft < hard else ""
    )


def _disk(found: DoctorReport) -> str:
    disk = found.disk
    if disk is None:
        return "unknown"
    return f"{format_bytes(disk.free)} free of {format_bytes(disk.total)} at {disk.path}"


# The servers


def _of_endpoints(found: DoctorReport) -> Iterator[ReportLine]:
    for each in found.endpoints:
        yield "endpoint", Text.assemble((each.model, "bold"), f" at {each.base_url}" if each.base_url else "")
        if each.problem:
            continue
        for line in _reached(each):
            yield "", Text(line)


def _reached(each: ProbeResult) -> Iterator[str]:
    tls = f"{each.tls}, certificate trusted" if each.tls else "not encrypted"
    opened, answered = _milliseconds(each.connect_ms), _milliseconds(each.round_trip_ms)
    yield f"reached in {opened} ({tls}), a request and its reply take {answered}"
    yield _keyed(each)
    if each.call_ms is not None:
        yield f"a call of one token took {_milliseconds(each.call_ms)}"
    yield _published(each)


def _keyed(each: ProbeResult) -> str:
    if each.key_variable is None:
        return "no key is sent" + (", and none is wanted" if each.is_key_proven else "")
    if each.is_key_proven:
        return f"the key in {each.key_variable} is accepted"
    refused = (
        "was not refused, but many servers list their models to anybody" if each.models else "was not needed so far"
    )
    return f"the key in {each.key_variable} {refused}; --call puts it to the test"


def _published(each: ProbeResult) -> str:
    describe_report = [f"{limit:,.0f} {name}" for name, limit in limits(each.allowance).items()]
    if describe_report:
        return f"allows {' and '.join(describe_report)} a minute"
    if each.call_ms is None:
        return "publishes no limits with its list of models; --call shows those that come with an answer"
    return "publishes no limits; runs find out what it bears"


def _milliseconds(count: float | None) -> str:
    return "less than 1 ms" if count is None or count < 1 else f"{count:,.0f} ms"


# What follows


def _of_advice(found: DoctorReport, name: str) -> Iterator[ReportLine]:
    for need, advice in zip(found.needs, found.advice, strict=True):
        yield "for", Text(_needed(need, name), "bold")
        yield from _recommended(need, advice, found)


def _needed(need: Need, name: str) -> str:
    size = f"people {need.people:,}, rounds {need.rounds:,}, worlds {need.worlds}"
    minds = f"language models, up to {need.calls_at_once:,} calls at once" if need.asks else "no language model"
    return f"{name or 'runs'}: {size}, {minds}"


def _recommended(need: Need, advice: Advice, found: DoctorReport) -> Iterator[ReportLine]:
    yield "simulations", _bound(advice.simulations, "side by side")
    if need.asks:
        yield "calls", _bound(advice.calls, "at once, all together")
        if all(bound.what in _OF_THE_MACHINE for bound in advice.calls):
            yield "", Text("the server's own limit is not known, and often lower: runs find it by themselves", "dim")


def _bound(bounds: tuple[Bound, ...], how: str) -> Text:
    if not bounds:
        return Text("unknown: nothing about this machine can be read")
    first = bounds[0]
    return Text.assemble((f"{first.count:,}", "bold"), f" {how}. {first.what.capitalize()}: {first.reason}")


def _of_changes(found: DoctorReport) -> Iterator[ReportLine]:
    for text in found.problems:
        yield "problem", Text(text, "red")
    changes = [text for text in found.changes if text not in found.problems]
    for number, text in enumerate(changes, 1):
        yield "change first" if number == 1 else "", Text(f"{number}. {text}")
    for text in found.warnings:
        yield "warning", Text(text, "yellow")
