"""The parts of a scenario as users declare them."""
