"""The declared input, its validation, and the one place that builds live objects from it."""
