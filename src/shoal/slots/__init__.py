"""How many at once: one limit shared by all processes and machines."""
