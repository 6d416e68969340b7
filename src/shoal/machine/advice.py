"""Recommends how many simulations to run side by side and how many calls to make at once, and what would allow more.

Calls to a language model spend their time waiting. Cores bound how many a second can be prepared and read, and not how
many are in flight; what a call costs while it waits is an open file and a little memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from operator import attrgetter

from shoal.machine.hardware import Disk, Machine, MemorySpace
from shoal.machine.pressure import THRESHOLDS, Pressure
from shoal.rate_limits import RateLimits
from shoal.text import format_count

KB, MB, GIB = 1_000, 1_000_000, 1 << 30

# What a run takes, measured as docs/concurrency.md says; rounded up.
#: Memory: of the process, for each person, and for each turn of a person.
OFFLINE_BYTES, OFFLINE_BYTES_PER_PERSON, OFFLINE_BYTES_PER_TURN = 70 * MB, 600, 1 * KB
ASKING_BYTES, ASKING_BYTES_PER_PERSON, ASKING_BYTES_PER_TURN = 95 * MB, 15 * KB, 4_500
#: Memory of a call while it waits: its prompt, its connection, and its task.
BYTES_PER_CALL = 50 * KB
#: CPU time of a call, with everything around it; one process uses one core.
CPU_SECONDS_PER_CALL = 0.0006
#: What a run writes: database, stream and journal.
DISK_BYTES_PER_TURN = 1_100

# Assumptions where nothing else is known.
#: The usual time to a reply of a hosted model.
SECONDS_PER_CALL = 1.5
#: A usual prompt and the longest reply; providers charge both against a limit before the call is made.
TOKENS_PER_CALL = 3_000

#: The part of a machine that is planned with; the rest is kept for peaks and other programs.
GOOD_CPU_SHARE = THRESHOLDS[Pressure.CPU].below
GOOD_MEMORY_SHARE = THRESHOLDS[Pressure.MEMORY].above
#: Files that a run needs besides its connections: databases, streams, the journal, libraries.
SPARE_FILES = 64
#: With less than this no run should start: SQLite needs space to commit and to roll back.
LEAST_DISK_BYTES = 200 * MB
LEAST_DISK_FILES = 200
FULL_DISK_SHARE = 0.95
#: With this many calls at once, more would seldom make a run faster.
PLENTY_OF_CALLS = 1_000
#: A bound is worth changing together with the lowest one if it is at most this many times as high.
NEAR = 1.25


@dataclass(frozen=True, slots=True)
class Need:
    """The size of a run. Each person is assumed to have a turn in every round, which is the most there can be."""

    people: int = 1_000
    rounds: int = 24
    worlds: int = 1
    #: Whether it asks language models.
    asks: bool = True
    #: The most calls that it makes at once; None: one for each person and world.
    max_workers: int | None = None

    @property
    def turns(self) -> int:
        return self.people * self.rounds * self.worlds

    @property
    def calls_at_once(self) -> int:
        acting = self.people * self.worlds
        return acting if self.max_workers is None else min(self.max_workers, acting)

    @property
    def memory_bytes(self) -> int:
        if not self.asks:
            return OFFLINE_BYTES + OFFLINE_BYTES_PER_PERSON * self.people + OFFLINE_BYTES_PER_TURN * self.turns
        known = ASKING_BYTES + ASKING_BYTES_PER_PERSON * self.people + ASKING_BYTES_PER_TURN * self.turns
        return known + BYTES_PER_CALL * self.calls_at_once

    @property
    def disk_bytes(self) -> int:
        return DISK_BYTES_PER_TURN * self.turns


@dataclass(frozen=True, slots=True)
class ServerProfile:
    """What is known about the model's server."""

    seconds_per_call: float = SECONDS_PER_CALL
    tokens_per_call: int = TOKENS_PER_CALL
    #: The limits that it publishes.
    allowance: RateLimits | None = None
    #: How many calls at once earlier runs found that it bears.
    at_once: int | None = None
    #: Whether it runs on this machine and needs its cores and memory.
    is_here: bool = False
    #: Answers at once of a server that Shoal starts itself, on this machine.
    slots: int | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """One resource that allows a limited number, why, and what would allow more."""

    what: str
    count: int
    reason: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """The recommendation: the first bound of each kind holds."""

    #: Simulations side by side, the lowest bound first.
    simulations: tuple[Bound, ...]
    #: Calls at once of all simulations together, the lowest bound first.
    calls: tuple[Bound, ...]
    #: Over how many processes one run alone is best spread; None where that is not known, or no model is asked.
    shards: Bound | None
    #: What to change, the most useful first.
    changes: tuple[str, ...]
    #: What would make a run fail.
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def advise(machine: Machine, disk: Disk | None, need: Need, served: ServerProfile | None = None) -> Advice:
    """Recommend numbers for runs of this size on this machine with this server."""
    server = served or ServerProfile()
    by_count = attrgetter("count")
    provided = sorted(_bound_by_provider(server), key=by_count)
    simulations = sorted(_bound_simulations(machine, disk, need, server, provided), key=by_count)
    calls = sorted([*_bound_calls(machine, need, server, simulations), *provided], key=by_count) if need.asks else []
    problems = tuple(_find_problems(machine, disk, need))
    changes = [*problems]
    few = [bound for bound in calls if bound.count < PLENTY_OF_CALLS]
    for bounds in (few, simulations):
        # First what raises the lowest bound, then what raises those that would be the lowest next.
        changes += [bound.remedy for bound in bounds if bound.remedy and bound.count <= NEAR * bounds[0].count]
    most = need.max_workers
    if need.asks and not few and most is not None and need.calls_at_once == most < PLENTY_OF_CALLS:
        changes.append(
            f"leave max_workers ({most:,}) out: the machine bears more, and what the server bears is learned"
        )
    warnings = tuple(_find_warnings(machine, disk, server))
    at_once = min(need.calls_at_once, calls[0].count) if calls else need.calls_at_once
    shards = advise_shards(machine, need, at_once / server.seconds_per_call)
    return Advice(tuple(simulations), tuple(calls), shards, tuple(dict.fromkeys(changes)), problems, warnings)


