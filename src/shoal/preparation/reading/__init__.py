"""Reads documents, and finds the people in them, without a language model."""
