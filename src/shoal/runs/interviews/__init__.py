"""Interviews copies of agents, without changing the run."""
