"""The command doctor: examines the machine and the server, and recommends how many at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from shoal.cli.options import PATH, POSITIVE, Changes, json_option, load_scenario
from shoal.cli.views.output import Output, echo_json, label_table
from shoal.machine import SECONDS_PER_CALL, UNLIMITED, Bound, Machine, format_bytes
from shoal.models.local import ModelSpeed, ServerSize
from shoal.runs import RUNS, DoctorReport, DoctorTarget, examine, list_limits
from shoal.text import format_count

_LABEL_WIDTH = 12
#: Bounds of calls that do not come from the server.
_MACHINE_BOUNDS = frozenset(("cores", "open files", "memory"))
ReportLine = tuple[str, Text]


@click.command("doctor")
@click.argument("scenario", type=PATH, required=False)
@click.option("--model", metavar="NAME", help="Look at this model's server too, such as openai/gpt-4.1-mini.")
@click.option("--call", is_flag=True, help="Make one call of one token, which shows more and may cost a little money.")
@click.option(
    "--latency",
    type=POSITIVE,
    default=SECONDS_PER_CALL,
    show_default=True,
    metavar="SECONDS",
    help="What one call takes.",
)
@click.option("--out", type=PATH, default=RUNS, metavar="DIR", help="Where runs are to go; default: runs.")
@json_option
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
    if scenario is None:
        target = DoctorTarget.of_usual_runs(model)
    else:
        target = DoctorTarget.of_scenario(load_scenario(scenario, model, Changes({})))
    report = examine(target, options["out"], options["latency"], call=options["call"])
    if as_json:
        echo_json(report.as_dict())
    else:
        # What is drawn has no control characters of others any more, and keeps its own.
        click.echo(describe_report(report, target.name))
    if report.problems:
        raise click.exceptions.Exit(1)


def describe_report(report: DoctorReport, name: str = "") -> str:
    """Lay the report out as wide as the terminal; `name` is the scenario's."""
    console = Output()
    # What would make a run fail comes first: with a dead server, the CPU does not matter.
    problems = [("problem", Text(text, "red")) for text in report.problems]
    advice = _advice_lines(report, name)
    with console.capture() as captured:
        for part in (problems, _machine_lines(report), _endpoint_lines(report), advice, _change_lines(report)):
            if lines := list(part):
                console.print(label_table(lines, _LABEL_WIDTH))
                console.print()
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines())


def _machine_lines(report: DoctorReport) -> Iterator[ReportLine]:
    machine, disk, cores = report.machine, report.disk, report.machine.cores
    if cores.usable is None:
        usable = "unknown"
    elif cores.usable == cores.logical:
        usable = f"{cores.logical}, all usable"
    else:
        why = "by quota" if cores.quota is not None and cores.quota <= cores.usable else "the others are not allowed"
        usable = f"{cores.usable:.3g} usable of {cores.logical or 'an unknown number'} ({why})"
    busy = "" if report.sample.cpu is None else f", {report.sample.cpu:.0%} busy now"
    yield "cores", Text(usable + busy)
    yield "memory", Text("; ".join(_describe_memory(machine)) or "unknown")
    container, space = machine.container or "none", machine.memory.group
    if machine.cgroups is None:
        groups = "control groups unknown"
    else:
        limits = [f"CPU {cores.quota:.3g} cores"] if cores.quota is not None else []
        limits += [f"memory {format_bytes(space.total)}"] if space else []
        groups = f"control groups {machine.cgroups}, {' and '.join(limits) or 'no limit of CPU or memory'}"
    yield "container", Text(f"{container}; {groups}")
    soft, hard = machine.files.soft, machine.files.hard
    if soft is None or hard is None:
        files = "unknown"
    else:
        more = f" ({soft:,} now; Shoal asks for more by itself)" if soft < hard else ""
        files = f"{'any number' if hard >= UNLIMITED else f'{hard:,}'} for each process{more}"
    yield "open files", Text(files)
    free = f"{format_bytes(disk.free)} free of {format_bytes(disk.total)} at {disk.path}" if disk else "unknown"
    yield "disk", Text(free)


def _describe_memory(machine: Machine) -> Iterator[str]:
    for space in machine.memory.spaces:
        owner = "" if space.whose == "machine" else f"the {space.whose}'s "
        total = f"{owner}{format_bytes(space.total)}"
        if space.share is None:
            yield f"{total}, use unknown"
        else:
            yield f"{format_bytes(space.free)} free of {total} ({space.share:.0%} used)"
    swap = machine.memory.swap_total
    if swap is not None:
        yield f"{format_bytes(swap)} of swap" if swap else "no swap"


