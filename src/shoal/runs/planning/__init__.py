"""Estimates what a run will take before it is paid for."""
