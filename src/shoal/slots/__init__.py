"""How many at once: one limit shared by all processes and machines."""

from shoal.slots.admin import fetch_snapshot, resize_pool
from shoal.slots.client import Slots, open_slots
from shoal.slots.leases import AGENTS, CANCELLED, Backoff, CallEnd, CallOutcome, HolderView, Lease, PoolView, Snapshot
from shoal.slots.location import BrokerLocation

__all__ = [
    # admin
    "fetch_snapshot",
    "resize_pool",
    # client
    "Slots",
    "open_slots",
    # leases
    "AGENTS",
    "Backoff",
    "CANCELLED",
    "CallEnd",
    "CallOutcome",
    "HolderView",
    "Lease",
    "PoolView",
    "Snapshot",
    # location
    "BrokerLocation",
]
