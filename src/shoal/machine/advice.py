"""How many simulations side by side and how many calls at once, why, and what would allow more.

Calls to a language model are waiting. Cores bound how many a second can be prepared and read, and not how many can be
waited for at once; what a call costs while it waits is an open file and a little memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from shoal.machine.hardware import Disk, Machine, MemorySpace
from shoal.machine.pressure import THRESHOLDS, Pressure
from shoal.rate_limits import RateLimits

KB, MB, MIB, GIB = 1_000, 1_000_000, 1 << 20, 1 << 30

# What a run takes, measured as docs/concurrency.md says; rounded up.
#: Memory: of the process, for each person, and for each turn that somebody has.
OFFLINE_BYTES, OFFLINE_BYTES_PER_PERSON, OFFLINE_BYTES_PER_TURN = 70 * MB, 600, 1 * KB
ASKING_BYTES, ASKING_BYTES_PER_PERSON, ASKING_BYTES_PER_TURN = 95 * MB, 15 * KB, 4_500
#: Memory of a call while it waits: its prompt, its connection, and whoever waits for it.
BYTES_PER_CALL = 50 * KB
#: CPU time of a call, with everything around it; one process uses one core.
CPU_SECONDS_PER_CALL = 0.0006
#: What a run writes: database, stream and journal.
DISK_BYTES_PER_TURN = 1_100

# What is taken for granted where nobody says otherwise.
#: Until a usual reply of a hosted model is there.
SECONDS_PER_CALL = 1.5
#: A usual prompt and the longest reply; providers charge both against a limit before the call is made.
TOKENS_PER_CALL = 3_000

#: Up to here a machine does well; what is above is kept for peaks and for others.
GOOD_CPU_SHARE = THRESHOLDS[Pressure.CPU].below
GOOD_MEMORY_SHARE = THRESHOLDS[Pressure.MEMORY].above
#: Files that a run needs besides its connections: databases, streams, the journal, libraries.
SPARE_FILES = 64
#: Below this nothing should be started: SQLite needs space to commit, and to roll back.
LEAST_DISK_BYTES = 200 * MB
LEAST_DISK_FILES = 200
FULL_DISK_SHARE = 0.95
#: More calls at once than this are seldom what somebody waits for.
PLENTY_OF_CALLS = 1_000
#: A bound is worth changing together with the one that holds if it allows no more than so many times as much.
NEAR = 1.25


@dataclass(frozen=True, slots=True)
class Need:
    """One run, as far as it matters here. People are taken to have a turn in every round: the most it can be."""

    people: int = 1_000
    rounds: int = 24
    worlds: int = 1
    #: Whether it asks language models.
    asks: bool = True
    #: Calls that it makes at once, at most; None: as many as have somebody to make them.
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
class Served:
    """What is known about the server that is asked."""

    seconds_per_call: float = SECONDS_PER_CALL
    tokens_per_call: int = TOKENS_PER_CALL
    #: What it publishes about its limits.
    allowance: RateLimits | None = None
    #: How many calls at once it was seen to bear.
    at_once: int | None = None
    #: Whether it runs on this machine, and needs its cores and memory.
    is_here: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """One thing that allows only so many, why, and what would allow more."""

    what: str
    count: int
    reason: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    #: Simulations side by side: every bound, the one that holds first.
    simulations: tuple[Bound, ...]
    #: Calls at once, of all of them together.
    calls: tuple[Bound, ...]
    #: What to change, most useful first.
    changes: tuple[str, ...]
    #: What would make a run fail.
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def advise(machine: Machine, disk: Disk | None, need: Need, served: Served | None = None) -> Advice:
    """The recommendation for runs such as `need`, on this machine, with this server."""
    server = served or Served()
    provided = sorted(_provider_bounds(server), key=_count)
    simulations = sorted(_simulation_bounds(machine, disk, need, server, provided), key=_count)
    calls = sorted([*_call_bounds(machine, need, server, simulations), *provided], key=_count) if need.asks else []
    problems = tuple(_problems(machine, disk, need))
    return Advice(
        tuple(simulations),
        tuple(calls),
        tuple(dict.fromkeys([*problems, *_changes(simulations, calls, need)])),
        problems,
        tuple(_warnings(machine, disk, server)),
    )


def _count(bound: Bound) -> int:
    return bound.count


# Simulations side by side


def _simulation_bounds(
    machine: Machine, disk: Disk | None, need: Need, server: Served, provided: list[Bound]
) -> Iterator[Bound]:
    if (usable := machine.cores.usable) is not None:
        yield _simulations_by_cores(machine, usable, need, server)
    if (room := _room(machine)) is not None:
        yield _simulations_by_memory(room, need)
    if disk is not None:
        count = max(disk.free - LEAST_DISK_BYTES, 0) // max(need.disk_bytes, 1)
        reason = (
            f"{in_bytes(disk.free)} free at {disk.path}, a run of this size writes up to {in_bytes(need.disk_bytes)}"
        )
        yield Bound("disk", max(count, 1), reason, f"free some disk space at {disk.path}, or use another disk")
    if need.asks and provided:
        count = max(ceil(provided[0].count / need.calls_at_once), 1)
        reason = f"it bears about {_calls(provided[0].count)} at once, one run makes up to {need.calls_at_once:,}"
        yield Bound("endpoint", count, reason, provided[0].remedy)


def _simulations_by_cores(machine: Machine, usable: float, need: Need, server: Served) -> Bound:
    remedy = _more_cores(machine, usable)
    if not need.asks:
        reason = f"{usable:.3g} usable, and a run without a language model keeps one busy"
        return Bound("cores", max(int(usable), 1), reason, remedy)
    a_second = need.calls_at_once / server.seconds_per_call
    share = a_second * CPU_SECONDS_PER_CALL
    reason = (
        f"{usable:.3g} usable; a run with {need.calls_at_once:,} calls at once of {server.seconds_per_call:.2g} s "
        f"makes {a_second:,.0f} a second, {share:.0%} of one core"
    )
    return Bound("cores", max(int(usable * GOOD_CPU_SHARE / share), 1), reason, remedy)


def _simulations_by_memory(room: MemorySpace, need: Need) -> Bound:
    reason = f"{_free(room)}, a run of this size takes up to {in_bytes(need.memory_bytes)}"
    return Bound("memory", max(room.below(GOOD_MEMORY_SHARE) // need.memory_bytes, 1), reason, _more_memory(room))


# Calls at once


def _call_bounds(machine: Machine, need: Need, server: Served, simulations: list[Bound]) -> Iterator[Bound]:
    if (usable := machine.cores.usable) is not None:
        a_second = usable * GOOD_CPU_SHARE / CPU_SECONDS_PER_CALL
        reason = (
            f"{usable:.3g} usable, good for {a_second:,.0f} calls a second; "
            f"waiting {server.seconds_per_call:.2g} s for each costs no CPU"
        )
        yield Bound("cores", max(int(a_second * server.seconds_per_call), 1), reason, _more_cores(machine, usable))
    if (most := machine.files.hard or machine.files.soft) is not None:
        processes = simulations[0].count if simulations else 1
        reason = f"{_many(most)} for a process, and each call needs one; counted for {processes:,} side by side"
        remedy = f"raise the limit of open files (ulimit -Hn) from {_many(most)} to 65536"
        yield Bound("open files", max(most - SPARE_FILES, 1) * processes, reason, remedy)
    if (room := _room(machine)) is not None:
        left = max(room.below(GOOD_MEMORY_SHARE) - need.memory_bytes, 0)
        reason = f"{_free(room)}, a call that waits takes about {in_bytes(BYTES_PER_CALL)}"
        yield Bound("memory", max(left // BYTES_PER_CALL, 1), reason, _more_memory(room))


def _provider_bounds(server: Served) -> Iterator[Bound]:
    """What the server allows: a rate, times what a call takes, is how many are under way at once."""
    remedy = "ask the provider for a higher limit: its limit holds before this machine's"
    seconds = server.seconds_per_call
    told = server.allowance or RateLimits()
    if told.requests is not None:
        reason = f"the provider allows {told.requests.limit:,.0f} requests a minute, and a call takes {seconds:.2g} s"
        yield Bound("requests a minute", max(ceil(told.requests.limit * seconds / 60), 1), reason, remedy)
    if told.tokens is not None:
        reason = (
            f"the provider allows {told.tokens.limit:,.0f} tokens a minute, and a call takes about "
            f"{server.tokens_per_call:,} and {seconds:.2g} s"
        )
        count = ceil(told.tokens.limit / server.tokens_per_call * seconds / 60)
        yield Bound("tokens a minute", max(count, 1), reason, f"{remedy}; or shorten prompts and mind.max_tokens")
    if server.at_once is not None:
        reason = f"earlier runs found that the server bears about {server.at_once:,} calls at once"
        yield Bound("learned", max(server.at_once, 1), reason, remedy)


# What to change


def _changes(simulations: list[Bound], calls: list[Bound], need: Need) -> Iterator[str]:
    """What holds first, then whatever would hold as soon as that is done."""
    few = [bound for bound in calls if bound.count < PLENTY_OF_CALLS]
    for bounds in (few, simulations):
        for bound in bounds:
            if bound.remedy and bound.count <= NEAR * bounds[0].count:
                yield bound.remedy
    most = need.max_workers
    if need.asks and not few and most is not None and need.calls_at_once == most < PLENTY_OF_CALLS:
        yield f"leave max_workers ({most:,}) out: the machine bears more, and what the server bears is learned"


def _problems(machine: Machine, disk: Disk | None, need: Need) -> Iterator[str]:
    if disk is not None:
        yield from _disk_problems(disk, need)
    most = machine.files.hard or machine.files.soft
    if most is not None and most <= SPARE_FILES:
        yield f"a process may open only {most} files, which is too few for a run: raise it (ulimit -n 65536)"
    room = _room(machine)
    if room is not None and room.free < need.memory_bytes:
        takes = in_bytes(need.memory_bytes)
        yield f"memory: {_free(room)}, and one run of this size may take {takes}: {_more_memory(room)}"


def _disk_problems(disk: Disk, need: Need) -> Iterator[str]:
    if not disk.is_writable:
        yield f"{disk.path} cannot be written to: choose another folder with --out, or fix its permissions"
    if disk.free < LEAST_DISK_BYTES:
        yield f"the disk is full: {in_bytes(disk.free)} free at {disk.path}; free some space"
    elif disk.free < need.disk_bytes:
        yield f"disk: {in_bytes(disk.free)} free at {disk.path}, and one run may write {in_bytes(need.disk_bytes)}"
    if disk.free_files is not None and disk.free_files < LEAST_DISK_FILES:
        yield f"the disk can hold only {disk.free_files:,} more files at {disk.path} (df -i): remove some"


def _warnings(machine: Machine, disk: Disk | None, server: Served) -> Iterator[str]:
    for room in machine.memory.rooms:
        if room.share is not None and room.share > GOOD_MEMORY_SHARE:
            most = f"{GOOD_MEMORY_SHARE:.0%}"
            yield f"memory of the {room.whose} is {room.share:.0%} full already; above {most} runs hold back"
    quota = machine.cores.quota
    if quota is not None and quota < 1:
        yield f"the CPU quota is {quota:.2g} of one core: whenever it is used up, everything stands still for a moment"
    if disk is not None and disk.free < (1 - FULL_DISK_SHARE) * disk.total:
        yield f"the disk at {disk.path} is {1 - disk.free / disk.total:.0%} full"
    if server.is_here:
        yield "the server is on this machine, and needs its cores and memory too: what is said here is without it"


def _more_cores(machine: Machine, usable: float) -> str:
    cores = machine.cores
    if cores.quota is not None and cores.quota <= usable and cores.quota < (cores.logical or 0):
        how = {"Kubernetes": "resources.limits.cpu", "Docker": "docker run --cpus"}.get(
            machine.container or "", "cpu.max"
        )
        return f"raise the CPU quota of {cores.quota:.2g} cores ({how}): the machine has {cores.logical}"
    if cores.allowed and cores.logical and len(cores.allowed) < cores.logical:
        return f"let it run on more than {len(cores.allowed)} of the {cores.logical} cores (taskset, cpuset.cpus)"
    return f"use a machine with more than {_cores(usable)}"


def _more_memory(room: MemorySpace) -> str:
    if room.whose == "machine":
        others = "end other programs, or " if (room.share or 0.0) > 0.5 else ""
        return f"{others}use a machine with more memory"
    return f"raise the memory limit of the {room.whose}, now {in_bytes(room.total)}"


def _room(machine: Machine) -> MemorySpace | None:
    """Where the 85 % are reached first."""
    return min(machine.memory.rooms, key=lambda room: room.below(GOOD_MEMORY_SHARE), default=None)


# In words


def in_bytes(count: int) -> str:
    """`3.2 GiB`, `150 MB`, `50 kB`: memory and disks in units of 1,024, what a run takes in round figures."""
    if count >= GIB:
        return f"{count / GIB:,.1f} GiB"
    return f"{count / MB:,.0f} MB" if count >= MB else f"{count / KB:,.0f} kB"


def _free(room: MemorySpace) -> str:
    return f"{in_bytes(room.free)} free of the {room.whose}'s {in_bytes(room.total)}"


def _cores(usable: float) -> str:
    return f"{usable:.3g} core" if usable == 1 else f"{usable:.3g} cores"


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count:,} calls"


def _many(count: int) -> str:
    return f"{count:,}" if count < 1 << 40 else "any number of"
