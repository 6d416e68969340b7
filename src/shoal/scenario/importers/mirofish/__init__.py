"""Reads a directory that MiroFish prepared."""
