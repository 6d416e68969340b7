"""Copies what was committed to elsewhere; a broken sink cannot harm a run."""
