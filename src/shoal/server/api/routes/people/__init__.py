"""The routes about people: one agent, surveys of many, their network, and seats in which a person plays one."""
