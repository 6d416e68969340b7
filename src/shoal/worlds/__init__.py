"""What an agent sees and what an action does."""
