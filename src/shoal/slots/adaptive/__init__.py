"""Learns what a provider allows: calls in flight, requests and tokens per minute."""

from shoal.slots.adaptive.limiter import Learned
from shoal.slots.adaptive.store import LimitStore, forget_limits
