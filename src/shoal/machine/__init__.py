"""Cores, memory and load of this machine or container."""

from shoal.machine.advice import SECONDS_PER_CALL, Advice, Bound, Need, ServerProfile, advise, format_bytes
from shoal.machine.hardware import UNLIMITED, Disk, Machine, inspect_disk, inspect_machine
from shoal.machine.pressure import THRESHOLDS, Alarm, Failures, Pressure, Throttle, watch_machine
from shoal.machine.sampling import Sample, Sampler

__all__ = [
    # advice
    "Advice",
    "Bound",
    "Need",
    "SECONDS_PER_CALL",
    "ServerProfile",
    "advise",
    "format_bytes",
    # hardware
    "Disk",
    "Machine",
    "UNLIMITED",
    "inspect_disk",
    "inspect_machine",
    # pressure
    "Alarm",
    "Failures",
    "Pressure",
    "THRESHOLDS",
    "Throttle",
    "watch_machine",
    # sampling
    "Sample",
    "Sampler",
]
