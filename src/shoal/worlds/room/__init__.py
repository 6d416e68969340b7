"""People in a room: they talk, think, reach out, turn to things, form relationships."""
