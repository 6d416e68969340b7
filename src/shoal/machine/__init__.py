"""Cores, memory and load of this machine or container."""
