"""HTTP, live stream and web pages over runs and experiments; keeps no run state of its own."""
