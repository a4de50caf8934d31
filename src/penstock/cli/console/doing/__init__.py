"""What the console does where it may write, for those who have its key."""
