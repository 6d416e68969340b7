"""Checks a scenario and says what is wrong with it."""
