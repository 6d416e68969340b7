"""Runs a run again from its journal: explain, diff."""
