"""Reads documents and makes people with a language model: questions, and how replies are checked."""
