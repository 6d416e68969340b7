"""HTTP, live stream and web pages over runs and experiments; keeps no state of runs."""
