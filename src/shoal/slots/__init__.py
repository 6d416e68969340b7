"""How many at once: one limit shared by all processes and machines."""

from shoal.slots.client import Slots, open_slots, remember_limits
from shoal.slots.connection import fetch_snapshot, open_broker, resize_pool
from shoal.slots.leases import AGENTS, CANCELLED, Backoff, CallEnd, CallOutcome, HolderView, Lease, PoolView, Snapshot
from shoal.slots.location import BrokerLocation, RemoteBroker
