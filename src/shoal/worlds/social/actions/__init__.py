"""What each action on a platform does, and when it is refused."""
