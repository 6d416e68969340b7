"""Learns what a provider allows: calls in flight, requests and tokens per minute."""
