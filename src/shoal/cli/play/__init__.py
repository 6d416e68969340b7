"""Lets a person play an agent from the terminal."""
