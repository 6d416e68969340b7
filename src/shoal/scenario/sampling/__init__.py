"""Draws people and their follow graph from what a scenario declares."""
