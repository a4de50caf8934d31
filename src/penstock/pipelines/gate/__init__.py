"""From the rows of a topic to typed records, and from bad rows to dead letters."""
