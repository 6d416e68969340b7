"""Measures how many calls or simulations at once are best."""
