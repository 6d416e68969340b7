"""Cores, memory and load of this machine or container."""

from shoal.machine.advice import (
    SECONDS_PER_CALL,
    Advice,
    Bound,
    Need,
    ServerProfile,
    advise,
    advise_shards,
    format_bytes,
)
from shoal.machine.hardware import UNLIMITED, Disk, Machine, inspect_disk, inspect_machine
from shoal.machine.pressure import THRESHOLDS, Alarm, Failures, Pressure, Throttle, watch_machine
from shoal.machine.purposes import NetworkNeed, PurposeAdvice, suit_purposes
from shoal.machine.sampling import Sample, Sampler