def _endpoint_lines(report: DoctorReport) -> Iterator[ReportLine]:
    for each in report.endpoints:
        yield "endpoint", Text.assemble((each.model, "bold"), f" at {each.base_url}" if each.base_url else "")
        if each.problem:
            continue
        if each.local is not None:
            yield from _local_lines(each.local, each.speed)
            continue
        tls = f"{each.tls}, certificate trusted" if each.tls else "not encrypted"
        opened, answered = _format_milliseconds(each.connect_ms), _format_milliseconds(each.round_trip_ms)
        yield "", Text(f"reached in {opened} ({tls}), a request and its reply take {answered}")
        if each.key_variable is None:
            key = "no key is sent" + (", and none is wanted" if each.is_key_proven else "")
        elif each.is_key_proven:
            key = f"the key in {each.key_variable} is accepted"
        else:
            listed = "was not refused, but many servers list their models to anybody"
            why = listed if each.models else "was not needed so far"
            key = f"the key in {each.key_variable} {why}; --call puts it to the test"
        yield "", Text(key)
        if each.call_ms is not None:
            yield "", Text(f"a call of one token took {_format_milliseconds(each.call_ms)}")
        limits = [f"{limit:,.0f} {name}" for name, limit in list_limits(each.allowance).items()]
        if limits:
            yield "", Text(f"allows {' and '.join(limits)} a minute")
        elif each.call_ms is None:
            unknown = "publishes no limits with its list of models; --call shows those that come with an answer"
            yield "", Text(unknown)
        else:
            yield "", Text("publishes no limits; runs find out what it bears")


def _local_lines(size: ServerSize, speed: ModelSpeed | None) -> Iterator[ReportLine]:
    yield "", Text("runs on this machine: it needs no key and costs nothing")
    threads = format_count(size.threads, "thread")
    yield "", Text(f"{size.slots} answers at once of up to {size.context:,} tokens, on {threads}")
    if speed is None:
        yield "", Text("--call starts it and measures how fast it is")
    else:
        yield "", Text(f"reads {speed.read:,.0f} and writes {speed.written:,.0f} tokens a second, one answer at a time")


def _format_milliseconds(count: float | None) -> str:
    return "less than 1 ms" if count is None or count < 1 else f"{count:,.0f} ms"


def _advice_lines(report: DoctorReport, name: str) -> Iterator[ReportLine]:
    for need, advice in zip(report.needs, report.advice, strict=True):
        size = f"people {need.people:,}, rounds {need.rounds:,}, worlds {need.worlds}"
        minds = f"language models, up to {need.calls_at_once:,} calls at once" if need.asks else "no language model"
        yield "for", Text(f"{name or 'runs'}: {size}, {minds}", "bold")
        yield "simulations", _describe_bound(advice.simulations, "side by side")
        for each in report.suit_purposes(advice):
            yield "", Text.assemble(f"{each.purpose}: ", (f"{each.simulations:,}", "bold"), (f", {each.reason}", "dim"))
        if need.asks:
            yield "calls", _describe_bound(advice.calls, "at once, all together")
            if all(bound.what in _MACHINE_BOUNDS for bound in advice.calls):
                unknown = "the server's own limit is not known, and often lower: runs find it by themselves"
                yield "", Text(unknown, "dim")
        if advice.shards is not None:
            yield "shards", _describe_bound((advice.shards,), "for a run alone (--shards)")
        if (network := report.measure_network(advice)) is not None:
            yield (
                "network",
                Text(
                    f"these calls send about {network.sent:,.0f} Mbit/s and receive {network.received:,.0f}; on a "
                    "slower line they wait for one another"
                ),
            )


def _describe_bound(bounds: tuple[Bound, ...], how: str) -> Text:
    if not bounds:
        return Text("unknown: nothing about this machine can be read")
    first = bounds[0]
    return Text.assemble((f"{first.count:,}", "bold"), f" {how}. {first.what.capitalize()}: {first.reason}")


def _change_lines(report: DoctorReport) -> Iterator[ReportLine]:
    changes = [text for text in report.changes if text not in report.problems]
    label = "change then" if report.problems else "change first"
    for number, text in enumerate(changes, 1):
        yield label if number == 1 else "", Text(f"{number}. {text}")
    for text in report.warnings:
        yield "warning", Text(text, "yellow")
