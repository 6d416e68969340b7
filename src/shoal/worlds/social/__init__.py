"""The social platforms: what people see of one another, and what their actions do."""
