"""Conversations of two, many of them side by side."""
