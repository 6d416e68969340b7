"""Answers and networks that a server keeps between requests, because they take long to compute."""
