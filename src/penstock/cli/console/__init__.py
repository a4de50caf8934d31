"""What the console shows, as plain JSON that anyone can have: from the run, and from the log."""
