"""A run whose worker is on another machine: what it writes arrives in the run's directory while it goes on."""
