"""One simulation made durable: its directory, its state, its worker and the commands to it."""