def advise_shards(machine: Machine, need: Need, calls_a_second: float) -> Bound | None:
    """Recommend over how many processes to spread one run that could make this many calls a second."""
    if not need.asks or machine.cores.usable is None:
        return None
    load = calls_a_second * CPU_SECONDS_PER_CALL
    reason = f"{calls_a_second:,.0f} calls a second are {load:.0%} of what one process can prepare and read"
    count = min(ceil(load), int(machine.cores.usable), need.people)
    if load <= 1.0 or count < 2:
        return Bound("one process", 1, reason)
    each = ASKING_BYTES + (need.memory_bytes - ASKING_BYTES) // count
    return Bound("cores", count, f"{reason}; each takes up to {format_bytes(each)} of memory")


# Simulations side by side


def _bound_simulations(
    machine: Machine, disk: Disk | None, need: Need, server: ServerProfile, provided: list[Bound]
) -> Iterator[Bound]:
    if (usable := machine.cores.usable) is not None:
        remedy = _suggest_cores(machine, usable)
        if need.asks:
            a_second = need.calls_at_once / server.seconds_per_call
            share = a_second * CPU_SECONDS_PER_CALL
            reason = (
                f"{usable:.3g} usable; a run with {need.calls_at_once:,} calls at once of "
                f"{server.seconds_per_call:.2g} s makes {a_second:,.0f} a second, {share:.0%} of one core"
            )
            yield Bound("cores", max(int(usable * GOOD_CPU_SHARE / share), 1), reason, remedy)
        else:
            reason = f"{usable:.3g} usable, and a run without a language model keeps one busy"
            yield Bound("cores", max(int(usable), 1), reason, remedy)
    if (space := _find_tightest(machine)) is not None:
        reason = f"{_describe_free(space)}, a run of this size takes up to {format_bytes(need.memory_bytes)}"
        count = space.below(GOOD_MEMORY_SHARE) // need.memory_bytes
        yield Bound("memory", max(count, 1), reason, _suggest_memory(space))
    if disk is not None:
        count = max(disk.free - LEAST_DISK_BYTES, 0) // max(need.disk_bytes, 1)
        reason = (
            f"{format_bytes(disk.free)} free at {disk.path}, "
            f"a run of this size writes up to {format_bytes(need.disk_bytes)}"
        )
        yield Bound("disk", max(count, 1), reason, f"free some disk space at {disk.path}, or use another disk")
    if need.asks and provided:
        count = max(ceil(provided[0].count / need.calls_at_once), 1)
        bears = format_count(provided[0].count, "call")
        reason = f"it bears about {bears} at once, one run makes up to {need.calls_at_once:,}"
        yield Bound("endpoint", count, reason, provided[0].remedy)


