"""The routes about people: one agent, surveys of many, and their network."""
