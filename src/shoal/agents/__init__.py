"""A persona with memory and a mind."""
