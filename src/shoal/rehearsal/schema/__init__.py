"""Invents values that fit a JSON schema."""
