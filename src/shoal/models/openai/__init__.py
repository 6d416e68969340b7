"""Talks to OpenAI-compatible servers: requests, replies, errors, endpoints."""