# Calls at once


def _bound_calls(machine: Machine, need: Need, server: ServerProfile, simulations: list[Bound]) -> Iterator[Bound]:
    if (usable := machine.cores.usable) is not None:
        a_second = usable * GOOD_CPU_SHARE / CPU_SECONDS_PER_CALL
        reason = (
            f"{usable:.3g} usable, good for {a_second:,.0f} calls a second; "
            f"waiting {server.seconds_per_call:.2g} s for each costs no CPU"
        )
        yield Bound("cores", max(int(a_second * server.seconds_per_call), 1), reason, _suggest_cores(machine, usable))
    if (most := machine.files.hard or machine.files.soft) is not None:
        processes = simulations[0].count if simulations else 1
        files = f"{most:,}" if most < 1 << 40 else "any number of"
        reason = f"{files} for a process, and each call needs one; counted for {processes:,} side by side"
        remedy = f"raise the limit of open files (ulimit -Hn) from {files} to 65536"
        yield Bound("open files", max(most - SPARE_FILES, 1) * processes, reason, remedy)
    if (space := _find_tightest(machine)) is not None:
        left = max(space.below(GOOD_MEMORY_SHARE) - need.memory_bytes, 0)
        reason = f"{_describe_free(space)}, a call that waits takes about {format_bytes(BYTES_PER_CALL)}"
        yield Bound("memory", max(left // BYTES_PER_CALL, 1), reason, _suggest_memory(space))


def _bound_by_provider(server: ServerProfile) -> Iterator[Bound]:
    """Turn the server's limits into calls at once: a rate, times the seconds of a call."""
    remedy = "ask the provider for a higher limit: its limit holds before this machine's"
    seconds = server.seconds_per_call
    limits = server.allowance or RateLimits()
    if limits.requests is not None:
        reason = f"the provider allows {limits.requests.limit:,.0f} requests a minute, and a call takes {seconds:.2g} s"
        yield Bound("requests a minute", max(ceil(limits.requests.limit * seconds / 60), 1), reason, remedy)
    if limits.tokens is not None:
        reason = (
            f"the provider allows {limits.tokens.limit:,.0f} tokens a minute, and a call takes about "
            f"{server.tokens_per_call:,} and {seconds:.2g} s"
        )
        count = ceil(limits.tokens.limit / server.tokens_per_call * seconds / 60)
        yield Bound("tokens a minute", max(count, 1), reason, f"{remedy}; or shorten prompts and mind.max_tokens")
    if server.at_once is not None:
        reason = f"earlier runs found that the server bears about {server.at_once:,} calls at once"
        yield Bound("learned", max(server.at_once, 1), reason, remedy)
    if server.slots is not None:
        reason = f"the model on this machine is served with {server.slots} answers at once, one for each core"
        yield Bound("slots", server.slots, reason, "use a machine with more cores, or a model elsewhere")


# What goes wrong


def _find_problems(machine: Machine, disk: Disk | None, need: Need) -> Iterator[str]:
    if disk is not None:
        if not disk.is_writable:
            yield f"{disk.path} cannot be written to: choose another folder with --out, or fix its permissions"
        free, writes = format_bytes(disk.free), format_bytes(need.disk_bytes)
        if disk.free < LEAST_DISK_BYTES:
            yield f"the disk is full: {free} free at {disk.path}; free some space"
        elif disk.free < need.disk_bytes:
            yield f"disk: {free} free at {disk.path}, and one run may write {writes}"
        if disk.free_files is not None and disk.free_files < LEAST_DISK_FILES:
            yield f"the disk can hold only {disk.free_files:,} more files at {disk.path} (df -i): remove some"
    most = machine.files.hard or machine.files.soft
    if most is not None and most <= SPARE_FILES:
        yield f"a process may open only {most} files, which is too few for a run: raise it (ulimit -n 65536)"
    space = _find_tightest(machine)
    if space is not None and space.free < need.memory_bytes:
        takes = format_bytes(need.memory_bytes)
        yield f"memory: {_describe_free(space)}, and one run of this size may take {takes}: {_suggest_memory(space)}"


def _find_warnings(machine: Machine, disk: Disk | None, server: ServerProfile) -> Iterator[str]:
    for space in machine.memory.spaces:
        if space.share is not None and space.share > GOOD_MEMORY_SHARE:
            most = f"{GOOD_MEMORY_SHARE:.0%}"
            yield f"memory of the {space.whose} is {space.share:.0%} full already; above {most} runs hold back"
    quota = machine.cores.quota
    if quota is not None and quota < 1:
        yield f"the CPU quota is {quota:.2g} of one core: whenever it is used up, everything stands still for a moment"
    if disk is not None and disk.free < (1 - FULL_DISK_SHARE) * disk.total:
        yield f"the disk at {disk.path} is {1 - disk.free / disk.total:.0%} full"
    if server.is_here:
        yield "the server is on this machine, and needs its cores and memory too: what is said here is without it"


def _suggest_cores(machine: Machine, usable: float) -> str:
    cores = machine.cores
    if cores.quota is not None and cores.quota <= usable and cores.quota < (cores.logical or 0):
        how = {"Kubernetes": "resources.limits.cpu", "Docker": "docker run --cpus"}.get(
            machine.container or "", "cpu.max"
        )
        return f"raise the CPU quota of {cores.quota:.2g} cores ({how}): the machine has {cores.logical}"
    if cores.allowed and cores.logical and len(cores.allowed) < cores.logical:
        return f"let it run on more than {len(cores.allowed)} of the {cores.logical} cores (taskset, cpuset.cpus)"
    return f"use a machine with more than {usable:.3g} {'core' if usable == 1 else 'cores'}"


def _suggest_memory(space: MemorySpace) -> str:
    if space.whose == "machine":
        others = "end other programs, or " if (space.share or 0.0) > 0.5 else ""
        return f"{others}use a machine with more memory"
    return f"raise the memory limit of the {space.whose}, now {format_bytes(space.total)}"


def _find_tightest(machine: Machine) -> MemorySpace | None:
    """Return the memory that reaches the good share first."""
    return min(machine.memory.spaces, key=lambda space: space.below(GOOD_MEMORY_SHARE), default=None)


# Wording


def format_bytes(count: int) -> str:
    """Return `3.2 GiB`, `150 MB` or `50 kB`: sizes of machines in units of 1,024, those of runs in round figures."""
    if count >= GIB:
        return f"{count / GIB:,.1f} GiB"
    return f"{count / MB:,.0f} MB" if count >= MB else f"{count / KB:,.0f} kB"


def _describe_free(space: MemorySpace) -> str:
    return f"{format_bytes(space.free)} free of the {space.whose}'s {format_bytes(space.total)}"
